package collusion

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/noise"
)

// protection says what a scheme's noise is worth against colluders.
type protection struct {
	scheme    string
	sound     bool // whether it is one to use
	colluders int
	// left is the variance left to the honest parties' sum, as a share of that in
	// the released sum, and leftError its standard error, 0 if it was computed.
	left, leftError float64
	// pure is the ε of pure differential privacy, +Inf if there is none, and epsilon
	// that at a given δ, +Inf above 15. Both are for a change of one input by λ.
	pure, epsilon float64
}

// schemeLaws are the laws that a scheme's noise may leave, all of them as likely.
type schemeLaws struct {
	scheme string
	sound  bool
	pure   float64
	laws   []noiseLaw
}

// equalNoise compares schemes at the same variance in the released sum, 2nλ², which
// is that of the published protocol: the published one, oblivious transfer against
// malicious senders, noise shares with slack for just that many colluders (package
// noise), and a Laplace variable from each party. For the published one views are
// drawn, and their mean δ is taken.
//
// With k honest parties each leaves k/n of the variance, so that none is better by
// that measure: under transfer n·k terms of 2λ²/n are left, which add to k Laplace
// variables, exactly as with local noise. Slack noise of m = k shares can afford
// the scale λ√k and leaves one Laplace variable of that, a pure ε of Δ/(λ√k).
func equalNoise(
	ctx context.Context, n, colluders, views int, delta float64, r *rand.Rand,
) ([]protection, error) {
	size := 1 << 10
	for float64(size) < 64*lawScale*math.Sqrt(float64(n)) {
		size *= 2
	}
	honest := n - colluders
	published, err := newPublishedLaw(n, colluders, lawScale, size)
	if err != nil {
		return nil, err
	}
	if colluders == 0 {
		views = 1 // nothing is seen
	}
	publishedLaws := make([]noiseLaw, views)
	for i := range publishedLaws {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		publishedLaws[i] = published.view(r)
	}
	publishedPure := math.Inf(1)
	if colluders == 0 {
		publishedPure = 1
	}
	transfer, err := latticeLaw(big.NewRat(int64(honest), 1), big.NewRat(lawScale, 1), size)
	if err != nil {
		return nil, err
	}
	slack, err := slackLaw(n, honest, size)
	if err != nil {
		return nil, err
	}
	slackPure := 1 / math.Sqrt(float64(honest))
	var all []protection
	for _, s := range []schemeLaws{
		{"published", false, publishedPure, publishedLaws},
		{"transfer", true, 1, []noiseLaw{transfer}},
		{"slack noise", true, slackPure, []noiseLaw{slack}},
		{"local noise", false, 1, []noiseLaw{transfer}},
	} {
		all = append(all, s.protection(n, colluders, delta))
	}
	return all, nil
}

// slackLaw returns the law that honest parties' shares leave at the scale λ√honest.
func slackLaw(n, honest, size int) (noiseLaw, error) {
	scale, err := noise.Rational(lawScale * math.Sqrt(float64(honest)))
	if err != nil {
		return nil, err
	}
	laplace, err := noise.DiscreteLaplace(scale)
	if err != nil {
		return nil, err
	}
	left, err := noise.Shares{Parties: n, MinHonest: honest, Law: laplace}.Sum(honest)
	if err != nil {
		return nil, err
	}
	return tabulate(left.Law, size)
}

// protection evaluates the laws.
func (s schemeLaws) protection(n, colluders int, delta float64) protection {
	p := protection{
		scheme:    s.scheme,
		sound:     s.sound,
		colluders: colluders,
		pure:      s.pure,
		epsilon:   epsilonOf(s.laws, lawScale, delta),
	}
	total := 2 * float64(n) * lawScale * lawScale
	left := make([]float64, len(s.laws))
	for i, law := range s.laws {
		left[i] = law.variance() / total
	}
	if p.left = left[0]; len(left) > 1 {
		p.left, p.leftError = attacks.MeanAndError(left)
	}
	return p
}

// epsilonOf returns the ε at which the mean δ of the laws is delta, or +Inf.
func epsilonOf(laws []noiseLaw, shift int, delta float64) float64 {
	meanDelta := func(epsilon float64) float64 {
		mean := 0.0
		for _, law := range laws {
			mean += law.hockeyStick(epsilon, shift) / float64(len(laws))
		}
		return mean
	}
	low, high := 0.0, 15.0
	if meanDelta(high) > delta {
		return math.Inf(1)
	}
	for range 20 {
		if middle := (low + high) / 2; meanDelta(middle) > delta {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
