package attacks

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

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
