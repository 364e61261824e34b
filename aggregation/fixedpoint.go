package aggregation

import (
	"fmt"
	"math"
	"math/bits"
)

// maxFractionBits is the most binary places that a [FixedPoint] can have.
const maxFractionBits = 62

// FixedPoint says how real numbers become integers: x, at most Range in
// magnitude, becomes x·2^FractionBits rounded to the nearest integer, ties to
// even. In the ring Z_{2^b} a negative integer stands as its two's complement.
//
// More fraction bits cost one bit per coordinate each and halve the rounding
// error of at most 2^-(FractionBits+1) per value. So does doubling the range for
// values that could not be sent before.
type FixedPoint struct {
	Range        float64 // the largest magnitude, above 0 and finite
	FractionBits int     // binary places, from 0 to maxFractionBits
}

// Validate returns [ErrConfig] if a field is outside its range, and [ErrWrap] if
// not even one value of magnitude Range fits 64 bits.
func (p FixedPoint) Validate() error {
	_, err := p.peak(1)
	return err
}

// peak is ⌈samples·Range·2^FractionBits⌉, the largest magnitude that a value
// times samples can round to.
func (p FixedPoint) peak(samples int) (uint64, error) {
	if !(p.Range > 0) || math.IsInf(p.Range, 0) {
		return 0, fmt.Errorf("%w: Range is %v, want a finite number above 0", ErrConfig, p.Range)
	}
	if p.FractionBits < 0 || p.FractionBits > maxFractionBits {
		return 0, fmt.Errorf("%w: FractionBits is %d, want 0 to %d", ErrConfig, p.FractionBits,
			maxFractionBits)
	}
	s, ok := scale(p.Range, uint64(samples), p.FractionBits)
	if !ok || s.ceiling() > math.MaxInt64 {
		return 0, fmt.Errorf("%w: one value alone takes more", ErrWrap)
	}
	return s.ceiling(), nil
}

// Bits returns the smallest b in which the sum of the given number of parties,
// one value each, cannot wrap: 2^(b−1) > parties·⌈Range·2^FractionBits⌉. It
// fails with [ErrConfig], or with [ErrWrap] if b would have to be more than 64.
func (p FixedPoint) Bits(parties int) (int, error) {
	peak, err := p.peak(1)
	if err != nil {
		return 0, err
	}
	if parties < 1 {
		return 0, fmt.Errorf("%w: %d parties, want at least 1", ErrConfig, parties)
	}
	return signedBits(peak, uint64(parties))
}

// signedBits returns the smallest b with 2^(b−1) > peak·n.
func signedBits(peak, n uint64) (int, error) {
	hi, lo := bits.Mul64(peak, n)
	if hi != 0 || lo > math.MaxInt64 {
		return 0, fmt.Errorf("%w: %d parties of up to %d each", ErrWrap, n, peak)
	}
	return bits.Len64(lo) + 1, nil
}

// Round returns the integers that stand for the values: each value times 2^FractionBits, rounded to
// the nearest integer, ties to even. It fails with [ErrConfig], [ErrWrap], [ErrNotFinite] or
// [ErrSaturated].
func (p FixedPoint) Round(values []float64) ([]int64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p.round(values, 1)
}

// round multiplies every value by samples before it rounds, once. p and samples
// have been validated.
func (p FixedPoint) round(values []float64, samples int) ([]int64, error) {
	out := make([]int64, len(values))
	for i, x := range values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%w: coordinate %d", ErrNotFinite, i)
		}
		if math.Abs(x) > p.Range {
			return nil, fmt.Errorf("%w: coordinate %d is outside ±%v", ErrSaturated, i, p.Range)
		}
		// No more than peak, which fits: see Validate.
		s, _ := scale(x, uint64(samples), p.FractionBits)
		out[i] = int64(s.nearest())
		if x < 0 {
			out[i] = -out[i]
		}
	}
	return out, nil
}

// Encode rounds the values as [FixedPoint.Round] does and puts them into the
// ring Z_{2^b}; [FixedPoint.Bits] says which b is safe. It fails with [ErrRing]
// if b is not between 1 and 64, with [ErrSaturated] if a rounded value is not
// between −2^(b−1) and 2^(b−1) − 1, and otherwise as Round does.
func (p FixedPoint) Encode(values []float64, b int) ([]uint64, error) {
	if err := checkBits(b); err != nil {
		return nil, err
	}
	rounded, err := p.Round(values)
	if err != nil {
		return nil, err
	}
	return toRing(rounded, b)
}

// Decode turns ring elements, such as a sum of encoded vectors, back into
// numbers: the integer of each, as [Integers] gives it, divided by
// 2^FractionBits. The result is exact while the integer has at most 53 bits,
// and the nearest float64 beyond. It fails with [ErrConfig], [ErrWrap] or
// [ErrRing].
func (p FixedPoint) Decode(ring []uint64, b int) ([]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	integers, err := Integers(ring, b)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(integers))
	for i, x := range integers {
		out[i] = math.Ldexp(float64(x), -p.FractionBits)
	}
	return out, nil
}

// Integers returns the representative of each element of Z_{2^b} between −2^(b−1) and 2^(b−1) − 1.
// For a sum that did not wrap, the representative equals the sum of the rounded inputs bit for bit.
// It fails with [ErrRing].
func Integers(ring []uint64, b int) ([]int64, error) {
	if err := checkBits(b); err != nil {
		return nil, err
	}
	out := make([]int64, len(ring))
	for i, x := range ring {
		if b < 64 && x>>b != 0 {
			return nil, fmt.Errorf("%w: element %d of a ring of %d bits", ErrRing, i, b)
		}
		// Shift the sign bit to the top and back down, filling with it.
		out[i] = int64(x<<(64-b)) >> (64 - b)
	}
	return out, nil
}

// toRing is the inverse of Integers.
func toRing(integers []int64, b int) ([]uint64, error) {
	out := make([]uint64, len(integers))
	for i, x := range integers {
		if x<<(64-b)>>(64-b) != x {
			return nil, fmt.Errorf("%w: coordinate %d does not fit a ring of %d bits", ErrSaturated, i, b)
		}
		out[i] = uint64(x) & (^uint64(0) >> (64 - b))
	}
	return out, nil
}

func checkBits(b int) error {
	if b < 1 || b > 64 {
		return fmt.Errorf("%w: it has %d bits, want 1 to 64", ErrRing, b)
	}
	return nil
}
