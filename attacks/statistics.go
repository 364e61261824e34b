package attacks

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Sigmas is how many standard errors a mean may be from what theory says: for a
// normal one a false alarm of 2e-9, and below 1e-6 with the skewness of the squares
// that are averaged here. A run has some two hundred such rows, so that a false alarm
// in any of them has a probability below 2e-4.
const Sigmas = 6

// z95 is the two-sided normal quantile of 95 %.
const z95 = 1.959963984540054

// Exactly returns an exact measurement of n samples that must be want.
func Exactly(value float64, n int, want float64) Measure {
	return Measure{Value: value, Lower: value, Upper: value, Confidence: 1, Samples: n, Min: want, Max: want}
}

// Near returns a measurement with the given standard error, which must be within
// Sigmas of want.
func Near(value, se float64, n int, want float64) Measure {
	return Between(value, se, n, want-Sigmas*se, want+Sigmas*se)
}

// Between returns a measurement with the given standard error, which must be from
// low to high.
func Between(value, se float64, n int, low, high float64) Measure {
	return Measure{
		Value: value, Lower: value - z95*se, Upper: value + z95*se, Confidence: 0.95, Samples: n,
		Min: low, Max: high,
	}
}

// Proportion returns a measured probability, with its Clopper–Pearson interval, that
// must be from low to high.
func Proportion(k, n int, low, high float64) Measure {
	m := Measure{Value: float64(k) / float64(n), Confidence: 0.95, Samples: n, Min: low, Max: high}
	m.Lower, m.Upper = BinomialLower(k, n, 0.025), BinomialUpper(k, n, 0.025)
	return m
}

// BinomialLower is the Clopper–Pearson lower bound of a probability from k
// successes in n: it is above the truth with probability alpha at most.
func BinomialLower(k, n int, alpha float64) float64 {
	if k <= 0 {
		return 0
	}
	return distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(alpha)
}

// BinomialUpper is the Clopper–Pearson upper bound.
func BinomialUpper(k, n int, alpha float64) float64 {
	if k >= n {
		return 1
	}
	return 1 - BinomialLower(n-k, n, alpha)
}

// Uncorrelated returns a measured correlation of n independent pairs that must be
// below 4/√N in absolute value. With no correlation that fails with a probability
// of 6e-5; three rows use it.
func Uncorrelated(r float64, n int) Measure {
	limit := 4 / math.Sqrt(float64(n))
	m := Correlated(r, n)
	m.Min, m.Max = -limit, limit
	return m
}

// Correlated returns a measured correlation with Fisher's interval.
func Correlated(r float64, n int) Measure {
	m := Measure{Value: r, Lower: r, Upper: r, Confidence: 0.95, Samples: n, Min: -1, Max: 1}
	if math.Abs(r) < 1 && n > 3 {
		z, d := math.Atanh(r), z95/math.Sqrt(float64(n-3))
		m.Lower, m.Upper = math.Tanh(z-d), math.Tanh(z+d)
	}
	return m
}

// Correlation is Pearson's, or 0 if one of the two does not vary.
func Correlation(x, y []float64) float64 {
	r := stat.Correlation(x, y, nil)
	if math.IsNaN(r) {
		return 0
	}
	return r
}

// MeanAndError returns the mean of the values and its standard error.
func MeanAndError(values []float64) (mean, se float64) {
	mean, variance := stat.MeanVariance(values, nil)
	return mean, math.Sqrt(variance / float64(len(values)))
}

// MeanSquare returns the mean of the values' squares.
func MeanSquare(values []float64) float64 {
	squares := make([]float64, len(values))
	for i, v := range values {
		squares[i] = v * v
	}
	mean, _ := stat.MeanVariance(squares, nil)
	return mean
}
