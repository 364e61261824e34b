package drive_test

import (
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
)

// A program is told to end when its round goes on without it, when another session takes over, and
// when the job ends: once, and never while its answer still counts.
func TestCancel(t *testing.T) {
	last := drive.Item{Kind: drive.Last}
	for name, event := range map[string]func(b *table) (drive.Ready, drive.Out){
		"the round is lost": func(b *table) (drive.Ready, drive.Out) {
			_ = b.servers[1].EndStep()
			return b.receive(0, b.servers[1].Pending(0)[0], 0)
		},
		"a takeover": func(b *table) (drive.Ready, drive.Out) {
			b.form(8)
			return b.receive(0, b.begin(8, 1), 1)
		},
		"the end": func(b *table) (drive.Ready, drive.Out) {
			return b.did(0, b.parties[0].Receive(last))
		},
	} {
		b := newTable(t, nil)
		b.form(1)
		begin := b.begin(1, 1)
		b.receive(0, begin, 1)
		for what, calm := range map[string]func() error{
			"the question again": func() error { return b.parties[0].Receive(carried(begin, 1)) },
			"a session":          func() error { return b.parties[0].Receive(joining(7)) },
			"a connection":       func() error { b.parties[0].Connected(); return nil },
		} {
			if _, out := b.did(0, calm()); out.Cancel {
				t.Errorf("%s ends what the program works on", what)
			}
		}
		r, out := event(b)
		if late := slices.Contains(kinds(r), drive.Late); !out.Cancel || late != (name != "the end") {
			t.Errorf("%s: the program goes on: %+v, %+v", name, r, out)
		}
		if _, out := b.did(0, b.parties[0].Receive(last)); out.Cancel != (name == "a takeover") {
			t.Errorf("%s, and the end: %v", name, out.Cancel)
		}
	}
	// An answer leaves nothing to end, an instant neither; before an instant an answer leaves it.
	for _, after := range []drive.Time{0, 1} {
		b := newTable(t, func(c *drive.PartSettings) {
			c.After, c.Blank = after, func(_ uint64, v *masking.Vector) error { return fill(v) }
		})
		b.form(1)
		b.receive(0, b.begin(1, 1), 1)
		a := answer(drive.AskID{Session: 1, Round: 1}, 1)
		if err := b.parties[0].Answer(a); err != nil {
			t.Fatal(err)
		}
		if after > 0 {
			if err := b.parties[0].Instant(a); err != nil {
				t.Fatal(err)
			}
		}
		if _, out := b.did(0, b.parties[0].Receive(last)); out.Cancel {
			t.Error("what has ended is told to end")
		}
	}
}

// A party of one-message sums likewise: by the next opening, by the end, and with a buffer by an
// opening for which what it makes would be too old.
func TestSenderCancel(t *testing.T) {
	for _, stale := range []int{0, 1} {
		o := small
		if stale > 0 {
			o.Buffer, o.Stale = 2, stale
		}
		openings := openingsOf(t, o, 3)
		_, _, party := jobtest.CouncilConfigs(t, o, nil)
		for ended := range 2 {
			s, err := drive.NewPart(party(0))
			if err != nil {
				t.Fatal(err)
			}
			for k, opening := range openings {
				take(t, s, carried(opening, 0))
				_, out := next(s)
				if late := k > stale; out.Cancel != late || (out.Ask != nil) != (late || k == 0) &&
					stale > 0 {
					t.Errorf("stale %d, opening %d: %+v", stale, k+1, out)
				}
				if ended > 0 {
					break
				}
			}
			take(t, s, drive.Item{Kind: drive.Last})
			if _, out := next(s); !out.Cancel {
				t.Errorf("stale %d: the end does not end it", stale)
			}
		}
	}
}

// openingsOf returns the openings of the first rounds of a job, none of which has a sum.
func openingsOf(t *testing.T, o jobtest.CouncilOptions, rounds int) (out [][]byte) {
	t.Helper()
	server, member, _ := jobtest.CouncilConfigs(t, o, nil)
	s, err := oneshot.NewServer(server.Sums, 0)
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		s.Skip(uint64(round))
		invite := s.Invite()
		for k := range o.Members {
			m, err := oneshot.NewMember(server.Sums, member(k).Identity, nil)
			if err != nil {
				t.Fatal(err)
			}
			key, err := m.Receive(invite)
			if err == nil {
				err = s.Receive(key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		opening, err := s.OpenDigest([32]byte{byte(round)})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, opening)
	}
	return out
}
