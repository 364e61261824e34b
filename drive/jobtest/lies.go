package jobtest

import (
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/oneshot/crook"
)

// This file has how members and parties of a Mob lie, each in one way from its start to the end.

// lieMember has a member lie.
func (m *Mob) lieMember(s *Seat) {
	switch m.pick(10) {
	case 0: // it is silent
		s.Silent = func([]byte) bool { return true }
	case 1: // it keeps one kind of message
		kind := wire.Type(65 + []int{0, 4, 7, 9}[m.pick(4)])
		s.Silent = func(b []byte) bool { return kindOf(b) == kind }
	case 2: // it disputes everybody, or changes its part
		s.Rewrite = func(b []byte) []byte {
			b, at := slices.Clone(b), len(b)-bodyOf(b)
			switch {
			case kindOf(b) == 69 && len(b)-at == 5:
				b[at+4] = 1
			case kindOf(b) == 74:
				b[at+1] ^= 1
			}
			return b
		}
	case 3:
		s.Told = func(uint64) uint64 { return 1 << 40 }
	case 4: // it is absent
		s.Away = true
	case 5: // it tells another number each time, in no order
		s.Told = func(uint64) uint64 { return m.random.Uint64() >> m.pick(64) }
	case 6: // it sends messages of the round before, where it has any: an old key, part, signature
		old := make(map[wire.Type][][]byte)
		s.Rewrite = func(b []byte) []byte {
			kind := kindOf(b)
			if n := len(old[kind]); n == 0 || !slices.Equal(old[kind][n-1], b) {
				old[kind] = append(old[kind], slices.Clone(b))
			}
			return old[kind][max(0, len(old[kind])-2)]
		}
	case 7: // a bit of what it sends is wrong: in a header, a number, a signature or a part
		s.Rewrite = m.flip
	case 8: // it disputes some of each batch
		s.Rewrite = func(b []byte) []byte {
			b, at := slices.Clone(b), len(b)-bodyOf(b)
			if kindOf(b) == 69 && len(b)-at == 5 {
				b[at+4] ^= byte(m.pick(2))
			}
			return b
		}
	default: // its shares of covers are wrong, and its part of the key is right
		s.Rewrite = func(b []byte) []byte {
			if b = slices.Clone(b); kindOf(b) == 74 && m.options.Covered {
				for at := len(b) - 32; at > len(b)-32*m.options.Survivors-1; at -= 32 {
					b[at] ^= 1
				}
			}
			return b
		}
	}
}

// lieParty has a party lie.
func (m *Mob) lieParty(s *Seat) {
	switch m.pick(9) {
	case 0: // it offers, and does not upload
		s.Silent = func([]byte) bool { return true }
	case 1: // it uploads without an offer
		s.Pushes = true
	case 2:
		s.Told = func(uint64) uint64 { return 1<<64 - 1 }
	case 3: // it tells another number each time, in no order
		s.Told = func(uint64) uint64 { return m.random.Uint64() >> m.pick(64) }
	case 4: // its uploads end early
		s.Rewrite = func(b []byte) []byte { return b[:m.pick(len(b))] }
	case 5:
		s.Rewrite = m.flip
	case 6: // its connection ends with each upload, until nothing happens any more
		s.Silent = func([]byte) bool {
			if m.now > m.until {
				return false
			}
			s.Cut()
			return true
		}
	case 7:
		s.Tease()
	default: // it sends as somebody else
		s.Rewrite = func(b []byte) []byte {
			b = slices.Clone(b)
			b[45] ^= byte(1 + m.pick(7))
			return b
		}
	}
}

// Shift makes a party submit another vector than it has proved, or a member other noise: see
// oneshot.Terms.Norm.
func (s *Seat) Shift() {
	w := s.world
	key := identities()[s.index]
	if s.member {
		key = identities()[w.options.Parties+s.index]
	}
	var candidates []byte
	s.Rewrite = func(b []byte) []byte {
		switch kindOf(b) {
		case 67:
		case 80:
			candidates = b
			return b
		default:
			return b
		}
		figures, err := w.sums.Parameters()
		if err != nil {
			w.Fatal("%v", err)
		}
		out, err := crook.Shift(w.sums, key, b, []int64{int64(figures.Modulus / 3)})
		for item := range w.Hub.Drive().Pending(s.peer()) {
			if err == nil && candidates != nil && kindOf(item.Own) == 81 {
				out, err = crook.SignDrawn(w.sums, key, out, candidates, item.Own)
			}
		}
		if err != nil {
			w.Fatal("party or member %d: %v", s.index, err)
		}
		return out
	}
}

// Tease makes a party offer a submission again and again, and never upload it.
func (s *Seat) Tease() {
	var again func(round uint64)
	again = func(round uint64) {
		w := s.world
		if w.Hub.status().Round != round || w.Ended() {
			return
		}
		s.say(drive.Said{Offer: round})
		w.After(drive.Second, func() { again(round) })
	}
	last := uint64(0)
	s.Silent = func(b []byte) bool {
		if h, _, _ := wire.ParseHeader(b); h.Round > last {
			last = h.Round
			again(last)
		}
		return true
	}
}

// flip changes a bit.
func (m *Mob) flip(b []byte) []byte {
	b = slices.Clone(b)
	b[m.pick(len(b))] ^= 1 << m.pick(8)
	return b
}

func kindOf(message []byte) wire.Type {
	h, _, _ := wire.ParseHeader(message)
	return h.Type
}

func bodyOf(message []byte) int {
	_, body, _ := wire.ParseHeader(message)
	return len(body)
}

// Misdeal makes a party deal one member a share that does not fit what it signed: see
// oneshot.Terms.Norm. Everything else of its submission is in order.
func (s *Seat) Misdeal(member int) {
	w := s.world
	sent := make(map[uint64][]byte) // one answer a round
	s.Rewrite = func(b []byte) []byte {
		h, _, _ := wire.ParseHeader(b)
		if out := sent[h.Round]; out != nil {
			return out
		}
		d := crook.Dealer{Config: w.sums, Key: identities()[s.index], Party: s.index,
			Spoil: func(k int, values [][32]byte) {
				if k == member {
					values[0][0] ^= 1
				}
			}}
		for item := range w.Hub.Drive().Pending(s.peer()) {
			out, err := d.Submit(item.Own)
			if err != nil {
				w.Fatal("party %d: %v", s.index, err)
			}
			sent[h.Round] = out
			return out
		}
		return b
	}
}
