package chain

import (
	"errors"
	"reflect"
	"testing"
)

// A head of an earlier segment is known if its entry is in the chain, or if a setback names it, or
// a higher one. The record is behind any other.
func TestKnownSegments(t *testing.T) {
	const most, kept = 6, 3
	var heads []*Head // of a history that nobody has any more, by size
	was, _ := chained(t, 1)
	for range most {
		heads = append(heads, headOf(t, was))
		more(t, was, 1)
	}
	for named := 0; named <= most; named++ { // which of them the setback names, 0: none
		c, lines := chained(t, kept)
		var known []*Head
		if named > 0 {
			known = append(known, heads[named-1])
		}
		e := c.Next(Begin, 0, true, known...)
		if named > kept && e.Number != uint64(named) || e.Segment != 1 {
			t.Errorf("entry %d of segment %d, after a head of %d", e.Number, e.Segment, named)
		}
		if err := c.Append(sign(t, e)); err != nil {
			t.Fatal(err)
		}
		more(t, c, 2)
		again, err := Union(testID, public, joined(c.Lines(0)))
		if err != nil || len(lines) != kept {
			t.Fatal(err)
		}
		for _, c := range []*Chain{c, again} {
			for k, h := range heads {
				want := k+1 <= max(kept, named)
				err := c.Behind(h)
				if want != (err == nil) || err != nil && !errors.Is(err, ErrBehind) {
					t.Errorf("%d kept, %d named, a head of %d: %v", kept, named, k+1, err)
				}
			}
			other := *heads[kept]
			other.Root, other.Last = Hash{1}, Hash{2}
			err := c.Behind(&other)
			if (err == nil) != (named > kept+1) || errors.Is(err, ErrFork) != (named == kept+1) {
				t.Errorf("%d named, another history of %d: %v", named, kept+1, err)
			}
		}
	}
}

// A chain proves that it continues each head of its segment.
func TestConsistency(t *testing.T) {
	c, _ := chained(t, 1)
	var heads []*Head
	for range 9 {
		heads = append(heads, headOf(t, c))
		more(t, c, 1)
	}
	last := headOf(t, c)
	for _, h := range heads {
		proof, err := c.Consistency(h)
		if err == nil {
			proof, err = SplitHashes(JoinHashes(proof))
		}
		if err == nil {
			err = CheckConsistency(h, last, proof)
		}
		if err != nil {
			t.Errorf("a head of %d: %v", h.Size, err)
		}
	}
	if _, err := c.Consistency(&Head{Segment: 1, Size: 1}); !errors.Is(err, ErrProof) {
		t.Errorf("of another segment: %v", err)
	}
}

// Hashes have one text, and their number has a bound.
func TestSplitHashes(t *testing.T) {
	all := []Hash{{1}, {2}, {3}}
	if got, err := SplitHashes(JoinHashes(all)); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%v, %v", got, err)
	}
	for _, b := range [][]byte{{1}, make([]byte, 31), make([]byte, (MostProof+1)*32)} {
		if _, err := SplitHashes(b); !errors.Is(err, ErrProof) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}
