package learning

import (
	"math"

	"github.com/hushsum/hushsum/internal/fault"
)

// A Standard shifts and scales features: each by its mean over many rows, and by its deviation. A
// row is then clipped to norm 1. The means come from sums with noise, and are public: what is made
// of a row is a function of the row and of public numbers.
type Standard struct {
	mean, scale []float64
}

// The constants of a Standard.
const (
	// squareNorm bounds the L2 norm of the squares of a row's features.
	squareNorm = 0.1
	// leastVariance is added to the variance of each feature, times the mean of all variances.
	leastVariance = 0.3
	// usualNorm is the root mean square of a standardised row's norm.
	usualNorm = 0.63
)

// Moments returns how many numbers the moments of features are: as many means as there are
// features, and as many means of squares.
func (m Scattering) Moments() int { return 2 * m.numFeatures() }

// MomentSum writes to dst the sum over units of the moments of their features, each of norm at most
// clip, as [ClippedSum] does with gradients; a unit of several rows adds the mean of theirs. The
// first half of a row's moments are its features, and the second their squares, clipped to norm
// 0.1 and divided by it, both times clip/√2. What one unit adds depends on its own rows alone. One
// whose features are not finite adds nothing. MomentSum returns ErrShape and ErrValue for arguments
// that do not fit.
func (m Scattering) MomentSum(dst []float64, d *Dataset, units [][]int, clip float64) error {
	if len(dst) != m.Moments() {
		return fault.New(ErrShape, "", "%d places for %d moments", len(dst), m.Moments())
	}
	if _, err := checkClipped(make([]float64, m.NumParams()), m, m.Init(0), d, units,
		clip); err != nil {
		return err
	}
	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	clear(dst)
	for _, unit := range units {
		ws.gradient = grown(ws.gradient, len(dst))
		clear(ws.gradient)
		for _, row := range unit {
			m.addMoments(ws.gradient, scatterOf(m.Side).features(ws, d, row))
		}
		if !allFinite(ws.gradient) {
			continue
		}
		by := clip / math.Sqrt2 / float64(len(unit))
		for j, x := range ws.gradient {
			dst[j] += by * x
		}
	}
	return nil
}

// addMoments adds those of a row, in which both halves have norm at most 1.
func (m Scattering) addMoments(dst []float64, x []float32) {
	n := m.numFeatures()
	norm, fourth := 0.0, 0.0
	for _, v := range x[:n] {
		square := float64(v) * float64(v)
		norm += square
		fourth += square * square
	}
	first := shrinkTo(1, math.Sqrt(norm))
	second := shrinkTo(squareNorm, math.Sqrt(fourth)) / squareNorm
	for j, v := range x[:n] {
		dst[j] += first * float64(v)
		dst[n+j] += second * float64(v) * float64(v)
	}
}

// Standardised returns the model of features that are standardised by their moments: what
// [Scattering.MomentSum] made with clip, with noise perhaps, divided by a number of units. It
// returns ErrShape and ErrValue for moments that are none.
func (m Scattering) Standardised(moments []float64, clip float64) (Scattering, error) {
	n := m.numFeatures()
	switch {
	case len(moments) != 2*n:
		return m, fault.New(ErrShape, "", "%d moments of %d features", len(moments), n)
	case !(clip > 0) || !finite(clip) || !allFinite(moments):
		return m, fault.New(ErrValue, "", "a moment, or the clip, is not a finite number")
	}
	s := &Standard{mean: make([]float64, n), scale: make([]float64, n)}
	variance, usual := make([]float64, n), 0.0
	for j := range n {
		s.mean[j] = moments[j] * math.Sqrt2 / clip
		square := moments[n+j] * math.Sqrt2 / clip * squareNorm
		variance[j] = max(0, square-s.mean[j]*s.mean[j]) // below 0 by noise
		usual += variance[j] / float64(n)
	}
	left := 0.0
	for j, v := range variance {
		s.scale[j] = 1
		if usual > 0 {
			s.scale[j] = 1 / math.Sqrt(v+leastVariance*usual)
		}
		left += v * s.scale[j] * s.scale[j]
	}
	if left > 0 {
		for j := range s.scale {
			s.scale[j] *= usualNorm / math.Sqrt(left)
		}
	}
	if !allFinite(s.mean) || !allFinite(s.scale) {
		return m, fault.New(ErrValue, "", "moments that leave no finite scale")
	}
	m.Standard = s
	return m, nil
}
