package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Eight packed coefficients take a whole number of bytes. A pair lies within sixteen bytes from
// where its first begins, which a shuffle and shifts take apart; how depends on the width of a
// coefficient, and is in what package ring calls a split: four offsets, two shuffles, two registers
// of shifts, and the mask of a coefficient.
const (
	offsetsAt = 0
	bytesAt   = 32
	shiftsAt  = 96
	maskAt    = 160
)

// packed writes the code that checks and adds packed coefficients.
func packed() {
	loop("checkPacked", "func(b *byte, groups, width int, s *uint64, q uint64, over *[4]uint64)",
		func(q, zero VecVirtual) (func(x VecVirtual), func()) {
			one, over := YMM(), YMM()
			VPCMPEQQ(one, one, one) // −1
			VPADDQ(one, q, q)       // q − 1
			VPXOR(over, over, over)
			return func(x VecVirtual) {
					VPSUBQ(x, q, x) // negative if x is q or more
					VPOR(x, over, over)
				}, func() {
					out := Load(Param("over"), GP64())
					VMOVDQU(over, Mem{Base: out})
				}
		})
	loop("addPacked",
		"func(b *byte, groups, width int, s *uint64, q uint64, dst *uint64)",
		func(q, zero VecVirtual) (func(x VecVirtual), func()) {
			dst := Load(Param("dst"), GP64())
			return func(x VecVirtual) {
				at, below := Mem{Base: dst}, YMM()
				VPADDQ(at, x, x)
				VPSUBQ(q, x, x)
				VPCMPGTQ(x, zero, below)
				VPAND(q, below, below)
				VPADDQ(below, x, x)
				VMOVDQU(x, at)
				ADDQ(U32(32), dst)
			}, func() {}
		})
}

// loop writes a function that goes through groups of eight coefficients.
func loop(
	name, signature string, begin func(q, zero VecVirtual) (func(x VecVirtual), func()),
) {
	TEXT(name, NOSPLIT, signature)
	b := Load(Param("b"), GP64())
	groups := Load(Param("groups"), GP64())
	width := Load(Param("width"), GP64())
	s := Load(Param("s"), GP64())
	var offsets [4]Register
	for i := range offsets {
		offsets[i] = GP64()
		MOVQ(Mem{Base: s, Disp: offsetsAt + 8*i}, offsets[i])
	}
	q, zero, mask := YMM(), YMM(), YMM()
	VPBROADCASTQ(param("q"), q)
	VPXOR(zero, zero, zero)
	VPBROADCASTQ(Mem{Base: s, Disp: maskAt}, mask)
	var shuffle, shift [2]VecVirtual
	for half := range 2 {
		shuffle[half], shift[half] = YMM(), YMM()
		VMOVDQU(Mem{Base: s, Disp: bytesAt + 32*half}, shuffle[half])
		VMOVDQU(Mem{Base: s, Disp: shiftsAt + 32*half}, shift[half])
	}
	each, end := begin(q, zero)
	Label("group")
	for half := range 2 {
		low, x := XMM(), YMM()
		VMOVDQU(Mem{Base: b, Index: offsets[2*half], Scale: 1}, low)
		VINSERTI128(U8(1), Mem{Base: b, Index: offsets[2*half+1], Scale: 1}, low.AsY(), x)
		VPSHUFB(shuffle[half], x, x)
		VPSRLVQ(shift[half], x, x)
		VPAND(mask, x, x)
		each(x)
	}
	ADDQ(width, b)
	DECQ(groups)
	JNZ(LabelRef("group"))
	end()
	VZEROUPPER()
	RET()
}
