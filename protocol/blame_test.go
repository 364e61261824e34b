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

// An owner whose secret does not rebuild is at fault if its holders cannot all be:
// those who claim that their shares did not open, and those who are named already,
// count among the few that can.
func TestDoubtsRefuteAnOwner(t *testing.T) {
	for _, c := range []struct {
		name      string
		pairs     [][2]int
		corrected int
		want      bool
	}{
		{"nothing could be corrected", nil, 0, false},
		{"one could be", nil, 1, false},
		{"two could be", nil, 2, true},
		{"one could be, and one did not open", [][2]int{{0, 1}}, 1, true},
		{"one did not open", [][2]int{{0, 1}}, 0, false},
		{"two did not open", [][2]int{{0, 1}, {0, 2}}, 0, true},
		{"one could be, and another is named", [][2]int{{3, 4}, {3, 5}, {3, 6}}, 1, true},
		{"another is named", [][2]int{{3, 4}, {3, 5}, {3, 6}}, 0, false},
		{"the one that did not open is of who is named", [][2]int{{0, 3}, {3, 4}, {3, 5}}, 0, false},
		{"it is named itself", [][2]int{{0, 4}, {0, 5}, {0, 6}}, 0, true},
	} {
		d := make(doubts)
		for _, pair := range c.pairs {
			d.add(pair[0], pair[1])
		}
		if got := d.refutes(0, c.corrected, 2); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
