package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/hushsum/hushsum/internal/durable"
)

// FileCounter is a [Counter] in the file of this name. It is as safe as the place of
// the file.
//
// The file has the number in two slots, each with a checksum, so that damage to one of them costs
// nothing.
type FileCounter string

const (
	slots    = 2
	slotSize = 8 + 8 // a number and its checksum
)

// slot returns a slot with a number, by its place. The checksum is against damage, not against
// people.
func slot(place int, number uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, number)
	sum := sha256.Sum256(append([]byte{'c', byte(place)}, b...))
	return append(b, sum[:slotSize-len(b)]...)
}

// Value reads the number: the larger one of the slots that are whole. It fails with [ErrStore] if
// none is.
func (c FileCounter) Value() (uint64, error) {
	b, err := os.ReadFile(string(c))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, whole := uint64(0), false
	for place := range slots {
		if at := place * slotSize; len(b) >= at+slotSize {
			n := binary.BigEndian.Uint64(b[at:])
			if bytes.Equal(b[at:at+slotSize], slot(place, n)) {
				number, whole = max(number, n), true
			}
		}
	}
	if !whole {
		return 0, fmt.Errorf("%w: the counter is damaged: %s; restore it, or remove it if the state is "+
			"certainly the newest", ErrStore, string(c))
	}
	return number, nil
}

// Advance writes the number durably.
func (c FileCounter) Advance(to uint64) error {
	var b []byte
	for place := range slots {
		b = append(b, slot(place, to)...)
	}
	return durable.Write(string(c), bytes.NewReader(b))
}
