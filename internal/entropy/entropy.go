// Package entropy reads sources of randomness in the one way that every package of
// the project does.
package entropy

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Err: the source of randomness failed, ended early, returned nothing over and over,
// or gives bits that cannot be random. Packages export it as their ErrRandom, so that
// it is one error wherever it comes from, and put their name in front.
var Err = errors.New("the source of randomness failed")

// Source returns random, or crypto/rand.Reader if it is nil.
func Source(random io.Reader) io.Reader {
	if random == nil {
		return rand.Reader
	}
	return random
}

// idleReads is how often in a row a reader may return nothing, without an error.
const idleReads = 100

// Read fills b from random, or from crypto/rand if random is nil, for the package of the
// given name. On failure b is cleared, and the error is [Err] and the reader's own: io.EOF
// if it gave nothing at all, and io.ErrUnexpectedEOF if it gave less than b, as with
// io.ReadFull. Unlike io.ReadFull it gives up on a reader that goes on returning nothing.
func Read(name string, random io.Reader, b []byte) error {
	random = Source(random)
	idle := 0
	for n := 0; n < len(b); {
		m, err := random.Read(b[n:])
		if m < 0 || m > len(b)-n {
			m, err = 0, errors.New("the reader returned an impossible count")
		}
		if n += m; n == len(b) {
			break
		}
		if idle++; m > 0 {
			idle = 0
		}
		if err == nil && idle >= idleReads {
			err = io.ErrNoProgress
		}
		if err == nil {
			continue
		}
		clear(b)
		if errors.Is(err, Err) {
			return err
		}
		if err == io.EOF && n > 0 {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("%s: %w: %w", name, Err, err)
	}
	return nil
}

// Coin tosses a coin that has luck with a probability of 0 to 1, to 2^-53, with random used as
// [Read] uses it.
func Coin(name string, random io.Reader, luck float64) (bool, error) {
	var b [8]byte
	if err := Read(name, random, b[:]); err != nil {
		return false, err
	}
	return float64(binary.BigEndian.Uint64(b[:])>>11) < luck*0x1p53, nil
}
