package wire

import (
	"bytes"
	"fmt"
	"iter"
	"math/bits"
)

// Set is a set of parties of a session of n: one bit a party, zero beyond n.
type Set struct {
	bits []byte
	n    int
}

// NewSet returns the empty set in a session of n parties.
func NewSet(n int) Set { return Set{make([]byte, (n+7)/8), n} }

// FullSet returns the set of all n parties.
func FullSet(n int) Set {
	s := NewSet(n)
	for i := range n {
		s.Add(i)
	}
	return s
}

// ParseSet reads a set. It fails with ErrTruncated, ErrTrailing, or, if a bit
// beyond n is set, ErrEncoding.
func ParseSet(b []byte, n int) (Set, error) {
	if err := Exactly(b, (n+7)/8); err != nil {
		return Set{}, err
	}
	if n%8 != 0 && b[len(b)-1]>>(n%8) != 0 {
		return Set{}, fmt.Errorf("%w: a set has a party beyond the roster", ErrEncoding)
	}
	return Set{bytes.Clone(b), n}, nil
}

// Add puts party i into the set.
func (s Set) Add(i int) { s.bits[i/8] |= 1 << (i % 8) }

// Has reports whether party i, any number, is in the set.
func (s Set) Has(i int) bool {
	return i >= 0 && i < s.n && s.bits[i/8]>>(i%8)&1 == 1
}

// Len returns how many parties the set has.
func (s Set) Len() int {
	sum := 0
	for _, b := range s.bits {
		sum += bits.OnesCount8(b)
	}
	return sum
}

// Missing returns those of the session's parties that are not in the set.
func (s Set) Missing() []int {
	var out []int
	for i := range s.n {
		if !s.Has(i) {
			out = append(out, i)
		}
	}
	return out
}

// All yields the parties of the set in order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s.n {
			if s.Has(i) && !yield(i) {
				return
			}
		}
	}
}

// Equal reports whether both sets have the same parties.
func (s Set) Equal(t Set) bool { return s.n == t.n && bytes.Equal(s.bits, t.bits) }

// Bytes returns the set's encoding, which the caller must not change.
func (s Set) Bytes() []byte { return s.bits }

// Within reports whether every party of s is in t.
func (s Set) Within(t Set) bool {
	for i, b := range s.bits {
		if b&^t.bits[i] != 0 {
			return false
		}
	}
	return true
}

// Of returns those of the given parties that are in the set.
func (s Set) Of(parties []int) []int {
	var out []int
	for _, i := range parties {
		if s.Has(i) {
			out = append(out, i)
		}
	}
	return out
}

// SetOf returns the set of the given parties in a session of n.
func SetOf(n int, parties []int) Set {
	s := NewSet(n)
	for _, i := range parties {
		s.Add(i)
	}
	return s
}

// Remove takes party i out of the set.
func (s Set) Remove(i int) { s.bits[i/8] &^= 1 << (i % 8) }
