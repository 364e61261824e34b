package graph

import (
	"fmt"
	"math"
	"math/big"
)

// MaxParties is the largest number of parties of a graph, 2^24.
const MaxParties = 1 << 24

// GrindingBits counts the bits that a session adds to σ when its graph's seed is a hash that
// the server can influence, the session transcript for one: a server that tries
// 2^60 transcripts multiplies its chance of a bad graph by at most 2^60.
const GrindingBits = 60

// maxBits bounds σ and η; far beyond any use, and well inside float64.
const maxBits = 256

// Params are the parameters of a sparse graph, all counts of parties.
type Params struct {
	// Neighbours is k, the degree of each party, itself not counted. It is even,
	// or n−1.
	Neighbours int
	// Threshold is t, the number of shares that rebuild a secret, 2 ≤ t ≤ k.
	Threshold int
	// CorruptNeighbours is the most corrupt neighbours that any party has, except
	// with probability 2^-(σ+1). It is the c to use in [CheckThreshold] with
	// Neighbours holders.
	CorruptNeighbours int
	// LiveNeighbours is the fewest neighbours that stay online around any party,
	// except with probability 2^-η; never less than Threshold.
	LiveNeighbours int
}

// Sizes says how many parties a graph may have, and how many of them may be missing or corrupt.
type Sizes struct {
	// Least and Most bound how many parties the graph is drawn over: any number between may come.
	Least, Most int
	// Survivors is the fewest parties that remain, however many came: of N parties N − Survivors may
	// drop out. 1 to Least.
	Survivors int
	// Colluders is how many parties are corrupt, all of whom may be among those that come and remain;
	// below Survivors.
	Colluders int
}

func (s Sizes) check() error {
	switch {
	case s.Least < 2 || s.Most < s.Least || s.Most > MaxParties:
		return fmt.Errorf("%w (got %d to %d)", ErrParties, s.Least, s.Most)
	case s.Survivors < 1 || s.Survivors > s.Least:
		return fmt.Errorf("%w (got %d of %d)", ErrSurvivors, s.Survivors, s.Least)
	case s.Colluders < 0:
		return fmt.Errorf("%w (got %d)", ErrColluders, s.Colluders)
	case s.Colluders >= s.Survivors:
		return fmt.Errorf("%w (got %d of %d)", ErrHonest, s.Colluders, s.Survivors)
	}
	return nil
}

// Parameters returns a degree k, and for it the smallest threshold t, with which a Harary graph on
// a random permutation of as many parties as come is secure and correct, at every size (Bell 2020,
// Theorem 3.10, with the exact probabilities in place of its tail bounds). k is the given degree,
// or with 0 the smallest.
//
// sigma is the statistical security and eta the correctness, in bits, 1 to 256 each: security
// fails with probability at most 2^-sigma, and some party is left with fewer than t neighbours
// with probability at most 2^-eta.
//
// With S = Survivors, A = Colluders, D = N − S of N parties and B = A + D, the degree k must be
// even and satisfy, for each N from Least to Most,
//
//	connected  N(N−k−1)/2 · C(B,k)/C(N,k) < 2^-(σ+1), or k > B
//	t1 = min x: P[Hyp(N,A,k) > x] ≤ 2^-(σ+1)/N
//	t2 = max x: P[Hyp(N,S,k) < x] ≤ 2^-η/N
//	t  = max(t1+1, 2)             against a Curious server
//	t  = max(⌊(t1+k)/2⌋+1, 2)     against a SemiMalicious one, so 2t > k + t1
//	t ≤ t2
//
// The first line counts the ways to cut the ring: k/2 bad parties in a row in two
// places, N(N−k−1)/2 pairs of places. The law is over N rather than N−1 because
// the factor N is a sum over all parties: summed over who is in the middle, the
// neighbours of a party are k uniform positions out of N.
//
// If Least = Most is even and no even k will do, the complete graph k = N−1 is tried last; a given
// degree may be odd if Least = Most is even.
//
// The conditions are decided exactly (see logSlack), so two machines agree.
//
// Errors: [ErrParties], [ErrSurvivors], [ErrColluders], [ErrHonest], [ErrSecurity],
// [ErrCorrectness]; [ErrAdversary] for anything but [Curious] and [SemiMalicious]; for a given
// degree [ErrDegree], [ErrParity] and [ErrApart]; [ErrInfeasible] when no degree will do, or the
// given one leaves too few neighbours. Two parties are always infeasible, since t ≥ 2 exceeds their
// one neighbour.
func Parameters(s Sizes, degree, sigma, eta int, adversary Adversary) (Params, error) {
	if err := s.check(); err != nil {
		return Params{}, err
	}
	switch {
	case sigma < 1 || sigma > maxBits:
		return Params{}, fmt.Errorf("%w (got %d)", ErrSecurity, sigma)
	case eta < 1 || eta > maxBits:
		return Params{}, fmt.Errorf("%w (got %d)", ErrCorrectness, eta)
	case adversary == Cheating:
		return Params{}, fmt.Errorf(
			"%w: a cheating server needs the complete graph; use DefaultThreshold", ErrAdversary)
	case adversary != Curious && adversary != SemiMalicious:
		return Params{}, fmt.Errorf("%w: use Curious or SemiMalicious (got %v)", ErrAdversary, adversary)
	}
	c := conditions{s, sigma, eta, adversary}
	p, ok := Params{}, false
	if degree == 0 {
		p, ok = c.smallest()
	} else {
		if err := checkShape(s.Least, degree); err != nil {
			return Params{}, err
		}
		if degree%2 == 1 && s.Least < s.Most {
			return Params{}, fmt.Errorf("%w (got %d of %d to %d parties)", ErrParity, degree, s.Least,
				s.Most)
		}
		if !c.connected(degree) {
			return Params{}, fmt.Errorf("%w (%d neighbours of %d to %d parties, σ = %d)", ErrApart, degree,
				s.Least, s.Most, sigma)
		}
		var short int
		p, short = c.judge(c.advance(quantiles{}, degree))
		ok = short <= 0
	}
	if !ok {
		return Params{}, fmt.Errorf("%w (%d to %d parties, %d corrupt, %d that remain, σ = %d, η = %d, "+
			"%v server)", ErrInfeasible, s.Least, s.Most, s.Colluders, s.Survivors, sigma, eta, adversary)
	}
	return p, nil
}

// Apart bounds from above the probability that honest survivors are not all connected, at any
// size, in a graph of degree k.
func Apart(s Sizes, k int) (float64, error) {
	if err := s.check(); err != nil {
		return 1, err
	}
	return upper(conditions{Sizes: s}.logApart(k)), nil
}

// Surrounded bounds from above the probability that some party has more than the given number of
// corrupt neighbours, at any size, in a graph of degree k.
func Surrounded(s Sizes, k, most int) (float64, error) {
	if err := s.check(); err != nil {
		return 1, err
	}
	worst := math.Inf(-1)
	conditions{Sizes: s}.crowded(k, most, func(h hyp) bool {
		worst = max(worst, math.Log(float64(h.n))+h.logTail(most))
		return true
	})
	return upper(worst), nil
}

// upper returns e^x or 1, whichever is less, rounded up by as much as x may be wrong.
func upper(x float64) float64 { return min(1, math.Exp(x)*(1+2*logSlack)) }

// conditions are the requirements of Parameters.
type conditions struct {
	Sizes
	sigma, eta int
	adversary  Adversary
}

// quantiles are t1 and k − t2 at some degree: the t2 condition, P[live < t] small,
// is P[dropped neighbours > k − t] small, so both are upper quantiles.
type quantiles struct{ k, corrupt, dropped int }

// smallest finds the least degree that meets all conditions.
//
// The conditions are not monotone in k: t1 and t2 move in whole steps, so a
// degree can qualify and the next one fail. Bisection would be wrong. But one
// more neighbour changes a hypergeometric count by 0 or 1 (draw the extra
// neighbour last), so t1, and with it t, never falls as k grows, and t2 grows by
// at most one per neighbour. If t exceeds t2 by d, then no degree below k + d
// qualifies, and the search may jump there without missing anything. Connectivity
// alone is monotone: C(B,k)/C(N,k) and N−k−1 both fall.
func (c conditions) smallest() (Params, bool) {
	even := (c.Least - 1) / 2 // the largest even degree is 2·even
	lo, hi := 1, even+1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if c.connected(2 * mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	var q quantiles
	for k := 2 * lo; k <= 2*even; {
		q = c.advance(q, k)
		p, short := c.judge(q)
		if short <= 0 {
			return p, true
		}
		k += short + short%2
	}
	if c.Least == c.Most && c.Most%2 == 0 {
		p, short := c.judge(c.advance(q, c.Most-1))
		if short <= 0 {
			return p, true
		}
	}
	return Params{}, false
}

// advance moves both quantiles from degree q.k to degree k ≥ q.k. Each grows by at
// most the number of neighbours added. The zero quantiles are right for k = 0.
//
// The neighbours that drop out are most with all parties there: one party more, which drops out,
// makes any count of them likelier, and there is one party more to count them for.
func (c conditions) advance(q quantiles, k int) quantiles {
	dropped := hyp{c.Most, c.Most - c.Survivors, k}
	more := k - q.k
	return quantiles{
		k: k,
		corrupt: quantile(q.corrupt, min(q.corrupt+more, c.Colluders, k), func(x int) bool {
			return c.crowded(k, x, func(h hyp) bool { return h.tailAtMost(x, c.sigma+1) })
		}),
		dropped: quantile(q.dropped, min(q.dropped+more, dropped.high()), func(x int) bool {
			return dropped.tailAtMost(x, c.eta)
		}),
	}
}

// crowded reports whether holds does for the corrupt among k neighbours at every size where
// N·P[X > x] can be largest, until it does not.
//
// With t = x+1 and N+1 in place of N parties, P[X ≥ t] falls by t/(N+1)·P[X = t]: the party more is
// among the k of N+1 with probability k/(N+1), and then displaces one that would have been the t-th
// corrupt one with a probability of t/k·P[X = t]. So N·P[X ≥ t] falls from N on if P[X ≥ t] ≤
// t·P[X = t], which once true stays true, since all P[X = i+1]/P[X = i] fall with N: then no larger
// size needs to be looked at.
func (c conditions) crowded(k, x int, holds func(hyp) bool) bool {
	if x >= min(c.Colluders, k) {
		return true
	}
	for n := c.Least; n <= c.Most; n++ {
		h := hyp{n, c.Colluders, k}
		if !holds(h) {
			return false
		}
		if x+1 >= h.low() && h.logTail(x) < h.logPMF(x+1)+math.Log(float64(x+1))-logSlack {
			break
		}
	}
	return true
}

// judge returns the parameters at one degree and by how much the threshold
// exceeds the neighbours that are sure to be there; 0 or less is a pass.
func (c conditions) judge(q quantiles) (p Params, short int) {
	t := q.corrupt + 1
	if c.adversary == SemiMalicious {
		t = (q.corrupt+q.k)/2 + 1
	}
	// A threshold of 1 would hand the secret to each holder. The bound on t2 is
	// tested after this, so that correctness holds for the t that is returned.
	t = max(t, 2)
	live := q.k - q.dropped
	return Params{Neighbours: q.k, Threshold: t, CorruptNeighbours: q.corrupt, LiveNeighbours: live},
		t - live
}

// bad is B where it counts most. One party more, which drops out, makes any k places likelier to be
// all bad, since (B+1)/(B+1−k) ≥ (N+1)/(N+1−k), and there are more places: so that of all sizes the
// largest is the least connected.
func (c conditions) bad() int { return c.Colluders + c.Most - c.Survivors }

// logApart returns ln of N(N−k−1)/2 · C(B,k)/C(N,k), the bound on the probability of a cut. Of an
// odd degree it leaves out the party opposite.
func (c conditions) logApart(k int) float64 {
	n, even := c.Most, k-k%2
	if even > c.bad() || k >= n-1 {
		return math.Inf(-1)
	}
	return math.Log(float64(n)*float64(n-even-1)/2) + hyp{n, c.bad(), even}.logPMF(even)
}

// connected reports whether a cut has a probability below 2^-(σ+1).
func (c conditions) connected(k int) bool {
	if gap := c.logApart(k) + float64(c.sigma+1)*math.Ln2; math.Abs(gap) > logSlack {
		return gap < 0
	}
	return c.connectedExact(k)
}

// connectedExact is connected in integers.
func (c conditions) connectedExact(k int) bool {
	n, even := c.Most, k-k%2
	if even > c.bad() || k >= n-1 {
		return true
	}
	var all big.Int
	cut := big.NewInt(int64(n) * int64(n-even-1))
	cut.Mul(cut, all.Binomial(int64(c.bad()), int64(even)))
	cut.Lsh(cut, uint(c.sigma)) // 2^(σ+1), halved by the pairs
	return cut.Cmp(all.Binomial(int64(n), int64(even))) < 0
}
