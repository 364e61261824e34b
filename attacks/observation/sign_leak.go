package observation

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/noise"
)

var signLeak = attacks.Attack{
	Name:      "SignLeak",
	Adversary: "curious server and clients",
	About:     "read signs of an update off a sum of signs",
	Defence:   "noise on the sign lane",
	Run:       runSignLeak,
}

// signGuesses takes the colluders' signs and all but their own noise off a sum of
// signs, and returns the guessed sign of the one party left: +1, −1, or 0 if the two
// are equally likely.
func signGuesses(sums, colluders []int64) []int64 {
	guesses := make([]int64, len(sums))
	for i, s := range difference(sums, colluders) {
		switch {
		case s > 0:
			guesses[i] = 1
		case s < 0:
			guesses[i] = -1
		}
	}
	return guesses
}

// shareRight returns the share of guesses that are right, of which a 0 is half a one.
func shareRight(guesses, signs []int64) float64 {
	halves := 0
	for i, guess := range guesses {
		switch guess {
		case signs[i]:
			halves += 2
		case 0:
			halves++
		}
	}
	return float64(halves) / float64(2*len(signs))
}

// signAccuracy returns how often the best guess of a sign under discrete Laplace noise of
// scale t is right. With p = e^(−1/t) it is P(X ≥ 0) + P(X = −1)/2, the half for sums
// that come out 0: 1/(1+p) + p(1−p)/(2(1+p)), less than e^ε/(1+e^ε) for ε = 2/t.
func signAccuracy(t float64) float64 {
	p := math.Exp(-1 / t)
	return (1 + p*(1-p)/2) / (1 + p)
}

// drawSigns draws fair signs of parties in a number of coordinates: their sums and,
// apart, the signs of the last party.
func drawSigns(parties, length int, r *rand.Rand) (sums, last []int64) {
	sums, last = make([]int64, length), make([]int64, length)
	for i := range sums {
		for range parties {
			last[i] = 2*int64(r.Uint64()&1) - 1
			sums[i] += last[i]
		}
	}
	return sums, last
}

// countUnanimous counts the coordinates that appear to be unanimous, as their sum with
// noise is at least the number of parties in absolute value; and those among them that
// are unanimous, with that sign.
func countUnanimous(sums, noisy []int64, parties int) (apparent, genuine int) {
	n := int64(parties)
	for i, s := range noisy {
		if max(s, -s) < n {
			continue
		}
		apparent++
		if sums[i] == n && s > 0 || sums[i] == -n && s < 0 {
			genuine++
		}
	}
	return apparent, genuine
}

// genuineShare returns the probability that a coordinate that appears to be unanimous is
// so, with fair signs: by Bayes over the binomial sum.
func genuineShare(parties int, law noise.Law) (float64, error) {
	n := int64(parties)
	reach := 64 * n
	probabilities, err := law.Probabilities(-reach, reach)
	if err != nil {
		return 0, err
	}
	tail := func(k int64) (sum float64) { // P(X ≥ k)
		for ; k <= reach; k++ {
			sum += probabilities[k+reach]
		}
		return sum
	}
	apparent, weight := 0.0, math.Pow(0.5, float64(parties))
	genuine := 2 * weight * tail(0)
	for k := range n + 1 {
		s := 2*k - n
		apparent += weight * (tail(n-s) + tail(n+s))
		weight *= float64(n-k) / float64(k+1)
	}
	return genuine / apparent, nil
}

func runSignLeak(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	length := 100000
	if o.Long {
		length *= 10
	}
	const parties, scale = 5, 4
	law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
	if err != nil {
		return nil, err
	}
	samples, err := draw.Samples(law, length)
	if err != nil {
		return nil, err
	}
	sums, last := drawSigns(parties, length, o.Rand(partSigns))
	noisy := make([]int64, length)
	for i, s := range sums {
		noisy[i] = s + samples[i]
	}

	colluders := difference(sums, last)
	open := shareRight(signGuesses(sums, colluders), last)
	accuracy := shareRight(signGuesses(noisy, colluders), last)
	want := signAccuracy(scale)
	// A little more than it is, for the halves.
	standardError := math.Sqrt(want * (1 - want) / float64(length))
	const epsilon = 2.0 / scale
	allowed := 1 / (1 + math.Exp(-epsilon))

	apparent, genuine := countUnanimous(sums, sums, parties)
	noisyApparent, noisyGenuine := countUnanimous(sums, noisy, parties)
	share, err := genuineShare(parties, law)
	if err != nil {
		return nil, err
	}
	spread := attacks.Sigmas * math.Sqrt(share*(1-share)/float64(noisyApparent))
	return &attacks.Report{Rows: []attacks.Row{{
		Case:       "n−1 colluders",
		Metric:     "signs guessed right",
		Undefended: attacks.Exactly(open, length, 1),
		Defended:   attacks.Near(accuracy, standardError, length, want),
		Note:       fmt.Sprintf("noise of ε = %g per sign allows %.4f", epsilon, allowed),
	}, {
		Case:       "unanimous coordinates",
		Metric:     "of those that look so, right",
		Undefended: attacks.Exactly(float64(genuine)/float64(apparent), apparent, 1),
		Defended:   attacks.Proportion(noisyGenuine, noisyApparent, share-spread, share+spread),
		Note:       "5 parties, no colluders",
	}}}, nil
}
