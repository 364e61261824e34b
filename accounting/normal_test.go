package accounting

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Lemma 3 says what an integer law is worth: a Gaussian of variance V less the figures of this
// table, at the centre of the law, and 1/12 or 1/3 in the end.
func TestIntegerNoiseAsGaussian(t *testing.T) {
	for _, c := range []struct{ v, gaussian, skellam float64 }{
		{0.5, 0.088, 0.208}, {1, 0.086, 0.353}, {4, 0.084, 0.370}, {16, 0.083, 0.340}, {256, 0.083, 0.334},
		{1e4, 0.083, 0.333},
	} {
		gauss, _, err := gaussianStep(1, c.v, true)
		if err != nil {
			t.Fatal(err)
		}
		skellam, _ := skellamStep(c.v, true)
		for name, x := range map[string][2]float64{
			"discrete Gaussian": {gauss, c.gaussian}, "Skellam": {skellam, c.skellam},
		} {
			if loss := c.v - 1/(x[0]*x[0]); math.Abs(loss-x[1]) > 6e-4 {
				t.Errorf("%s, V = %v: loses %.4f, want %.3f", name, c.v, loss, x[1])
			}
		}
	}
	mu, _, err := gaussianStep(7, 1, true)
	if loss := 7 - 1/(mu*mu); err != nil || math.Abs(loss-0.084) > 6e-4 {
		t.Errorf("seven shares of 1 lose %.4f, %v", loss, err)
	}
}

// wide is a round of noise z times the sensitivity, over many coordinates.
func wide(f Family, z float64) Round {
	const l2, shares = 2000, 7
	noise := z * l2 / math.Sqrt(shares)
	if f == FamilySkellam {
		noise *= noise
	}
	return Round{Family: f, Shares: shares, Honest: shares, Rate: 1,
		Update: stated(f, noise, Sensitivity{L2: l2, Dimension: 1 << 16})}
}

// Figures of vectors at δ = 1e-5, which Rényi divergence put 6 to 7 % higher: neither dimension
// nor the sum of shares costs anything. Coins of a party's own save a factor of 3 in ε.
func TestVectorFigures(t *testing.T) {
	for _, f := range []Family{FamilyDiscreteGaussian, FamilySkellam} {
		for _, c := range []struct {
			z, q    float64
			rounds  int
			epsilon float64
		}{
			{2.684, 1, 20, 8}, {1.898, 1, 10, 8}, {0.849, 1, 2, 8}, // k submissions at ε = 8
			{2.684, 1, 2, 2.113}, {2.85, 1, 20, 7.443}, {2.85, 1, 2, 1.976},
			{1.13, 1, 200, 130.8}, {1.13, 1, 20, 24.0}, {1.13, 0.1, 200, 8.00}, {1.13, 0.1, 220, 8.41},
			{0.787, 0.05, 200, 8}, {1.887, 0.2, 200, 8}, {4.33, 0.5, 200, 8}, // hidden, ε = 8
			{30.5, 0.3, 200, 0.49}, {16.07, 0.3, 200, 1}, {5.47, 0.1, 200, 1}, {37.3, 1, 100, 1}, // records
			{8.60, 0.3, 200, 2}, {2.69, 0.3, 200, 8},
		} {
			if f == FamilySkellam && (c.q < 1 || c.rounds > 20) {
				continue // the Gaussian is the same
			}
			r := wide(f, c.z)
			r.SecretRate = c.q
			s, err := r.Spent(ServerView, c.rounds, 1e-5)
			if err != nil || math.Abs(s.Bare().Upper-c.epsilon) > 0.01*c.epsilon ||
				s.Bare().Accountant != "PLD" ||
				s.Bare().Width() > 0.01*s.Bare().Upper {
				t.Errorf("%v, z = %v, q = %v, %d rounds: %+v, %v, want %v", f, c.z, c.q, c.rounds, s, err,
					c.epsilon)
			}
		}
	}
	for rounds, want := range map[int]float64{20: 2.684, 10: 1.898, 2: 0.849} {
		z, err := CalibrateRound(Target{8, 1e-5}, ServerView, rounds, func(z float64) Round {
			return wide(FamilyDiscreteGaussian, z)
		})
		if err != nil || math.Abs(z-want) > 6e-4 {
			t.Errorf("%d rounds: multiplier %v, %v, want %v", rounds, z, err, want)
		}
	}
}

// The bound by second differences holds for the laws themselves: what a scan finds is below it,
// and not by much. κ follows from the masses.
func TestCurvatureBound(t *testing.T) {
	for v := 0.5; v < 1e4; v *= 1.7 {
		for name, step := range map[string]func(bool) float64{
			"discrete Gaussian": func(scan bool) float64 {
				x, _, err := gaussianStep(1, math.Min(v, 60), scan)
				if err != nil {
					t.Fatal(err)
				}
				return x
			},
			"Skellam": func(scan bool) float64 { x, _ := skellamStep(v, scan); return x },
		} {
			scanned, closed := step(true), step(false)
			if !(scanned <= closed) || v > 8 && closed > scanned*1.02 {
				t.Errorf("%s, V = %v: %v scanned, %v in closed form", name, v, scanned, closed)
			}
		}
		if v < 2.4 {
			continue
		}
		law, err := Skellam{v, 1}.mass()
		if err != nil {
			t.Fatal(err)
		}
		kappa := -math.Log1p(-(1 + 1/(2*v*v)) / v)
		for k := range int(8 * math.Sqrt(v)) {
			second := 2*math.Log(law.at(k)) - math.Log(law.at(k-1)) - math.Log(law.at(k+1))
			if second > kappa+1e-11 {
				t.Errorf("Skellam, V = %v: second difference %v at %d, κ is %v", v, second, k, kappa)
			}
		}
	}
	// The sum of shares against the tables of the test's own, by its masses.
	for _, c := range []struct {
		shares   int
		variance float64
	}{{2, 0.5}, {3, 0.3}, {5, 1}, {6, 2}} {
		r := Round{Family: FamilyDiscreteGaussian,
			Update: Lane{ShareSigma: math.Sqrt(c.variance)}}
		theta, ok := shareTheta(c.shares, c.variance)
		if !ok {
			t.Fatal(c)
		}
		want := integerLaw(r, c.shares)
		for k := range 1 + 5*c.shares/2 {
			got := theta.ln(k) - theta.ln(0)
			if ref := math.Log(want[k] / want[0]); math.Abs(got-ref) > 1e-9 {
				t.Errorf("%d shares of %v: ln P(%d) is %v, want %v", c.shares, c.variance, k, got, ref)
			}
		}
	}
}

// Lemma 4 is of every symmetric law whose second differences are between 0 and κ, and not of the
// families alone: here of laws that bend at all places or at few, in blocks, or away from 0.
func TestCurvatureBoundOfAnyLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	closest := 0.0
	for range 500 {
		kappa := 2.9999 * math.Pow(1e-3, rng.Float64())
		often, block, from := 0.1+rng.Float64(), 1+rng.IntN(9), rng.IntN(2)*rng.IntN(9)
		law := []float64{0}
		slope, second := 0.0, 0.0
		for j := 0; law[j] > -460; j++ {
			switch {
			case j < from || j%block > 0 && j > from:
			case rng.Float64() < often:
				second = kappa * math.Pow(rng.Float64(), 0.2)
			default:
				second = 0
			}
			if slope += second; j == 0 {
				slope /= 2 // the neighbours of 0 are alike
			}
			law = append(law, law[j]-slope)
		}
		end := len(law) - 1
		law = append(law, 2*law[end]-law[end-1]) // and on as a geometric law
		step, bound := largestStep(law), curvatureStep(kappa)
		if !(step <= bound*(1+1e-8)) {
			t.Errorf("κ = %v: a step of %v, and the lemma has %v", kappa, step, bound)
		}
		closest = math.Max(closest, step/bound)
	}
	if closest < 0.99 {
		t.Errorf("no law is nearer to the bound than %v", closest)
	}
}

// A scan whose law ends too early, or is none, proves nothing, and what cannot be cut off is not.
func TestScanRefuses(t *testing.T) {
	if s := largestStep([]float64{0, -1, -2}); !math.IsInf(s, 1) {
		t.Error(s)
	}
	if s := largestStep([]float64{0, -1, 0}); !math.IsInf(s, 1) {
		t.Error(s)
	}
	if s := curvatureStep(3); !math.IsInf(s, 1) {
		t.Error(s)
	}
	// At a δ below what is cut off the closed form still holds, and is larger.
	r := Round{Family: FamilySkellam, Shares: 1, Honest: 1, Rate: 1,
		Update: Lane{ShareVariance: 100, Sensitivity: Sensitivity{L2: 2, Dimension: 4}}}
	near, err := r.Spent(ServerView, 2, 1.01e-60)
	if err != nil {
		t.Fatal(err)
	}
	far, err := r.Spent(ServerView, 2, 0.99e-60)
	if err != nil || far.Bare().Upper < near.Bare().Upper*1.0005 || math.IsInf(far.Bare().Upper, 1) {
		t.Errorf("%v at the least δ, %v below (%v)", near, far, err)
	}
}
