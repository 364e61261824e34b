// Package sealed keeps structs as bytes that nobody without the key can read or change:
// the saved states of parties and servers.
package sealed

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"

	"github.com/hushsum/hushsum/keyexchange"
)

// Err: sealed bytes do not open.
var Err = errors.New(
	"it was changed, or saved under another key, by another owner or for another configuration")

// Seal returns the state, in gob's encoding, sealed under key for the owner that data
// names. It fails if the state has what gob cannot encode, and with the error of random.
func Seal(random io.Reader, key *keyexchange.SealKey, data []byte, state any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(state); err != nil {
		return nil, err
	}
	defer clear(b.Bytes())
	nonce, err := keyexchange.GenerateNonce(random)
	if err != nil {
		return nil, err
	}
	return keyexchange.Seal(&nonce, key, b.Bytes(), data)
}

// Open reads what Seal made into state, a pointer. It fails with [Err], or if the struct is
// another.
func Open(key *keyexchange.SealKey, data, box []byte, state any) error {
	b, err := keyexchange.Open(key, box, data)
	if err != nil {
		return Err
	}
	defer clear(b)
	return gob.NewDecoder(bytes.NewReader(b)).Decode(state)
}
