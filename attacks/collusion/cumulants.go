package collusion

import "math"

// cumulants are the second and the fourth cumulant of a symmetric law; those of
// independent terms add.
type cumulants struct{ second, fourth float64 }

// laplaceLeft are the cumulants of a whole Laplace variable of scale 1.
var laplaceLeft = cumulants{second: 2, fourth: 12}

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

// left returns the cumulants of the error of estimate on views of the form. The n²
// terms are (n−1)(n−2) among colluders, n−1 of their own, n−1 to and n−1
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
	received := whole
	if p == leaking && !f.transfer {
		received = termLeft(guessMean, n)
	}
	sum = sum.plus(received.times(n - 1))
	guessed := termLeft(g, n)
	switch {
	case f.equal && g == guessDiff:
		guessed = whole // the difference is zero
	case f.equal && g != guessNaive:
		guessed = cumulants{}
	}
	sum = sum.plus(guessed.times(n - 1))
	if p == separate {
		sum = sum.plus(guessed.times((n - 1) * (n - 2)))
	}
	return sum
}

// weightVariance is that of the weights in the thesis's figure, in λ²: the one that
// makes r² = .894 of a full Laplace variable (2λ²) each.
const weightVariance = 16.87

// determination returns r² between an input of variance weightVariance and an estimate
// with an independent error: the share of the estimate's variance that is the
// input's.
func determination(left float64) float64 { return weightVariance / (weightVariance + left) }

// determinationError returns the standard error of ln r² over n pairs of a normal input
// of variance a and an independent error e of variance b and fourth cumulant κ.
// With A, B, E the sums of w², we and e² over n, ln r² = 2·ln(A+B) − ln A −
// ln(A+2B+E); its derivatives at (a, 0, b) are b/(a(a+b)), 2b/(a(a+b)) and −1/(a+b),
// and the variances of A, B, E are 2a², ab and κ+2b², each over n.
func determinationError(c cumulants, n int) float64 {
	a, b := weightVariance, c.second
	s := a + b
	return math.Sqrt((2*b*b + 4*b*b*b/a + c.fourth + 2*b*b) / (s * s) / float64(n))
}
