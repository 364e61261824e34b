package accounting

import "math"

// Bound is a certified interval: the true value v of the accounted run obeys
// Lower ≤ v ≤ Upper. Upper is the figure to claim.
type Bound struct {
	Lower float64
	Upper float64
	// Reason says why Upper is +Inf; it is empty when Upper is finite.
	Reason string
}

// Contains reports whether Lower ≤ v ≤ Upper.
func (b Bound) Contains(v float64) bool { return b.Lower <= v && v <= b.Upper }

// Width returns Upper − Lower (+Inf if Upper is infinite).
func (b Bound) Width() float64 {
	if math.IsInf(b.Upper, 1) {
		return math.Inf(1)
	}
	return b.Upper - b.Lower
}

// maxBound is the bound of the larger of two quantities.
func maxBound(a, b Bound) Bound {
	out := Bound{Lower: math.Max(a.Lower, b.Lower), Upper: math.Max(a.Upper, b.Upper)}
	if math.IsInf(out.Upper, 1) {
		out.Reason = a.Reason
		if out.Reason == "" {
			out.Reason = b.Reason
		}
	}
	return out
}

// Reasons for an infinite upper bound.
const (
	reasonPure     = "delta is 0 and the privacy loss is unbounded"
	reasonInfinite = "an event of probability above delta has infinite privacy loss"
	reasonRange    = "the privacy loss of one step exceeds the range of the lattice"
	reasonOverflow = "epsilon exceeds the range of a float64"
)

// unit is the unit roundoff of float64 arithmetic.
const unit = 1.0 / (1 << 53)
