package falsify

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/noise"
)

// F6: no upper bound that is printed is below what is certainly spent, and no "at least" above what
// is certainly not exceeded, by closed forms of normal curves of its own; and
// all that may fail is in δ.
func TestWords(t *testing.T) {
	over(t, 6, func(x *tried) (bool, error) {
		s := x.settled
		if s.Mechanism() == nil {
			return false, nil
		}
		if !suite.Long() && x.random(60).IntN(4) > 0 {
			return true, nil // a figure takes tenths of a second
		}
		j, r := s.Job(), s.Round()
		want := referenceOf(j, s.Roster().Len(), j.Sum.Members)
		charges := want.charges
		if r.SecretRate > 0 && r.SecretRate < 1 {
			charges = 1 // the curve of one has a closed form
		}
		delta := pick(x.random(6), j.Privacy.Delta, 1e-2)
		claim, err := r.Spent(accounting.ServerView, charges, delta)
		if err != nil {
			return true, err
		}
		spent := claim.Bare()
		if err := printed(claim); err != nil {
			return true, err
		}
		least, most := outside(r, charges, delta)
		const tolerance = 1e-7 // of this file's own arithmetic
		if spent.Upper < least*(1-tolerance) {
			return true, fmt.Errorf("%d charges at δ = %v: at most %v is stated, and %v is spent", charges,
				delta, spent.Upper, least)
		}
		if spent.Lower > most*(1+tolerance) {
			return true, fmt.Errorf("%d charges at δ = %v: at least %v is stated, and it is at most %v",
				charges, delta, spent.Lower, most)
		}
		return true, failing(s, r, want, j.Privacy.Delta)
	})
}

// printed sees that what people read of a claim is no less than its upper end and no more than its
// lower one, and that it says all that the claim is about.
func printed(c accounting.Claim) error {
	text, f := c.String(), c.Bare()
	var epsilon, delta float64
	upper := strings.Replace(text, "epsilon infinite", "epsilon Inf", 1)
	if before, rest, found := strings.Cut(upper, " (at least "); found {
		least, rest, _ := strings.Cut(rest, ")")
		if x, err := strconv.ParseFloat(least, 64); err != nil || x > f.Lower*(1+1e-12) {
			return fmt.Errorf("%q is printed of at least %v", text, f.Lower)
		}
		upper = before + rest
	}
	if _, err := fmt.Sscanf(upper, "epsilon %g at delta %g for ", &epsilon, &delta); err != nil {
		return fmt.Errorf("%q has no figures: %w", text, err)
	}
	if epsilon < f.Upper*(1-1e-12) || delta != f.Delta {
		return fmt.Errorf("%q is printed of epsilon %v at delta %v", text, f.Upper, f.Delta)
	}
	said, assumes, _ := strings.Cut(c.Statement.String(), ";")
	if !strings.Contains(text, said) || !strings.Contains(text, assumes) {
		return fmt.Errorf("%q does not say %v", text, c.Statement)
	}
	return nil
}

// normalDelta is δ of N(μ,1) and N(0,1) at ε, which may be below 0.
func normalDelta(mu, epsilon float64) float64 {
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	a, b := mu/2-epsilon/mu, -mu/2-epsilon/mu
	other := math.Exp(epsilon + lnPhi(b))
	return phi(a) - other
}

// lnPhi is ln Φ(x), by the first terms of the tail where Erfc is too small.
func lnPhi(x float64) float64 {
	if x > -30 {
		return math.Log(math.Erfc(-x/math.Sqrt2) / 2)
	}
	return -x*x/2 - math.Log(-x*math.Sqrt(2*math.Pi)) + math.Log1p(-1/(x*x)+3/(x*x*x*x))
}

// sampledDelta is δ of a normal pair that a coin of probability q brings about, in the worse of
// both directions.
func sampledDelta(mu, q, epsilon float64) float64 {
	with := func(e float64) float64 {
		if rest := math.Exp(e) - 1 + q; rest > 0 {
			return q * normalDelta(mu, math.Log(rest/q))
		}
		return 1 - math.Exp(e)
	}
	return max(with(epsilon), 1-math.Exp(epsilon)+math.Exp(epsilon)*with(-epsilon))
}

// epsilonAt inverts a curve that falls.
func epsilonAt(curve func(epsilon float64) float64, delta float64) float64 {
	if curve(0) <= delta {
		return 0
	}
	lo, hi := 0.0, 1.0
	for curve(hi) > delta {
		if hi *= 2; hi > 1e6 {
			return math.Inf(1)
		}
	}
	for range 200 {
		if mid := (lo + hi) / 2; curve(mid) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// outside are figures that ε of so many charges is certainly not below, and not above. Where this
// file proves nothing they are 0 and infinity.
func outside(r accounting.Round, charges int, delta float64) (least, most float64) {
	if r.Family == accounting.FamilyDiscreteLaplace {
		return ofLaplace(r, charges, delta)
	}
	low, high := 0.0, 0.0
	for _, l := range lanesOf(r) {
		v := l.ShareVariance * float64(r.Shares)
		if r.Family == accounting.FamilyDiscreteGaussian {
			v = l.ShareSigma * l.ShareSigma * float64(r.Shares)
		}
		if v < 50 || v < 4*float64(r.Shares) { // sums of narrow shares have laws of their own
			return 0, math.Inf(1)
		}
		// An integer vector of this norm, whose noise is a continuous normal law's once one of variance
		// 2 is added; of a Skellam law nearly.
		norm := l.Sensitivity.L2 * l.Sensitivity.L2
		whole := math.Floor(norm)
		if l.Sensitivity.Dimension < 4 {
			whole = math.Floor(l.Sensitivity.L2) * math.Floor(l.Sensitivity.L2)
		}
		low += whole / (v + 2)
		// Lemmas 4 and 5: 1/x is above V − 1/12 and V − 1/2 from here on.
		high += norm / (v - 1)
	}
	count := float64(charges)
	low, high = math.Sqrt(low*count), math.Sqrt(high*count)
	if r.Family == accounting.FamilySkellam {
		low *= 0.99 // its tails are longer than a normal law's, never shorter
	}
	curve := func(mu float64) func(float64) float64 {
		if q := rateOf(r); q < 1 {
			return func(e float64) float64 { return sampledDelta(mu, q, e) }
		}
		return func(e float64) float64 { return normalDelta(mu, e) }
	}
	if high > 30 { // float64 is not enough for the curve
		return 0, math.Inf(1)
	}
	return epsilonAt(curve(low), delta), epsilonAt(curve(high), delta)
}

// ofLaplace has pure figures: ε never exceeds the L1 norm by the scale, and one coordinate has a
// curve of steps.
func ofLaplace(r accounting.Round, charges int, delta float64) (least, most float64) {
	for _, l := range lanesOf(r) {
		l1 := l.Sensitivity.L2 * min(l.Sensitivity.L2, math.Sqrt(float64(l.Sensitivity.Dimension)))
		if l.Sensitivity.L1 > 0 {
			l1 = min(l1, l.Sensitivity.L1)
		}
		most += float64(charges) * l1 / l.SumScale * (1 + 1e-9)
		shift := math.Floor(min(l.Sensitivity.L2, l1))
		if q := rateOf(r); q == 1 && delta < -math.Expm1(-1/l.SumScale)*(1-1e-9) && shift >= 2 {
			least = max(least, (shift-2)/l.SumScale)
		}
	}
	return least, most
}

func lanesOf(r accounting.Round) []accounting.Lane {
	if r.Signs == nil {
		return []accounting.Lane{r.Update}
	}
	return []accounting.Lane{r.Update, *r.Signs}
}

// failing sees that what may fail is counted, and counts: with so much of it that δ is used up, no
// ε holds.
func failing(s *job.Settled, r accounting.Round, want reference, delta float64) error {
	n := float64(s.Roster().Len())
	if s.Job().Privacy.NoiseBy == "committee" {
		n = float64(s.Oneshot().Committee.Len())
	}
	samples := 0.0
	for _, segment := range s.Layout() {
		samples += float64(segment.Length) * n * max(1, float64(r.Messages))
	}
	if r.Samples < samples || r.TableDistance < noise.MaxTableDistance {
		return fmt.Errorf("%v samples at a distance of %v are counted, and there are %v", r.Samples,
			r.TableDistance, samples)
	}
	if c := s.Coins(); c != nil && c.Most < c.Count {
		if p := atLeast(c.Count, c.Most+1, c.Rate); r.Overrun < p {
			return fmt.Errorf("more than %d of %d coins come up with probability %v or more, and %v is "+
				"counted", c.Most, c.Count, p, r.Overrun)
		}
	}
	overrun, far, failure := r, r, r
	overrun.Overrun = delta
	failure.Failure = delta
	far.TableDistance = delta / r.Samples
	for what, worse := range map[string]accounting.Round{"an overrun": overrun, "a table": far,
		"a failure": failure} {
		spent, err := worse.Spent(accounting.ServerView, 1, delta)
		if err == nil && !math.IsInf(spent.Bare().Upper, 1) {
			return fmt.Errorf("%s that uses all of δ leaves an %v", what, spent)
		}
	}
	return nil
}

// atLeast is the probability that one number of n coins come up, which is less than that of more.
func atLeast(n, k int, q float64) float64 {
	if k > n {
		return 0
	}
	lg := func(x int) float64 {
		y, _ := math.Lgamma(float64(x) + 1)
		return y
	}
	return math.Exp(lg(n) - lg(k) - lg(n-k) + float64(k)*math.Log(q) + float64(n-k)*math.Log1p(-q))
}

// The closed forms are those of the literature: values of the page docs/privacy.md.
func TestNormalCurve(t *testing.T) {
	for _, c := range []struct{ mu, delta, want float64 }{
		{math.Sqrt(200) / 52.76, 1e-5, 1}, {math.Sqrt(200) / 8.49, 1e-5, 8},
	} {
		got := epsilonAt(func(e float64) float64 { return normalDelta(c.mu, e) }, c.delta)
		if math.Abs(got-c.want) > 2e-3*c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
