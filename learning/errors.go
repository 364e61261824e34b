package learning

import (
	"errors"
	"math"
)

// Errors that callers can tell apart with errors.Is. Messages add what was
// found and what to do; they never contain feature values.
var (
	// ErrShape reports vectors, matrices or indices whose sizes do not fit.
	ErrShape = errors.New("learning: sizes do not match")
	// ErrValue reports a number outside its range: NaN, an infinity, a label
	// that the model does not know, a rate that is not positive.
	ErrValue = errors.New("learning: value out of range")
	// ErrTooFewRows reports a split or partition that asks for more rows than
	// the data set has.
	ErrTooFewRows = errors.New("learning: not enough rows")
	// ErrDiverged reports training whose weights left the finite numbers.
	ErrDiverged = errors.New("learning: training diverged")
	// ErrMalformed reports a line of a data file that does not have the
	// published format.
	ErrMalformed = errors.New("learning: malformed data file")
	// ErrIncomplete reports a data file whose number of rows is not the
	// published one, or whose last line is cut off.
	ErrIncomplete = errors.New("learning: incomplete data file")
)

func finite(x float64) bool {
	// Inf-Inf and NaN-NaN are both NaN, which equals nothing.
	return x-x == 0
}

func allFinite(xs []float64) bool {
	for _, x := range xs {
		if !finite(x) {
			return false
		}
	}
	return true
}

// scaleToUnitBall divides row by max(1, its Euclidean norm).
func scaleToUnitBall(row []float64) {
	var sum float64
	for _, x := range row {
		sum += float64(x * x) // no fused multiply-add: the same bits everywhere
	}
	if sum <= 1 {
		return
	}
	norm := math.Sqrt(sum)
	for j := range row {
		row[j] /= norm
	}
}
