// Package wire is the one place where bytes become messages and messages
// bytes. Every message has exactly one encoding, in the presentation language
// of TLS (RFC 8446 §3):
//
//	struct {
//	    uint8 version = 2;
//	    uint8 type;
//	    opaque session[32];
//	    uint64 round;
//	    uint32 sender;        // roster index, 2^32 − 1 for the server
//	    select (type) { … }   // the body: see the types of this package
//	} Message;
//
// Parsing checks every length before it allocates and refuses what is left
// over, so that what parses marshals back to the same bytes.
package wire

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
)

// Version is the first byte of every message.
const Version = 1

// ServerIndex is the sender of the server's messages.
const ServerIndex = 1<<32 - 1

// HeaderSize is the length of what precedes the body.
const HeaderSize = 1 + 1 + 32 + 8 + 4

// Type says what a message's body is.
type Type uint8

// The types of messages.
const (
	TypeAnnounce Type = 1 // party → server: signed keys
	TypeKeys     Type = 2 // server → parties: the signed keys of all who announced
	TypeBegin    Type = 3 // server → parties: a round begins
	TypeMasked   Type = 4 // party → server: a masked submission

	// With recovery from drop-outs:
	TypeUpload      Type = 5  // party → server: recovery material for a round
	TypeInvite      Type = 6  // server → party: upload material for your next round
	TypeSurvivors   Type = 7  // server → parties: whose submissions are in
	TypeSigned      Type = 8  // party → server: a signature on the survivors
	TypeCertificate Type = 9  // server → parties: enough such signatures
	TypeReveal      Type = 10 // party → server: shares

	// With hybrid keys:
	TypeEncapsulate Type = 11 // party → server: ML-KEM ciphertexts for higher parties
	TypeMembers     Type = 12 // server → parties: who is in the session, ciphertexts of lower parties
)

// SetUp reports whether messages of the type are part of set-up: they name the
// configuration's digest in the place of the session.
func (t Type) SetUp() bool {
	switch t {
	case TypeAnnounce, TypeKeys, TypeEncapsulate, TypeMembers:
		return true
	}
	return false
}

// String returns the type's name, as the specification has it.
func (t Type) String() string {
	names := [...]string{
		TypeAnnounce:    "Announce",
		TypeKeys:        "Keys",
		TypeBegin:       "Begin",
		TypeMasked:      "Masked",
		TypeUpload:      "Upload",
		TypeInvite:      "Invite",
		TypeSurvivors:   "Survivors",
		TypeSigned:      "Signed",
		TypeCertificate: "Certificate",
		TypeReveal:      "Reveal",
		TypeEncapsulate: "Encapsulate",
		TypeMembers:     "Members",
	}
	if t == 0 || int(t) >= len(names) {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return names[t]
}

// Errors of parsing.
var (
	ErrTruncated = errors.New("protocol: the message ends too early")
	ErrTrailing  = errors.New("protocol: the message has bytes after its end")
	ErrOversized = errors.New("protocol: the message is longer than any of this session")
	ErrVersion   = errors.New("protocol: the message is of another protocol version")
	ErrType      = errors.New("protocol: the message is of a type that is not expected here")
	ErrEncoding  = errors.New("protocol: the message is not in its canonical form")
)

// Header begins every message.
type Header struct {
	Type    Type
	Session [32]byte
	Round   uint64
	Sender  uint32
}

// Append appends the header to b.
func (h *Header) Append(b []byte) []byte {
	builder := cryptobyte.NewBuilder(b)
	builder.AddUint8(Version)
	builder.AddUint8(uint8(h.Type))
	builder.AddBytes(h.Session[:])
	builder.AddUint64(h.Round)
	builder.AddUint32(h.Sender)
	return builder.BytesOrPanic()
}

// ParseHeader splits a message into its header and its body, which is a part of
// message and not a copy.
func ParseHeader(message []byte) (Header, []byte, error) {
	var h Header
	s := cryptobyte.String(message)
	var version, kind uint8
	if !s.ReadUint8(&version) {
		return Header{}, nil, ErrTruncated
	}
	if version != Version {
		return Header{}, nil, fmt.Errorf("%w: %d, want %d", ErrVersion, version, Version)
	}
	if !s.ReadUint8(&kind) || !s.CopyBytes(h.Session[:]) || !s.ReadUint64(&h.Round) ||
		!s.ReadUint32(&h.Sender) {
		return Header{}, nil, ErrTruncated
	}
	h.Type = Type(kind)
	return h, s, nil
}

// Begin is the body of TypeBegin. With recovery it ends with the sealed recovery
// shares that the recipient holds for the round, of its neighbours among the
// participants, in ascending order.
//
//	struct {
//	    opaque broadcast[32];         // SHA-256
//	    opaque participants[⌈n/8⌉];   // bit i%8 of byte ⌊i/8⌋: party i
//	    SealedShare shares[…];
//	} Begin;
type Begin struct {
	Broadcast    [32]byte
	Participants Set
	Shares       []SealedShare
}

// Append appends the body to b.
func (m *Begin) Append(b []byte) []byte {
	b = append(b, m.Broadcast[:]...)
	b = append(b, m.Participants.bits...)
	return appendShares(b, m.Shares)
}

// ParseBegin reads a body of TypeBegin in a session of n parties. shares says
// how many shares there must be, given the participants.
func ParseBegin(body []byte, n int, shares func(participants Set) int) (*Begin, error) {
	head := 32 + (n+7)/8
	if len(body) < head {
		return nil, ErrTruncated
	}
	set, err := ParseSet(body[32:head], n)
	if err != nil {
		return nil, err
	}
	m := &Begin{Broadcast: [32]byte(body), Participants: set}
	m.Shares, err = parseShares(body[head:], shares(set))
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Exactly checks the length of a body whose length is known beforehand; it
// fails with ErrTruncated or ErrTrailing.
func Exactly(body []byte, n int) error {
	switch {
	case len(body) < n:
		return fmt.Errorf("%w: the body has %d bytes, want %d", ErrTruncated, len(body), n)
	case len(body) > n:
		return fmt.Errorf("%w: the body has %d bytes, want %d", ErrTrailing, len(body), n)
	}
	return nil
}
