package accounting

import (
	"fmt"
	"math"
	"math/rand"
	"regexp"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/hushsum/hushsum/internal/suite"
)

// A numeric accountant of the test's own, without tilts or directed rounding of arithmetic:
// atoms of one round are listed, their losses put onto a grid, once rounded up and once down,
// and rounds composed by one Fourier transform. It is good to 1e-13 in δ.

// integerLaw is the law of noise in one coordinate as a table around 0, by sums that owe nothing
// to the code under test.
func integerLaw(r Round, shares int) map[int]float64 {
	out := map[int]float64{0: 1}
	switch r.Family {
	case FamilyDiscreteLaplace:
		return tabled(func(k float64) float64 { return math.Exp(-k / r.Update.SumScale) },
			int(45*r.Update.SumScale)+1)
	case FamilySkellam:
		// Two Poisson laws, by their logarithms.
		mean := float64(shares) * r.Update.ShareVariance / 2
		n := int(mean+12*math.Sqrt(mean)) + 40
		poisson := make([]float64, n)
		for k := range poisson {
			ln, _ := math.Lgamma(float64(k) + 1)
			poisson[k] = math.Exp(float64(k)*math.Log(mean) - mean - ln)
		}
		out = map[int]float64{}
		for a, p := range poisson {
			for b, q := range poisson {
				if p*q > 1e-25 {
					out[a-b] += p * q
				}
			}
		}
		return out
	}
	v := r.Update.ShareSigma * r.Update.ShareSigma
	one := tabled(func(k float64) float64 { return math.Exp(-k * k / (2 * v)) },
		int(11*r.Update.ShareSigma)+1)
	for range shares {
		next := map[int]float64{}
		for a, p := range out {
			for b, q := range one {
				if p*q > 1e-25 {
					next[a+b] += p * q
				}
			}
		}
		out = next
	}
	return out
}

func tabled(weight func(float64) float64, reach int) map[int]float64 {
	out, sum := map[int]float64{}, 0.0
	for k := -reach; k <= reach; k++ {
		out[k] = weight(math.Abs(float64(k)))
		sum += out[k]
	}
	for k := range out {
		out[k] /= sum
	}
	return out
}

// pairOf is one round of a vector under the noise, as outcomes.
func pairOf(law map[int]float64, vector []int) outcomes {
	out := nothing
	for _, by := range vector {
		var one outcomes
		for k, q := range law {
			if p := law[k-by]; p > 1e-22 || q > 1e-22 {
				one = append(one, [2]float64{p, q})
			}
			if _, ok := law[k+by]; !ok {
				one = append(one, [2]float64{q, 0}) // seen with the client alone
			}
		}
		out = out.cross(one)
		var kept outcomes
		for _, x := range out {
			if x[0] > 1e-19 || x[1] > 1e-19 {
				kept = append(kept, x)
			}
		}
		out = kept
	}
	return out
}

// numericEpsilon returns ε(δ) of this many rounds of each of the pairs, the larger direction's,
// with losses rounded down and up.
func numericEpsilon(pairs []outcomes, rounds int, delta float64) (low, high float64) {
	const h, n = 5e-4, 1 << 17
	fft := fourier.NewFFT(n)
	for _, swap := range []bool{false, true} {
		for i, round := range []func(float64) float64{math.Floor, math.Ceil} {
			total := make([]complex128, n/2+1)
			for k := range total {
				total[k] = 1
			}
			finite := 1.0
			for _, pair := range pairs {
				mass := make([]float64, n)
				sum := 0.0
				for _, x := range pair {
					p, q := x[0], x[1]
					if swap {
						p, q = q, p
					}
					if p == 0 || q == 0 {
						continue
					}
					k := int(round(math.Log(p/q) / h))
					mass[((k%n)+n)%n] += p
					sum += p
				}
				finite *= math.Pow(math.Min(sum, 1), float64(rounds))
				for k, c := range fft.Coefficients(nil, mass) {
					total[k] *= power(c, rounds)
				}
			}
			law := fft.Sequence(nil, total)
			at := func(eps float64) float64 {
				d := math.Max(0, 1-finite)
				for k := int(eps/h) + 1; k < n/2; k++ {
					d += law[k] / n * -math.Expm1(eps-float64(k)*h)
				}
				return d
			}
			lo, hi := 0.0, n/2*h
			for range 30 {
				if mid := (lo + hi) / 2; at(mid) > delta {
					lo = mid
				} else {
					hi = mid
				}
			}
			if i == 0 {
				low = math.Max(low, lo)
			} else {
				high = math.Max(high, hi)
			}
		}
	}
	return low, high
}

var entryOf = regexp.MustCompile(`(\d+)(?: coordinates?)? by (\d+)`)

// vectorOf reads the name of a neighbour.
func vectorOf(t *testing.T, name string) (out []int) {
	t.Helper()
	for _, m := range entryOf.FindAllStringSubmatch(name, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		by, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			out = append(out, by)
		}
	}
	return out
}

// Random settings of every law: the upper bound is above what a random vector spends, and above
// what the named one does; the named one spends the lower bound, or more. Both directions,
// whole and sampled.
func TestRandomRoundsInside(t *testing.T) {
	settings := suite.Size(2, 3, 200, 200)
	for _, family := range Families() {
		t.Run(family.String(), func(t *testing.T) { randomRoundsInside(t, family, settings) })
	}
}

func randomRoundsInside(t *testing.T, family Family, settings int) {
	rng := rand.New(rand.NewSource(int64(family)))
	widest, sum := 0.0, 0.0
	for i := range settings {
		r, rounds, delta := randomRound(rng, family)
		spent, err := r.Spent(ServerView, rounds, delta)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Update.Sensitivity.check()
		if err != nil {
			t.Fatal(err)
		}
		named, q := vectorOf(t, spent.Bare().Neighbour), r.rate(ServerView)
		name := fmt.Sprintf("%v %d: %+v, %d rounds, δ = %.2g", family, i, r, rounds, delta)
		if !s.holds(named) || (len(named) == 0) != (spent.Bare().Lower == 0) {
			t.Errorf("%s: %q is not within %v", name, spent.Bare().Neighbour, s)
			continue
		}
		law := integerLaw(r, r.Shares)
		for k, vector := range [][]int{named, randomVector(rng, s)} {
			var pairs []outcomes
			if q < 1 {
				pairs = []outcomes{pairOf(law, vector).sampled(q)}
			} else {
				for _, by := range vector {
					pairs = append(pairs, pairOf(law, []int{by}))
				}
			}
			low, high := numericEpsilon(pairs, rounds, delta)
			if low > spent.Bare().Upper*(1+1e-6) {
				t.Errorf("%s: %v spends %v, above %v by %s", name, vector, low, spent.Bare().Upper,
					spent.Bare().Accountant)
			}
			if k == 0 && high < spent.Bare().Lower*(1-1e-6) {
				t.Errorf("%s: %v spends %v, below %v", name, vector, high, spent.Bare().Lower)
			}
		}
		if spent.Bare().Upper > 0 {
			w := 1 - spent.Bare().Lower/spent.Bare().Upper
			widest, sum = math.Max(widest, w), sum+w
		}
	}
	t.Logf("%v: %d settings, width %.2g on average, %.2g at most", family, settings,
		sum/float64(settings), widest)
}

// holds reports whether a vector is within the norms.
func (s Sensitivity) holds(vector []int) bool {
	l1, square := 0, 0
	for _, k := range vector {
		l1, square = l1+k, square+k*k
	}
	return len(vector) <= s.Dimension && float64(l1) <= s.L1 && float64(square) <= s.L2*s.L2
}

func randomVector(rng *rand.Rand, s Sensitivity) []int {
	v := make([]int, s.Dimension)
	for i := range v {
		v[i] = rng.Intn(int(s.L2) + 1)
	}
	for i := 0; !s.holds(v); i = (i + 1) % len(v) {
		v[i] = max(0, v[i]-1)
	}
	return v
}

func randomRound(rng *rand.Rand, family Family) (r Round, rounds int, delta float64) {
	l2 := 1 + 5*rng.Float64()
	r = Round{Family: family, Shares: 1 + rng.Intn(4), Rate: 1}
	r.Honest = r.Shares
	s := Sensitivity{L2: l2, Dimension: 1 + rng.Intn(4)}
	if rng.Intn(3) == 0 {
		r.SecretRate = 0.05 + 0.5*rng.Float64()
		s.Dimension = min(s.Dimension, 2) // vectors are listed whole
	}
	z := 0.8 + 2*rng.Float64()
	switch sigma := z * l2 / math.Sqrt(float64(r.Shares)); family {
	case FamilyDiscreteGaussian:
		r.Update = stated(family, math.Max(sigma, 0.5), s)
	case FamilySkellam:
		r.Update = stated(family, math.Max(sigma*sigma, 0.25), s)
	default:
		r.Update = stated(family, z*l2/math.Sqrt2, s)
	}
	return r, 1 + rng.Intn(8), math.Pow(10, -1-5*rng.Float64())
}
