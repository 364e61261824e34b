package aggregation

import (
	"math"
	"math/bits"
)

// scaled is the magnitude of a real number, as far as rounding needs it.
type scaled struct {
	whole  uint64 // its integer part, below 2^63
	half   bool   // the rest is at least one half
	sticky bool   // the rest is neither zero nor one half
}

// scale returns |x|·k·2^f without any rounding on the way: it multiplies the
// 53-bit significand of x by k, in 128 bits, and shifts. x must be finite. ok is
// false if the magnitude is 2^63 or more.
func scale(x float64, k uint64, f int) (s scaled, ok bool) {
	const significand = 52
	raw := math.Float64bits(x)
	exponent := int(raw >> significand & 0x7ff)
	m := raw & (1<<significand - 1)
	if exponent == 0 {
		exponent = 1 // subnormal
	} else {
		m |= 1 << significand
	}
	hi, lo := bits.Mul64(m, k)
	if hi|lo == 0 {
		return scaled{}, true
	}

	// |x|·k·2^f = (hi·2^64 + lo)·2^shift
	shift := exponent - 1075 + f
	if shift >= 0 {
		if hi != 0 || shift >= 63 || lo > math.MaxInt64>>shift {
			return scaled{}, false
		}
		return scaled{whole: lo << shift}, true
	}
	right := uint(-shift)
	if right > 128 {
		return scaled{sticky: true}, true
	}
	// Shift all but one of the places, collecting what falls off, then the last:
	// it is the half.
	lost := lowBits(hi, lo, right-1)
	hi, lo = shiftRight(hi, lo, right-1)
	half := lo&1 == 1
	hi, lo = shiftRight(hi, lo, 1)
	if hi != 0 || lo > math.MaxInt64 {
		return scaled{}, false
	}
	return scaled{whole: lo, half: half, sticky: lost}, true
}

// nearest is the magnitude rounded to the nearest integer, ties to even.
func (s scaled) nearest() uint64 {
	if s.half && (s.sticky || s.whole&1 == 1) {
		return s.whole + 1
	}
	return s.whole
}

// ceiling is the magnitude rounded up.
func (s scaled) ceiling() uint64 {
	if s.half || s.sticky {
		return s.whole + 1
	}
	return s.whole
}

// shiftRight shifts a 128-bit number by n ≤ 128 places. (In Go, a shift by 64 or
// more gives zero.)
func shiftRight(hi, lo uint64, n uint) (uint64, uint64) {
	if n >= 64 {
		return 0, hi >> (n - 64)
	}
	return hi >> n, lo>>n | hi<<(64-n)
}

// lowBits reports whether any of the lowest n ≤ 128 bits is set.
func lowBits(hi, lo uint64, n uint) bool {
	if n >= 64 {
		return lo != 0 || hi&(1<<(n-64)-1) != 0
	}
	return lo&(1<<n-1) != 0
}
