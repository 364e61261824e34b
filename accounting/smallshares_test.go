package accounting

import (
	"math"
	"testing"
)

// Shares of noise with a standard deviation below 1/2 do not add up to a discrete Gaussian: what is
// stated is never below the ε of two laws that are summed term by term, an integer apart. For one
// coordinate it is that, but for the grid of the accountant.
func TestSmallShares(t *testing.T) {
	for _, shares := range []int{2, 3, 5} {
		for _, variance := range []float64{0.0002, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.4, 1} {
			law := sharesLaw(shares, variance)
			for _, delta := range []float64{1e-9, 1e-5, 1e-3, 0.1} {
				truth := epsilonOfShift(law, delta)
				for _, dimension := range []int{1, 10} {
					spent, err := Round{Family: FamilyDiscreteGaussian, Shares: shares, Honest: shares,
						Rate: 1, Update: Lane{ShareSigma: math.Sqrt(variance),
							Sensitivity: Sensitivity{L2: 1, Dimension: dimension}}}.Spent(ServerView, 1, delta)
					if err != nil {
						t.Fatal(err)
					}
					if spent.Bare().Upper < truth*(1-1e-9) || spent.Bare().Lower > spent.Bare().Upper {
						t.Errorf("%d shares of variance %v, %d coordinates, δ %v: ε %v to %v, and it is %v",
							shares, variance, dimension, delta, spent.Bare().Lower, spent.Bare().Upper, truth)
					}
					if dimension == 1 && variance >= scanLeast && spent.Bare().Upper > truth*1.001 {
						t.Errorf("%d shares of variance %v, δ %v: ε %v, and it is %v", shares, variance, delta,
							spent.Bare().Upper, truth)
					}
				}
			}
		}
	}
	if tau, err := SumTau(2, 0.2499); err != nil || !math.IsInf(tau, 1) {
		t.Errorf("τ = %v, %v for shares that the theorem does not cover", tau, err)
	}
	if tau, err := SumTau(1, 0.001); err != nil || tau != 0 {
		t.Errorf("τ = %v, %v of a single share", tau, err)
	}
}

// sharesLaw returns ln P[sum of shares = k] at k + 60.
func sharesLaw(shares int, variance float64) []float64 {
	const reach = 60
	one := make([]float64, 2*reach+1)
	total := math.Inf(-1)
	for i := range one {
		k := float64(i - reach)
		one[i] = -k * k / (2 * variance)
		total = logAdd(total, one[i])
	}
	for i := range one {
		one[i] -= total
	}
	law := one
	for range shares - 1 {
		next := make([]float64, len(one))
		for i := range next {
			next[i] = math.Inf(-1)
			for j := range one {
				if k := i + reach - j; k >= 0 && k < len(law) {
					next[i] = logAdd(next[i], one[j]+law[k])
				}
			}
		}
		law = next
	}
	return law
}

// epsilonOfShift returns ε at δ of a law and the same one further on, by bisection.
func epsilonOfShift(law []float64, delta float64) float64 {
	exceeds := func(epsilon float64) bool {
		sum := 0.0
		for i := 1; i < len(law); i++ {
			if loss := law[i-1] - law[i]; loss > epsilon {
				sum += math.Exp(law[i-1]) * -math.Expm1(epsilon-loss)
			}
		}
		return sum > delta
	}
	low, high := 0.0, 1e5
	for range 100 {
		if middle := (low + high) / 2; exceeds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
