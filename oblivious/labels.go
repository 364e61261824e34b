package oblivious

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

// digest is SHA-256 over a label and parts. The label fixes the lengths of all parts but the last.
func digest(label string, parts ...[]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(label))
	for _, part := range parts {
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

// expand is HKDF-Expand-SHA256 (RFC 5869 §2.3) to 32 bytes.
func expand(key [32]byte, info []byte) [32]byte {
	out, err := hkdf.Expand(sha256.New, key[:], string(info), 32)
	if err != nil {
		panic("oblivious: " + err.Error()) // only a longer output fails
	}
	return [32]byte(out)
}

// direction binds a key or a transfer to the party that it is from and the one that it is to.
func direction(from, to int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(from))
	return binary.BigEndian.AppendUint32(b, uint32(to))
}
