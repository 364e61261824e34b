package accounting

import "math"

// Domination is a pair of one-dimensional laws that dominates a lane of a round, without its coin,
// by a theorem of docs/privacy-proofs.md: a Gaussian of shift Mu, or the lane's own noise in one
// coordinate that is shifted by Shift, or neither, where the theorem bounds a Rényi divergence.
type Domination struct {
	Theorem string // "lemma-1" to "lemma-5", or "one-coordinate"
	Mu      float64
	Shift   int
}

// Dominations returns the pairs by which the ε of rounds is found, of the lane Update or Signs: ε
// is by the least of what they prove. scan allows steps of a law to be scanned, as is done where ε
// is at most 200 and δ at least 1e-60.
func (r Round) Dominations(l Lane, scan bool) (all []Domination) {
	s, err := l.Sensitivity.check()
	if err != nil {
		return nil
	}
	if r.Family == FamilyDiscreteLaplace {
		if s.L1 <= 1<<20 {
			all = append(all, Domination{Theorem: "lemma-1", Shift: integerNorm(s.L1)})
		}
		all = append(all, Domination{Theorem: "lemma-2"})
	} else if _, ok := (Round{Family: r.Family, Shares: r.Shares, Update: l}).steps(ServerView); ok {
		all = append(all, Domination{Theorem: "one-coordinate",
			Shift: integerNorm(math.Min(s.L1, s.L2))})
	}
	mu, cut, err := l.normal(r.Family, r.Shares, scan)
	if err != nil || math.IsInf(mu, 1) {
		return all
	}
	theorem := "lemma-3"
	switch {
	case cut || r.Family == FamilyDiscreteLaplace:
	case r.Family == FamilySkellam:
		theorem = "lemma-5"
	default:
		theorem = "lemma-4"
	}
	return append(all, Domination{Theorem: theorem, Mu: mu})
}
