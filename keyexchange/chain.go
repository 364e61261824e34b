package keyexchange

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/internal/labels"
)

// Errors of chains.
var (
	// ErrRoundBack: a chain only moves forward; the keys of earlier rounds are
	// erased.
	ErrRoundBack = errors.New("keyexchange: the keys of an earlier round are erased")
	// ErrEncoding: the bytes are not those of a chain, of channels or of a key.
	ErrEncoding = errors.New("keyexchange: not what AppendBinary appends")
)

// Chain is the key material of one pair of parties: CK_ℓ for the coming round ℓ, from which that
// round's mask secret and channel keys follow, and the next chain key. Moving on erases the
// previous key; going back is impossible. See the package comment for the schedule.
type Chain struct {
	key   [32]byte
	round uint64
}

// PairSecret is r_uv,ℓ, which two parties share for the masks of one round.
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
	expand(out[:], c.key[:], labels.Ratchet)
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

// MaskSeed derives the seed of the pair's masks in the given context, a digest of all that the
// two must agree on for the round. Parties that were told different things hold different seeds,
// so that their masks do not cancel and the sum stays hidden.
func (s *PairSecret) MaskSeed(context [32]byte) MaskSeed {
	var info [len(labels.Mask) + 32]byte
	copy(info[:], labels.Mask)
	copy(info[len(labels.Mask):], context[:])
	var seed MaskSeed
	expand(seed[:], s[:], string(info[:]))
	return seed
}

// Purpose says what a channel key seals. Every purpose and direction has its own key.
type Purpose uint8

// The purposes of channels.
const (
	SelfMaskShare Purpose = iota // shares of a party's own mask seed
	RecoveryShare                // shares of the key to a party's recovery blob
)

const purposes = 2

// ChainSize is the length of an encoded [Chain] in bytes.
const ChainSize = 8 + 32

// AppendBinary appends the encoding that [ParseChain] reads: the round in 8 bytes, big-endian,
// and the chain key, [ChainSize] bytes as secret as the chain. It never fails.
func (c *Chain) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, c.round)
	return append(b, c.key[:]...), nil
}

// ParseChain restores a chain that [Chain.AppendBinary] appended; it fails with [ErrEncoding].
// Parsing the encoding of a chain that has moved on since then undoes the erasure of its keys.
func ParseChain(b []byte) (*Chain, error) {
	if len(b) != ChainSize {
		return nil, fmt.Errorf("%w: a chain has %d bytes, want %d", ErrEncoding, len(b), ChainSize)
	}
	round := binary.BigEndian.Uint64(b)
	if round == 0 {
		return nil, fmt.Errorf("%w: a chain is at round 0, the first one is 1", ErrEncoding)
	}
	return &Chain{round: round, key: [32]byte(b[8:])}, nil
}

// Channels holds the sealing keys of one pair for one round: one per purpose
// and direction.
type Channels struct {
	keys [2 * purposes]SealKey
}

// Channels derives the sealing keys of the current round. They can be derived before the round
// begins and until [Chain.Next] or [Chain.Skip] moves past it.
func (c *Chain) Channels() *Channels {
	var out [ChannelsSize]byte
	defer clear(out[:])
	expand(out[:], c.key[:], labels.Channels)
	return newChannels(&out)
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

// ChannelsSize is the length of encoded [Channels] in bytes.
const ChannelsSize = 2 * purposes * 32

// AppendBinary appends the encoding that [ParseChannels] reads: [ChannelsSize] bytes as secret as
// the keys. It never fails.
func (c *Channels) AppendBinary(b []byte) ([]byte, error) {
	for i := range c.keys {
		b = append(b, c.keys[i][:]...)
	}
	return b, nil
}

// ParseChannels restores channels that [Channels.AppendBinary] appended; it fails with
// [ErrEncoding].
func ParseChannels(b []byte) (*Channels, error) {
	if len(b) != ChannelsSize {
		return nil, fmt.Errorf("%w: channels have %d bytes, want %d", ErrEncoding, len(b), ChannelsSize)
	}
	return newChannels((*[ChannelsSize]byte)(b)), nil
}

func newChannels(b *[ChannelsSize]byte) *Channels {
	channels := new(Channels)
	for i := range channels.keys {
		channels.keys[i] = SealKey(b[32*i:])
	}
	return channels
}

// Erase overwrites the keys.
func (c *Channels) Erase() { clear(c.keys[:]) }

// extract is HKDF-Extract-SHA256 (RFC 5869 §2.2).
func extract(salt, secret []byte) []byte {
	key, err := hkdf.Extract(sha256.New, secret, salt)
	if err != nil {
		// Only a secret that is too short for FIPS 140 fails; ours are 32 bytes or more.
		panic("keyexchange: " + err.Error())
	}
	return key
}

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
