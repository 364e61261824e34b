package graph

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// ratio returns a/b as a float64; both may be too large for one.
func ratio(a, b *big.Int) float64 {
	f, _ := new(big.Rat).SetFrac(a, b).Float64()
	return f
}

func TestLogPMFAgainstExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	worst := 0.0
	for range 3000 {
		n := 1 + rng.IntN(1500)
		h := hyp{n, rng.IntN(n + 1), rng.IntN(n + 1)}
		x := h.low() + rng.IntN(h.high()-h.low()+1)
		exact := ratio(h.ways(x), new(big.Int).Binomial(int64(h.n), int64(h.k)))
		if exact < 1e-300 {
			continue
		}
		worst = max(worst, math.Abs(math.Exp(h.logPMF(x))/exact-1))
	}
	// A thousandth of logSlack, in probabilities down to 1e-300.
	if worst > 1e-12 {
		t.Errorf("relative error %g", worst)
	}
}

func TestLogPMFLarge(t *testing.T) {
	// One exact value at a size where log-factorials alone lose eight digits.
	h := hyp{1_000_000, 330_000, 518}
	for _, x := range []int{0, 100, 171, 270, 340, 518} {
		p := new(big.Rat).SetFrac(h.ways(x), new(big.Int).Binomial(int64(h.n), int64(h.k)))
		exact, _ := new(big.Float).SetRat(p).Float64()
		if got := math.Exp(h.logPMF(x)); math.Abs(got/exact-1) > 1e-12 {
			t.Errorf("P[X = %d] = %g, want %g", x, got, exact)
		}
	}
}

func TestPMFSumsToOne(t *testing.T) {
	for _, h := range []hyp{{1, 0, 1}, {2, 1, 1}, {10, 10, 3}, {10, 3, 10}, {1000, 330, 286},
		{1_000_000, 330_000, 1000}, {MaxParties, 1 << 23, 1000}} {
		sum := 0.0
		for x := h.low(); x <= h.high(); x++ {
			sum += math.Exp(h.logPMF(x))
		}
		if math.Abs(sum-1) > 1e-10 {
			t.Errorf("%+v: sum %v", h, sum)
		}
	}
}

func TestTailAtMostAgainstExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 1500 {
		n := 2 + rng.IntN(600)
		h := hyp{n, rng.IntN(n + 1), rng.IntN(n + 1)}
		bits := 1 + rng.IntN(60)
		// Both sides of where the answer changes, and one step beyond.
		q := quantile(max(0, h.low()), h.high(), func(x int) bool { return h.tailAtMost(x, bits) })
		for x := q - 2; x <= q+1; x++ {
			want := h.tailAtMostExact(x, bits)
			if got := h.tailAtMost(x, bits); got != want || want != (x >= q) {
				t.Fatalf("%+v, bits %d, x %d: got %v, want %v, quantile %d", h, bits, x, got, want, q)
			}
		}
	}
}

func TestTailMonotoneAndComplete(t *testing.T) {
	for _, h := range []hyp{{100, 5, 12}, {1000, 330, 286}, {5000, 4900, 300}, {50, 25, 49}} {
		last := 0.0
		for x := h.low() - 1; x < h.high(); x++ {
			got := h.logTail(x)
			want := new(big.Int)
			for i := x + 1; i <= h.high(); i++ {
				want.Add(want, h.ways(i))
			}
			exact := ratio(want, new(big.Int).Binomial(int64(h.n), int64(h.k)))
			if got > last+1e-15 || exact > 1e-300 && math.Abs(math.Exp(got)/exact-1) > 1e-11 {
				t.Fatalf("%+v: P[X > %d] = %g, want %g", h, x, math.Exp(got), exact)
			}
			last = got
		}
	}
}

// TestTies puts the tail exactly on the bound, where only exact arithmetic knows:
// P[Hyp(n,2,2) = 2] = 2/(n(n−1)) is 2^-b/n for n = 2^(b+1) + 1.
func TestTies(t *testing.T) {
	for b := 1; b < 23; b++ {
		h := hyp{1<<(b+1) + 1, 2, 2}
		if !h.tailAtMost(1, b) {
			t.Errorf("n = %d: a tail equal to the bound must pass", h.n)
		}
		if h.tailAtMost(1, b+1) {
			t.Errorf("n = %d: a tail of twice the bound must fail", h.n)
		}
	}
	// Connectivity, at every small shape: both paths say the same.
	for sigma := 1; sigma < 10; sigma++ {
		for n := 4; n < 40; n++ {
			for bad := 2; bad < n; bad++ {
				for k := 2; k < n-1; k += 2 {
					c := conditions{Sizes: Sizes{n, n, n, bad}, sigma: sigma}
					if got, want := c.connected(k), c.connectedExact(k); got != want {
						t.Fatalf("%+v, k = %d: got %v, want %v", c, k, got, want)
					}
				}
			}
		}
	}
}
