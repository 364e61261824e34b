package field

import "math/bits"

// maxBlock bounds how many coefficients Eval takes at a time.
const maxBlock = 8

// Eval returns the polynomial c[0] + c[1]·x + c[2]·x² + … at the public point
// x; the empty polynomial is zero. Its time depends on len(c) and on the size
// of x.
//
// It is Horner's rule with the reductions put off. With the small powers of x
// in one machine word each, a block of g coefficients is
//
//	c[i] + c[i+1]·x + … + c[i+g−1]·x^(g−1),  g such that x^g < 2^56,
//
// and fits into five limbs unreduced. One step of Horner's rule with x^g and
// one cheap partial reduction (foldSmall) then serve g coefficients: g is 5
// for x < 2^11, 3 for x < 2^18, and 1 for x ≥ 2^28.
func Eval(c []Element, x uint32) Element {
	g := maxBlock
	if x > 1 {
		g = max(1, min(g, 56/bits.Len32(x)))
	}
	var powers [maxBlock]uint64 // x^0, …, x^(g−1)
	xg := uint64(1)
	for i := range g {
		powers[i] = xg
		xg *= uint64(x)
	}

	// The first block is the short one, from the top. The value in a0..a3
	// stays below 2^252 + ℓ < 2^254. For x ≥ 2 a block is below ℓ·x^g < 2^309
	// and a·x^g below 2^310; for x ≤ 1 both are below 2^257. The sum is
	// below 2^311, as foldSmall requires.
	var a0, a1, a2, a3 uint64
	for end := len(c); end > 0; {
		start := (end - 1) / g * g
		// One sum of two limbs per limb of the coefficients, h:l, so that
		// every product is consumed at once; h stays below 2^60.
		h0, l0 := bits.Mul64(a0, xg)
		h1, l1 := bits.Mul64(a1, xg)
		h2, l2 := bits.Mul64(a2, xg)
		h3, l3 := bits.Mul64(a3, xg)
		var carry uint64
		block := c[start:end]
		for i, p := range powers[:len(block)] {
			e := &block[i]
			hi, lo := bits.Mul64(e[0], p)
			l0, carry = bits.Add64(l0, lo, 0)
			h0, _ = bits.Add64(h0, hi, carry)
			hi, lo = bits.Mul64(e[1], p)
			l1, carry = bits.Add64(l1, lo, 0)
			h1, _ = bits.Add64(h1, hi, carry)
			hi, lo = bits.Mul64(e[2], p)
			l2, carry = bits.Add64(l2, lo, 0)
			h2, _ = bits.Add64(h2, hi, carry)
			hi, lo = bits.Mul64(e[3], p)
			l3, carry = bits.Add64(l3, lo, 0)
			h3, _ = bits.Add64(h3, hi, carry)
		}
		l1, carry = bits.Add64(l1, h0, 0)
		l2, carry = bits.Add64(l2, h1, carry)
		l3, carry = bits.Add64(l3, h2, carry)
		h3 += carry
		a0, a1, a2, a3 = foldSmall(l0, l1, l2, l3, h3)
		end = start
	}
	var v Element
	v.setReduced(a0, a1, a2, a3)
	return v
}
