package attacks

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// BinomialLower returns the Clopper–Pearson lower bound of a probability from the
// successes in n trials: it is above the truth with probability alpha at most.
func BinomialLower(successes, n int, alpha float64) float64 {
	if successes <= 0 {
		return 0
	}
	law := distuv.Beta{Alpha: float64(successes), Beta: float64(n - successes + 1)}
	return law.Quantile(alpha)
}

// BinomialUpper returns the Clopper–Pearson upper bound, which is below the truth with
// probability alpha at most.
func BinomialUpper(successes, n int, alpha float64) float64 {
	if successes >= n {
		return 1
	}
	return 1 - BinomialLower(n-successes, n, alpha)
}

// Correlation returns Pearson's correlation, or 0 if one of the two does not vary.
func Correlation(x, y []float64) float64 {
	r := stat.Correlation(x, y, nil)
	if math.IsNaN(r) {
		return 0
	}
	return r
}

// MeanAndError returns the mean of the values and its standard error.
func MeanAndError(values []float64) (mean, standardError float64) {
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
