package accounting

import (
	"fmt"
	"strings"
)

// rateOf is the probability with which a client is in the step.
func rateOf(m Mechanism) float64 {
	switch s := m.(type) {
	case Sampled:
		return s.Rate
	case ReplaceOne:
		return s.Rate
	}
	return 1
}

// unsampled is the mechanism to those who know who takes part.
func unsampled(m Mechanism) Mechanism {
	switch s := m.(type) {
	case Sampled:
		return s.Mechanism
	case ReplaceOne:
		s.Rate = 1
		return s
	}
	return m
}

// kind names a mechanism for people; key, which is exact, is for sorting.
func kind(m Mechanism) string {
	switch s := m.(type) {
	case Sampled:
		if s.Mechanism != nil {
			return "Sampled " + kind(s.Mechanism)
		}
	case ReplaceOne:
		if s.Mechanism != nil {
			return "ReplaceOne " + kind(s.Mechanism)
		}
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", m), "accounting.")
}

// oneAdjacency refuses steps about two neighbouring relations: what is true of
// a client that joins says nothing of one that is exchanged. rounds tells of rounds
// next to them, which are under zero-out adjacency.
func oneAdjacency(steps []Step, rounds bool) error {
	joins, exchanged := rounds, false
	for _, s := range steps {
		if s.Count == 0 {
			continue
		}
		switch m := s.Mechanism.(type) {
		case Sampled:
			joins = joins || m.Rate < 1
		case ReplaceOne:
			exchanged = true
		}
	}
	if joins && exchanged {
		return configError("rounds or sampled steps, in which a client joins, with steps under " +
			"replace-one adjacency: account for all under one relation")
	}
	return nil
}
