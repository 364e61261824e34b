// Command products writes the assembly of package learning to its output.
//
//	go generate ./learning
//
// Rows are of float32, and all else is of float64: a number of a row is widened before it is
// multiplied. What a row comes to depends on the row and on what it is multiplied by, in one order
// of operations, and on no row next to it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// classes is how many of them are worked on at once, and lanes how many numbers.
const (
	classes = 5
	lanes   = 4
)

func main() {
	ConstraintExpr("amd64,!purego")
	scores()
	add()
	square()
	Generate()
}

func at(p Register, disp int) Mem { return Mem{Base: p, Disp: disp} }

func zeros(n int) []VecVirtual {
	all := make([]VecVirtual, n)
	for i := range all {
		all[i] = YMM()
		VXORPD(all[i], all[i], all[i])
	}
	return all
}

// lines returns where each of the classes begins, stride numbers after the one before.
func lines(first Register, stride GPVirtual) [classes]GPVirtual {
	SHLQ(U8(3), stride)
	var at [classes]GPVirtual
	for k := range at {
		at[k] = GP64()
		if k == 0 {
			MOVQ(first, at[k])
		} else {
			MOVQ(at[k-1], at[k])
			ADDQ(stride, at[k])
		}
	}
	return at
}

// total adds the lanes of a vector up into its lowest.
func total(v VecVirtual) {
	high := XMM()
	VEXTRACTF128(U8(1), v, high)
	VADDPD(high, v.AsX(), v.AsX())
	VUNPCKHPD(v.AsX(), v.AsX(), high)
	VADDSD(high, v.AsX(), v.AsX())
}

// scores adds to out the products of two rows with the weights of each class.
func scores() {
	TEXT("scoresAVX2", NOSPLIT, "func(x0, x1 *float32, w *float64, stride, n int, out *float64)")
	x := [2]Register{Load(Param("x0"), GP64()), Load(Param("x1"), GP64())}
	w := lines(Load(Param("w"), GP64()), Load(Param("stride"), GP64()).(GPVirtual))
	n := Load(Param("n"), GP64())
	out := Load(Param("out"), GP64())
	sums := zeros(2 * classes)
	SHRQ(U8(2), n)
	Label("scoresLoop")
	var wide [2]VecVirtual
	for r := range x {
		wide[r] = YMM()
		VCVTPS2PD(at(x[r], 0), wide[r])
		ADDQ(U8(4*lanes), x[r])
	}
	for k := range w {
		line := YMM()
		VMOVUPD(at(w[k], 0), line)
		ADDQ(U8(8*lanes), w[k])
		VFMADD231PD(wide[0], line, sums[k])
		VFMADD231PD(wide[1], line, sums[classes+k])
	}
	DECQ(n)
	JNZ(LabelRef("scoresLoop"))
	for k, s := range sums {
		total(s)
		VADDSD(at(out, 8*k), s.AsX(), s.AsX())
		VMOVSD(s.AsX(), at(out, 8*k))
	}
	VZEROUPPER()
	RET()
}

// add adds to lines what four rows have times the numbers in a: of each row one for each class, in
// all lanes.
func add() {
	const rows = 4
	TEXT("addAVX2", NOSPLIT,
		"func(x0, x1, x2, x3 *float32, a, to *float64, stride, n int)")
	var x [rows]Register
	for r, name := range []string{"x0", "x1", "x2", "x3"} {
		x[r] = Load(Param(name), GP64())
	}
	a := Load(Param("a"), GP64())
	g := lines(Load(Param("to"), GP64()), Load(Param("stride"), GP64()).(GPVirtual))
	n := Load(Param("n"), GP64())
	SHRQ(U8(2), n)
	Label("addLoop")
	var wide [rows]VecVirtual
	for r := range x {
		wide[r] = YMM()
		VCVTPS2PD(at(x[r], 0), wide[r])
		ADDQ(U8(4*lanes), x[r])
	}
	for k := range g {
		line := YMM()
		VMOVUPD(at(g[k], 0), line)
		for r := range x {
			VFMADD231PD(at(a, 8*lanes*(r*classes+k)), wide[r], line)
		}
		VMOVUPD(line, at(g[k], 0))
		ADDQ(U8(8*lanes), g[k])
	}
	DECQ(n)
	JNZ(LabelRef("addLoop"))
	VZEROUPPER()
	RET()
}

// square returns the sum of the squares of (x − mean)·scale.
func square() {
	const unrolled = 2
	TEXT("squareAVX2", NOSPLIT, "func(x *float32, mean, scale *float64, n int) float64")
	x := Load(Param("x"), GP64())
	mean := Load(Param("mean"), GP64())
	scale := Load(Param("scale"), GP64())
	n := Load(Param("n"), GP64())
	sums := zeros(unrolled)
	SHRQ(U8(3), n)
	Label("squareLoop")
	for u := range sums {
		v := YMM()
		VCVTPS2PD(at(x, 4*lanes*u), v)
		VSUBPD(at(mean, 8*lanes*u), v, v)
		VMULPD(at(scale, 8*lanes*u), v, v)
		VFMADD231PD(v, v, sums[u])
	}
	ADDQ(U8(4*lanes*unrolled), x)
	ADDQ(U8(8*lanes*unrolled), mean)
	ADDQ(U8(8*lanes*unrolled), scale)
	DECQ(n)
	JNZ(LabelRef("squareLoop"))
	VADDPD(sums[1], sums[0], sums[0])
	total(sums[0])
	Store(sums[0].AsX(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}
