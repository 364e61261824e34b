// Package crook cheats in package oneshot, as a party with a changed program would: for tests and
// simulations of what refuses it.
package crook

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

var errShape = errors.New("crook: want a submission of a round with all members, open or bounded")

// degree is the degree of the ring: SPEC-ONESHOT.md §3.
const degree = 2048

// Shift adds to the first values under a party's mask, or under that of noise that a member deals,
// however much, and signs what comes of it: with a bound the proof then does not hold. All members
// of the committee must have keys in the round. Under a cover it changes what is there, which makes
// another vector of it; that takes a bound. The layout is that of SPEC-ONESHOT.md §5, §14.2 and
// §16.2, and not shared with package oneshot, which cannot be asked to cheat. After it noise under
// audit is to be signed by [SignDrawn].
func Shift(c *oneshot.Config, key crypto.Signer, message []byte, by []int64) ([]byte, error) {
	figures, err := c.Parameters()
	if err != nil {
		return nil, err
	}
	whole := bytes.Clone(message)
	h, body, err := wire.ParseHeader(whole)
	if err != nil {
		return nil, err
	}
	out := whole
	if h.Sender >= 1<<31 && c.Norm > 0 && len(out) > figures.Up {
		out, body = out[:figures.Up], body[:len(body)-(len(out)-figures.Up)]
	}
	if c.Covered && c.Norm == 0 || len(out) != figures.Up || len(by) > c.Length {
		return nil, errShape
	}
	members, values := c.Committee.Len(), figures.Polynomials
	if c.Norm > 0 {
		values++ // of f_0
	}
	leaves := 1 // of a member
	box := 32 + 32*values + 32 + 16
	if c.Covered {
		leaves, box = 2, box+32+32
	}
	if c.KEM != oneshot.KEMX25519 {
		box += 1088 // the ciphertext of ML-KEM-768
	}
	take := func(size int) (part []byte) {
		part, body = body[:size], body[size:]
		return part
	}
	masked := take(((c.Length+figures.Spare)*figures.ModulusBits + 7) / 8)
	more := 0
	if c.Covered {
		more += 32
	}
	if c.Stale > 0 {
		more += 8
	}
	extra := take(more)
	var dealing []byte
	if c.Norm > 0 {
		dealing = take(32 * (2 + figures.Threshold))
	}
	proof := take(len(body) - members*(32*leaves+box) - keyexchange.SignatureSize)
	half := func() []byte {
		return rootOf(slices.Collect(slices.Chunk(take(32*members), 32)))
	}
	root := half()
	if c.Covered {
		root = hash(labels.OneshotNode, root, half())
	}
	if c.Covered {
		masked[0] ^= 1
	} else {
		r := ring.New(degree, figures.Modulus)
		y := make([]uint64, c.Length+figures.Spare)
		r.AddPacked(y, masked)
		r.AddSigned(y[:len(by)], by)
		r.AppendPacked(masked[:0], y)
	}
	dealer := h.Sender
	if noise := dealer >= 1<<31; noise {
		dealer += uint32(c.Roster.Len()) - 1<<31
	}
	statement := slices.Concat(h.Session[:], binary.BigEndian.AppendUint32(nil, dealer), root,
		hash(labels.OneshotMasked, masked), extra)
	label := labels.OneshotParty
	switch {
	case c.Norm > 0:
		label = labels.OneshotBoundedParty
		statement = slices.Concat(statement, hash(labels.OneshotDealing, dealing),
			hash(labels.OneshotProofDigest, proof))
	case c.Stale > 0:
		label = labels.OneshotStale
	}
	if dealer != h.Sender {
		label = labels.OneshotNoise
	}
	signature, err := keyexchange.Sign(key, label, statement)
	copy(out[len(out)-len(signature):], signature[:])
	return whole, err
}

// SignDrawn signs how a member's noise was drawn under audit (SPEC-ONESHOT.md §15.6): candidates is
// the member's message with these, and coin the server's.
func SignDrawn(
	c *oneshot.Config, key crypto.Signer, message, candidates, coin []byte,
) ([]byte, error) {
	figures, err := c.Parameters()
	if err != nil {
		return nil, err
	}
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	if len(candidates) != wire.HeaderSize+16*32 || len(coin) != wire.HeaderSize+32 ||
		len(message) != figures.Up+15*32+keyexchange.SignatureSize {
		return nil, errShape
	}
	masked := body[:((c.Length+figures.Spare)*figures.ModulusBits+7)/8]
	at := len(masked)
	if c.Covered {
		at += 32
	}
	if c.Stale > 0 {
		at += 8
	}
	dealer := h.Sender + uint32(c.Roster.Len()) - 1<<31
	statement := slices.Concat(h.Session[:], binary.BigEndian.AppendUint32(nil, dealer),
		candidates[wire.HeaderSize:], coin[wire.HeaderSize:], message[figures.Up:][:15*32],
		hash(labels.OneshotMasked, masked), body[at:][:32])
	signature, err := keyexchange.Sign(key, labels.OneshotAudit, statement)
	if err != nil {
		return nil, err
	}
	return slices.Concat(message[:len(message)-len(signature)], signature[:]), nil
}

// rootOf returns the root of the tree over leaves.
func rootOf(level [][]byte) []byte {
	members := len(level)
	for size := 1; len(level) > 1 || size < members; size *= 2 {
		if len(level)%2 == 1 {
			level = append(level, empty(size))
		}
		var up [][]byte
		for k := 0; k < len(level); k += 2 {
			up = append(up, hash(labels.OneshotNode, level[k], level[k+1]))
		}
		level = up
	}
	return level[0]
}

// empty returns the root of a tree without leaves over a given number of places.
func empty(places int) []byte {
	if places == 1 {
		return make([]byte, 32)
	}
	half := empty(places / 2)
	return hash(labels.OneshotNode, half, half)
}

func hash(label string, parts ...[]byte) []byte {
	d := sha256.Sum256(append([]byte(label), slices.Concat(parts...)...))
	return d[:]
}
