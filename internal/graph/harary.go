package graph

import (
	"fmt"
	"slices"
)

// Graph is a k-regular Harary graph over a set of members, laid out on a ring.
// Members sit at positions 0..n−1; a member is joined to the ⌊k/2⌋ nearest on
// either side and, when k is odd (n is then even), to the one opposite. With
// k = n−1 that is the complete graph. It takes memory for two numbers per member
// and k, not for edges.
//
// A Graph is not changed after it is made, and is safe for concurrent use. The
// zero value has no members.
type Graph struct {
	members  []int   // ascending
	ring     []int32 // position → index into members
	position []int32 // index into members → position
	degree   int
}

// Harary builds the k-regular Harary graph on parties 0..n−1 where perm[p] is the
// party at ring position p, and n is the length of perm. Use [Permutation], or
// [NewGraph] for both steps.
//
// The graph stays connected when any k−1 parties leave, and no graph has that with
// fewer edges (Harary, "The Maximum Connectivity of a Graph", 1962). That needs
// 2 ≤ k ≤ n−1, or k = 1 for two parties.
//
// Errors: [ErrParties] for n outside 2..[MaxParties], [ErrDegree], [ErrParity]
// when k and n are both odd, [ErrPermutation].
func Harary(perm []int, k int) (*Graph, error) {
	n := len(perm)
	if err := checkShape(n, k); err != nil {
		return nil, err
	}
	g := &Graph{
		members:  make([]int, n),
		ring:     make([]int32, n),
		position: make([]int32, n),
		degree:   k,
	}
	for i := range n {
		g.members[i] = i
		g.position[i] = -1
	}
	for p, i := range perm {
		if i < 0 || i >= n || g.position[i] >= 0 {
			return nil, fmt.Errorf("%w (%d at position %d)", ErrPermutation, i, p)
		}
		g.ring[p] = int32(i)
		g.position[i] = int32(p)
	}
	return g, nil
}

// NewGraph builds the k-regular Harary graph over members, for instance the parties
// scheduled in a round. Members are party numbers, 0 or more, distinct, in any
// order: the order does not matter. With the members sorted ascending, the party
// at ring position p is member number [Permutation](n, seed)[p].
//
// Two sets of equal size under one seed get the same layout by rank. Where graphs
// of several rounds should be independent of each other, put the round into the
// seed.
//
// Errors: those of [Harary], and [ErrMembers].
func NewGraph(members []int, k int, seed Seed) (*Graph, error) {
	if err := checkShape(len(members), k); err != nil {
		return nil, err
	}
	sorted := slices.Clone(members)
	slices.Sort(sorted)
	for i, m := range sorted {
		if m < 0 || i > 0 && m == sorted[i-1] {
			return nil, fmt.Errorf("%w (got %d)", ErrMembers, m)
		}
	}
	perm, err := Permutation(len(sorted), seed)
	if err != nil {
		return nil, err
	}
	g, err := Harary(perm, k)
	if err != nil {
		return nil, err
	}
	g.members = sorted
	return g, nil
}

func checkShape(n, k int) error {
	switch {
	case n < 2 || n > MaxParties:
		return fmt.Errorf("%w (got %d)", ErrParties, n)
	case k < 1 || k > n-1 || k == 1 && n > 2:
		return fmt.Errorf("%w (got %d of %d parties)", ErrDegree, k, n)
	case k%2 == 1 && n%2 == 1:
		return fmt.Errorf("%w (got %d of %d parties)", ErrParity, k, n)
	}
	return nil
}

// Size returns the number of members n.
func (g *Graph) Size() int { return len(g.members) }

// Degree returns the number of neighbours k of each member, itself not counted.
func (g *Graph) Degree() int { return g.degree }

// Members returns the members in ascending order, in a slice of the caller's own.
func (g *Graph) Members() []int { return slices.Clone(g.members) }

// Contains reports whether i is a member.
func (g *Graph) Contains(i int) bool {
	_, ok := slices.BinarySearch(g.members, i)
	return ok
}

// Neighbours returns the k neighbours of member i in ascending order, in a slice of
// the caller's own; nil if i is not a member. It takes O(k log k + log n) time.
func (g *Graph) Neighbours(i int) []int {
	index, ok := slices.BinarySearch(g.members, i)
	if !ok {
		return nil
	}
	n := len(g.ring)
	p := int(g.position[index])
	out := make([]int, 0, g.degree)
	at := func(q int) { out = append(out, g.members[g.ring[q%n]]) }
	for d := 1; d <= g.degree/2; d++ {
		at(p + d)
		at(p + n - d)
	}
	if g.degree%2 == 1 {
		at(p + n/2)
	}
	slices.Sort(out)
	return out
}

// Adjacent reports whether i and j are both members and neighbours of each other. No
// party is its own neighbour. It takes O(log n) time.
func (g *Graph) Adjacent(i, j int) bool {
	a, okA := slices.BinarySearch(g.members, i)
	b, okB := slices.BinarySearch(g.members, j)
	if !okA || !okB || a == b {
		return false
	}
	n := len(g.ring)
	d := int(g.position[a]) - int(g.position[b])
	if d < 0 {
		d = -d
	}
	d = min(d, n-d)
	return d <= g.degree/2 || g.degree%2 == 1 && d == n/2
}
