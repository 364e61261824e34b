package chain

import (
	"fmt"
	"maps"
	"slices"
)

// behind says that a chain lacks a head.
func behind(h *Head) error {
	return fmt.Errorf("%w: %d entries of segment %d", ErrBehind, h.Size, h.Segment)
}

// covers fails with [ErrBehind] unless the chain says what became of a head of an earlier segment:
// the entry that it ends with is in the chain, or a setback names it, or a higher one. It fails
// with [ErrFork] if a setback names another head of its size.
func (c *Chain) covers(h *Head) error {
	number, begun := uint64(0), false
	higher, other := false, false
	for n, e := range c.entries {
		if e.Segment == h.Segment && (e.Kind == Birth || e.Kind == Setback) {
			number, begun = n+h.Size-1, true
		}
		for _, named := range e.Heads {
			switch {
			case named.Segment != h.Segment || named.Size < h.Size:
			case named.Size > h.Size:
				higher = true
			case named.Root == h.Root:
				return nil
			default:
				other = true
			}
		}
	}
	e := c.entries[number]
	switch {
	case begun && e != nil && e.Segment == h.Segment && HashOf(c.lines[number]) == h.Last:
		return nil
	case other:
		return fmt.Errorf("%w: a head of %d entries of segment %d has another root than the one that "+
			"was named", ErrFork, h.Size, h.Segment)
	case higher:
		return nil
	}
	return behind(h)
}

// Consistency proves that the chain continues a head of its last segment. It fails with [ErrProof].
func (c *Chain) Consistency(older *Head) ([]Hash, error) {
	if c.tree == nil || older.Segment != c.last.Segment {
		return nil, ErrProof
	}
	return c.tree.Consistency(older.Size, c.tree.Size())
}

// Line returns the line of an entry, nil if no copy has it.
func (c *Chain) Line(number uint64) []byte { return c.lines[number] }

// Clone returns a chain that does not grow with this one.
func (c *Chain) Clone() *Chain {
	out := *c
	out.lines, out.entries = maps.Clone(c.lines), maps.Clone(c.entries)
	if c.tree != nil {
		out.tree = &Tree{slices.Clone(c.tree.stored), c.tree.size}
	}
	return &out
}

// MostProof is the maximum number of hashes in a proof.
const MostProof = 64

// JoinHashes returns the bytes of hashes, one after another.
func JoinHashes(all []Hash) (b []byte) {
	for _, h := range all {
		b = append(b, h[:]...)
	}
	return b
}

// SplitHashes parses what [JoinHashes] returns, of at most [MostProof] hashes. It fails with
// [ErrProof].
func SplitHashes(b []byte) (all []Hash, err error) {
	if len(b)%len(Hash{}) != 0 || len(b) > MostProof*len(Hash{}) {
		return nil, ErrProof
	}
	for ; len(b) > 0; b = b[len(Hash{}):] {
		all = append(all, Hash(b[:len(Hash{})]))
	}
	return all, nil
}
