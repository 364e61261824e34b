package masking

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Errors of vectors.
var (
	// ErrLength: the number of segments, or of values in one, is not that of
	// the layout.
	ErrLength = errors.New("masking: the values do not match the layout")
	// ErrRange: a value does not fit its segment's bits.
	ErrRange = errors.New("masking: a value is outside the ring")
	// ErrLayoutMismatch: two vectors have different layouts.
	ErrLayoutMismatch = errors.New("masking: vectors of different layouts")
)

// Vector is a submission or a sum of submissions: for every segment of its
// layout, coordinates in Z_{2^b}. All arithmetic is modulo 2^b, coordinate by
// coordinate. A Vector is not safe for concurrent use.
type Vector struct {
	layout Layout
	words  []uint64 // segment after segment, each from a word of its own
}

// NewVector returns the zero vector. It fails with [ErrLayout].
func NewVector(layout Layout) (*Vector, error) {
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	n := 0
	for _, s := range layout {
		n += s.words()
	}
	return &Vector{layout: slices.Clone(layout), words: make([]uint64, n)}, nil
}

// FromValues returns the vector with the given values, one slice per segment.
// It fails with [ErrLayout], or as [Vector.Set] does.
func FromValues(layout Layout, values ...[]uint64) (*Vector, error) {
	v, err := NewVector(layout)
	if err != nil {
		return nil, err
	}
	if err := v.Set(values...); err != nil {
		return nil, err
	}
	return v, nil
}

// Set gives v other values, one slice per segment. It fails with [ErrLength] if a length does not
// fit, and with [ErrRange] if a value is 2^b or more; v is then zero.
func (v *Vector) Set(values ...[]uint64) error {
	if len(values) != len(v.layout) {
		v.Erase()
		return fmt.Errorf("%w: %d segments, want %d", ErrLength, len(values), len(v.layout))
	}
	rest := v.words
	for i, s := range v.layout {
		if len(values[i]) != s.Length {
			v.Erase()
			return fmt.Errorf("%w: segment %d has %d values, want %d", ErrLength, i, len(values[i]),
				s.Length)
		}
		if !s.store(rest, values[i]) {
			v.Erase()
			return fmt.Errorf("%w: segment %d holds values below 2^%d", ErrRange, i, s.Bits)
		}
		rest = rest[s.words():]
	}
	return nil
}

// store writes the values into the segment's words and reports whether all of
// them fit. It does not stop at one that does not: where it stands is secret.
func (s Segment) store(words, values []uint64) bool {
	bits := s.Bits
	var all, word uint64
	shift, i := 0, 0
	if s.slots() == 2 { // the usual case, without a branch a value
		for ; len(values) >= 2; values = values[2:] {
			low, high := values[0], values[1]
			all |= low | high
			words[i] = low | high<<bits
			i++
		}
	}
	for _, x := range values {
		all |= x
		word |= x << shift
		if shift += bits; shift > 64-bits {
			words[i] = word
			word, shift = 0, 0
			i++
		}
	}
	if shift > 0 {
		words[i] = word
	}
	return bits == 64 || all>>bits == 0
}

// Layout returns the layout, which the caller must not change.
func (v *Vector) Layout() Layout { return v.layout }

// Values returns the values of all segments, each below 2^b of its segment.
func (v *Vector) Values() [][]uint64 {
	out := make([][]uint64, len(v.layout))
	rest := v.words
	for i, s := range v.layout {
		slots, low := s.slots(), ^uint64(0)>>(64-s.Bits)
		values := make([]uint64, s.Length)
		for k := range values {
			values[k] = rest[k/slots] >> (k % slots * s.Bits) & low
		}
		out[i] = values
		rest = rest[s.words():]
	}
	return out
}

// Add adds w to v. It fails with [ErrLayoutMismatch].
func (v *Vector) Add(w *Vector) error {
	if !slices.Equal(v.layout, w.layout) {
		return ErrLayoutMismatch
	}
	for s, at := range v.segments() {
		top, body := s.masks()
		for i := at; i < at+s.words(); i++ {
			v.words[i] = addSlots(v.words[i], w.words[i], body, top)
		}
	}
	return nil
}

// Sub subtracts w from v. It fails with [ErrLayoutMismatch].
func (v *Vector) Sub(w *Vector) error {
	if !slices.Equal(v.layout, w.layout) {
		return ErrLayoutMismatch
	}
	for s, at := range v.segments() {
		top, body := s.masks()
		for i := at; i < at+s.words(); i++ {
			v.words[i] = subSlots(v.words[i], w.words[i], body, top)
		}
	}
	return nil
}

// segments yields every segment and where its words begin.
func (v *Vector) segments() iter.Seq2[Segment, int] {
	return func(yield func(Segment, int) bool) {
		at := 0
		for _, s := range v.layout {
			if !yield(s, at) {
				return
			}
			at += s.words()
		}
	}
}

// Clone returns a copy.
func (v *Vector) Clone() *Vector {
	return &Vector{layout: v.layout, words: slices.Clone(v.words)}
}

// Erase sets all coordinates to zero.
func (v *Vector) Erase() { clear(v.words) }
