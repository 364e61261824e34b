package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/hushsum/hushsum/internal/labels"
)

// Seed is the public seed of a graph, in practice the hash of a session's
// transcript or, for a graph per round, a hash over that and the round number.
// The adversaries that the graph protects against must not be able to choose it; see
// [GrindingBits].
type Seed [32]byte

// Permutation returns a permutation of 0..n−1 that every party computes alike
// from the public seed, uniform if SHA-256 is a random function. In full:
//
// Blocks. Block j, j = 0, 1, 2, …, is the 32-byte value
//
//	SHA-256( label ‖ n ‖ seed ‖ j )
//
// where label is the 21 ASCII bytes "hushsum/1 permutation" with no terminator, n is 4
// bytes and j is 8 bytes, both big-endian and unsigned, and seed is its 32 bytes.
//
// Words. Each block gives eight 32-bit words, in order, big-endian. Words are
// used strictly in sequence, and a rejected word is used up.
//
// Draws. To draw below m (2 ≤ m ≤ n), let L = 2^32 − (2^32 mod m). Take words
// until one, w, is below L; the draw is w mod m.
//
// Shuffle (Fisher and Yates, from the top). Start with p[i] = i. For i = n−1 down
// to 1: draw j below i+1, then exchange p[i] and p[j]. The result is p.
//
// testdata/permutation.json has known answers. The only error is [ErrParties],
// for n outside 1..[MaxParties].
func Permutation(n int, seed Seed) ([]int, error) {
	if n < 1 || n > MaxParties {
		return nil, fmt.Errorf("%w (got %d)", ErrParties, n)
	}
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	w := newWords(n, seed)
	for i := n - 1; i > 0; i-- {
		j := w.below(uint32(i + 1))
		p[i], p[j] = p[j], p[i]
	}
	return p, nil
}

// words is the stream of 32-bit words of Permutation.
type words struct {
	input [len(labels.Permutation) + 4 + 32 + 8]byte // the last 8 are the counter
	block [sha256.Size]byte
	next  uint64 // number of the next block
	used  int    // bytes of block that are spent
}

func newWords(n int, seed Seed) *words {
	w := &words{used: sha256.Size}
	rest := w.input[copy(w.input[:], labels.Permutation):]
	binary.BigEndian.PutUint32(rest, uint32(n))
	copy(rest[4:], seed[:])
	return w
}

func (w *words) word() uint32 {
	if w.used == len(w.block) {
		binary.BigEndian.PutUint64(w.input[len(w.input)-8:], w.next)
		w.block = sha256.Sum256(w.input[:])
		w.next++
		w.used = 0
	}
	v := binary.BigEndian.Uint32(w.block[w.used:])
	w.used += 4
	return v
}

// below draws uniformly from 0..m−1.
func (w *words) below(m uint32) uint32 {
	limit := 1<<32 - (1<<32)%uint64(m)
	for {
		if v := w.word(); uint64(v) < limit {
			return v % m
		}
	}
}
