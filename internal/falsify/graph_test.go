package falsify

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/protocol"
)

// sparsePower is the exponent of the failure that a round on a sparse graph may have.
const sparsePower = 40

// connected sees, at each size of a session, that the honest survivors of a sparse graph hang
// together, and that nobody's secrets are with too many colluders: but for 2^-40 a round. Noise is
// counted on all of them.
func connected(x *tried) error {
	s := x.settled
	c := s.Config(1)
	if c.Recovery == nil || c.Recovery.Degree == 0 {
		return nil
	}
	if c.Recovery.Adversary != protocol.CuriousServer {
		return fmt.Errorf("noise on a sparse graph against a %v server", c.Recovery.Adversary)
	}
	n, colluders := s.Roster().Len(), s.Colluders()
	honest := c.Recovery.MinSurvivors - colluders
	bound := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), sparsePower))
	for size := c.MinMembers; size <= n; size++ {
		degree := min(c.Recovery.Degree, size-1)
		if degree == size-1 {
			continue
		}
		fails := inParts(size, honest, degree)
		fails.Add(fails, exposed(size, colluders, degree, c.Recovery.Threshold))
		if fails.Cmp(bound) > 0 {
			p, _ := fails.Float64()
			return fmt.Errorf("a session of %d with %d neighbours each and %d missing fails with %.3g, "+
				"2^-%d is stated", size, degree, size-honest, p, sparsePower)
		}
	}
	return nil
}

func choose(n, k int) *big.Int {
	if k < 0 || k > n {
		return new(big.Int)
	}
	return new(big.Int).Binomial(int64(n), int64(k))
}

// inParts is the probability that some of n parties on a ring, the given number of them at random
// places, are in parts if each knows the degree/2 nearest on either side. They are in parts where
// two gaps between them or more have degree/2 places: by inclusion and exclusion over the gaps, all
// divisions of the places between which are as likely. Those opposite, which an odd degree adds,
// can only join more.
func inParts(n, left, degree int) *big.Rat {
	gone, gap := n-left, degree/2
	all := choose(gone+left-1, left-1)
	sum := new(big.Int)
	for j := 2; j <= left && gone-j*gap >= 0; j++ {
		term := new(big.Int).Mul(choose(left, j), choose(gone-j*gap+left-1, left-1))
		term.Mul(term, big.NewInt(int64(j-1)))
		if j%2 == 1 {
			term.Neg(term)
		}
		sum.Add(sum, term)
	}
	return new(big.Rat).SetFrac(sum, all)
}

// exposed bounds the probability that any of n parties has threshold colluders among its
// neighbours.
func exposed(n, colluders, degree, threshold int) *big.Rat {
	sum := new(big.Int)
	for k := threshold; k <= min(colluders, degree); k++ {
		sum.Add(sum, new(big.Int).Mul(choose(colluders, k), choose(n-1-colluders, degree-k)))
	}
	sum.Mul(sum, big.NewInt(int64(n)))
	return new(big.Rat).SetFrac(sum, choose(n-1, degree))
}

// The formula agrees with random graphs, where they fail often enough to be counted.
func TestInParts(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for _, c := range []struct{ n, left, degree int }{
		{10, 5, 4}, {20, 9, 4}, {30, 12, 6}, {7, 3, 2},
	} {
		const rounds = 40_000
		apart := 0
		for range rounds {
			if inPartsOf(random.Perm(c.n), c.left, c.degree) {
				apart++
			}
		}
		p, _ := inParts(c.n, c.left, c.degree).Float64()
		// Six deviations, with probability 1e-8 a case.
		if got := float64(apart) / rounds; (got-p)*(got-p) > 36*p*(1-p)/rounds {
			t.Errorf("%+v: %v of random graphs are in parts, by counting %v", c, got, p)
		}
	}
}

// inPartsOf walks a graph: party perm[k] is at place k, and those below left are there.
func inPartsOf(perm []int, left, degree int) bool {
	n := len(perm)
	seen, next := make([]bool, n), []int{}
	for place, party := range perm {
		if party == 0 {
			next = append(next, place)
			seen[place] = true
		}
	}
	found := 0
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		found++
		for step := 1; step <= degree/2; step++ {
			for _, to := range []int{(at + step) % n, (at - step + n) % n} {
				if !seen[to] && perm[to] < left {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
	}
	return found < left
}
