package sidecar

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// The state of a party that has submitted goes with the submission, and with the counts of its
// guard: package protocol saves neither. Neither needs to be sealed; the tag shows that all are
// from one party and one step.
//
//	u64 last, u64 count, u32 length, the sealed state, the submission, HMAC-SHA256 over all that

// savedParty holds the fields of a saved state.
type savedParty struct {
	counted counted
	state   []byte // of protocol.Client.Save
	kept    []byte // the last submission; empty: none
}

// stateTag begins a tag under a key derived from the one that seals states.
func stateTag(key *keyexchange.SealKey) (hash.Hash, error) {
	derived, err := hkdf.Key(sha256.New, key[:], nil, labels.SidecarSavedParty, sha256.Size)
	if err != nil {
		return nil, err
	}
	defer clear(derived)
	return hmac.New(sha256.New, derived), nil
}

// countedSize is how many bytes the counts take.
const countedSize = 16

// sealState combines the counts, a sealed state and the last submission.
func sealState(
	key *keyexchange.SealKey, counted counted, state []byte, kept body,
) ([]byte, error) {
	tag, err := stateTag(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(countedSize + 4 + len(state) + int(kept.Size()) + sha256.Size)
	head := binary.BigEndian.AppendUint64(nil, counted.last)
	head = binary.BigEndian.AppendUint64(head, counted.count)
	out.Write(binary.BigEndian.AppendUint32(head, uint32(len(state))))
	out.Write(state)
	if _, err := kept.WriteTo(&out); err != nil {
		return nil, err
	}
	tag.Write(out.Bytes())
	return tag.Sum(out.Bytes()), nil
}

// openState is the inverse of sealState; its results are parts of the bytes.
func openState(key *keyexchange.SealKey, saved []byte) (savedParty, error) {
	const head = countedSize + 4
	end := len(saved) - sha256.Size
	if end < head {
		return savedParty{}, notState()
	}
	tag, err := stateTag(key)
	if err != nil {
		return savedParty{}, err
	}
	tag.Write(saved[:end])
	n := int64(binary.BigEndian.Uint32(saved[countedSize:]))
	if !hmac.Equal(tag.Sum(nil), saved[end:]) || int64(end-head) < n {
		return savedParty{}, notState()
	}
	return savedParty{
		counted: counted{binary.BigEndian.Uint64(saved), binary.BigEndian.Uint64(saved[8:])},
		state:   saved[head : head+n],
		kept:    saved[head+n : end],
	}, nil
}

// notState reports that bytes are not a result of party.save under the key.
func notState() error {
	return fault.New(protocol.ErrState, "load it with the job, number, identity and key of save",
		"the bytes were not saved under this key, or were changed")
}
