package noise

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

type referenceSampler interface {
	Sample(rand.Source) (float64, error)
}

func sampleReference(t *testing.T, r referenceSampler, n int, seed byte) []float64 {
	t.Helper()
	src := rand.NewChaCha8([32]byte{seed})
	x := make([]float64, n)
	for i := range x {
		var err error
		if x[i], err = r.Sample(src); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// TestReferenceMoments: mean, variance and mean absolute value within 5 standard
// errors, which a right sampler fails with probability 6e-7 each.
func TestReferenceMoments(t *testing.T) {
	const n = 200000
	b := math.Exp(-1.0)
	gamma := 1 / (1 + math.Exp(0.5))
	for i, c := range []struct {
		name               string
		r                  referenceSampler
		variance, absolute float64 // NaN: not checked
	}{
		{"laplace", ReferenceLaplace{3}, 18, 3},
		{"gaussian", ReferenceGaussian{3}, 9, 3 * math.Sqrt(2/math.Pi)},
		{"gamma difference 1", ReferenceGammaDifference{1, 3}, 18, 3},
		{"gamma difference 1/10", ReferenceGammaDifference{0.1, 3}, 2 * 0.1 * 9, math.NaN()},
		// The optimal staircase has E|X| = Δ·e^{ε/2}/(e^ε − 1).
		{"staircase", ReferenceStaircase{1, 2, gamma}, math.NaN(), 2 * math.Sqrt(b) / (1 - b)},
	} {
		x := sampleReference(t, c.r, n, byte(i+1))
		var m, a, v, m4 float64
		for _, y := range x {
			m += y / n
			a += math.Abs(y) / n
			v += y * y / n
			m4 += y * y * y * y / n
		}
		if math.Abs(m) > 5*math.Sqrt(v/n) {
			t.Errorf("%s: mean %g", c.name, m)
		}
		if !math.IsNaN(c.variance) && math.Abs(v-c.variance) > 5*math.Sqrt((m4-v*v)/n) {
			t.Errorf("%s: variance %g, want %g", c.name, v, c.variance)
		}
		if !math.IsNaN(c.absolute) && math.Abs(a-c.absolute) > 5*math.Sqrt((v-a*a)/n) {
			t.Errorf("%s: mean absolute value %g, want %g", c.name, a, c.absolute)
		}
	}
}

// TestReferenceGammaDifferenceGolden compares the tail frequencies with reference
// values, 5 standard errors each (false alarm 6e-7, 36 comparisons), and the
// sum of n shares with the Laplace law.
func TestReferenceGammaDifferenceGolden(t *testing.T) {
	var file struct {
		Records []struct {
			Params struct{ N, R float64 }
			Rows   []struct {
				X  float64
				SF string `json:"sf_P(X>x)"`
			}
		}
	}
	readJSON(t, "gamma_difference.json", &file)
	const n = 100000
	for i, r := range file.Records {
		x := sampleReference(t, ReferenceGammaDifference{r.Params.R, 1}, n, byte(50+i))
		for _, row := range r.Rows {
			count := 0.0
			for _, y := range x {
				if y > row.X {
					count++
				}
			}
			var want float64
			var err error
			if want, err = strconv.ParseFloat(row.SF, 64); err != nil {
				t.Fatal(err)
			}
			if math.Abs(count-n*want) > 5*math.Sqrt(n*want)+3 {
				t.Errorf("n = %v: P(X > %g) = %g, want %g", r.Params.N, row.X, count/n, want)
			}
		}
	}
	if len(file.Records) == 0 {
		t.Fatal("no records")
	}
	// Ten shares of shape 1/10 make a Laplace: P(|X| > ln 2) = 1/2.
	x := sampleReference(t, ReferenceGammaDifference{0.1, 1}, 10*n, 99)
	count := 0.0
	for i := range n {
		s := 0.0
		for _, y := range x[10*i : 10*i+10] {
			s += y
		}
		if math.Abs(s) > math.Ln2 {
			count++
		}
	}
	if math.Abs(count-n/2) > 5*math.Sqrt(n)/2 {
		t.Errorf("sum of shares: %v of %d beyond the median", count, n)
	}
}

// TestReferenceFloatSupport is the observation of (Mironov 2012) on the textbook
// sampler: an output for input 1 gives itself away if no output for
// input 0 has these bits. Seed fixed; the standard error is 0.25 %.
func TestReferenceFloatSupport(t *testing.T) {
	const n = 40000
	away := 0
	for _, x := range sampleReference(t, ReferenceLaplace{1}, n, 7) {
		if !laplaceSupport(1 + x) {
			away++
		}
	}
	share := float64(away) / n
	t.Logf("%.1f %% of the outputs on 1 are impossible on 0", 100*share)
	if share < 0.5 || share > 0.65 {
		t.Errorf("%.1f %% outside the support, published 57.8 %%", 100*share)
	}
	for _, x := range sampleReference(t, ReferenceLaplace{1}, n, 8) {
		if !laplaceSupport(x) {
			t.Fatalf("the test refuses %v, which is an output on 0", x)
		}
	}
}

// laplaceSupport tells whether ±ln U = y for a multiple U of 2^-53 in (0, 1], by trying
// those near exp(−|y|).
func laplaceSupport(y float64) bool {
	y = math.Abs(y)
	// One unit in the last place of y moves U by U·ulp(y); beyond that a few
	// multiples for the rounding of Exp and Log themselves.
	u := math.Exp(-y)
	centre := math.Round(u * (1 << 53))
	reach := math.Ceil(4*u*(math.Nextafter(y, 99)-y)*(1<<53)) + 8
	for k := max(1, centre-reach); k <= min(1<<53, centre+reach); k++ {
		if -math.Log(k/(1<<53)) == y {
			return true
		}
	}
	return false
}

func TestReferenceErrors(t *testing.T) {
	src := rand.NewPCG(1, 2)
	nan, inf := math.NaN(), math.Inf(1)
	for _, r := range []referenceSampler{
		ReferenceLaplace{}, ReferenceLaplace{-1}, ReferenceLaplace{nan}, ReferenceLaplace{inf},
		ReferenceGaussian{}, ReferenceGaussian{-1}, ReferenceGaussian{nan}, ReferenceGaussian{inf},
		ReferenceGammaDifference{}, ReferenceGammaDifference{0, 1}, ReferenceGammaDifference{1, nan},
		ReferenceStaircase{}, ReferenceStaircase{1, 1, 0}, ReferenceStaircase{1, 1, 1}, ReferenceStaircase{1, 1, 2},
		ReferenceStaircase{nan, 1, 0.5}, ReferenceStaircase{1, -1, 0.5},
	} {
		if x, err := r.Sample(src); !errors.Is(err, ErrConfig) || x != 0 {
			t.Errorf("%T%+v: %v %v", r, r, x, err)
		}
	}
	if _, err := (ReferenceLaplace{1}).Sample(nil); !errors.Is(err, ErrConfig) {
		t.Errorf("nil source: %v", err)
	}
}
