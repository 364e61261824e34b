package query

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/workload"
)

// A tree that is one is returned as it is; of noisy trees the leaves are those of least squares:
// no other leaves are nearer, by the normal equations.
func TestFitted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, bins := range []int{2, 4, 16, 128} {
		exact, noisy := make([]float64, 2*bins-1), make([]float64, 2*bins-1)
		for i := range bins {
			exact[bins-1+i] = float64(random.IntN(100))
		}
		for node := bins - 1; node > 0; node-- {
			exact[node-1] = exact[2*node-1] + exact[2*node]
		}
		for i, x := range fitted(exact) {
			if math.Abs(x-exact[bins-1+i]) > 1e-9 {
				t.Fatalf("%d bins: leaf %d is %v, want %v", bins, i, x, exact[bins-1+i])
			}
		}
		for i := range noisy {
			noisy[i] = exact[i] + random.NormFloat64()
		}
		leaves := fitted(noisy)
		sums := make([]float64, 2*bins)
		copy(sums[bins:], leaves)
		for node := bins - 1; node > 0; node-- {
			sums[node] = sums[2*node] + sums[2*node+1]
		}
		for leaf := range bins { // the residuals on the path of a leaf add up to 0
			rest := 0.0
			for node := bins + leaf; node > 0; node /= 2 {
				rest += noisy[node-1] - sums[node]
			}
			if math.Abs(rest) > 1e-8 {
				t.Fatalf("%d bins: the residuals above leaf %d add up to %v", bins, leaf, rest)
			}
		}
	}
}

// The variance of the rows below an edge is cᵀ(AᵀA)⁻¹c, where a fit to counts that are c in the
// leaves and 0 elsewhere is (AᵀA)⁻¹c.
func TestSpread(t *testing.T) {
	for _, bins := range []int{2, 8, 32} {
		for edge := range bins + 1 {
			for _, q := range []float64{0.1, 0.5, 0.9} {
				nodes := make([]float64, 2*bins-1)
				c := nodes[bins-1:]
				for i := range c {
					if c[i] = -q; i < edge {
						c[i]++
					}
				}
				want := 0.0
				for i, x := range fitted(nodes) {
					want += c[i] * x
				}
				if got := workload.Spread(edge, bins, q); math.Abs(got-want) > 1e-12 {
					t.Fatalf("edge %d of %d, %v: %v, want %v", edge, bins, q, got, want)
				}
			}
		}
	}
}

// A tree gives the rows below a middle edge with less error than bins alone from 32 bins on, at
// equal ε.
func TestTreeGains(t *testing.T) {
	for _, c := range []struct {
		bins     int
		low, top float64 // of the ratio of variances
	}{{32, 0.4, 1}, {256, 0.05, 0.3}, {1024, 0.01, 0.1}} {
		worst, flat := 0.0, 0.0
		for edge := range c.bins {
			// Each level has as much of the budget; half of all bins alone, less half of the rest.
			worst = max(worst, workload.Spread(edge, c.bins, 0.5)*(math.Log2(float64(c.bins))+1))
			flat = float64(c.bins) / 4
		}
		if r := worst / flat; r < c.low || r > c.top {
			t.Errorf("%d bins: %.3f times the variance of bins alone", c.bins, r)
		}
	}
}

// Projections do as they say in small cases: no step along two coordinates, or within the
// order, comes nearer.
func TestConsistent(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		noisy := make([]float64, 1+random.IntN(6))
		total := 0.0
		for i := range noisy {
			noisy[i] = math.Round(20*random.NormFloat64()) / 4
			total += noisy[i]
		}
		out, sum := projected(noisy, 20), 0.0
		for _, x := range out {
			if x < 0 {
				t.Fatalf("%v of %v", out, noisy)
			}
			sum += x
		}
		if math.Abs(sum-min(max(0, total), 20)) > 1e-9 {
			t.Fatalf("%v of %v: the total is %v", out, noisy, total)
		}
		for i := range out { // moving rows from one bin to another is no gain
			for k := range out {
				if total > 0 && out[i] > 1e-9 && out[k]-noisy[k] < out[i]-noisy[i]-1e-9 {
					t.Fatalf("%v of %v: from %d to %d", out, noisy, i, k)
				}
			}
		}
		up := ascending(noisy)
		if !slices.IsSorted(up) {
			t.Fatalf("%v of %v descends", up, noisy)
		}
		for from := 0; from < len(up); { // blocks are means, and their first parts are no lower
			to, mean := from, 0.0
			for to < len(up) && up[to] == up[from] {
				mean += noisy[to] - up[from]
				if to++; mean < -1e-9 && to < len(up) && up[to] != up[from] {
					t.Fatalf("%v of %v", up, noisy)
				}
			}
			if math.Abs(mean) > 1e-9 {
				t.Fatalf("%v of %v: a block is no mean", up, noisy)
			}
			from = to
		}
	}
}
