package wire

import (
	"bytes"
	"fmt"
	"slices"
)

// Lengths of what ML-KEM-768 makes (FIPS 203 §8).
const (
	EncapsulationKeySize = 1184
	CiphertextSize       = 1088
)

// NodeSize is the length of a node of a hash tree.
const NodeSize = 32

// Announce is the body of TypeAnnounce. The encapsulation key is there with
// hybrid keys only.
//
//	struct {
//	    opaque key[32];                 // X25519
//	    opaque encapsulation[1184];     // ML-KEM-768
//	    opaque signature[64];           // Ed25519
//	} Announce;
type Announce struct {
	Key           [32]byte
	Encapsulation []byte // nil with classical keys
	Signature     [64]byte
}

// AnnounceSize returns the length of an Announce.
func AnnounceSize(hybrid bool) int {
	if hybrid {
		return 32 + EncapsulationKeySize + 64
	}
	return 32 + 64
}

// Append appends the body to b.
func (m *Announce) Append(b []byte) []byte {
	b = append(b, m.Key[:]...)
	b = append(b, m.Encapsulation...)
	return append(b, m.Signature[:]...)
}

// ParseAnnounce reads a body of TypeAnnounce.
func ParseAnnounce(body []byte, hybrid bool) (*Announce, error) {
	if err := Exactly(body, AnnounceSize(hybrid)); err != nil {
		return nil, err
	}
	m := new(Announce)
	copy(m.Key[:], body)
	body = body[len(m.Key):]
	if hybrid {
		m.Encapsulation = bytes.Clone(body[:EncapsulationKeySize])
		body = body[EncapsulationKeySize:]
	}
	copy(m.Signature[:], body)
	return m, nil
}

// KeyEntry holds what Keys tells everybody about one party: its announcement, with the
// digest of its encapsulation key in the place of the key.
//
//	struct {
//	    opaque key[32];
//	    opaque digest[32];              // SHA-256, with hybrid keys only
//	    opaque signature[64];
//	} KeyEntry;
type KeyEntry struct {
	Key       [32]byte
	Digest    [32]byte // zero with classical keys
	Signature [64]byte
}

// KeyEntrySize returns the length of a KeyEntry.
func KeyEntrySize(hybrid bool) int {
	if hybrid {
		return 32 + 32 + 64
	}
	return 32 + 64
}

// Keys is the body of TypeKeys: who announced in time, what each of them
// announced, in ascending order, and the encapsulation keys that the recipient
// needs, of higher parties, in ascending order.
//
//	struct {
//	    opaque announced[⌈n/8⌉];
//	    KeyEntry entries[…];                    // one for each of announced
//	    opaque encapsulation[…][1184];
//	} Keys;
type Keys struct {
	Hybrid        bool
	Announced     Set
	Entries       []KeyEntry // by position among Announced
	Encapsulation [][]byte
}

// AppendShared appends the part that is the same for all recipients to b.
func (m *Keys) AppendShared(b []byte) []byte {
	b = append(b, m.Announced.bits...)
	return m.AppendEntries(b)
}

// AppendEntries appends the entries to b.
func (m *Keys) AppendEntries(b []byte) []byte {
	for i := range m.Entries {
		e := &m.Entries[i]
		b = append(b, e.Key[:]...)
		if m.Hybrid {
			b = append(b, e.Digest[:]...)
		}
		b = append(b, e.Signature[:]...)
	}
	return b
}

// Append appends the body to b.
func (m *Keys) Append(b []byte) []byte {
	size := len(m.Announced.bits) + len(m.Entries)*KeyEntrySize(m.Hybrid) +
		len(m.Encapsulation)*EncapsulationKeySize
	b = m.AppendShared(slices.Grow(b, size))
	for _, key := range m.Encapsulation {
		b = append(b, key...)
	}
	return b
}

// ParseKeys reads a body of TypeKeys in a session of n parties. needed says how
// many encapsulation keys there must be, given all that comes before them; its
// error ends the reading. The encapsulation keys are parts of body and not copies.
func ParseKeys(body []byte, n int, hybrid bool, needed func(*Keys) (int, error)) (*Keys, error) {
	head := (n + 7) / 8
	if len(body) < head {
		return nil, ErrTruncated
	}
	set, err := ParseSet(body[:head], n)
	if err != nil {
		return nil, err
	}
	body = body[head:]
	size, count := KeyEntrySize(hybrid), set.Len()
	if len(body) < count*size {
		return nil, fmt.Errorf("%w: %d bytes of keys, want %d", ErrTruncated, len(body), count*size)
	}
	m := &Keys{Hybrid: hybrid, Announced: set, Entries: make([]KeyEntry, count)}
	for i := range m.Entries {
		e, b := &m.Entries[i], body[i*size:(i+1)*size]
		copy(e.Key[:], b)
		if hybrid {
			copy(e.Digest[:], b[32:])
		}
		copy(e.Signature[:], b[size-64:])
	}
	body = body[count*size:]
	more, err := needed(m)
	if err != nil {
		return nil, err
	}
	if err := Exactly(body, more*EncapsulationKeySize); err != nil {
		return nil, err
	}
	for ; len(body) > 0; body = body[EncapsulationKeySize:] {
		m.Encapsulation = append(m.Encapsulation, body[:EncapsulationKeySize])
	}
	return m, nil
}

// Encapsulate is the body of TypeEncapsulate: a ciphertext for each higher peer
// among those who announced, in ascending order, and a signature on the root of
// the hash tree over them.
//
//	struct {
//	    opaque ciphertexts[…][1088];
//	    opaque signature[64];
//	} Encapsulate;
type Encapsulate struct {
	Ciphertexts [][]byte
	Signature   [64]byte
}

// Append appends the body to b.
func (m *Encapsulate) Append(b []byte) []byte {
	for _, ct := range m.Ciphertexts {
		b = append(b, ct...)
	}
	return append(b, m.Signature[:]...)
}

// ParseEncapsulate reads a body of TypeEncapsulate of a party with the given
// number of higher peers. The ciphertexts are copies.
func ParseEncapsulate(body []byte, count int) (*Encapsulate, error) {
	if err := Exactly(body, count*CiphertextSize+64); err != nil {
		return nil, err
	}
	body = bytes.Clone(body)
	m := new(Encapsulate)
	for range count {
		m.Ciphertexts = append(m.Ciphertexts, body[:CiphertextSize:CiphertextSize])
		body = body[CiphertextSize:]
	}
	copy(m.Signature[:], body)
	return m, nil
}

// Members is the body of TypeMembers: who is in the session, and of each lower
// peer of the recipient among them, in ascending order, the ciphertext that it
// made for the recipient, with what shows that the peer signed it.
//
//	struct {
//	    opaque members[⌈n/8⌉];
//	    struct {
//	        opaque ciphertext[1088];
//	        opaque path[…][32];         // from the leaf to the root
//	        opaque signature[64];       // on the root
//	    } lower[…];
//	} Members;
type Members struct {
	Members Set
	Lower   []SignedCiphertext
}

// SignedCiphertext is one entry of a Members.
type SignedCiphertext struct {
	Ciphertext []byte
	Path       [][32]byte
	Signature  [64]byte
}

// Append appends the body to b.
func (m *Members) Append(b []byte) []byte {
	size := len(m.Members.bits)
	for i := range m.Lower {
		e := &m.Lower[i]
		size += len(e.Ciphertext) + len(e.Path)*NodeSize + len(e.Signature)
	}
	b = append(slices.Grow(b, size), m.Members.bits...)
	for i := range m.Lower {
		e := &m.Lower[i]
		b = append(b, e.Ciphertext...)
		for k := range e.Path {
			b = append(b, e.Path[k][:]...)
		}
		b = append(b, e.Signature[:]...)
	}
	return b
}

// ParseMembers reads a body of TypeMembers in a session of n parties. paths says
// how long the path of each entry must be, given the members; its error ends the
// reading. The ciphertexts are parts of body and not copies.
func ParseMembers(body []byte, n int, paths func(members Set) ([]int, error)) (*Members, error) {
	head := (n + 7) / 8
	if len(body) < head {
		return nil, ErrTruncated
	}
	set, err := ParseSet(body[:head], n)
	if err != nil {
		return nil, err
	}
	body = body[head:]
	lengths, err := paths(set)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, length := range lengths {
		size += CiphertextSize + length*NodeSize + 64
	}
	if err := Exactly(body, size); err != nil {
		return nil, err
	}
	m := &Members{Members: set, Lower: make([]SignedCiphertext, len(lengths))}
	for i, length := range lengths {
		e := &m.Lower[i]
		e.Ciphertext, body = body[:CiphertextSize], body[CiphertextSize:]
		for range length {
			e.Path, body = append(e.Path, [32]byte(body)), body[NodeSize:]
		}
		e.Signature, body = [64]byte(body), body[64:]
	}
	return m, nil
}
