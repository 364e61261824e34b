package chain

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrProof: a proof does not show what it is for.
var ErrProof = errors.New("chain: the proof does not verify; ask for it again, and keep the two " +
	"heads if it fails again")

// Tree is the tree of RFC 6962 §2.1 over the lines of a segment. The zero value is empty. It is not
// safe for concurrent use.
type Tree struct {
	stored hashes
	size   int64
}

// hashes are those of a tree, as package tlog orders them.
type hashes []tlog.Hash

func (h hashes) ReadHashes(at []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(at))
	for k, i := range at {
		if i < 0 || i >= int64(len(h)) {
			return nil, fmt.Errorf("%w: there is no hash %d", ErrProof, i)
		}
		out[k] = h[i]
	}
	return out, nil
}

// Append adds a line, without its newline.
func (t *Tree) Append(line []byte) error {
	more, err := tlog.StoredHashes(t.size, line, t.stored)
	if err != nil {
		return err
	}
	t.stored, t.size = append(t.stored, more...), t.size+1
	return nil
}

// Size returns the number of lines.
func (t *Tree) Size() uint64 { return uint64(t.size) }

// Root returns the root over the first lines, of a given number.
func (t *Tree) Root(size uint64) (Hash, error) {
	if size > t.Size() {
		return Hash{}, fmt.Errorf("%w: there are %d lines, not %d", ErrProof, t.size, size)
	}
	root, err := tlog.TreeHash(int64(size), t.stored)
	return Hash(root), err
}

// Inclusion proves that a line is in the tree of a given size, by its index in the segment.
func (t *Tree) Inclusion(index, size uint64) ([]Hash, error) {
	if size > t.Size() || index >= size {
		return nil, fmt.Errorf("%w: there is no line %d of %d", ErrProof, index, size)
	}
	proof, err := tlog.ProveRecord(int64(size), int64(index), t.stored)
	return fromTlog(proof), err
}

// Consistency proves that the tree of one size continues that of another.
func (t *Tree) Consistency(older, newer uint64) ([]Hash, error) {
	if newer > t.Size() || older > newer || older == 0 {
		return nil, fmt.Errorf("%w: %d lines are not continued by %d", ErrProof, older, newer)
	}
	proof, err := tlog.ProveTree(int64(newer), int64(older), t.stored)
	return fromTlog(proof), err
}

// CheckInclusion fails with [ErrProof] unless a line is in the tree of a head, at an index of the
// segment.
func CheckInclusion(line []byte, index uint64, in *Head, proof []Hash) error {
	if index >= in.Size || in.Size > mostLines {
		return ErrProof
	}
	err := tlog.CheckRecord(toTlog(proof), int64(in.Size), tlog.Hash(in.Root), int64(index),
		tlog.RecordHash(line))
	if err != nil {
		return fmt.Errorf("%w: inclusion of line %d in %d", ErrProof, index, in.Size)
	}
	return nil
}

// CheckConsistency fails with [ErrProof] unless the tree of one head continues that of another, of
// the same segment.
func CheckConsistency(older, newer *Head, proof []Hash) error {
	bad := fmt.Errorf("%w: %d lines continued by %d", ErrProof, older.Size, newer.Size)
	if older.Origin() != newer.Origin() || older.Size == 0 || older.Size > newer.Size ||
		newer.Size > mostLines {
		return bad
	}
	err := tlog.CheckTree(toTlog(proof), int64(newer.Size), tlog.Hash(newer.Root),
		int64(older.Size), tlog.Hash(older.Root))
	if err != nil {
		return bad
	}
	return nil
}

// mostLines bounds the size of a tree, so that arithmetic on it is exact.
const mostLines = 1 << 40

func toTlog(all []Hash) []tlog.Hash {
	out := make([]tlog.Hash, len(all))
	for k, h := range all {
		out[k] = tlog.Hash(h)
	}
	return out
}

func fromTlog(all []tlog.Hash) []Hash {
	out := make([]Hash, len(all))
	for k, h := range all {
		out[k] = Hash(h)
	}
	return out
}
