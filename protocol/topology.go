package protocol

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/wire"
)

// topology says who takes part in which round and who shares secrets with whom.
// It follows from the configuration and the session, and everybody can compute
// it.
type topology struct {
	config *settled
	seed   [32]byte

	// The last graph that was asked for. If all parties take part in every round
	// there is only one.
	round uint64
	graph *graph.Graph

	self int   // whose topology it is, -1 for the server's
	near []int // neighbours of self in every round, if there is one graph
}

func newTopology(config *settled, session [32]byte, self int) *topology {
	t := &topology{config: config, seed: config.Seed, self: self}
	if t.seed == ([32]byte{}) {
		t.seed = session
	}
	return t
}

// everyRound reports whether all parties take part in all rounds.
func (t *topology) everyRound() bool { return t.config.scheduled == t.config.parties }

// scheduled returns the parties of a round in ascending order.
func (t *topology) scheduled(round uint64) []int {
	n := t.config.parties
	if t.everyRound() {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	order, err := graph.Permutation(n, hash(labelSchedule, t.seed[:], uint64Bytes(round)))
	if err != nil {
		panic("protocol: " + err.Error()) // rosters are smaller than graphs may be
	}
	chosen := order[:t.config.scheduled]
	slices.Sort(chosen)
	return chosen
}

// next returns the first round after the given one in which a party is
// scheduled. It fails with [ErrSkip] if there is none within MaxSkip.
func (t *topology) next(party int, round uint64) (uint64, error) {
	if t.everyRound() {
		return round + 1, nil
	}
	for ahead := uint64(1); ahead <= t.config.maxSkip; ahead++ {
		if _, found := slices.BinarySearch(t.scheduled(round+ahead), party); found {
			return round + ahead, nil
		}
	}
	return 0, fmt.Errorf("%w: party %d is not scheduled in the next %d rounds", ErrSkip, party, t.config.maxSkip)
}

// neighbours returns with whom a party of a round shares secrets, in ascending
// order; nil for a party that is not scheduled.
func (t *topology) neighbours(round uint64, party int) []int {
	if t.config.sparse() {
		if party != t.self || !t.everyRound() {
			return t.sparse(round).Neighbours(party)
		}
		if t.near == nil {
			t.near = t.sparse(round).Neighbours(party)
			t.graph = nil // a party needs no more of it than this
		}
		return slices.Clone(t.near)
	}
	all := t.scheduled(round)
	i, found := slices.BinarySearch(all, party)
	if !found {
		return nil
	}
	return slices.Delete(all, i, i+1)
}

// sparse returns the Harary graph of a round.
func (t *topology) sparse(round uint64) *graph.Graph {
	if t.everyRound() {
		round = 0 // one graph for the session
	}
	if t.graph == nil || t.round != round {
		g, err := graph.NewGraph(t.scheduled(round), t.config.degree, hash(labelGraph, t.seed[:], uint64Bytes(round)))
		if err != nil {
			panic("protocol: " + err.Error()) // Validate has checked the degree
		}
		t.round, t.graph = round, g
	}
	return t.graph
}

// peers returns the parties that a party may ever share secrets with.
func (t *topology) peers(party int) []int {
	if t.config.sparse() && t.everyRound() {
		return t.neighbours(0, party)
	}
	var peers []int
	for i := range t.config.parties {
		if i != party {
			peers = append(peers, i)
		}
	}
	return peers
}

// set returns the parties as a set of the session.
func (t *topology) set(parties []int) wire.Set { return wire.SetOf(t.config.parties, parties) }

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
