package protocol

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/internal/graph"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
)

// topology says who takes part in which round and who shares secrets with whom.
// It follows from the configuration, the keys and the members, and everybody can
// compute it.
type topology struct {
	config    *settled
	keys      [32]byte // digest
	announced wire.Set
	everybody []int // the same, ascending
	self      int   // whose topology it is, -1 for the server's

	// Once the members are known.
	members wire.Set
	list    []int // the same, ascending
	seed    [32]byte
	terms   terms // of a session with a given number of members

	schedule map[uint64][]int // rounds that were asked for, by ascending party
	whole    *graph.Graph     // over all who announced, nil unless it is sparse
	near     []int            // neighbours of self in it, once it is not needed any more
	round    uint64
	sparse   *graph.Graph // of that round
}

// mostRemembered bounds the memory that schedules of rounds to come may take, in
// parties.
const mostRemembered = 1 << 20

func newTopology(config *settled, keys [32]byte, announced wire.Set, self int) *topology {
	t := &topology{
		config:    config,
		keys:      keys,
		announced: announced,
		everybody: slices.Collect(announced.All()),
		self:      self,
		schedule:  make(map[uint64][]int),
	}
	if config.sparse && !config.byRound {
		t.whole = t.newGraph(t.everybody, t.seedOr(keys), 0)
	}
	return t
}

// seedOr returns the configured seed, or another in its place if that is zero.
func (t *topology) seedOr(other [32]byte) [32]byte {
	if t.config.Seed != ([32]byte{}) {
		return t.config.Seed
	}
	return other
}

func (t *topology) newGraph(parties []int, seed [32]byte, number uint64) *graph.Graph {
	g, err := graph.NewGraph(parties, t.config.Recovery.Degree,
		hash(labels.Graph, seed[:], uint64Bytes(number)))
	if err != nil {
		panic("protocol: " + err.Error()) // settle has checked the degree
	}
	return g
}

// join notes who the members are.
func (t *topology) join(session [32]byte, members wire.Set) {
	t.members, t.list = members, t.everybody
	if members.Len() < len(t.everybody) {
		t.list = slices.Collect(members.All())
	}
	t.seed = t.seedOr(session)
	t.terms = t.config.terms(len(t.list))
	if t.whole != nil && t.self >= 0 {
		// A party needs no more of it than this.
		t.near, t.whole = members.Of(t.whole.Neighbours(t.self)), nil
	}
}

// peers returns the parties of those who announced that a party may share secrets
// with, ascending. Before join only.
func (t *topology) peers(party int) []int {
	if t.whole != nil {
		return t.whole.Neighbours(party)
	}
	return without(t.everybody, party)
}

// higher returns those of a party's peers that it encapsulates to, which the caller must
// not change.
func (t *topology) higher(party int) []int {
	_, higher := t.split(party)
	return higher
}

// lower returns those of a party's peers that encapsulate to it, which the caller must not
// change.
func (t *topology) lower(party int) []int {
	lower, _ := t.split(party)
	return lower
}

// split divides a party's peers at its own place, without a list of their own where all are
// peers: a set-up asks for those of each peer.
func (t *topology) split(party int) (lower, higher []int) {
	peers := t.everybody
	if t.whole != nil {
		peers = t.whole.Neighbours(party)
	}
	at, found := slices.BinarySearch(peers, party)
	if found {
		return peers[:at], peers[at+1:]
	}
	return peers[:at], peers[at:]
}

// connected returns those of some parties, in ascending order, that have enough
// neighbours among each other to share secrets with: parties with fewer are
// removed all at once, until there are none.
func (t *topology) connected(parties []int, near func(party int) []int, threshold int) wire.Set {
	for {
		set := t.set(parties)
		kept := slices.DeleteFunc(slices.Clone(parties), func(i int) bool {
			return len(set.Of(near(i))) < threshold
		})
		if len(kept) == len(parties) {
			return set
		}
		parties = kept
	}
}

// scheduled returns the members of a round in ascending order, which the caller
// must not change.
func (t *topology) scheduled(round uint64) []int {
	if !t.config.byRound || t.terms.scheduled == len(t.list) {
		return t.list
	}
	if chosen := t.schedule[round]; chosen != nil {
		return chosen
	}
	order, err := graph.Permutation(len(t.list), hash(labels.Schedule, t.seed[:], uint64Bytes(round)))
	if err != nil {
		panic("protocol: " + err.Error()) // rosters are smaller than graphs may be
	}
	chosen := make([]int, t.terms.scheduled)
	for i := range chosen {
		chosen[i] = t.list[order[i]]
	}
	slices.Sort(chosen)
	if (len(t.schedule)+1)*len(chosen) > mostRemembered {
		clear(t.schedule)
	}
	t.schedule[round] = chosen
	return chosen
}

// forget drops what was computed for rounds before one.
func (t *topology) forget(round uint64) {
	maps.DeleteFunc(t.schedule, func(r uint64, _ []int) bool { return r < round })
}

// next returns the first round after the given one in which a party is
// scheduled. It fails with [ErrSkip] if there is none within MaxSkip.
func (t *topology) next(party int, round uint64) (uint64, error) {
	if !t.config.byRound {
		return round + 1, nil
	}
	for ahead := uint64(1); ahead <= t.config.maxSkip; ahead++ {
		if _, found := slices.BinarySearch(t.scheduled(round+ahead), party); found {
			return round + ahead, nil
		}
	}
	return 0, fmt.Errorf("%w: party %d is not scheduled in the next %d rounds", ErrSkip, party,
		t.config.maxSkip)
}

// neighbours returns with whom a member shares secrets in a round, in ascending
// order; nil for a party that is not scheduled.
func (t *topology) neighbours(round uint64, party int) []int {
	switch {
	case t.whole != nil:
		return t.members.Of(t.whole.Neighbours(party))
	case t.near != nil && party == t.self:
		return slices.Clone(t.near)
	}
	all := t.scheduled(round)
	if _, found := slices.BinarySearch(all, party); !found {
		return nil
	}
	if !t.config.sparse {
		return without(all, party)
	}
	if t.sparse == nil || t.round != round {
		t.sparse, t.round = t.newGraph(all, t.seed, round), round
	}
	return t.sparse.Neighbours(party)
}

// degree returns how many neighbours a member has in each round that it is
// scheduled in, among the holders of its shares.
func (t *topology) degree(party int, holders wire.Set) int {
	if t.config.byRound {
		return t.terms.degree
	}
	return len(holders.Of(t.neighbours(0, party)))
}

// set returns the parties as a set of the session.
func (t *topology) set(parties []int) wire.Set { return wire.SetOf(t.config.parties, parties) }

// without returns a new list that leaves a party out.
func without(parties []int, party int) []int {
	out := make([]int, 0, len(parties))
	for _, i := range parties {
		if i != party {
			out = append(out, i)
		}
	}
	return out
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
