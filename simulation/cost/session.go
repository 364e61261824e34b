package cost

import "math/bits"

// Session says what is to be predicted.
type Session struct {
	Parties    int
	Neighbours int // of each party; 0: all others
	Threshold  int // shares that rebuild a secret, with Recovery; 0: half of the neighbours, and one
	Quorum     int // signatures of a certificate; 0: Threshold
	Length     int // coordinates of a submission
	Bits       int // of each
	Classical  bool
	Recovery   bool
	Dropped    int // parties that drop out of a round after it began
}

func (s Session) settled() Session {
	if s.Neighbours == 0 {
		s.Neighbours = s.Parties - 1
	}
	if s.Threshold == 0 {
		s.Threshold = s.Neighbours/2 + 1
	}
	if s.Quorum == 0 {
		s.Quorum = s.Threshold
	}
	return s
}

// sparse reports whether a party has fewer neighbours than there are others.
func (s *Session) sparse() bool { return s.Neighbours < s.Parties-1 }

// Packed returns the bytes of a submission without header and recovery.
func (s Session) Packed() int { return (s.Length*s.Bits + 7) / 8 }

// pathNodes counts the nodes of the paths to all leaves of a hash tree (RFC 9162 §2.1).
func pathNodes(leaves int) int {
	if leaves < 2 {
		return 0
	}
	left := 1 << (bits.Len(uint(leaves-1)) - 1)
	if leaves == 2*left {
		return leaves * bits.Len(uint(left))
	}
	return leaves + pathNodes(left) + pathNodes(leaves-left)
}

// path is the mean length of the paths that come with ciphertexts: a party with h
// neighbours encapsulates to 0 to h of them, as many as are above it in the roster.
func (s *Session) path() float64 {
	nodes, leaves := 0, 0
	for l := 1; l <= s.Neighbours; l++ {
		nodes, leaves = nodes+pathNodes(l), leaves+l
	}
	return float64(nodes) / float64(leaves)
}

// Sizes on the wire, in bytes (SPEC.md).
const (
	header     = 46
	kemKey     = 1184
	kemText    = 1088
	signature  = 64
	sealed     = 72 // a share with its nonce
	box        = 48 // without
	pairSecret = 32
	treeNode   = 32
)

// Bytes are those of one party, on average.
type Bytes struct {
	SetUpSent, SetUpReceived int64
	RoundSent, RoundReceived int64 // without the model
}

// set is the length of a set of n parties.
func set(n int) int { return (n + 7) / 8 }

// blob is the length of the sealed secrets of h pairs.
func blob(h int) int { return 24 + pairSecret*h + 16 }

// upload is the length of the material for a round.
func upload(h int) int { return 8 + 32 + blob(h) + h*box }

// keysBytes is the length of the part of Keys that is the same for all.
func (s *Session) keysBytes() int {
	entry := 32 + signature
	if !s.Classical {
		entry += 32
	}
	return set(s.Parties) + s.Parties*entry
}

// Wire returns the bytes of a party that encapsulates to half of its neighbours, with
// their headers, in a round from which nobody is missing.
func (s Session) Wire() Bytes {
	s = s.settled()
	h, n := s.Neighbours, s.Parties
	higher, lower := h/2, h-h/2
	var b Bytes
	b.SetUpSent = int64(header + 32 + signature)
	b.SetUpReceived = int64(header + s.keysBytes())
	if !s.Classical {
		b.SetUpSent += int64(kemKey + header + higher*kemText + signature)
		b.SetUpReceived += int64(higher*kemKey + header + set(n) +
			lower*(kemText+signature) + int(float64(lower)*treeNode*s.path()))
	}
	b.RoundReceived = int64(header + set(n) + 32)
	b.RoundSent = int64(header + s.Packed())
	if s.Recovery {
		b.SetUpSent += int64(header + upload(h))
		b.RoundReceived += int64(h * sealed)                         // Begin
		b.RoundReceived += int64(header + set(n) + h*sealed)         // Survivors
		b.RoundReceived += int64(header + s.Quorum*(4+signature))    // Certificate
		b.RoundSent += int64(32 + 24 + h*box + upload(h))            // Masked
		b.RoundSent += int64(header + signature + header + h*(4+32)) // Signed, Reveal
	}
	return b
}
