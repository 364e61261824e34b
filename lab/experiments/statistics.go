package experiments

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean of N differences with its two-sided 95 % interval by Student's
// t. It is for one comparison: of twenty, one misses on average. With fewer than
// two differences Low and High are NaN, without any Mean too.
type Interval struct {
	Mean, Low, High float64
	N               int
}

// meanAndSpread returns the mean and the sample standard deviation, 0 of one value.
func meanAndSpread(values []float64) (mean, spread float64, n int) {
	switch n = len(values); n {
	case 0:
		return math.NaN(), math.NaN(), 0
	case 1:
		return values[0], 0, 1
	}
	mean, spread = stat.MeanStdDev(values, nil)
	return mean, spread, n
}

// interval is the Interval of paired differences.
func interval(differences []float64) Interval {
	mean, spread, n := meanAndSpread(differences)
	i := Interval{Mean: mean, Low: math.NaN(), High: math.NaN(), N: n}
	if n >= 2 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
		half := t * spread / math.Sqrt(float64(n))
		i.Low, i.High = mean-half, mean+half
	}
	return i
}

func nan() float64 { return math.NaN() }
