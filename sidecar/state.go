package sidecar

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// The state of a party that has submitted goes with the submission, which is no part of
// what package protocol saves. It is masked, and needs no sealing; the tag is so that both
// are of one party and one step.
//
//	u32 length, the sealed state, the submission, HMAC-SHA256 over all that

const labelState = "hushsum/2 sidecar saved party"

// stateTag begins a tag under a key that follows from the one states are sealed with.
func stateTag(key *keyexchange.SealKey) (hash.Hash, error) {
	derived, err := hkdf.Key(sha256.New, key[:], nil, labelState, sha256.Size)
	if err != nil {
		return nil, err
	}
	defer clear(derived)
	return hmac.New(sha256.New, derived), nil
}

// sealState puts a sealed state and the last submission together.
func sealState(key *keyexchange.SealKey, state []byte, kept body) ([]byte, error) {
	tag, err := stateTag(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(4 + len(state) + int(kept.Size()) + sha256.Size)
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(state))))
	out.Write(state)
	if _, err := kept.WriteTo(&out); err != nil {
		return nil, err
	}
	tag.Write(out.Bytes())
	return tag.Sum(out.Bytes()), nil
}

// openState is the inverse of sealState; what it returns is part of the bytes.
func openState(key *keyexchange.SealKey, saved []byte) (state, kept []byte, err error) {
	tag, err := stateTag(key)
	if err != nil {
		return nil, nil, err
	}
	end := len(saved) - sha256.Size
	if end < 4 {
		return nil, nil, notState()
	}
	tag.Write(saved[:end])
	n := int64(binary.BigEndian.Uint32(saved))
	if !hmac.Equal(tag.Sum(nil), saved[end:]) || 4+n > int64(end) {
		return nil, nil, notState()
	}
	return saved[4 : 4+n], saved[4+n : end], nil
}

// notState says that bytes are not what party.save returned under the key.
func notState() error {
	return fault.New(protocol.ErrState, "load it with the plan, number, identity and key of save",
		"the bytes were not saved under this key, or were changed")
}
