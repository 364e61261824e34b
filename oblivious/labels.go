package oblivious

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

// Domain separators, with the version of the scheme.
const (
	labelConfig  = "hushsum/1 oblivious config"
	labelRatchet = "hushsum/1 oblivious ratchet"
	labelChannel = "hushsum/1 oblivious channel"
	labelBase    = "hushsum/1 oblivious base"
	labelPoint   = "hushsum/1 oblivious point"
	labelBaseKey = "hushsum/1 oblivious base key"
	labelStream  = "hushsum/1 oblivious stream"
	labelSeed    = "hushsum/1 oblivious seed"
	labelExtend  = "hushsum/1 oblivious extend"
	labelCheck   = "hushsum/1 oblivious check"
	labelProof   = "hushsum/1 oblivious proof"
	labelPad     = "hushsum/1 oblivious pad"

	labelJointConfig     = "hushsum/1 joint config"
	labelJointKeys       = "hushsum/1 joint keys"
	labelJointInputs     = "hushsum/1 joint inputs"
	labelJointTurn       = "hushsum/1 joint turn"
	labelJointBody       = "hushsum/1 joint body"
	labelJointMessage    = "hushsum/1 joint message"
	labelJointKeyProof   = "hushsum/1 joint proof of a key"
	labelJointInputProof = "hushsum/1 joint proof of an input"
	labelJointTurnProof  = "hushsum/1 joint proof of a turn"
	labelJointShareProof = "hushsum/1 joint proof of a share"
	labelJointWeights    = "hushsum/1 joint weights of a share"
	labelJointCheck      = "hushsum/1 joint check"
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
