package hushsum

import (
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/transport"
)

// The tests of this file each fail for one small change to the code that no other test
// notices.

// A party keeps no more of a message that comes in parts than the longest message has, whether the
// last part goes beyond it or one before.
func TestMessageParts(t *testing.T) {
	const longest = 5
	for _, c := range []struct {
		parts []string
		last  string
		want  error
	}{
		{nil, "abc", nil},
		{[]string{"ab"}, "cde", nil},
		{[]string{"ab", "cd", "e"}, "", nil},
		{[]string{"ab", "cd"}, "ef", ErrFrame},
		{[]string{"ab", "cdef"}, "", ErrFrame},
		{[]string{"abcdef"}, "", ErrFrame},
	} {
		p := &participant{longest: longest}
		whole, err := "", error(nil)
		for _, part := range c.parts {
			if whole += part; err == nil {
				err = p.part(append([]byte{transport.KindMessage}, part...))
			}
		}
		var got []byte
		if whole += c.last; err == nil {
			got, err = p.rest([]byte(c.last))
		}
		if !errors.Is(err, c.want) || c.want == nil && string(got) != whole {
			t.Errorf("%q, %q: %q, %v", c.parts, c.last, got, err)
		}
	}
}

// What a party of one-message sums encodes is kept as integers alone, which are erased once they
// are masked.
func TestEncodedErased(t *testing.T) {
	j := newCommitteeJob(t, oneshotJob(), 4, 4)
	var shown [][]uint64
	p := new(oneshotParty)
	p.Job = j.settled
	p.Submitted = func(_ uint64, values [][]uint64) { shown = values }
	vector := make([]float64, j.settled.Length())
	vector[0] = 1
	integers, err := p.encode(new(transport.Broadcast), Message{Vector: vector})
	if err != nil || !slices.ContainsFunc(integers, func(x int64) bool { return x != 0 }) {
		t.Fatalf("%v, %v", integers, err)
	}
	if len(shown) == 0 {
		t.Fatal("none are shown")
	}
	for _, lane := range shown {
		if slices.ContainsFunc(lane, func(x uint64) bool { return x != 0 }) {
			t.Errorf("%v are left", lane)
		}
	}
}
