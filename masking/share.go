package masking

import (
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/entropy"
)

// Errors of additive sharing.
var (
	// ErrShares: additive sharing needs at least two holders.
	ErrShares = errors.New("masking: additive sharing needs at least two shares")
	// ErrRandom: the source of randomness failed.
	ErrRandom = entropy.Err
)

// Share splits v into n additive shares: vectors of the same layout that are uniform except for
// their sum, which is v modulo 2^b. Any n − 1 of them reveal nothing about v. Adding them all
// with [Vector.Add] gives v back. Randomness comes from random (nil: crypto/rand), as many bytes
// per share as v has in memory. It fails with [ErrShares] if n < 2 and with [ErrRandom].
//
// Shares of the zero vector blind a value that is already shared: add one to each share and the
// sum stays the same.
func (v *Vector) Share(random io.Reader, n int) ([]*Vector, error) {
	if n < 2 {
		return nil, fmt.Errorf("%w: %d asked for", ErrShares, n)
	}
	last := v.Clone()
	shares := make([]*Vector, n)
	for i := range n - 1 {
		share, err := uniform(random, v.layout)
		if err == nil {
			err = last.Sub(share)
		}
		if err != nil {
			for _, s := range shares[:i] {
				s.Erase()
			}
			last.Erase()
			return nil, err
		}
		shares[i] = share
	}
	shares[n-1] = last
	return shares, nil
}

// uniform draws a vector: every slot takes b of the random bits as they are.
func uniform(random io.Reader, layout Layout) (*Vector, error) {
	v, err := NewVector(layout)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 8*len(v.words))
	defer clear(b)
	if err := entropy.Read("masking", random, b); err != nil {
		return nil, err
	}
	for s, at := range v.segments() {
		top, body := s.masks()
		addStream(v.words[at:at+s.words()], b[8*at:8*(at+s.words())], body, top)
		v.words[at+s.words()-1] &= s.lastWord()
	}
	return v, nil
}
