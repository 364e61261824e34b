package protocol

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/graph"
)

// Promise says what can be read of a round of a session, at any size that the configuration allows:
// sums of at least Honest honest parties, by Adversary with Colluders parties, but with a
// probability of Failure.
type Promise struct {
	Adversary Adversary
	Colluders int // how many parties may pool what they know with the server
	Parties   int // the most in a sum
	Honest    int // the fewest honest parties in a sum
	// Failure bounds the probability in one round that sums of fewer honest parties can be read: 0
	// but on a sparse graph, of which drop-outs must be independent.
	Failure float64
	Sparse  bool // sums are of a sparse graph
}

// Promise returns what the configuration promises (SPEC.md §13.1). It fails with [ErrConfig]. On a
// sparse graph Failure may be anything up to 1: [Parameters] finds a graph where it is small.
func (c *Config) Promise() (Promise, error) {
	own, err := c.settle()
	if err != nil {
		return Promise{}, err
	}
	least := own.terms(own.minMembers) // no size has fewer
	p := Promise{
		Colluders: own.Colluders,
		Parties:   own.scheduledOf(own.parties),
		Honest:    least.minSurvivors - own.Colluders,
		Sparse:    own.sparse,
	}
	if !own.recovery {
		return p, nil // against any server
	}
	p.Adversary = own.Recovery.Adversary
	if !own.sparse {
		return p, nil
	}
	sizes := graph.Sizes{Least: least.scheduled, Most: p.Parties, Survivors: least.minSurvivors,
		Colluders: own.Colluders}
	corrupt := own.corruptHolders()
	if p.Failure, err = graph.Surrounded(sizes, least.degree, corrupt); err != nil {
		return Promise{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if p.Adversary == SemiMaliciousServer { // which can read sums of parts of a graph (§13.7)
		p.Honest = least.threshold - corrupt + 1
		return p, nil
	}
	apart, err := graph.Apart(sizes, least.degree)
	if err != nil {
		return Promise{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	p.Failure = min(1, p.Failure+apart)
	return p, nil
}
