package collusion

import (
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/internal/continuous"
)

// The thesis's Protocol 1 on plain numbers, as the n−1 colluders around one honest
// party h see it. Everything is in units of the Laplace scale λ.
//
// Every ordered pair (i, j) has a noise term: i sends j two candidates under one
// mask, s + g⁰ and s + g¹, where g = γ − γ̄ with γ, γ̄ ~ Gamma(1/n); j adds one of
// them by a secret bit, and i subtracts s. Each party also has a term of its own.
// So n² terms of variance v = 2/n end up in the sum. The masks cancel in what the
// colluders can compute, and are left out here.

// NoiseView is what n−1 colluders that pool everything know about the input w of
// the honest party.
type noiseView struct {
	Parties int
	Masked  float64 // the released sum without the colluders' inputs: w + all noise
	Own     float64 // the sum of the colluders' own terms

	// Among are the candidates that colluders sent to colluders, and AmongBits the
	// receivers' choices, (n−1)(n−2) in all. Both are nil if the view was made
	// without them; then Masked is without those terms, too.
	Among     [][2]float64
	AmongBits []uint8

	// ToHonest are the candidates that the colluders sent to the honest party, whose
	// choices they do not know.
	ToHonest   [][2]float64
	honestBits []uint8 // those choices, to play further rounds with

	// FromHonest are the differences g⁰ − g¹ of the candidates that the honest party
	// sent, which the common mask does not hide, and FromHonestBits the colluders'
	// choices. Nil under oblivious transfer.
	FromHonest     []float64
	FromHonestBits []uint8
}

// noiseForm says which form of the protocol a view is of.
type noiseForm struct {
	parties int // at least 2
	// full includes the terms among colluders, which takes n² samples.
	full bool
	// equal has colluders send two equal candidates, so that the choice is void.
	equal bool
	// transfer is the sound form: the receiver gets the one term by oblivious
	// transfer and nothing of the other.
	transfer bool
}

// view draws a view of the honest input w.
func (f noiseForm) view(w float64, r *rand.Rand) *noiseView {
	n := f.parties
	term := continuous.GammaDifference{Shape: 1 / float64(n), Scale: 1}
	draw := func() float64 {
		g, _ := term.Sample(r) // fails for parameters only, which are fixed
		return g
	}
	pair := func(equal bool) [2]float64 {
		g := [2]float64{draw(), 0}
		if g[1] = g[0]; !equal {
			g[1] = draw()
		}
		return g
	}
	v := &noiseView{Parties: n, Masked: w + draw()} // the honest party's own term
	for range n - 1 {
		own := draw()
		v.Own += own
		v.Masked += own

		to := pair(f.equal)
		v.ToHonest = append(v.ToHonest, to)
		bit := uint8(r.Uint64() & 1)
		v.honestBits = append(v.honestBits, bit)
		v.Masked += to[bit]

		from := pair(false)
		bit = uint8(r.Uint64() & 1)
		v.Masked += from[bit]
		if !f.transfer {
			v.FromHonest = append(v.FromHonest, from[0]-from[1])
			v.FromHonestBits = append(v.FromHonestBits, bit)
		}
	}
	if f.full {
		for range (n - 1) * (n - 2) {
			g, bit := pair(f.equal), uint8(r.Uint64()&1)
			v.Masked += g[bit]
			v.Among = append(v.Among, g)
			v.AmongBits = append(v.AmongBits, bit)
		}
	}
	return v
}

// Pooling is how much of their view the colluders use.
type pooling int

const (
	// Separate: candidates and own noise, but not the bits of other colluders. It is
	// the table's T.
	separate pooling = iota + 1
	// Pooled: the bits as well. It is the table's F.
	pooled
	// Leaking: and the differences of the honest party's candidates. It is L.
	leaking
)

// Guess is what the colluders subtract for a term of which they know both
// candidates g⁰ and g¹ but not which one was chosen.
type guess int

const (
	// Naive subtracts nothing, which leaves v. With Separate it does not even
	// subtract the colluders' own noise.
	guessNaive guess = iota + 1
	// Random subtracts one of the two by a coin: 0 or g⁰ − g¹ is left, (0 + 2v)/2 = v.
	guessRandom
	// Diff subtracts g⁰ − g¹: g¹ or 2g¹ − g⁰ is left, (v + 5v)/2 = 3v.
	guessDiff
	// Mean subtracts (g⁰ + g¹)/2: ±(g⁰ − g¹)/2 is left, v/2. It is the best linear guess.
	guessMean
)

var poolingNames = map[pooling]string{separate: "T", pooled: "F", leaking: "L"}

var guessNames = map[guess]string{guessNaive: "Naive", guessRandom: "Random", guessDiff: "Diff", guessMean: "Mean"}

// Estimate is the colluders' estimate of the honest input. It uses r for Random
// alone. With Separate the view must be a full one.
func (v *noiseView) estimate(p pooling, g guess, r *rand.Rand) float64 {
	estimate := v.Masked
	if p == separate && g == guessNaive {
		return estimate
	}
	guess := func(c [2]float64) float64 {
		switch g {
		case guessRandom:
			return c[r.Uint64()&1]
		case guessDiff:
			return c[0] - c[1]
		case guessMean:
			return (c[0] + c[1]) / 2
		}
		return 0
	}
	estimate -= v.Own
	for i, c := range v.Among {
		if p == separate {
			estimate -= guess(c)
		} else {
			estimate -= c[v.AmongBits[i]]
		}
	}
	for _, c := range v.ToHonest {
		estimate -= guess(c)
	}
	if p == leaking {
		// With d = g⁰ − g¹ known, the best linear guess of g⁰ is d/2 and of g¹ is −d/2;
		// what is left, (g⁰ + g¹)/2, has variance v/2.
		for i, d := range v.FromHonest {
			estimate -= d / 2 * float64(1-2*int(v.FromHonestBits[i]))
		}
	}
	return estimate
}

// cumulants are the second and the fourth cumulant of a symmetric law; those of
// independent terms add.
type cumulants struct{ second, fourth float64 }

func (c cumulants) times(k int) cumulants {
	return cumulants{float64(k) * c.second, float64(k) * c.fourth}
}

func (c cumulants) plus(d cumulants) cumulants {
	return cumulants{c.second + d.second, c.fourth + d.fourth}
}

// termLeft returns the cumulants of what is left of one term after a guess.
//
// A term g has second cumulant v = 2/n and fourth k = 12/n, as n of them add to a
// Laplace variable with 2 and 12; its fourth moment is k + 3v². An equal mixture
// of two laws has the mean of their moments, and less 3·variance² its fourth moment
// is the cumulant:
//
//	Random  0 or g⁰−g¹:    ½(2k + 3(2v)²) − 3v²               = k + 3v²
//	Diff    g¹ or 2g¹−g⁰:  ½(k + 3v² + 17k + 3(5v)²) − 3(3v)²  = 9k + 12v²
//	Mean    (g⁰−g¹)/2:     2k/16                               = k/8
func termLeft(g guess, n int) cumulants {
	v, k := 2/float64(n), 12/float64(n)
	switch g {
	case guessRandom:
		return cumulants{v, k + 3*v*v}
	case guessDiff:
		return cumulants{3 * v, 9*k + 12*v*v}
	case guessMean:
		return cumulants{v / 2, k / 8}
	}
	return cumulants{v, k}
}

// left returns the cumulants of the error of Estimate on views of the form. Of the
// n² terms there are (n−1)(n−2) among colluders, n−1 of their own, n−1 to and n−1
// from the honest party, and its own. Written out in v = 2/n:
//
//	T Naive  n²·v = 2n
//	T        ((n−1)²·t + n)·v: t = 1 Random, 3 Diff, ½ Mean; own terms are known
//	F        ((n−1)·t + n)·v: those among colluders are known, too
//	L        ((n−1)·t + (n−1)/2 + 1)·v; Mean: n·v = 2, a full Laplace variance
//	equal    without t, since no choice is left: ((n−1)/2 + 1)·v = (n+1)/n
//	transfer nor a difference known: n·v = 2, and the law is Laplace's
func (f noiseForm) left(p pooling, g guess) cumulants {
	n := f.parties
	whole := termLeft(guessNaive, n)
	if p == separate && g == guessNaive {
		return whole.times(n * n)
	}
	sum := whole // the honest party's own
	from := whole
	if p == leaking && !f.transfer {
		from = termLeft(guessMean, n)
	}
	sum = sum.plus(from.times(n - 1))
	guess := termLeft(g, n)
	if f.equal && g != guessNaive && g != guessDiff {
		guess = cumulants{}
	} else if f.equal && g == guessDiff {
		guess = whole // the difference is zero
	}
	sum = sum.plus(guess.times(n - 1))
	if p == separate {
		sum = sum.plus(guess.times((n - 1) * (n - 2)))
	}
	return sum
}

// weightVariance is that of the weights in the thesis's figure, in λ²: the one that
// makes r² = .894 of a full Laplace variable (2λ²) each.
const weightVariance = 16.87

// determination is r² between an input of variance weightVariance and an estimate
// with an independent error: the share of the estimate's variance that is the
// input's.
func determination(left float64) float64 { return weightVariance / (weightVariance + left) }

// determinationError is the standard error of ln r² over n pairs of a normal input
// of variance a and an independent error e of variance b and fourth cumulant κ.
// With A, B, E the sums of w², we and e² over n, ln r² = 2·ln(A+B) − ln A −
// ln(A+2B+E); its derivatives at (a, 0, b) are b/(a(a+b)), 2b/(a(a+b)) and −1/(a+b),
// and the variances of A, B, E are 2a², ab and κ+2b², each over n.
func determinationError(c cumulants, n int) float64 {
	a, b := weightVariance, c.second
	s := a + b
	return math.Sqrt((2*b*b + 4*b*b*b/a + c.fourth + 2*b*b) / (s * s) / float64(n))
}
