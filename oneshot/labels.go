package oneshot

import (
	"crypto/sha256"
	"encoding/binary"
)

// Domain separators of hashes, keys and signatures, with the version of the scheme.
const (
	labelConfig     = "hushsum/oneshot/1 config"
	labelBroadcast  = "hushsum/oneshot/1 broadcast"
	labelContext    = "hushsum/oneshot/1 context"
	labelRing       = "hushsum/oneshot/1 ring"
	labelMasked     = "hushsum/oneshot/1 masked"
	labelLeaf       = "hushsum/oneshot/1 leaf"
	labelNode       = "hushsum/oneshot/1 node"
	labelBox        = "hushsum/oneshot/1 box"
	labelCommitment = "hushsum/oneshot/1 commitment"
	labelCover      = "hushsum/oneshot/1 cover"
	labelChain      = "hushsum/oneshot/1 chain"
	labelState      = "hushsum/oneshot/1 state"

	// Of version 2, with a bound:
	labelDealing     = "hushsum/oneshot/2 dealing"
	labelProofDigest = "hushsum/oneshot/2 proof digest"
	labelCoverLeaf   = "hushsum/oneshot/2 cover leaf"
	labelEvidence    = "hushsum/oneshot/2 evidence" // in front of it
	labelPoint       = "hushsum/oneshot/2 point"
	labelGroups      = "hushsum/oneshot/2 groups"
	labelSeed        = "hushsum/oneshot/2 seed"
	labelCandidate   = "hushsum/oneshot/2 candidate"
	labelDrawn       = "hushsum/oneshot/2 drawn"

	// Of signatures:
	labelKey       = "hushsum/oneshot/1 key"
	labelStatement = "hushsum/oneshot/1 party"
	labelStale     = "hushsum/oneshot/1 stale" // in place of it, with the broadcast's round
	labelBounded   = "hushsum/oneshot/2 party" // in place of both, with dealing and proof
	labelClosing   = "hushsum/oneshot/1 closing"
	labelNoise     = "hushsum/oneshot/2 noise" // by a member that deals noise
	labelAudit     = "hushsum/oneshot/2 audit" // by it, of how it was drawn
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
