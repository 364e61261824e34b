package collusion

import (
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

// candidates are the two noise terms g⁰ and g¹ of which a receiver adds one.
type candidates [2]float64

// noiseView holds what n−1 colluders that pool everything know about the input w of
// the honest party.
type noiseView struct {
	masked float64 // the released sum without the colluders' inputs: w + all noise
	own    float64 // the sum of the colluders' own terms

	// among has what colluders sent to colluders, and amongBits the receivers' choices,
	// (n−1)(n−2) in all. Both are nil if the view was made without them; then masked is
	// without those terms, too.
	among     []candidates
	amongBits []uint8

	// toHonest has what the colluders sent to the honest party, whose choices they do
	// not know; honestBits has those, to play further rounds with.
	toHonest   []candidates
	honestBits []uint8

	// fromHonest has the differences g⁰ − g¹ of the candidates that the honest party
	// sent, which the common mask does not hide, and fromHonestBits the colluders'
	// choices. Nil under oblivious transfer.
	fromHonest     []float64
	fromHonestBits []uint8
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
	drawPair := func(equal bool) candidates {
		first := draw()
		if equal {
			return candidates{first, first}
		}
		return candidates{first, draw()}
	}
	drawBit := func() uint8 { return uint8(r.Uint64() & 1) }

	v := &noiseView{masked: w + draw()} // the honest party's own term
	for range n - 1 {
		own := draw()
		v.own += own
		v.masked += own

		sent := drawPair(f.equal)
		bit := drawBit()
		v.toHonest = append(v.toHonest, sent)
		v.honestBits = append(v.honestBits, bit)
		v.masked += sent[bit]

		received := drawPair(false)
		bit = drawBit()
		v.masked += received[bit]
		if !f.transfer {
			v.fromHonest = append(v.fromHonest, received[0]-received[1])
			v.fromHonestBits = append(v.fromHonestBits, bit)
		}
	}
	if f.full {
		for range (n - 1) * (n - 2) {
			sent := drawPair(f.equal)
			bit := drawBit()
			v.among = append(v.among, sent)
			v.amongBits = append(v.amongBits, bit)
			v.masked += sent[bit]
		}
	}
	return v
}

// pooling says how much of their view the colluders use.
type pooling int

const (
	// separate: candidates and own noise, but not the bits of other colluders. It is
	// the table's T.
	separate pooling = iota + 1
	// pooled: the bits as well. It is the table's F.
	pooled
	// leaking: and the differences of the honest party's candidates. It is L.
	leaking
)

var poolingNames = map[pooling]string{separate: "T", pooled: "F", leaking: "L"}

// guess says what the colluders subtract for a term of which they know both
// candidates g⁰ and g¹ but not which one was chosen.
type guess int

const (
	// guessNaive subtracts nothing, which leaves v. With separate it does not even
	// subtract the colluders' own noise.
	guessNaive guess = iota + 1
	// guessRandom subtracts one of the two by a coin: 0 or g⁰ − g¹ is left,
	// (0 + 2v)/2 = v.
	guessRandom
	// guessDiff subtracts g⁰ − g¹: g¹ or 2g¹ − g⁰ is left, (v + 5v)/2 = 3v.
	guessDiff
	// guessMean subtracts (g⁰ + g¹)/2: ±(g⁰ − g¹)/2 is left, v/2. It is the best linear
	// guess.
	guessMean
)

var guessNames = map[guess]string{
	guessNaive:  "Naive",
	guessRandom: "Random",
	guessDiff:   "Diff",
	guessMean:   "Mean",
}

// of guesses a term. It uses r for guessRandom alone.
func (g guess) of(c candidates, r *rand.Rand) float64 {
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

// estimate returns the colluders' estimate of the honest input. It uses r for guessRandom
// alone. With separate the view must be a full one.
func (v *noiseView) estimate(p pooling, g guess, r *rand.Rand) float64 {
	estimate := v.masked
	if p == separate && g == guessNaive {
		return estimate
	}
	estimate -= v.own
	for i, sent := range v.among {
		if p == separate {
			estimate -= g.of(sent, r)
		} else {
			estimate -= sent[v.amongBits[i]]
		}
	}
	for _, sent := range v.toHonest {
		estimate -= g.of(sent, r)
	}
	if p == leaking {
		// With d = g⁰ − g¹ known, the best linear guess of g⁰ is d/2 and of g¹ is −d/2;
		// what is left, (g⁰ + g¹)/2, has variance v/2.
		for i, d := range v.fromHonest {
			estimate -= d / 2 * float64(1-2*int(v.fromHonestBits[i]))
		}
	}
	return estimate
}
