package oblivious

import (
	"bytes"
	"errors"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oblivious/internal/ristretto"
)

// Every message is
//
//	struct {
//	    uint8 version = 1;
//	    uint8 type;
//	    uint64 round;          // 0 during set-up
//	    uint32 from;
//	    uint32 to;
//	    opaque sealed[…];      // nonce, body and tag, of a length that the type fixes
//	} Message;
//
// sealed with the header and the configuration's digest as associated data.
const (
	version    = 1
	headerSize = 1 + 1 + 8 + 4 + 4
)

// messageType says what the body is.
type messageType uint8

const (
	typeSetup  messageType = 1 + iota // either way: base transfers
	typeChoice                        // receiver of terms → sender
	typeOffer                         // sender of terms → receiver
)

// header precedes the sealed body.
type header struct {
	kind     messageType
	round    uint64
	from, to uint32
}

func (h *header) append(b []byte) []byte {
	w := cryptobyte.NewBuilder(b)
	w.AddUint8(version)
	w.AddUint8(uint8(h.kind))
	w.AddUint64(h.round)
	w.AddUint32(h.from)
	w.AddUint32(h.to)
	return w.BytesOrPanic()
}

// parseHeader splits a message into its header and the sealed body.
func parseHeader(message []byte) (h header, sealed []byte, err error) {
	s := cryptobyte.String(message)
	var v, kind uint8
	if !s.ReadUint8(&v) || !s.ReadUint8(&kind) || !s.ReadUint64(&h.round) || !s.ReadUint32(&h.from) ||
		!s.ReadUint32(&h.to) {
		return header{}, nil, ErrEncoding
	}
	h.kind = messageType(kind)
	if v != version || h.kind < typeSetup || h.kind > typeOffer ||
		(h.kind == typeSetup) != (h.round == 0) {
		return header{}, nil, ErrEncoding
	}
	return h, s, nil
}

// bodySize is the length of a body.
func (c *Config) bodySize(kind messageType) int {
	switch kind {
	case typeSetup:
		return setupSize
	case typeChoice:
		return choiceSize(c.transfers())
	}
	return c.offerLayout().PackedSize()
}

// MaxMessage returns the length of the longest message, in bytes, or 0 if the
// configuration is not valid. A transport should read no more than that.
func (c *Config) MaxMessage() int {
	if c.Validate() != nil {
		return 0
	}
	return headerSize + keyexchange.SealOverhead +
		max(c.bodySize(typeSetup), c.bodySize(typeChoice), c.bodySize(typeOffer))
}

// offerLayout is that of the body of an offer: first all terms of choice 0, then
// those of choice 1, masked and padded.
func (c *Config) offerLayout() masking.Layout {
	s := masking.Segment{Length: c.transfers(), Bits: c.Bits}
	return masking.Layout{s, s}
}

func (c *Config) packOffer(terms [2][]uint64) []byte {
	v, err := masking.FromValues(c.offerLayout(), terms[0], terms[1])
	if err != nil {
		panic("oblivious: " + err.Error()) // lengths and ranges are ours
	}
	return v.AppendPacked(nil)
}

// parseOffer reads the body of an offer. It takes one encoding of each.
func (c *Config) parseOffer(body []byte) (terms [2][]uint64, err error) {
	v, err := masking.ParsePacked(c.offerLayout(), body)
	if err != nil {
		return terms, ErrEncoding
	}
	return [2][]uint64(v.Values()), nil
}

// parseSetup splits the body of a set-up message: struct { opaque B[32]; opaque
// r[128][2][32]; }. All are elements other than the identity, which those who
// compute with them check.
func parseSetup(body []byte) (point, pairs []byte, err error) {
	if len(body) != setupSize {
		return nil, nil, ErrEncoding
	}
	return body[:ristretto.Size], body[ristretto.Size:], nil
}

// seal makes a message of a body, under the key that the chain has for it.
func (t *Transfer) seal(p *peer, h header, body []byte) ([]byte, error) {
	nonce, err := keyexchange.GenerateNonce(t.random)
	if err != nil {
		return nil, err
	}
	head := h.append(nil)
	key := p.channel(h)
	defer clear(key[:])
	sealed, err := keyexchange.Seal(&nonce, key, body, append(bytes.Clone(head), t.digest[:]...))
	if err != nil {
		return nil, err
	}
	return append(head, sealed...), nil
}

// open reverses seal.
func (t *Transfer) open(p *peer, h header, sealed []byte) ([]byte, error) {
	if len(sealed) != t.config.bodySize(h.kind)+keyexchange.SealOverhead {
		return nil, ErrEncoding
	}
	key := p.channel(h)
	defer clear(key[:])
	body, err := keyexchange.Open(key, sealed, append(h.append(nil), t.digest[:]...))
	if errors.Is(err, keyexchange.ErrOpen) {
		return nil, ErrOpen
	}
	return body, err
}
