package cost

import (
	"math"
	"math/bits"
	"time"
)

// Sizes on the wire, in bytes (SPEC.md).
const (
	header     = 46
	kemKey     = 1184
	kemText    = 1088
	signature  = 64
	sealed     = 72 // a share with its nonce
	box        = 48 // without
	treeNode   = 32
	perChain   = 170 // bytes in memory: a map's entry, a pointer, round and key
	perSession = 4 << 10
)

// How often the server copies what it takes apart and puts together, fitted to what it
// took: shares are small, and are copied one by one.
const (
	setUpCopies = 1.4
	roundCopies = 3
)

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

// Packed returns the bytes of a submission without header and recovery.
func (s Session) Packed() int { return (s.Length*s.Bits + 7) / 8 }

// Load is the time of one core that the steps of a party take, without training and noise.
type Load struct {
	// In set-up.
	Announce, Keys, Members time.Duration
	// Upload is the material for a party's next round, a part of Members and of Submit too.
	Upload time.Duration
	// In a round: Begin opens the shares held for it; Submit masks.
	Begin, Submit, Sign, Reveal time.Duration
}

// SetUp is the time of set-up.
func (l Load) SetUp() time.Duration { return l.Announce + l.Keys + l.Members }

// Round is the time of a round.
func (l Load) Round() time.Duration { return l.Begin + l.Submit + l.Sign + l.Reveal }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// depth is the length of a path in a hash tree over so many leaves.
func depth(leaves float64) float64 {
	return float64(bits.Len(uint(max(0, math.Ceil(leaves)-1))))
}

// Party predicts the time that a party of a session works. One in the middle of the
// roster is meant: it encapsulates to half of its neighbours.
func (s Session) Party(u Units) Load {
	s = s.settled()
	h, half := float64(s.Neighbours), float64(s.Neighbours)/2
	var l Load
	l.Announce = seconds(u.KeyPair + u.Sign)
	keys := h*(u.Verify+u.Agree) + u.Hash*float64(s.keysBytes()) + u.Entry*float64(s.Parties)
	members := h * u.Chain
	if s.Classical {
		keys += members
		members = 0
	} else {
		keys += half*u.Encapsulate + u.Sign + u.Hash*half*kemText
		members += half * (u.Verify + u.Decapsulate + u.Hash*(kemText+64*depth(half)))
	}
	share := h*float64(s.Threshold)*u.Split + h*u.Seal
	upload := 0.
	if s.Recovery {
		upload = share + h*(u.Step/2+u.Channels) + u.Seal
		members += upload
		l.Begin = seconds(h * (u.Channels + u.Open))
		l.Sign = seconds(u.Sign)
		l.Reveal = seconds(float64(s.Quorum)*u.Verify + h*u.Open)
	}
	d := float64(s.Length)
	submit := h*(u.Step+u.Seed+d*u.Mask) + d*u.Pack
	if s.Recovery {
		submit += share + upload + u.Seed + d*u.Mask
	}
	l.Keys, l.Members, l.Upload, l.Submit = seconds(keys), seconds(members), seconds(upload),
		seconds(submit)
	return l
}

// ServerLoad is the time of one core that the server works.
type ServerLoad struct {
	SetUp time.Duration
	// Submissions is for taking what parties submit, Certify for their signatures, and Sum
	// for rebuilding secrets and taking masks off.
	Submissions, Certify, Sum time.Duration
}

// Round is the time of a round.
func (l ServerLoad) Round() time.Duration { return l.Submissions + l.Certify + l.Sum }

// Server predicts the time that the server works.
func (s Session) Server(u Units) ServerLoad {
	s = s.settled()
	n, h, d := float64(s.Parties), float64(s.Neighbours), float64(s.Length)
	var l ServerLoad
	setUp := n * u.Verify
	if !s.Classical {
		setUp += n * (u.Verify + u.Hash*(kemKey+h*kemText)) // of the ciphertexts, and their trees
	}
	bytes := s.Wire()
	setUp += setUpCopies * n * u.Copy * float64(bytes.SetUpSent+bytes.SetUpReceived)
	l.SetUp = seconds(setUp)
	shares := float64(bytes.RoundSent + bytes.RoundReceived - int64(s.Packed())) // vectors are added
	submissions := n * (d*u.Add + roundCopies*u.Copy*shares)
	if s.Recovery {
		present, gone := n-float64(s.Dropped), float64(s.Dropped)
		l.Certify = seconds(n * u.Verify)
		secret := float64(s.Threshold) * u.Rebuild
		if s.Neighbours < s.Parties-1 {
			secret += u.Combine // on a sparse graph everybody's holders are others
		}
		sum := present*(secret+u.Seed+d*u.Mask) +
			gone*(secret+u.Open+h*(u.Step/2+u.Seed+d*u.Mask))
		l.Sum = seconds(sum)
	}
	l.Submissions = seconds(submissions)
	return l
}

// Training returns how long so many steps of gradient descent take over rows of a model
// of so many weights.
func Training(u Units, rows, weights, steps int) time.Duration {
	return seconds(float64(rows) * float64(weights) * float64(steps) * u.Training)
}

// Bytes are those of one party, on average.
type Bytes struct {
	SetUpSent, SetUpReceived int64
	RoundSent, RoundReceived int64 // without the model
}

func set(n int) int { return (n + 7) / 8 }

// keysBytes is the length of the part of Keys that is the same for all.
func (s Session) keysBytes() int {
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
			lower*(kemText+signature) + lower*treeNode*int(depth(float64(higher))))
	}
	upload := 8 + 32 + 24 + 32*h + 16 + h*box
	b.RoundReceived = int64(header + set(n) + 32)
	b.RoundSent = int64(header + s.Packed())
	if s.Recovery {
		b.SetUpSent += int64(header + upload)
		b.RoundReceived += int64(h * sealed)                         // Begin
		b.RoundReceived += int64(header + set(n) + h*sealed)         // Survivors
		b.RoundReceived += int64(header + s.Quorum*(4+signature))    // Certificate
		b.RoundSent += int64(32 + 24 + h*box + upload)               // Masked
		b.RoundSent += int64(header + signature + header + h*(4+32)) // Signed, Reveal
	}
	return b
}

// ServerMemory returns what the server keeps between messages, in bytes: the sum, and with
// recovery the material and shares of the round.
func (s Session) ServerMemory() int64 {
	s = s.settled()
	n, h := int64(s.Parties), int64(s.Neighbours)
	memory := int64(perSession) + 16*int64(s.Length) + n*(32+signature+1500)
	if s.Recovery {
		// The uploads of a round and the next, sealed shares of self masks, revealed shares.
		memory += n * h * (2*(32+sealed) + sealed + 32 + 30)
	}
	return memory
}

// PartyMemory returns what a party keeps between messages, in bytes.
func (s Session) PartyMemory() int64 {
	s = s.settled()
	h := int64(s.Neighbours)
	// Who is in the session is a list of numbers, and several sets.
	n := int64(s.Parties)
	memory := int64(perSession) + h*perChain + 8*int64(s.Length) + 8*n + 5*int64(set(s.Parties))
	if s.Recovery {
		memory += h * (128 + 32 + 2*sealed)
	}
	return memory
}
