package attacks

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/audit"
)

// Measure is one figure with its interval, and with the range that theory or the
// catalogue allows it. The zero value is no measurement.
type Measure struct {
	Value        float64
	Lower, Upper float64 // confidence interval at Confidence; both Value if exact
	Confidence   float64 // such as 0.95; 1 if exact
	Samples      int     // what Value is computed from; 0: there is no measurement
	Min, Max     float64 // Value must be within
}

// Within returns the measurement with another range: Value must be from low to high.
func (m Measure) Within(low, high float64) Measure {
	m.Min, m.Max = low, high
	return m
}

// Missing reports whether there is no measurement.
func (m Measure) Missing() bool { return m.Samples == 0 }

// OK reports whether Value is where it must be.
func (m Measure) OK() bool { return !math.IsNaN(m.Value) && m.Min <= m.Value && m.Value <= m.Max }

// String returns the value with its interval, or a dash.
func (m Measure) String() string {
	switch {
	case m.Missing():
		return "-"
	case m.Lower == m.Upper:
		return fmt.Sprintf("%.4g", m.Value)
	}
	return fmt.Sprintf("%.4g [%.4g, %.4g]", m.Value, m.Lower, m.Upper)
}

// Sigmas is how many standard errors a mean may be from what theory says: for a
// normal one a false alarm of 2e-9, and below 1e-6 with the skewness of the squares
// that are averaged here. A run has some two hundred such rows, so that a false alarm
// in any of them has a probability below 2e-4.
const Sigmas = 6

// z95 is the two-sided normal quantile of 95 %.
const z95 = 1.959963984540054

// Exactly returns an exact measurement of n samples that must be want.
func Exactly(value float64, n int, want float64) Measure {
	return Measure{
		Value: value, Lower: value, Upper: value, Confidence: 1, Samples: n,
		Min: want, Max: want,
	}
}

// Near returns a measurement of n samples with a normal interval of the given standard
// error. It must be within Sigmas standard errors of want.
func Near(value, standardError float64, n int, want float64) Measure {
	margin := Sigmas * standardError
	return Between(value, standardError, n, want-margin, want+margin)
}

// Between returns a measurement of n samples with a normal interval of the given
// standard error. It must be from low to high.
func Between(value, standardError float64, n int, low, high float64) Measure {
	return Measure{
		Value:      value,
		Lower:      value - z95*standardError,
		Upper:      value + z95*standardError,
		Confidence: 0.95,
		Samples:    n,
		Min:        low,
		Max:        high,
	}
}

// Proportion returns a probability measured by the successes in n trials, with its
// Clopper–Pearson interval. It must be from low to high.
func Proportion(successes, n int, low, high float64) Measure {
	const alpha = 0.025 // on either side
	return Measure{
		Value:      float64(successes) / float64(n),
		Lower:      audit.BinomialLower(successes, n, alpha),
		Upper:      audit.BinomialUpper(successes, n, alpha),
		Confidence: 0.95,
		Samples:    n,
		Min:        low,
		Max:        high,
	}
}

// Uncorrelated returns a measured correlation of n independent pairs that must be
// below 5/√N in absolute value. With no correlation that fails with a probability
// of 6e-7; three rows use it.
func Uncorrelated(r float64, n int) Measure {
	limit := 5 / math.Sqrt(float64(n))
	return Correlated(r, n).Within(-limit, limit)
}

// Correlated returns a measured correlation of n pairs, with the interval that Fisher's
// transform gives. It may be anything; see [Measure.Within].
func Correlated(r float64, n int) Measure {
	m := Measure{Value: r, Lower: r, Upper: r, Confidence: 0.95, Samples: n, Min: -1, Max: 1}
	if math.Abs(r) < 1 && n > 3 {
		z, half := math.Atanh(r), z95/math.Sqrt(float64(n-3))
		m.Lower, m.Upper = math.Tanh(z-half), math.Tanh(z+half)
	}
	return m
}

// BoundOf returns the lower bound on ε of an audit as a measurement that must be from low to high.
func BoundOf(r audit.Result, low, high float64) Measure {
	return Measure{
		Value:      r.Lower,
		Lower:      r.Lower,
		Upper:      r.Lower,
		Confidence: 1 - 2*r.Alpha,
		Samples:    r.Positives + r.Negatives,
		Min:        low,
		Max:        high,
	}
}
