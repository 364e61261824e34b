package fuzz

import (
	"bytes"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
)

// FuzzMessage parses bytes as a message of a session of n parties. There is one
// encoding of each message: whatever parses marshals back byte for byte.
func FuzzMessage(f *testing.F) {
	for _, n := range []int{2, 3, 9} {
		for _, m := range []struct {
			kind wire.Type
			body []byte
		}{
			{wire.TypeAnnounce, new(wire.Announce).Append(nil)},
			{wire.TypeKeys, make(wire.Keys, n).Append(nil)},
			{wire.TypeBegin, (&wire.Begin{Participants: wire.FullSet(n)}).Append(nil)},
			{wire.TypeMasked, []byte{1, 2, 3}},
		} {
			h := wire.Header{Type: m.kind, Session: [32]byte{1}, Round: 2, Sender: 1}
			f.Add(append(h.Append(nil), m.body...), uint16(n), uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, message []byte, parties uint16, shares uint8) {
		n := 2 + int(parties)%1000
		h, body, err := wire.ParseHeader(message)
		if err != nil {
			return
		}
		again := h.Append(nil)
		switch h.Type {
		case wire.TypeAnnounce:
			m, err := wire.ParseAnnounce(body)
			if err != nil {
				return
			}
			again = m.Append(again)
		case wire.TypeKeys:
			m, err := wire.ParseKeys(body, n)
			if err != nil {
				return
			}
			again = m.Append(again)
		case wire.TypeBegin:
			m, err := wire.ParseBegin(body, n, func(participants wire.Set) int { return int(shares) % 8 })
			if err != nil {
				return
			}
			if m.Participants.Len()+len(m.Participants.Missing()) != n {
				t.Fatal("a set has parties beyond the session")
			}
			again = m.Append(again)
		default:
			again = append(again, body...)
		}
		if !bytes.Equal(again, message) {
			t.Fatalf("%x parses, and marshals to %x", message, again)
		}
	})
}
