package aggregation

import (
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// upperTail returns P(X ≥ x) for x = 0 … n of a law given by its probabilities
// at 0 … n, adding the small ones first.
func upperTail(pmf []float64) []float64 {
	tail := make([]float64, len(pmf))
	var sum float64
	for k := len(pmf) - 1; k >= 0; k-- {
		sum += pmf[k]
		tail[k] = sum
	}
	return tail
}

// difference is the law of X − Y at 0 … n for independent X and Y with the given
// probabilities.
func difference(f []float64, n int) []float64 {
	out := make([]float64, n+1)
	for k := range out {
		for j := 0; j+k < len(f); j++ {
			out[k] += f[j+k] * f[j]
		}
	}
	return out
}

func poisson(mean float64, n int) []float64 {
	f := make([]float64, n+1)
	for k := range f {
		lg, _ := math.Lgamma(float64(k) + 1)
		f[k] = math.Exp(float64(k)*math.Log(mean) - mean - lg)
	}
	return f
}

func negativeBinomial(r, p float64, n int) []float64 {
	f := make([]float64, n+1)
	lr, _ := math.Lgamma(r)
	for k := range f {
		lg, _ := math.Lgamma(float64(k) + 1)
		lkr, _ := math.Lgamma(float64(k) + r)
		f[k] = math.Exp(lkr - lr - lg + r*math.Log1p(-p) + float64(k)*math.Log(p))
	}
	return f
}

func discreteGaussian(sigma float64, n int) []float64 {
	f := make([]float64, n+1)
	total := -1.0
	for k := range f {
		f[k] = math.Exp(-float64(k*k) / (2 * sigma * sigma))
		total += 2 * f[k]
	}
	for k := range f {
		f[k] /= total
	}
	return f
}

// The stated tails against the laws themselves, computed by summation: the
// bound holds, and is no more than a third (of T, or two units) too wide.
func TestNoiseTail(t *testing.T) {
	const n = 3000
	type law struct {
		name  string
		tail  accounting.Family
		sigma float64
		upper []float64
	}
	// Each bound holds for its own family and those after it.
	widest := []accounting.Family{accounting.FamilyDiscreteLaplace, accounting.FamilySkellam,
		accounting.FamilyDiscreteGaussian}
	var laws []law
	for _, sigma := range []float64{0.3, 1, 3, 12} {
		laws = append(laws,
			law{"discrete Gaussian", accounting.FamilyDiscreteGaussian, sigma,
				upperTail(discreteGaussian(sigma, n))},
			law{"Skellam", accounting.FamilySkellam, sigma,
				upperTail(difference(poisson(sigma*sigma/2, n), n))})
		for _, r := range []float64{1, 1.5, 4} {
			// σ² = 2rp/(1−p)²
			a := 2 * r / (sigma * sigma)
			p := 1 + a/2 - math.Sqrt(a+a*a/4)
			laws = append(laws, law{"Pólya difference", accounting.FamilyDiscreteLaplace, sigma,
				upperTail(difference(negativeBinomial(r, p, n), n))})
		}
	}
	for _, law := range laws {
		for _, l := range []float64{3, 10, 28, 41, 60} {
			for width, tail := range widest {
				T := tailQuantile(tail, law.sigma, l)
				most := math.Exp(-l)
				got := law.upper[min(n, int(math.Ceil(T)))]
				if width <= slices.Index(widest, law.tail) && got > most*(1+1e-9) {
					t.Errorf("%s, σ = %v: P(X ≥ %v) = %v, more than %v by bound %v", law.name, law.sigma, T, got,
						most, tail)
				}
				if tail != law.tail || law.tail == accounting.FamilyDiscreteLaplace {
					continue
				}
				if law.sigma >= 1 && l >= 10 && law.upper[int(math.Floor(T/1.34-2))] < most {
					t.Errorf("%s, σ = %v: a bound of %v for %v is too wide", law.name, law.sigma, T, most)
				}
			}
		}
	}
	// Pólya differences of shape 1 are discrete Laplace: P(X ≥ T) = p^T/(1+p).
	for _, sigma := range []float64{0.3, 1, 30, 1e6, 1e15} {
		a := 2 / (sigma * sigma)
		rate := 2 * math.Asinh(1/(sigma*math.Sqrt2)) // −ln p, since cosh rate − 1 = 1/σ²
		if p := 1 + a/2 - math.Sqrt(a+a*a/4); sigma <= 30 && math.Abs(math.Exp(-rate)-p) > 1e-12 {
			t.Fatalf("p = %v or %v", math.Exp(-rate), p)
		}
		for _, l := range []float64{10, 28, 60} {
			T, exact := tailQuantile(accounting.FamilyDiscreteLaplace, sigma, l), l/rate
			if T < exact-math.Ln2/rate || T > 1.5*exact {
				t.Errorf("σ = %v: a bound of %v, exact %v", sigma, T, exact)
			}
		}
	}
	if tailQuantile(accounting.FamilyDiscreteLaplace, 0, 30) != 0 ||
		tailQuantile(accounting.FamilySkellam, 0, 30) != 0 {
		t.Error("a tail without noise")
	}
	if tailQuantile(0, 3, 30) != tailQuantile(accounting.FamilyDiscreteLaplace, 3, 30) {
		t.Error("noise of no stated family has another bound than the widest")
	}
}
