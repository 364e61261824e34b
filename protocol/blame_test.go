package protocol

import (
	"math/bits"
	"slices"
	"testing"
)

// On every graph of five parties, and for every bound on the spoilers, nobody is
// named who is not in every cover of so few, and everybody is who has more
// counterparties than that.
func TestDoubtsNameNobodyElse(t *testing.T) {
	const n = 5
	var edges [][2]int
	for a := range n {
		for b := range a {
			edges = append(edges, [2]int{b, a})
		}
	}
	for graph := range 1 << len(edges) {
		d := make(doubts)
		for i, e := range edges {
			if graph>>i&1 == 1 {
				d.add(e[1], e[0])
			}
		}
		for most := 1; most < n; most++ {
			every := 1<<n - 1 // parties in all covers
			exists := false
			for cover := range 1 << n {
				if bits.OnesCount(uint(cover)) <= most && covers(d, cover) {
					every &= cover
					exists = true
				}
			}
			names, atMost := d.named(most)
			if !exists {
				if atMost < most {
					t.Fatalf("%v: at most %d, want at least %d", d.pairs(), atMost, most)
				}
				continue
			}
			for party := range n {
				named := slices.Contains(names, party)
				if named && every>>party&1 == 0 {
					t.Fatalf("%v, at most %d: %v are named", d.pairs(), most, names)
				}
				if !named && atMost == most && len(d[party]) > most {
					t.Fatalf("%v, at most %d: party %d is not named", d.pairs(), most, party)
				}
			}
			if atMost != most {
				t.Fatalf("%v: a cover of %d is missed", d.pairs(), most)
			}
		}
	}
}

// covers reports whether a set of parties, as bits, has one of each pair.
func covers(d doubts, set int) bool {
	for _, pair := range d.pairs() {
		if set>>pair[0]&1 == 0 && set>>pair[1]&1 == 0 {
			return false
		}
	}
	return true
}

// A party that is given another chance leaves no doubt about the others either.
func TestDoubtsForget(t *testing.T) {
	d := make(doubts)
	d.add(3, 1)
	d.add(3, 2)
	d.add(4, 5)
	d.forget(3)
	if got := d.pairs(); !slices.Equal(got, [][2]int{{4, 5}}) {
		t.Errorf("left: %v", got)
	}
}

// Of the holders of an owner's shares as many can be at fault as the bound leaves, if the
// owner is not: those who claim that their shares did not open, and those who are named
// already, count among the few that can, and have no part in it where their shares are not
// used.
func TestDoubtsCountSpoilers(t *testing.T) {
	for _, c := range []struct {
		name  string
		pairs [][2]int
		used  []int // of those in pairs
		want  int
	}{
		{"nothing is known", nil, nil, 2},
		{"one did not open", [][2]int{{0, 1}}, nil, 1},
		{"one was wrong before and is used", [][2]int{{0, 1}}, []int{1}, 2},
		{"two did not open", [][2]int{{0, 1}, {0, 2}}, nil, 0},
		{"two were wrong before, and one is used", [][2]int{{0, 1}, {0, 2}}, []int{2}, 1},
		{"another is named", [][2]int{{3, 4}, {3, 5}, {3, 6}}, nil, 1},
		{"another is named and used", [][2]int{{3, 4}, {3, 5}, {3, 6}}, []int{3}, 2},
		{"the one that did not open is of who is named", [][2]int{{0, 3}, {3, 4}, {3, 5}}, nil, 1},
		{"it is named itself", [][2]int{{0, 4}, {0, 5}, {0, 6}}, []int{4, 5, 6}, 0},
		{"two did not open, and another is named", [][2]int{{0, 1}, {0, 2}, {3, 4}, {3, 5}, {3, 6}},
			nil, 0}, // and so is the owner
	} {
		d := make(doubts)
		for _, pair := range c.pairs {
			d.add(pair[0], pair[1])
		}
		got := d.spoilers(0, 2, func(party int) bool { return slices.Contains(c.used, party) })
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
