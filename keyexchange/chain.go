package keyexchange

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrRoundBack: a chain only moves forward; the keys of earlier rounds are
// erased.
var ErrRoundBack = errors.New("keyexchange: the keys of an earlier round are erased")

// Chain is the key material of one pair of parties: CK_ℓ for the coming round
// ℓ, from which that round's mask secret and channel keys follow, and the next
// chain key. Going on erases what was; going back is impossible. See the
// package comment for the schedule.
type Chain struct {
	key   [32]byte
	round uint64
}

// PairSecret is r_uv,ℓ: what two parties share for the masks of one round.
type PairSecret [32]byte

// MaskSeed keys the mask expansion of package masking: an AES-128 key and a
// 96-bit nonce, so that seeds of many pairs and rounds cannot be searched for
// together.
type MaskSeed [28]byte

// Round returns the round ℓ whose keys the chain gives out next, from 1.
func (c *Chain) Round() uint64 { return c.round }

// Next returns the pair's secret for the current round and moves the chain to
// the following one. The old chain key is overwritten: nothing that remains
// leads back to it.
func (c *Chain) Next() PairSecret {
	var out [64]byte
	expand(out[:], c.key[:], labelRatchet)
	c.key = [32]byte(out[:32])
	secret := PairSecret(out[32:])
	clear(out[:])
	c.round++
	return secret
}

// Skip moves the chain to a later round, for rounds that this party sits out,
// at the cost of one derivation a round. It fails with [ErrRoundBack], and
// does nothing, if the round is over.
func (c *Chain) Skip(round uint64) error {
	if round < c.round {
		return fmt.Errorf("%w: round %d asked for, the chain is at %d", ErrRoundBack, round, c.round)
	}
	for c.round < round {
		secret := c.Next()
		clear(secret[:])
	}
	return nil
}

// Ahead returns the channels and the pair's secret of the current or a later
// round without moving the chain. It fails with [ErrRoundBack].
func (c *Chain) Ahead(round uint64) (*Channels, PairSecret, error) {
	later := *c
	defer later.Erase()
	if err := later.Skip(round); err != nil {
		return nil, PairSecret{}, err
	}
	return later.Channels(), later.Next(), nil
}

// Erase overwrites the chain key. The chain must not be used again.
func (c *Chain) Erase() { clear(c.key[:]) }

// MaskSeed derives the seed of the pair's masks in the given context, a digest
// of all that the two must agree on for the round. Parties that were told
// different things hold different seeds, so that their masks do not cancel and
// the sum stays hidden.
func (s *PairSecret) MaskSeed(context [32]byte) MaskSeed {
	var info [len(labelMask) + 32]byte
	copy(info[:], labelMask)
	copy(info[len(labelMask):], context[:])
	var seed MaskSeed
	expand(seed[:], s[:], string(info[:]))
	return seed
}

// Purpose says what a channel key seals. Every purpose and direction has a key
// of its own.
type Purpose uint8

// The purposes of channels.
const (
	SelfMaskShare Purpose = iota // shares of a party's own mask seed
	RecoveryShare                // shares of the key to a party's recovery blob
)

const purposes = 2

// Bytes returns what [RestoreChain] makes the chain again from: 40 bytes as
// secret as the chain.
func (c *Chain) Bytes() [40]byte {
	var b [40]byte
	binary.BigEndian.PutUint64(b[:], c.round)
	copy(b[8:], c.key[:])
	return b
}

// RestoreChain makes a chain from its [Chain.Bytes]. Restoring a chain that has
// moved on since undoes the erasure of keys.
func RestoreChain(b [40]byte) *Chain {
	return &Chain{round: binary.BigEndian.Uint64(b[:]), key: [32]byte(b[8:])}
}

// Channels holds the sealing keys of one pair for one round: one per purpose
// and direction.
type Channels struct {
	keys [2 * purposes]SealKey
}

// Channels derives the sealing keys of the current round. They may be derived
// before the round begins and go on being derivable until [Chain.Next] or
// [Chain.Skip] moves past it.
func (c *Chain) Channels() *Channels {
	var out [2 * purposes * 32]byte
	defer clear(out[:])
	expand(out[:], c.key[:], labelChannels)
	return RestoreChannels(out)
}

// Key returns the key that seals for a purpose from one party to the other,
// given by their roster indices.
func (c *Channels) Key(purpose Purpose, from, to int) *SealKey {
	i := 2 * int(purpose)
	if from > to {
		i++
	}
	return &c.keys[i]
}

// Bytes returns what [RestoreChannels] makes the keys again from: 128 bytes as
// secret as the keys.
func (c *Channels) Bytes() [2 * purposes * 32]byte {
	var b [2 * purposes * 32]byte
	for i := range c.keys {
		copy(b[32*i:], c.keys[i][:])
	}
	return b
}

// RestoreChannels makes channels from their [Channels.Bytes].
func RestoreChannels(b [2 * purposes * 32]byte) *Channels {
	channels := new(Channels)
	for i := range channels.keys {
		channels.keys[i] = SealKey(b[32*i:])
	}
	return channels
}

// Erase overwrites the keys.
func (c *Channels) Erase() { clear(c.keys[:]) }

// expand fills out with HKDF-Expand-SHA256 (RFC 5869 §2.3).
func expand(out, prk []byte, info string) {
	okm, err := hkdf.Expand(sha256.New, prk, info, len(out))
	if err != nil {
		// Only an output longer than 255 hashes fails; ours are constants.
		panic("keyexchange: " + err.Error())
	}
	copy(out, okm)
	clear(okm)
}
