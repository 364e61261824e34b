package query

import (
	"cmp"
	"math"
	"slices"
)

// This file searches a bucket for words: from the first byte to the last it keeps the likeliest of
// all beginnings (Perry et al. 2012 §3), each followed by all bytes that may come next.

// beam is how many beginnings are kept.
const beam = 64

// beginning is one of a word.
type beginning struct {
	state uint64
	score float64 // logarithm of how likely it is, next to no word and up to a constant
	tail  tail
	from  int32 // place of the one that it goes on from
	last  byte
}

// follower is a byte that may follow a tail.
type follower struct {
	b    byte
	part float64
	tail tail
}

// searcher searches one bucket after the other.
type searcher struct {
	*code
	followers map[tail][]follower
	levels    [][]beginning
	next      []beginning
	sums      [signs / 8][256]float64 // of a byte's numbers, by the signs of eight
}

func newSearcher(c *code) *searcher {
	return &searcher{code: c, followers: map[tail][]follower{},
		levels: make([][]beginning, c.slots()+1)}
}

// follow returns all that may follow a tail.
func (s *searcher) follow(t tail) []follower {
	all, known := s.followers[t]
	if !known {
		for b := range 256 {
			if next, part, ok := t.follow(byte(b)); ok {
				all = append(all, follower{byte(b), part, next})
			}
		}
		s.followers[t] = all
	}
	return all
}

// end follows a tail where there is no place for more of the word.
var end = []follower{{0, 0, tail{ended: true}}}

// search returns the likeliest words in a bucket, the likeliest first: as if one occurred the
// given number of times, in noise of a deviation in each number. Most are chance.
func (s *searcher) search(bucket int, numbers []float64, times, deviation float64) []string {
	gain := times / math.Sqrt(float64(s.width())) / (deviation * deviation)
	s.levels[0] = s.levels[0][:0]
	for which := range starts {
		s.levels[0] = append(s.levels[0], beginning{state: s.start(bucket, which)})
	}
	for slot := range s.slots() {
		s.prepare(numbers[signs*slot:][:signs], gain)
		s.next = s.next[:0]
		least := math.Inf(-1)
		for from, b := range s.levels[slot] {
			all := end
			if slot < s.longest {
				all = s.follow(b.tail)
			} else if b.tail.left > 0 {
				continue // half a character
			}
			for _, f := range all {
				if slot == 0 && f.b == 0 {
					continue
				}
				state := after(b.state, f.b)
				score := b.score + f.part + s.sums[0][state>>56] + s.sums[1][state>>48&0xff]
				if score <= least {
					continue
				}
				s.next = append(s.next, beginning{state, score, f.tail, int32(from), f.b})
				if len(s.next) == 8*beam {
					s.next = foremost(s.next)
					least = s.next[beam-1].score
				}
			}
		}
		s.levels[slot+1] = append(s.levels[slot+1][:0], foremost(s.next)...)
	}
	var words []string
	for i := range s.levels[s.slots()] {
		words = append(words, s.word(i))
	}
	return words
}

// prepare adds a byte's numbers up for all signs.
func (s *searcher) prepare(numbers []float64, gain float64) {
	for part := range s.sums {
		for pattern := range 256 {
			sum := 0.0
			for bit, x := range numbers[8*part:][:8] {
				if pattern>>(7-bit)&1 == 1 {
					sum += x
				} else {
					sum -= x
				}
			}
			s.sums[part][pattern] = gain * sum
		}
	}
}

// foremost keeps as many beginnings as the beam has.
func foremost(all []beginning) []beginning {
	slices.SortFunc(all, func(a, b beginning) int { return cmp.Compare(b.score, a.score) })
	return all[:min(len(all), beam)]
}

// word reads one from its end.
func (s *searcher) word(at int) string {
	var out []byte
	for slot := s.slots(); slot > 0; slot-- {
		b := s.levels[slot][at]
		if b.last != 0 {
			out = append(out, b.last)
		}
		at = int(b.from)
	}
	slices.Reverse(out)
	return string(out)
}
