package aggregation

import "math/bits"

// hadamard multiplies v by the Walsh–Hadamard matrix in natural order, with entries ±1: applying it
// twice multiplies v by len(v). len(v) is a power of two. It takes len(v)·log₂ len(v) additions,
// and each of the log₂ len(v) stages is off by at most 2^-53 relative to the norm.
//
// Three stages are done in one pass over the data, block within block, so that
// most passes stay in the innermost cache.
func hadamard(v []float64) {
	h := len(v)
	switch bits.TrailingZeros(uint(len(v))) % 3 {
	case 1:
		h /= 2
		hadamard8(v[:h])
		hadamard8(v[h:])
		a, b := v[:h], v[h:][:h]
		for i, x := range a {
			a[i], b[i] = x+b[i], x-b[i]
		}
	case 2:
		h /= 4
		for k := range 4 {
			hadamard8(v[k*h:][:h])
		}
		a, b, c, d := v[:h], v[h:][:h], v[2*h:][:h], v[3*h:][:h]
		for i := range a {
			s0, s1 := a[i]+b[i], a[i]-b[i]
			s2, s3 := c[i]+d[i], c[i]-d[i]
			a[i], b[i], c[i], d[i] = s0+s2, s1+s3, s0-s2, s1-s3
		}
	default:
		hadamard8(v)
	}
}

// hadamard8 is hadamard for a length that is a power of eight.
func hadamard8(v []float64) {
	h := len(v) / 8
	switch len(v) {
	case 1:
		return
	case 8:
	case 64: // the innermost blocks without calls of their own
		for k := 0; k < 64; k += 8 {
			butterfly8(v[k:][:8], 1)
		}
	default:
		for k := range 8 {
			hadamard8(v[k*h:][:h])
		}
	}
	butterfly8(v, h)
}

// butterfly8 does three stages on eight adjacent blocks of h coordinates.
func butterfly8(v []float64, h int) {
	a, b, c, d := v[:h], v[h:][:h], v[2*h:][:h], v[3*h:][:h]
	e, f, g, k := v[4*h:][:h], v[5*h:][:h], v[6*h:][:h], v[7*h:][:h]
	for i := range a {
		a0, a1 := a[i]+b[i], a[i]-b[i]
		a2, a3 := c[i]+d[i], c[i]-d[i]
		a4, a5 := e[i]+f[i], e[i]-f[i]
		a6, a7 := g[i]+k[i], g[i]-k[i]
		b0, b2 := a0+a2, a0-a2
		b1, b3 := a1+a3, a1-a3
		b4, b6 := a4+a6, a4-a6
		b5, b7 := a5+a7, a5-a7
		a[i], e[i] = b0+b4, b0-b4
		b[i], f[i] = b1+b5, b1-b5
		c[i], g[i] = b2+b6, b2-b6
		d[i], k[i] = b3+b7, b3-b7
	}
}
