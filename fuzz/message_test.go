package fuzz

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
)

// FuzzMessage parses bytes as a message of a session of n parties. There is one
// encoding of each message: whatever parses marshals back byte for byte.
//
// near and next stand for what a receiver knows beforehand: how many sealed
// shares there must be, and how many neighbours the sender has in its next
// round. size is the length of the packed vector, 0 in a session without
// recovery.
func FuzzMessage(f *testing.F) {
	for _, n := range []int{2, 3, 9} {
		near, next := n-1, n-2
		upload := func(h int) *wire.Upload {
			m, err := wire.ParseUpload(make([]byte, wire.UploadSize(h)), h)
			if err != nil {
				f.Fatal(err)
			}
			return m
		}
		masked := wire.Masked{Packed: []byte{1, 2, 3, 4, 5}, Shares: make([]wire.SealedShare, near),
			Next: upload(next)}
		for _, m := range []struct {
			kind wire.Type
			body []byte
		}{
			{wire.TypeAnnounce, new(wire.Announce).Append(nil)},
			{wire.TypeAnnounce, (&wire.Announce{Encapsulation: make([]byte, wire.EncapsulationKeySize)}).Append(nil)},
			{wire.TypeKeys, (&wire.Keys{Announced: wire.FullSet(n), Entries: make([]wire.KeyEntry, n)}).Append(nil)},
			{wire.TypeKeys, (&wire.Keys{Hybrid: true, Announced: wire.FullSet(n),
				Entries:       make([]wire.KeyEntry, n),
				Encapsulation: make([][]byte, 0, near)}).Append(nil)},
			{wire.TypeEncapsulate, (&wire.Encapsulate{
				Ciphertexts: [][]byte{make([]byte, wire.CiphertextSize)}}).Append(nil)},
			{wire.TypeMembers, (&wire.Members{Members: wire.FullSet(n), Lower: []wire.SignedCiphertext{
				{Ciphertext: make([]byte, wire.CiphertextSize), Path: make([][32]byte, next)}}}).Append(nil)},
			{wire.TypeBegin, (&wire.Begin{Participants: wire.FullSet(n),
				Shares: make([]wire.SealedShare, near)}).Append(nil)},
			{wire.TypeBegin, (&wire.Begin{Participants: wire.FullSet(n)}).Append(nil)},
			{wire.TypeMasked, masked.Append(nil)},
			{wire.TypeUpload, upload(next).Append(nil)},
			{wire.TypeInvite, wire.FullSet(n).Bytes()},
			{wire.TypeSurvivors, (&wire.Survivors{Survivors: wire.FullSet(n),
				Shares: make([]wire.SealedShare, near)}).Append(nil)},
			{wire.TypeSigned, make([]byte, 64)},
			{wire.TypeCertificate, wire.Certificate{{Party: 0}, {Party: n - 1}}.Append(nil)},
			{wire.TypeReveal, wire.Reveal{{Owner: 0}, {Owner: n - 1}}.Append(nil)},
		} {
			h := wire.Header{Type: m.kind, Session: [32]byte{1}, Round: 2, Sender: 1}
			message := append(h.Append(nil), m.body...)
			f.Add(message, uint16(n-2), uint8(near), uint8(next), uint8(5))
			f.Add(message, uint16(n-2), uint8(0), uint8(0), uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, message []byte, parties uint16, near, next, size uint8) {
		n := 2 + int(parties)%1000
		h, body, err := wire.ParseHeader(message)
		if err == nil {
			var again []byte
			again, err = reencode(t, h, body, n, int(near), int(next), int(size))
			if err == nil && !bytes.Equal(again, message) {
				t.Fatalf("%x parses, and marshals to %x", message, again)
			}
		}
		if err != nil && !isOneOf(err, parsing) {
			t.Fatalf("an error that parsing does not have: %v", err)
		}
	})
}

// parsing lists the errors of package wire.
var parsing = []error{wire.ErrTruncated, wire.ErrTrailing, wire.ErrOversized, wire.ErrVersion,
	wire.ErrType, wire.ErrEncoding}

func isOneOf(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// reencode parses a body and marshals it, with its header, again.
func reencode(t *testing.T, h wire.Header, body []byte, n, near, next, size int) ([]byte, error) {
	again := h.Append(nil)
	shares := func(set wire.Set) int {
		if set.Len()+len(set.Missing()) != n {
			t.Fatal("a set has parties beyond the session")
		}
		return near
	}
	ascending := func(last, party int) {
		if party <= last || party >= n {
			t.Fatalf("party %d after %d in a list of a session of %d", party, last, n)
		}
	}
	switch h.Type {
	case wire.TypeAnnounce:
		m, err := wire.ParseAnnounce(body, len(body) > 200)
		if err != nil {
			return nil, err
		}
		return m.Append(again), nil
	case wire.TypeKeys:
		m, err := wire.ParseKeys(body, n, size%2 == 1, func(keys *wire.Keys) (int, error) {
			if len(keys.Entries) != keys.Announced.Len() {
				t.Fatal("keys of others than those who announced")
			}
			return near * (size % 2), nil
		})
		if err != nil {
			return nil, err
		}
		return m.Append(again), nil
	case wire.TypeEncapsulate:
		m, err := wire.ParseEncapsulate(body, near%4)
		if err != nil {
			return nil, err
		}
		return m.Append(again), nil
	case wire.TypeMembers:
		m, err := wire.ParseMembers(body, n,
			func(wire.Set) ([]int, error) { return make([]int, near%4), nil })
		if err != nil {
			return nil, err
		}
		return m.Append(again), nil
	case wire.TypeBegin:
		m, err := wire.ParseBegin(body, n, shares)
		if err != nil {
			return nil, err
		}
		return m.Append(again), nil
	case wire.TypeUpload:
		m, err := wire.ParseUpload(body, next)
		if err != nil {
			return nil, err
		}
		return m.Append(again), nil
	case wire.TypeMasked:
		if size == 0 {
			return append(again, body...), nil
		}
		m, err := wire.ParseMasked(body, size, near, next)
		if err != nil {
			return nil, err
		}
		if len(m.Packed) != size || len(m.Shares) != near || len(m.Next.Shares) != next {
			t.Fatal("a submission of another size than was asked for")
		}
		return m.Append(again), nil
	case wire.TypeSurvivors:
		m, err := wire.ParseSurvivors(body, n, shares)
		if err != nil {
			return nil, err
		}
		return m.Append(again), nil
	case wire.TypeCertificate:
		m, err := wire.ParseCertificate(body, n)
		if err != nil {
			return nil, err
		}
		last := -1
		for i := range m {
			ascending(last, m[i].Party)
			last = m[i].Party
		}
		return m.Append(again), nil
	case wire.TypeReveal:
		m, err := wire.ParseReveal(body, n)
		if err != nil {
			return nil, err
		}
		last := -1
		for i := range m {
			ascending(last, m[i].Owner)
			last = m[i].Owner
		}
		return m.Append(again), nil
	case wire.TypeInvite:
		set, err := wire.ParseSet(body, n)
		return append(again, set.Bytes()...), err
	case wire.TypeSigned:
		return append(again, body...), wire.Exactly(body, 64)
	default:
		return append(again, body...), nil
	}
}
