package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// SealedShare is a sealed scalar: a 24-byte nonce, 32 bytes, a 16-byte tag.
//
//	opaque SealedShare[72];
type SealedShare [24 + 32 + 16]byte

// SealedShareSize is the length of a SealedShare.
const SealedShareSize = len(SealedShare{})

func appendShares(b []byte, shares []SealedShare) []byte {
	for i := range shares {
		b = append(b, shares[i][:]...)
	}
	return b
}

func parseShares(b []byte, n int) ([]SealedShare, error) {
	if err := Exactly(b, n*SealedShareSize); err != nil {
		return nil, err
	}
	shares := make([]SealedShare, n)
	for i := range shares {
		shares[i] = SealedShare(b[i*SealedShareSize:])
	}
	return shares, nil
}

// nonceSize is the length of the nonce that a sealed message begins with.
const nonceSize = 24

// appendBoxes appends shares that were sealed with one nonce without it.
func appendBoxes(b []byte, shares []SealedShare) []byte {
	for i := range shares {
		b = append(b, shares[i][nonceSize:]...)
	}
	return b
}

// parseBoxes reads n shares that were sealed with one nonce.
func parseBoxes(b []byte, nonce []byte, n int) []SealedShare {
	const box = SealedShareSize - nonceSize
	shares := make([]SealedShare, n)
	for i := range shares {
		copy(shares[i][:], nonce)
		copy(shares[i][nonceSize:], b[i*box:])
	}
	return shares
}

// Upload is the body of TypeUpload and the end of a Masked with recovery: what
// others need to take a party's masks off the sum of a later round if it drops
// out of it. h is the number of the party's neighbours in that round.
//
//	struct {
//	    uint64 round;                  // the later round
//	    opaque commitment[32];         // to the recovery key
//	    opaque nonce[24];              // of all that is sealed here
//	    opaque blob[32h + 16];         // sealed pair secrets, by neighbour
//	    opaque shares[h][48];          // of the recovery key, sealed, by neighbour
//	} Upload;
type Upload struct {
	Round      uint64
	Commitment [32]byte
	Blob       []byte // with the nonce
	Shares     []SealedShare
}

// UploadSize returns the length of an Upload with h neighbours.
func UploadSize(h int) int { return 8 + 32 + blobSize(h) + h*(SealedShareSize-nonceSize) }

// blobSize returns the length of the sealed pair secrets of h neighbours.
func blobSize(h int) int { return nonceSize + 32*h + 16 }

// Append appends the body to b.
func (m *Upload) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, m.Round)
	b = append(b, m.Commitment[:]...)
	b = append(b, m.Blob...)
	return appendBoxes(b, m.Shares)
}

// ParseUpload reads a body of TypeUpload of a party with h neighbours.
func ParseUpload(body []byte, h int) (*Upload, error) {
	if err := Exactly(body, UploadSize(h)); err != nil {
		return nil, err
	}
	m := &Upload{Round: binary.BigEndian.Uint64(body), Commitment: [32]byte(body[8:])}
	body = body[40:]
	m.Blob = bytes.Clone(body[:blobSize(h)])
	m.Shares = parseBoxes(body[blobSize(h):], m.Blob[:nonceSize], h)
	return m, nil
}

// Masked is the body of TypeMasked. Without recovery it is the packed vector and
// nothing else. With recovery, h is the number of the party's neighbours among
// the participants:
//
//	struct {
//	    opaque packed[…];              // see package masking
//	    opaque commitment[32];         // to the self mask's seed
//	    opaque nonce[24];              // of the shares
//	    opaque shares[h][48];          // of that seed, sealed, by neighbour
//	    Upload next;                   // for the party's next round
//	} Masked;
type Masked struct {
	Packed     []byte
	Commitment [32]byte
	Nonce      [24]byte
	Shares     []SealedShare
	Next       *Upload
}

// Append appends the body to b.
func (m *Masked) Append(b []byte) []byte {
	return m.AppendRest(append(b, m.Packed...))
}

// AppendRest appends what follows the packed vector.
func (m *Masked) AppendRest(b []byte) []byte {
	b = append(b, m.Commitment[:]...)
	b = append(b, m.Nonce[:]...)
	b = appendBoxes(b, m.Shares)
	return m.Next.Append(b)
}

// ParseMasked reads a body of TypeMasked with recovery: size is that of the
// packed vector, h and next are the numbers of neighbours in this round and in
// the one of the upload. Packed is a part of body and not a copy.
func ParseMasked(body []byte, size, h, next int) (*Masked, error) {
	if err := Exactly(body, MaskedSize(size, h, next)); err != nil {
		return nil, err
	}
	m := &Masked{
		Packed:     body[:size],
		Commitment: [32]byte(body[size:]),
		Nonce:      [24]byte(body[size+32:]),
	}
	body = body[size+32+nonceSize:]
	m.Shares = parseBoxes(body, m.Nonce[:], h)
	var err error
	if m.Next, err = ParseUpload(body[h*(SealedShareSize-nonceSize):], next); err != nil {
		return nil, err
	}
	return m, nil
}

// MaskedSize returns the length of a Masked with recovery.
func MaskedSize(size, h, next int) int {
	return size + 32 + nonceSize + h*(SealedShareSize-nonceSize) + UploadSize(next)
}

// Survivors is the body of TypeSurvivors: who is in the sum, and the sealed
// shares of self masks that the recipient holds, of its neighbours among the
// survivors, in ascending order.
//
//	struct {
//	    opaque survivors[⌈n/8⌉];
//	    SealedShare shares[…];
//	} Survivors;
type Survivors struct {
	Survivors Set
	Shares    []SealedShare
}

// Append appends the body to b.
func (m *Survivors) Append(b []byte) []byte {
	b = append(b, m.Survivors.bits...)
	return appendShares(b, m.Shares)
}

// ParseSurvivors reads a body of TypeSurvivors in a session of n parties. shares
// says how many there must be, given the survivors.
func ParseSurvivors(body []byte, n int, shares func(survivors Set) int) (*Survivors, error) {
	head := (n + 7) / 8
	if len(body) < head {
		return nil, ErrTruncated
	}
	set, err := ParseSet(body[:head], n)
	if err != nil {
		return nil, err
	}
	m := &Survivors{Survivors: set}
	m.Shares, err = parseShares(body[head:], shares(set))
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Certificate is the body of TypeCertificate: signatures on the survivors, by
// ascending party. The body of TypeSigned is one signature.
//
//	struct {
//	    struct { uint32 party; opaque signature[64]; } signatures[…];
//	} Certificate;
type Certificate []PartySignature

// PartySignature is one entry of a Certificate.
type PartySignature struct {
	Party     int
	Signature [64]byte
}

// Append appends the body to b.
func (m Certificate) Append(b []byte) []byte {
	for i := range m {
		b = binary.BigEndian.AppendUint32(b, uint32(m[i].Party))
		b = append(b, m[i].Signature[:]...)
	}
	return b
}

// ParseCertificate reads a body of TypeCertificate in a session of n parties.
func ParseCertificate(body []byte, n int) (Certificate, error) {
	return parseList(body, n, 64, func(party int, value []byte) PartySignature {
		return PartySignature{party, [64]byte(value)}
	})
}

// Reveal is the body of TypeReveal: shares by ascending owner. For an owner among
// the survivors it is the share of its self mask's seed, for another participant
// that of its recovery key. Shares that did not open are left out.
//
//	struct {
//	    struct { uint32 owner; opaque share[32]; } shares[…];
//	} Reveal;
type Reveal []OwnedShare

// OwnedShare is one entry of a Reveal.
type OwnedShare struct {
	Owner int
	Share [32]byte
}

// Append appends the body to b.
func (m Reveal) Append(b []byte) []byte {
	for i := range m {
		b = binary.BigEndian.AppendUint32(b, uint32(m[i].Owner))
		b = append(b, m[i].Share[:]...)
	}
	return b
}

// ParseReveal reads a body of TypeReveal in a session of n parties.
func ParseReveal(body []byte, n int) (Reveal, error) {
	return parseList(body, n, 32, func(party int, value []byte) OwnedShare {
		return OwnedShare{party, [32]byte(value)}
	})
}

// parseList reads entries of a party and a value of the given size, at most one
// for each of n parties, in ascending order.
func parseList[T any](
	body []byte, n, size int, entryOf func(party int, value []byte) T,
) ([]T, error) {
	entry := 4 + size
	if len(body)%entry != 0 {
		return nil, fmt.Errorf("%w: the body has %d bytes, want a multiple of %d", ErrTruncated,
			len(body), entry)
	}
	if len(body)/entry > n {
		return nil, ErrOversized
	}
	list := make([]T, 0, len(body)/entry)
	last := -1
	for ; len(body) > 0; body = body[entry:] {
		party := int(binary.BigEndian.Uint32(body))
		if party <= last || party >= n {
			return nil, fmt.Errorf("%w: a list of parties is not ascending or goes beyond the roster",
				ErrEncoding)
		}
		last = party
		list = append(list, entryOf(party, body[4:entry]))
	}
	return list, nil
}
