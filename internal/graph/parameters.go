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

// Parameters returns the smallest degree k, and for it the smallest threshold t,
// with which a Harary graph on a random permutation of n parties is secure and
// correct (Bell 2020, Theorem 3.10, with the exact probabilities in place of its
// tail bounds).
//
// corrupt and drop are fractions of n in [0, 1) with a sum below 1. sigma is the
// statistical security and eta the correctness, in bits, 1 to 256 each: security
// fails with probability at most 2^-sigma, and some party is left with fewer than
// t neighbours with probability at most 2^-eta. 2 ≤ n ≤ [MaxParties].
//
// With A = ⌊corrupt·n⌋ corrupt parties, D = ⌊drop·n⌋ drop-outs, B = A + D and
// S = n − D, the degree k must be even and satisfy
//
//	connected  n(n−k−1)/2 · C(B,k)/C(n,k) < 2^-(σ+1), or k > B
//	t1 = min x: P[Hyp(n,A,k) > x] ≤ 2^-(σ+1)/n
//	t2 = max x: P[Hyp(n,S,k) < x] ≤ 2^-η/n
//	t  = max(t1+1, 2)             against a Curious server
//	t  = max(⌊(t1+k)/2⌋+1, 2)     against a SemiMalicious one, so 2t > k + t1
//	t ≤ t2
//
// The first line counts the ways to cut the ring: k/2 bad parties in a row in two
// places, n(n−k−1)/2 pairs of places. The law is over n rather than n−1 because
// the factor n is a sum over all parties: summed over who is in the middle, the
// neighbours of a party are k uniform positions out of n.
//
// If no even k up to n−1 will do and n is even, the complete graph k = n−1 is
// tried last. Fractions are rounded to counts in the safe direction: a product
// within rounding error of a whole number is taken to be that number, so that
// 0.29 of 100 parties is 29 and not 28.
//
// The conditions are decided exactly (see logSlack), so two machines agree.
//
// Errors: [ErrParties], [ErrCorrupt], [ErrDrop], [ErrFractions], [ErrSecurity],
// [ErrCorrectness]; [ErrAdversary] for anything but [Curious] and
// [SemiMalicious]; [ErrInfeasible] when no degree will do. Two parties are always
// infeasible, since t ≥ 2 exceeds their one neighbour.
func Parameters(n int, corrupt, drop float64, sigma, eta int, adversary Adversary) (Params, error) {
	switch {
	case n < 2 || n > MaxParties:
		return Params{}, fmt.Errorf("%w (got %d)", ErrParties, n)
	case !(corrupt >= 0 && corrupt < 1): // written so that NaN is refused
		return Params{}, fmt.Errorf("%w (got %v)", ErrCorrupt, corrupt)
	case !(drop >= 0 && drop < 1):
		return Params{}, fmt.Errorf("%w (got %v)", ErrDrop, drop)
	case corrupt+drop >= 1:
		return Params{}, fmt.Errorf("%w (got %v and %v)", ErrFractions, corrupt, drop)
	case sigma < 1 || sigma > maxBits:
		return Params{}, fmt.Errorf("%w (got %d)", ErrSecurity, sigma)
	case eta < 1 || eta > maxBits:
		return Params{}, fmt.Errorf("%w (got %d)", ErrCorrectness, eta)
	}
	switch adversary {
	case Curious, SemiMalicious:
	case Cheating:
		return Params{}, fmt.Errorf(
			"%w: a cheating server needs the complete graph; use DefaultThreshold", ErrAdversary)
	default:
		return Params{}, fmt.Errorf("%w: use Curious or SemiMalicious (got %v)", ErrAdversary, adversary)
	}
	c := conditions{
		n:         n,
		corrupt:   share(corrupt, n),
		dropped:   share(drop, n),
		sigma:     sigma,
		eta:       eta,
		adversary: adversary,
	}
	p, ok := c.smallest()
	if !ok {
		return Params{}, fmt.Errorf("%w (%d parties, %d corrupt, %d dropped, σ = %d, η = %d, %v server)",
			ErrInfeasible, n, c.corrupt, c.dropped, sigma, eta, adversary)
	}
	return p, nil
}

// share returns ⌊f·n⌋ for f in [0, 1), where f·n may be wrong by its two roundings
// (f from decimal, and the product), 2^-52 relative in all. The count is only
// ever too high, which asks for more neighbours.
func share(f float64, n int) int {
	return int(math.Floor(f * float64(n) * (1 + 0x1p-51)))
}

// conditions are the requirements of Parameters with the fractions turned into
// counts; corrupt + dropped may reach n.
type conditions struct {
	n, corrupt, dropped int
	sigma, eta          int
	adversary           Adversary
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
// alone is monotone: C(B,k)/C(n,k) and n−k−1 both fall.
func (c conditions) smallest() (Params, bool) {
	even := (c.n - 1) / 2 // the largest even degree is 2·even
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
	if c.n%2 == 0 {
		p, short := c.judge(c.advance(q, c.n-1))
		if short <= 0 {
			return p, true
		}
	}
	return Params{}, false
}

// advance moves both quantiles from degree q.k to degree k ≥ q.k. Each grows by at
// most the number of neighbours added. The zero quantiles are right for k = 0.
func (c conditions) advance(q quantiles, k int) quantiles {
	step := func(marked, bits, from int) int {
		h := hyp{c.n, marked, k}
		return h.quantile(bits, from, min(from+k-q.k, h.high()))
	}
	return quantiles{
		k:       k,
		corrupt: step(c.corrupt, c.sigma+1, q.corrupt),
		dropped: step(c.dropped, c.eta, q.dropped),
	}
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

// connected reports whether n(n−k−1)/2 · C(B,k)/C(n,k) < 2^-(σ+1).
func (c conditions) connected(k int) bool {
	bad := c.corrupt + c.dropped
	if k > bad || k >= c.n-1 {
		return true
	}
	places := float64(c.n) * float64(c.n-k-1) / 2
	gap := math.Log(places) + hyp{c.n, bad, k}.logPMF(k) + float64(c.sigma+1)*math.Ln2
	if math.Abs(gap) > logSlack {
		return gap < 0
	}
	return c.connectedExact(k)
}

// connectedExact is connected in integers.
func (c conditions) connectedExact(k int) bool {
	bad := c.corrupt + c.dropped
	if k > bad || k >= c.n-1 {
		return true
	}
	var all big.Int
	cut := big.NewInt(int64(c.n) * int64(c.n-k-1))
	cut.Mul(cut, all.Binomial(int64(bad), int64(k)))
	cut.Lsh(cut, uint(c.sigma)) // 2^(σ+1), halved by the pairs
	return cut.Cmp(all.Binomial(int64(c.n), int64(k))) < 0
}
