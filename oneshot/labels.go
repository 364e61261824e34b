package oneshot

import (
	"crypto/sha256"
	"encoding/binary"
)

// hash is SHA-256 over a label and parts. The label and the configuration fix the lengths of all
// parts but the last.
func hash(label string, parts ...[]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(label))
	for _, part := range parts {
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

func uint64Bytes(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }
func uint32Bytes(x int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(x)) }
