package keyexchange

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
)

// ErrSealedState: the bytes of a sealed state do not open.
var ErrSealedState = errors.New("keyexchange: the state was changed, or saved under another key, " +
	"by another owner or for another configuration")

// SealState returns a struct, the saved state of a party or server, in gob's encoding, sealed under
// key for the owner that data names. It fails if gob cannot encode the state, and with the error of
// random.
func SealState(random io.Reader, key *SealKey, data []byte, state any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(state); err != nil {
		return nil, err
	}
	defer clear(b.Bytes())
	nonce, err := GenerateNonce(random)
	if err != nil {
		return nil, err
	}
	return Seal(&nonce, key, b.Bytes(), data)
}

// OpenState decodes a result of SealState into state, a pointer. It fails with [ErrSealedState], or
// if the struct has another type.
func OpenState(key *SealKey, data, box []byte, state any) error {
	b, err := Open(key, box, data)
	if err != nil {
		return ErrSealedState
	}
	defer clear(b)
	return gob.NewDecoder(bytes.NewReader(b)).Decode(state)
}
