package oblivious

import (
	"bytes"
	"crypto/sha256"

	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/keyexchange"
)

// Every message of a [Joint] goes to all others and is
//
//	struct {
//	    uint8 version = 1;
//	    JointType type;
//	    opaque session[32];    // the digest of the configuration
//	    uint32 from;
//	    opaque body[…];        // of a length that type and configuration fix
//	    opaque signature[64];  // Ed25519
//	} JointMessage;
//
// The signature is over everything before it, the body as its SHA-256 digest, and over what
// the session has agreed on so far.
const jointHeaderSize = 1 + 1 + 32 + 4

// jointType says what the body of a message is.
type jointType uint8

const (
	jointKey     jointType = 1 + iota // a share of the key, with a proof
	jointInput                        // the input, encrypted bit by bit, with a proof
	jointTurn                         // all coins after a party's turn, with a proof
	jointConfirm                      // nothing: the signature says what the party has seen
	jointShare                        // a share of the decryption, with a proof
)

// jointMessage is a message in its parts.
type jointMessage struct {
	kind      jointType
	session   [32]byte
	from      uint32
	body      []byte
	signature [keyexchange.SignatureSize]byte
}

func (m *jointMessage) header() []byte {
	w := cryptobyte.NewBuilder(nil)
	w.AddUint8(version)
	w.AddUint8(uint8(m.kind))
	w.AddBytes(m.session[:])
	w.AddUint32(m.from)
	return w.BytesOrPanic()
}

func (m *jointMessage) append(b []byte) []byte {
	b = append(b, m.header()...)
	b = append(b, m.body...)
	return append(b, m.signature[:]...)
}

// statement returns the bytes that are signed.
func (m *jointMessage) statement(before [32]byte) []byte {
	body := sha256.Sum256(m.body)
	return bytes.Join([][]byte{m.header(), before[:], body[:]}, nil)
}

// parseJoint splits a message of a session with that configuration. It fails with
// [ErrEncoding]. The body shares memory with the message.
func (c *JointConfig) parseJoint(message []byte) (m jointMessage, err error) {
	s := cryptobyte.String(message)
	var v, kind uint8
	if !s.ReadUint8(&v) || !s.ReadUint8(&kind) || !s.CopyBytes(m.session[:]) ||
		!s.ReadUint32(&m.from) {
		return jointMessage{}, ErrEncoding
	}
	m.kind = jointType(kind)
	if v != version || m.kind < jointKey || m.kind > jointShare {
		return jointMessage{}, ErrEncoding
	}
	if !s.ReadBytes(&m.body, c.jointBodySize(m.kind)) || !s.CopyBytes(m.signature[:]) || !s.Empty() {
		return jointMessage{}, ErrEncoding
	}
	return m, nil
}

// jointBodySize is the length of a body.
func (c *JointConfig) jointBodySize(kind jointType) int {
	switch kind {
	case jointKey:
		return keySize
	case jointInput:
		return c.Length * len(c.inputWeights()) * turnSize
	case jointTurn:
		return c.Length * c.coins() * turnSize
	case jointShare:
		return shareSize(c.Length)
	}
	return 0
}

// MaxMessage returns the length of the longest message, in bytes, or 0 if the
// configuration is not valid. A transport should read no more than that.
func (c *JointConfig) MaxMessage() int {
	if c.Validate() != nil {
		return 0
	}
	return jointHeaderSize + keyexchange.SignatureSize +
		max(keySize, c.jointBodySize(jointInput), c.jointBodySize(jointTurn), shareSize(c.Length))
}
