package accounting

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// overlap is 1−δ of discrete Laplace pairs with the given shifts at ε, by direct
// sum: Σ min(P, e^ε·Q) over all outcomes, each clamped to 0..shift.
func overlap(t float64, eps float64, shifts ...int) float64 {
	rho := math.Exp(-1 / t)
	mass := func(k, y int) (p, q float64) {
		at := func(j int) float64 { // probability of j without the client
			switch {
			case j <= 0:
				return 1 / (1 + rho)
			case j == k:
				return math.Pow(rho, float64(k)) / (1 + rho)
			}
			return math.Pow(rho, float64(j)) * (1 - rho) / (1 + rho)
		}
		return at(k - y), at(y)
	}
	var sum func(i int, p, q float64) float64
	sum = func(i int, p, q float64) float64 {
		if i == len(shifts) {
			return math.Min(p, math.Exp(eps)*q)
		}
		total := 0.0
		for y := 0; y <= shifts[i]; y++ {
			a, b := mass(shifts[i], y)
			total += sum(i+1, p*a, q*b)
		}
		return total
	}
	return sum(0, 1, 1)
}

// Lemma 1 of docs/privacy-proofs.md at every knot: its closed forms, and the order.
func TestShiftDominatesSplitShift(t *testing.T) {
	knots, tightest := 0, math.Inf(1)
	for _, scale := range []float64{0.2, 0.7, 1, 3, 20, 300} {
		rho := math.Exp(-1 / scale)
		for a := 1; a <= 9; a++ {
			for b := 1; b <= a; b++ {
				k := a + b
				for j := 0; j <= k; j++ {
					eps := float64(2*j-k) / scale
					u := math.Pow(rho, float64(k-j))
					one, two := overlap(scale, eps, k), overlap(scale, eps, a, b)
					if math.Abs(one-u) > 1e-13*u {
						t.Fatalf("t=%v k=%d j=%d: 1−δ = %v, want %v", scale, k, j, one, u)
					}
					if two < one*(1-1e-13) {
						t.Fatalf("t=%v a=%d b=%d j=%d: the split shift spends more, 1−δ %v below %v", scale, a, b, j,
							two, one)
					}
					if 2*j >= k {
						want := u * (2 + (1-rho)*float64(b-1)) / (1 + rho)
						if j > a {
							want = u * (1 + (1-rho)*float64(k-j)/(1+rho))
						}
						if math.Abs(two-want) > 1e-12*want {
							t.Fatalf("t=%v a=%d b=%d j=%d: 1−δ = %v, want %v", scale, a, b, j, two, want)
						}
					}
					if j < k {
						tightest = math.Min(tightest, two/one)
					}
					knots++
				}
			}
		}
	}
	t.Logf("%d knots, least ratio %.6f", knots, tightest)
}

// Vectors of up to four coordinates, any ε.
func TestL1ShiftDominatesVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shifts := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "shifts")
		scale := rapid.Float64Range(0.3, 30).Draw(t, "t")
		k := 0
		for _, s := range shifts {
			k += s
		}
		eps := rapid.Float64Range(-1.1, 1.1).Draw(t, "ε") * float64(k) / scale
		if vec, one := overlap(scale, eps, shifts...), overlap(scale, eps, k); vec < one*(1-1e-12) {
			t.Fatalf("%v at scale %v, ε %v: 1−δ %v below that of the sum, %v", shifts, scale, eps, vec, one)
		}
	})
}

func TestIntegerNorm(t *testing.T) {
	for bound, want := range map[float64]int{0.3: 1, 1: 1, 1.99: 1, 7: 7, 7.5: 7,
		math.Sqrt(3) * math.Sqrt(3): 3, math.Sqrt(10) * math.Sqrt(10): 10} {
		if got := integerNorm(bound); got != want {
			t.Errorf("%v: %d, want %d", bound, got, want)
		}
	}
	// A vector round uses it: Δ₁ = 7.9 spends what 7 does.
	r := Round{Family: FamilyDiscreteLaplace, Shares: 5, Honest: 5,
		Update: Lane{SumScale: 10, Sensitivity: Sensitivity{7.9, 5, 9}}, Rate: 1}
	if s, err := r.Spent(ServerView, 3, 0); err != nil || !s.Bare().Contains(2.1) {
		t.Error(s, err)
	}
}
