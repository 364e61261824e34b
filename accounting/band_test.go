package accounting

import (
	"errors"
	"math"
	"testing"
)

// bandRound is a band of this many sums, with discrete Gaussian noise of a variance. A client adds
// vectors to it whose squared norms add up to square at most.
func bandRound(messages, dim int, variance, square float64) Round {
	return Round{
		Family: FamilyDiscreteGaussian, Shares: 1, Honest: 1, Rate: 1, Messages: messages,
		Update: Lane{ShareSigma: math.Sqrt(variance),
			Sensitivity: Sensitivity{L2: math.Sqrt(square), Dimension: messages * dim}},
	}
}

// adaptive plays the best strategy of an adversary that chooses each message of one coordinate
// after it has seen the ones before: δ at ε with a budget left of squared norms. with says which of
// the two worlds the outcome is of.
type adaptive struct {
	variance float64
	most     int
	with     bool
}

func (a adaptive) mass(k int) float64 {
	total := 0.0
	for j := -a.most; j <= a.most; j++ {
		total += math.Exp(-float64(j*j) / (2 * a.variance))
	}
	return math.Exp(-float64(k*k)/(2*a.variance)) / total
}

func (a adaptive) delta(messages, left int, epsilon float64) float64 {
	if messages == 0 {
		return math.Max(0, 1-math.Exp(epsilon))
	}
	best := 0.0
	for y := 0; y*y <= left; y++ {
		sum := 0.0
		for z := -a.most; z <= a.most; z++ {
			p, q := a.mass(z-y), a.mass(z)
			if !a.with {
				p, q = q, p
			}
			if p > 1e-14 {
				sum += p * a.delta(messages-1, left-y*y, epsilon-math.Log(p/q))
			}
		}
		best = math.Max(best, sum)
	}
	return best
}

// Theorem 7: whatever an adversary makes of the sums of a band that it has seen, it learns no more
// than from one Gaussian of the whole budget. Enumerated for two messages and a squared norm of 5;
// what two messages charged one by one with their largest offset alone would claim, it exceeds.
func TestAdaptiveBandsInside(t *testing.T) {
	const variance, square = 3.0, 5
	r := bandRound(2, 1, variance, square)
	for _, with := range []bool{true, false} {
		a := adaptive{variance, 14, with}
		for _, epsilon := range []float64{0.2, 0.5, 1, 2, 3} {
			delta := a.delta(2, square, epsilon)
			spent, err := r.Spent(ServerView, 1, delta)
			if err != nil {
				t.Fatal(err)
			}
			if spent.Bare().Upper < epsilon*(1-1e-9) || spent.Bare().Upper > epsilon+0.25 {
				t.Errorf("δ = %.3g: an adversary attains %.4g, and %.4g is claimed", delta, epsilon,
					spent.Bare().Upper)
			}
			single := bandRound(2, 1, variance, 4)
			claimed, err := single.Spent(ServerView, 1, delta)
			if err != nil || claimed.Bare().Upper >= epsilon {
				t.Errorf("one offset alone: %.4g claimed, %.4g attained (%v)", claimed.Bare().Upper,
					epsilon, err)
			}
		}
	}
}

// A band costs what one Gaussian does: rounds of it compose as Gaussians, the lower bound is of
// vectors that every offset admits, and how the band is cut into messages changes nothing.
func TestBandSpends(t *testing.T) {
	const sigma, norm = 400.0, 100.0
	whole := bandRound(0, 1000, sigma*sigma, norm*norm)
	whole.Update.Sensitivity.Dimension = 20_000
	want, err := whole.Spent(ServerView, 5, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	r := bandRound(20, 1000, sigma*sigma, norm*norm)
	got, err := r.Spent(ServerView, 5, 1e-5)
	if err != nil || got.Bare().Upper != want.Bare().Upper {
		t.Fatalf("%+v, want %+v, %v", got, want, err)
	}
	// What rounding may take of a vector of 100 units in 20 messages counts.
	if x := got.Bare(); x.Lower <= 0 || x.Width() > 0.05*x.Upper ||
		x.Neighbour != "vectors in the 20 sums of a band, of a squared norm of 10000 together" {
		t.Errorf("at least %v, %q", x.Lower, x.Neighbour)
	}
	wide := bandRound(20, 1000, 1e6*sigma*sigma, 1e6*norm*norm)
	spent := func() Figures {
		t.Helper()
		s, err := wide.Spent(ServerView, 5, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		return s.Bare()
	}
	if x := spent(); x.Width() > 1e-4*x.Upper {
		t.Errorf("at least %v of at most %v", x.Lower, x.Upper)
	}
	wide.Update.Attained = 0.5e3 * norm
	if x := spent(); x.Lower > 0.51*x.Upper {
		t.Errorf("half of the norm is an input, and at least %v of %v", x.Lower, x.Upper)
	}
	wide.Update.Attained = 0.7 * math.Sqrt(20)
	if x := spent(); x.Lower != 0 {
		t.Errorf("at least %v of vectors that rounding may leave nothing of", x.Lower)
	}
}

// A band attains its lower bound with vectors that are not whole, for which the rounding is in no
// party's hands: here the worst, which is down, or up or down evenly.
func TestBandLowerBoundIsAttained(t *testing.T) {
	const variance, delta = 400.0, 0.05
	noise := tabled(func(k float64) float64 { return math.Exp(-k * k / (2 * variance)) }, 160)
	for _, c := range []struct {
		input float64
		up    float64 // the probability with which each of two messages is rounded up
	}{{27.4, 0}, {27.75, 0}, {27.5, 0.5}, {20, 0}} {
		r := bandRound(2, 1, variance, 2*28*28)
		r.Update.Attained = c.input * math.Sqrt2
		s, err := r.Spent(ServerView, 1, delta)
		if err != nil || s.Bare().Lower <= 0 {
			t.Fatalf("%+v: %+v, %v", c, s, err)
		}
		one, down := make(map[int]float64), int(c.input)
		for k, p := range noise {
			one[k+down] += p * (1 - c.up)
			one[k+down+1] += p * c.up
		}
		got := 0.0
		for a, p := range one {
			for b, q := range one {
				got += math.Max(0, p*q-math.Exp(s.Bare().Lower)*noise[a]*noise[b])
			}
		}
		if got < delta {
			t.Errorf("%+v: at least %v, but δ is %v there, below %v", c, s.Bare().Lower, got, delta)
		}
	}
}

// What has no theorem is refused: L2 budgets of discrete Laplace noise, a coin for each message,
// records, signs.
func TestBandsRefused(t *testing.T) {
	for name, change := range map[string]func(r *Round){
		"laplace": func(r *Round) {
			r.Family, r.Update.ShareSigma, r.Update.SumScale = FamilyDiscreteLaplace, 0, 9
		},
		"coin":     func(r *Round) { r.SecretRate = 0.5 },
		"rate":     func(r *Round) { r.Rate, r.HiddenSchedule = 0.5, true },
		"records":  func(r *Round) { r.Statement = Calculated(RecordUnit) },
		"signs":    func(r *Round) { r.Signs = &Lane{ShareSigma: 9, Sensitivity: r.Update.Sensitivity} },
		"negative": func(r *Round) { r.Messages = -1 },
		"one sum":  func(r *Round) { r.Update.Sensitivity.Dimension = 4 },
	} {
		r := bandRound(5, 10, 100, 100)
		if _, err := r.Spent(ServerView, 1, 1e-5); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if _, err := r.Spent(ServerView, 1, 1e-5); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
