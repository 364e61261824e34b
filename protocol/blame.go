package protocol

import (
	"maps"
	"slices"
)

// doubts hold the evidence of a server about parties that spoil rounds: pairs of parties of
// which at least one is at fault, since the one dealt a share to the other, and the other
// revealed an invalid share, or none because it did not open. Nobody can tell which of
// the two it was, and who must be at fault follows from all pairs together: those
// who are in every set of few parties that has one of each pair.
//
// An honest party is in pairs with spoilers only, so that its counterparties are as
// many as there are spoilers at the most. SPEC.md §10.4 has the promise.
type doubts map[int]map[int]bool // by party: its counterparties, both ways

// add notes that one of two parties is at fault.
func (d doubts) add(a, b int) {
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		if d[pair[0]] == nil {
			d[pair[0]] = make(map[int]bool)
		}
		d[pair[0]][pair[1]] = true
	}
}

// forget drops all pairs of a party, for one that is given another chance.
func (d doubts) forget(party int) {
	for other := range d[party] {
		delete(d[other], party)
		if len(d[other]) == 0 {
			delete(d, other)
		}
	}
	delete(d, party)
}

// pairs returns all pairs, each once with the lower party first, in order.
func (d doubts) pairs() [][2]int {
	var pairs [][2]int
	for _, a := range slices.Sorted(maps.Keys(d)) {
		for _, b := range slices.Sorted(maps.Keys(d[a])) {
			if a < b {
				pairs = append(pairs, [2]int{a, b})
			}
		}
	}
	return pairs
}

// named returns who must be at fault if no more than most parties are, in ascending
// order, and most. If the pairs show that more are, it takes the least number that
// they do not refute.
func (d doubts) named(most int) (names []int, atMost int) {
	for {
		names, possible := d.inEveryCover(most)
		if possible {
			return names, most
		}
		most++
	}
}

// spoilers returns how many of the holders of some shares of owner can be at fault if the owner
// is not and at most the given number of parties are, 0 or less if the owner must be; used
// reports whose shares these are. All counterparties of the owner are then at fault, together
// with those that are named, and those of them that are not among the holders have no part in the
// faulty shares.
func (d doubts) spoilers(owner, most int, used func(party int) bool) int {
	names, most := d.named(most)
	if slices.Contains(names, owner) {
		return 0
	}
	for _, party := range names {
		if !used(party) && !d[owner][party] {
			most--
		}
	}
	for party := range d[owner] {
		if !used(party) {
			most--
		}
	}
	return most
}

// inEveryCover returns parties that are in every vertex cover of at most size
// parties, or false if it finds that there is no such cover (Buss's rule: a party
// with more counterparties than a cover may have must be in it itself; see Downey
// 1999, "Parameterized Complexity", §3.2). It may miss parties, which costs a round
// at most: each takes more wrong shares to spoil it than size.
func (d doubts) inEveryCover(size int) (names []int, possible bool) {
	rest := make(map[int]int, len(d)) // by party: counterparties that are not named
	pairs := 0
	for party, others := range d {
		rest[party] = len(others)
		pairs += len(others)
	}
	pairs /= 2
	for left := size; ; left-- {
		next := -1
		for party, count := range rest {
			if count > left && (next < 0 || party < next) {
				next = party
			}
		}
		switch {
		case next < 0:
			slices.Sort(names)
			return names, pairs <= left*left // no party covers more than left pairs
		case left == 0:
			return nil, false
		}
		names = append(names, next)
		pairs -= rest[next]
		delete(rest, next)
		for other := range d[next] {
			if _, found := rest[other]; found {
				rest[other]--
			}
		}
	}
}
