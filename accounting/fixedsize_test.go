package accounting

import (
	"errors"
	"math"
	"math/bits"
	"testing"
)

// Gaussian: the general bound is never below the specific one, equals it at
// α = 2, and is at most what the mechanism spends unsampled.
func TestFixedSizeAboveGaussian(t *testing.T) {
	for _, z := range []float64{0.7, 2, 8} {
		for _, n := range []int{20, 1000} {
			plain, err := MechanismRDP(Gaussian{z}, nil)
			if err != nil {
				t.Fatal(err)
			}
			general, err := plain.FixedSize(10, n, math.Inf(1))
			if err != nil {
				t.Fatal(err)
			}
			special, err := FixedSizeGaussianRDP(z, 10, n, nil)
			if err != nil {
				t.Fatal(err)
			}
			g, s, p := general.Values(), special.Values(), plain.Values()
			for i, a := range plain.Orders() {
				if g[i] > p[i]*(1+1e-12) || g[i] < s[i]*(1-1e-9) || a == 2 && g[i] > s[i]*(1+1e-12) {
					t.Errorf("z=%v n=%d α=%v: %v, Gaussian form %v, unsampled %v", z, n, a, g[i], s[i], p[i])
				}
			}
		}
	}
}

// Exhaustive: m of n clients each hold a bit, the sum gets discrete Laplace noise;
// one client's bit is replaced. The bound is above the exact divergence.
func TestFixedSizeAboveExact(t *testing.T) {
	const reach = 60
	tightest := math.Inf(1)
	for _, scale := range []float64{0.8, 2, 6} {
		noise := func(k int) float64 {
			return math.Tanh(1/(2*scale)) * math.Exp(-math.Abs(float64(k))/scale)
		}
		m := DiscreteLaplace{scale, 1} // replacing a bit moves the sum by 1
		plain, err := MechanismRDP(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := 2; n <= 5; n++ {
			for size := 1; size <= n; size++ {
				curve, err := plain.FixedSize(size, n, 1/scale)
				if err != nil {
					t.Fatal(err)
				}
				for others := 0; others < 1<<(n-1); others++ {
					// law of the release when client n−1 holds bit x
					law := func(x int) []float64 {
						out := make([]float64, 2*reach)
						subsets := 0.0
						for s := range 1 << n {
							if bits.OnesCount(uint(s)) != size {
								continue
							}
							subsets++
							sum := bits.OnesCount(uint(s & (others | x<<(n-1))))
							for k := range out {
								out[k] += noise(k - reach - sum)
							}
						}
						for k := range out {
							out[k] /= subsets
						}
						return out
					}
					p, q := law(1), law(0)
					for i, a := range curve.orders {
						if a > 64 {
							break
						}
						up, down := 0.0, 0.0
						for k := range p {
							up += q[k] * math.Pow(p[k]/q[k], a)
							down += p[k] * math.Pow(q[k]/p[k], a)
						}
						exact := math.Log(math.Max(up, down)) / (a - 1)
						if curve.values[i] < exact*(1-1e-9)-1e-12 {
							t.Fatalf("t=%v %d of %d α=%v: bound %v below exact %v", scale, size, n, a, curve.values[i],
								exact)
						}
						if exact > 1e-6 {
							tightest = math.Min(tightest, curve.values[i]/exact)
						}
					}
				}
			}
		}
	}
	t.Logf("least ratio of bound to exact: %.3f", tightest)
}

func TestFixedSizeErrors(t *testing.T) {
	r, err := MechanismRDP(Gaussian{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []func() error{
		func() error { _, err := r.FixedSize(0, 5, 1); return err },
		func() error { _, err := r.FixedSize(6, 5, 1); return err },
		func() error { _, err := r.FixedSize(1, 5, math.NaN()); return err },
		func() error { _, err := r.FixedSize(1, 5, -1); return err },
	} {
		if err := f(); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
	}
	if same, err := r.FixedSize(5, 5, math.Inf(1)); err != nil || same.Values()[7] != r.Values()[7] {
		t.Error(err)
	}
}
