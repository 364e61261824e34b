// Command transforms writes the assembly of package ring to its output.
//
//	go generate ./internal/ring
//
// Entries are integers in float64, which fused multiplication and addition takes modulo q < 2^50
// without a loss: with h the rounded product of a and w and k the integer next to h/q,
// h − k·q and a·w − h are integers below 2^53, and so exact, and their sum is a·w modulo q.
// k is within 1/2 + 3·2^-53·|a·w/q| of a·w/q. So while |a| ≤ 2^52 the sum lies within ±2q, and
// the difference of two such within ±4q, which is that. Where q is so small that entries stay below
// 2^50 in all levels, they are not reduced between them.
//
// Time depends on the degree alone. Branches are on counters, addresses count up, and the
// instructions are additions, multiplications, roundings and shuffles by a constant, of numbers
// none of which is subnormal.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A width is one kind of vector registers.
type width struct {
	name  string // at the end of the functions' names
	lanes int
}

func main() {
	ConstraintExpr("amd64,!purego")
	numbers := numbers()
	for _, w := range []width{{"AVX512", 8}, {"AVX2", 4}} {
		for _, reduce := range []bool{false, true} {
			w.first(reduce, numbers)
			w.level(reduce)
		}
		w.last(numbers)
	}
	packed()
	Generate()
}

// Offsets of the constants.
const (
	shiftAt  = 0  // 2^52, to whose bits an integer below is added
	signedAt = 8  // 3·2^51, likewise for integers from −2^51
	pairsAt  = 64 // from there on, shuffles of eight lanes
)

// Shuffles of two registers of eight lanes, whose lanes are 0 to 7 and 8 to 15, that give the upper
// halves of butterflies; the lower halves are those t later. Another set puts them back, and a
// third repeats factors.
var shuffles = [][8]uint64{
	{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15},
	{0, 8, 1, 9, 2, 10, 3, 11}, {4, 12, 5, 13, 6, 14, 7, 15},
	{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15},
	{0, 1, 8, 9, 2, 3, 10, 11}, {4, 5, 12, 13, 6, 7, 14, 15},
	{0, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 0, 0, 1, 1, 1, 1},
}

func numbers() Mem {
	m := GLOBL("numbers", RODATA|NOPTR)
	DATA(shiftAt, U64(math.Float64bits(1<<52)))
	DATA(signedAt, U64(math.Float64bits(3<<51)))
	for i, s := range shuffles {
		for j, lane := range s {
			DATA(pairsAt+64*i+8*j, U64(lane))
		}
	}
	return m
}

func (w width) register() VecVirtual {
	if w.lanes == 8 {
		return ZMM()
	}
	return YMM()
}

func (w width) at(p Register, k int) Mem { return Mem{Base: p, Disp: 8 * w.lanes * k} }

func (w width) repeat(from Op) VecVirtual {
	r := w.register()
	VBROADCASTSD(from, r)
	return r
}

func (w width) load(from Op) VecVirtual {
	r := w.register()
	VMOVUPD(from, r)
	return r
}

// nearest rounds to integers.
func (w width) nearest(x VecVirtual) {
	if w.lanes == 8 {
		VRNDSCALEPD(U8(8), x, x)
	} else {
		VROUNDPD(U8(8), x, x)
	}
}

// modulus holds q and 1/q.
type modulus struct{ q, inverse VecVirtual }

func (w width) modulus() modulus {
	return modulus{w.repeat(param("q")), w.repeat(param("inverse"))}
}

func param(name string) Op {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return a.Addr
}

// product returns a·b modulo q, and spends a.
func (w width) product(m modulus, a VecVirtual, b VecVirtual) VecVirtual {
	h, k := w.register(), w.register()
	VMULPD(b, a, h)
	VFMSUB213PD(h, b, a)
	VMULPD(m.inverse, h, k)
	w.nearest(k)
	VFNMADD231PD(m.q, k, h)
	VADDPD(a, h, h)
	return h
}

// reduced subtracts a multiple of q from x that leaves it within ±q/2.
func (w width) reduced(m modulus, x VecVirtual) {
	k := w.register()
	VMULPD(m.inverse, x, k)
	w.nearest(k)
	VFNMADD231PD(m.q, k, x)
}

// butterfly is the butterfly of Gentleman and Sande: u + v and (u − v)·factor. It spends both.
func (w width) butterfly(m modulus, reduce bool, u, v, factor VecVirtual) (x, y VecVirtual) {
	x, d := w.register(), w.register()
	VADDPD(v, u, x)
	VSUBPD(v, u, d)
	if reduce {
		w.reduced(m, x)
	}
	return x, w.product(m, d, factor)
}

func suffix(reduce bool) string {
	if reduce {
		return "Reduced"
	}
	return ""
}

// first multiplies entries by those of the factor, and does the levels whose butterflies lie within
// two registers.
func (w width) first(reduce bool, numbers Mem) {
	TEXT("first"+suffix(reduce)+w.name, NOSPLIT,
		"func(dst *float64, a *uint64, f, psi *float64, n int, q, inverse float64)")
	dst := Load(Param("dst"), GP64())
	a := Load(Param("a"), GP64())
	f := Load(Param("f"), GP64())
	psi := Load(Param("psi"), GP64())
	n := Load(Param("n"), GP64())
	m := w.modulus()
	shift := w.repeat(numbers.Offset(shiftAt))
	var factors []Register // of the levels t = 1, 2, …
	for t := 1; t < w.lanes; t *= 2 {
		p := GP64()
		LEAQ(Mem{Base: psi, Index: n, Scale: 8 / uint8(2*t)}, p)
		factors = append(factors, p)
	}
	var shuffle []VecVirtual
	if w.lanes == 8 {
		for i := range shuffles {
			shuffle = append(shuffle, w.load(numbers.Offset(pairsAt+64*i)))
		}
	}
	count := GP64()
	MOVQ(n, count)
	Label("pair")
	var in [2]VecVirtual
	for k := range in {
		x := w.register()
		if w.lanes == 8 {
			VPORQ(w.at(a, k), shift, x)
		} else {
			VPOR(w.at(a, k), shift, x)
		}
		VSUBPD(shift, x, x)
		in[k] = w.product(m, x, w.load(w.at(f, k)))
	}
	x, y := in[0], in[1]
	for i, p := range factors {
		x, y = w.within(m, reduce, 1<<i, x, y, p, shuffle)
	}
	VMOVUPD(x, w.at(dst, 0))
	VMOVUPD(y, w.at(dst, 1))
	step := 16 * w.lanes
	ADDQ(U32(step), dst)
	ADDQ(U32(step), a)
	ADDQ(U32(step), f)
	for i, p := range factors {
		ADDQ(U32(step>>(i+1)), p)
	}
	SUBQ(U32(2*w.lanes), count)
	JNZ(LabelRef("pair"))
	VZEROUPPER()
	RET()
}

// within does the butterflies of two registers whose halves are t apart.
func (w width) within(
	m modulus, reduce bool, t int, x, y VecVirtual, factors Register, shuffle []VecVirtual,
) (VecVirtual, VecVirtual) {
	var u, v VecVirtual
	var back func(a, b VecVirtual) (VecVirtual, VecVirtual)
	f := w.register()
	pick := func(index, a, b VecVirtual) VecVirtual {
		r := w.register()
		VMOVDQU64(index, r)
		VPERMI2PD(b, a, r)
		return r
	}
	switch {
	case w.lanes == 8 && t < 4:
		s := shuffle[4*(t-1):]
		u, v = pick(s[0], x, y), pick(s[1], x, y)
		back = func(a, b VecVirtual) (VecVirtual, VecVirtual) {
			return pick(s[2], a, b), pick(s[3], a, b)
		}
		if t == 1 {
			VMOVUPD(w.at(factors, 0), f)
		} else {
			VPERMPD(w.at(factors, 0), shuffle[8], f)
		}
	case w.lanes == 8:
		back = func(a, b VecVirtual) (VecVirtual, VecVirtual) {
			u, v := w.register(), w.register()
			VSHUFF64X2(U8(0x44), b, a, u)
			VSHUFF64X2(U8(0xee), b, a, v)
			return u, v
		}
		u, v = back(x, y)
		VPERMPD(w.at(factors, 0), shuffle[9], f)
	case t == 1:
		back = func(a, b VecVirtual) (VecVirtual, VecVirtual) {
			u, v := w.register(), w.register()
			VUNPCKLPD(b, a, u)
			VUNPCKHPD(b, a, v)
			return u, v
		}
		u, v = back(x, y)
		VPERMPD(U8(0xd8), w.at(factors, 0), f)
	default:
		back = func(a, b VecVirtual) (VecVirtual, VecVirtual) {
			u, v := w.register(), w.register()
			VPERM2F128(U8(0x20), b, a, u)
			VPERM2F128(U8(0x31), b, a, v)
			return u, v
		}
		u, v = back(x, y)
		VPERMPD(U8(0x50), w.at(factors, 0), f)
	}
	return back(w.butterfly(m, reduce, u, v, f))
}

// level does a level whose halves fill registers: m groups of 2t entries, with a factor each.
func (w width) level(reduce bool) {
	TEXT("level"+suffix(reduce)+w.name, NOSPLIT,
		"func(dst *float64, groups, t int, psi *float64, q, inverse float64)")
	low := Load(Param("dst"), GP64())
	groups := Load(Param("groups"), GP64())
	t := Load(Param("t"), GP64())
	psi := Load(Param("psi"), GP64())
	m := w.modulus()
	Label("group")
	factor := w.repeat(Mem{Base: psi})
	ADDQ(U32(8), psi)
	high, count := GP64(), GP64()
	LEAQ(Mem{Base: low, Index: t, Scale: 8}, high)
	MOVQ(t, count)
	Label("entries")
	x, y := w.butterfly(m, reduce, w.load(w.at(low, 0)), w.load(w.at(high, 0)), factor)
	VMOVUPD(x, w.at(low, 0))
	VMOVUPD(y, w.at(high, 0))
	ADDQ(U32(8*w.lanes), low)
	ADDQ(U32(8*w.lanes), high)
	SUBQ(U32(w.lanes), count)
	JNZ(LabelRef("entries"))
	MOVQ(high, low)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// last multiplies by a constant and makes integers from 0 to q − 1, in place.
func (w width) last(numbers Mem) {
	TEXT("last"+w.name, NOSPLIT,
		"func(dst *float64, n int, by float64, integer uint64, q, inverse float64)")
	dst := Load(Param("dst"), GP64())
	n := Load(Param("n"), GP64())
	m := w.modulus()
	by := w.repeat(param("by"))
	signed := w.repeat(numbers.Offset(signedAt))
	integer := w.repeat(param("integer"))
	zero := w.register()
	if w.lanes == 4 {
		VPXOR(zero, zero, zero)
	}
	Label("entries")
	x := w.product(m, w.load(w.at(dst, 0)), by)
	w.reduced(m, x)
	VADDPD(signed, x, x)
	below := w.register()
	if w.lanes == 8 {
		VPSUBQ(signed, x, x)
		VPSRAQ(U8(63), x, below)
		VPANDQ(integer, below, below)
	} else {
		VPSUBQ(signed, x, x)
		VPCMPGTQ(x, zero, below)
		VPAND(integer, below, below)
	}
	VPADDQ(below, x, x)
	VMOVUPD(x, w.at(dst, 0))
	ADDQ(U32(8*w.lanes), dst)
	SUBQ(U32(w.lanes), n)
	JNZ(LabelRef("entries"))
	VZEROUPPER()
	RET()
}
