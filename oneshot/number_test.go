package oneshot

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// inviteTo is an Invite for a round number, which anybody could have written.
func inviteTo(w *world, round uint64) []byte {
	s := must(w.config.settle())
	return s.header(typeInvite, &s.digest, round, wire.ServerIndex)
}

// An Invite uses no number up, whoever sends it and whatever it says: the member goes on to
// answer those of the server.
func TestInviteUsesNothing(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	key := must(keyexchange.GenerateSealKey(nil))
	_, memberKeys := people("member", 4)
	for _, round := range []uint64{math.MaxUint64, 1, math.MaxUint64 - 1, 7, 2} {
		for k, m := range w.members {
			must(m.Receive(inviteTo(w, round)))
			w.members[k] = must(LoadMember(w.config, memberKeys[k], nil, key, must(m.Save(key))))
		}
	}
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := w.server.Receive(must(w.submit(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	sum, err := w.finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.near(t, sum, w.total(0, 1, 2, 3, 4))
}

// An Invite for the number that there is a key for is answered with that key; one for another
// number erases it, and no boxes that are sealed to it open any more.
func TestInviteAgain(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	m := w.members[0]
	first := must(m.Receive(inviteTo(w, 5)))
	private := m.open.private
	again := must(m.Receive(inviteTo(w, 5)))
	if !bytes.Equal(again, first) || m.open.private != private {
		t.Error("the same number has another key")
	}
	must(m.Receive(inviteTo(w, 6)))
	if m.Round() != 6 || m.open.private == private {
		t.Error("the key of another number is kept")
	}
	second := must(m.Receive(inviteTo(w, 5)))
	if bytes.Equal(first, second) || m.open.private == private {
		t.Error("a key that was erased is back")
	}
	if !bytes.Equal(m.Output(), second) {
		t.Error("the output is another")
	}
	// After a round was abandoned before it was open its number is free.
	m.Abandon()
	if third := must(m.Receive(inviteTo(w, 5))); bytes.Equal(third, second) {
		t.Error("an abandoned round's key is back")
	}
}

// An Opening uses its number up, and all below it, whatever becomes of the round: no second
// one is answered, with the same keys or with others.
func TestOpeningUsesNumber(t *testing.T) {
	for name, leave := range map[string]func(w *world, m *Member){
		"open":      func(*world, *Member) {},
		"abandoned": func(_ *world, m *Member) { m.Abandon() },
		"keyed anew": func(w *world, m *Member) {
			must(m.Receive(inviteTo(w, 9)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(5, 4, small(Terms{}))
			for range 2 {
				w.server.Invite()
			}
			if err := w.begin(nil); err != nil { // number 3
				t.Fatal(err)
			}
			m := w.members[0]
			leave(w, m)
			key := must(keyexchange.GenerateSealKey(nil))
			_, memberKeys := people("member", 4)
			for _, m := range []*Member{m,
				must(LoadMember(w.config, memberKeys[0], nil, key, must(m.Save(key))))} {
				before := m.Round()
				for _, round := range []uint64{0, 1, 3} {
					if _, err := m.Receive(inviteTo(w, round)); !errors.Is(err, ErrReplay) {
						t.Errorf("an invite to number %d: %v", round, err)
					}
				}
				if _, err := m.Receive(w.opening); err == nil {
					t.Error("the opening again is taken")
				}
				if m.Round() != before {
					t.Error("a refusal left a trace")
				}
			}
		})
	}
}

// A number that was opened with one key cannot be opened with another that was made for it
// before: that was erased, and a context has one key of each member.
func TestTwoKeysOneNumber(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	w.server.Invite()
	var first [][]byte
	for _, m := range w.members {
		first = append(first, must(m.Receive(inviteTo(w, 1))))
	}
	for _, m := range w.members {
		must(m.Receive(inviteTo(w, 2)))
		must(m.Receive(inviteTo(w, 1)))
	}
	for _, b := range first {
		if err := w.server.Receive(b); err != nil {
			t.Fatal(err)
		}
	}
	opening := must(w.server.Open([]byte("model")))
	for _, m := range w.members {
		if _, err := m.Receive(opening); !errors.Is(err, ErrOwnKey) {
			t.Errorf("an opening with keys that were erased: %v", err)
		}
	}
}

// TestOpeningKeys: nobody takes an opening with fewer keys than a round needs, of answers or of
// signatures, whatever the server makes of it.
func TestOpeningKeys(t *testing.T) {
	terms := small(Terms{PerPolynomial: 1})
	w := newWorld(5, 10, terms)
	p := must(w.config.Parameters())
	if p.Quorum <= p.Answers || p.Keys != p.Quorum {
		t.Fatalf("%d answers, quorum %d, %d keys", p.Answers, p.Quorum, p.Keys)
	}
	lax := *w.server.config
	lax.Keys = p.Answers
	w.server.config = &lax
	for keys, want := range map[int]error{p.Keys - 1: ErrTooFew, p.Keys: nil} {
		invite := w.server.Invite()
		for _, m := range w.members[:keys] {
			if err := w.server.Receive(must(m.Receive(invite))); err != nil {
				t.Fatal(err)
			}
		}
		opening := must(w.server.Open([]byte("model")))
		if _, err := w.members[0].Receive(opening); !errors.Is(err, want) {
			t.Errorf("%d keys: a member says %v", keys, err)
		}
		if _, err := w.party(0).Submit(opening, []byte("model"), w.values(0)); !errors.Is(err, want) {
			t.Errorf("%d keys: a party says %v", keys, err)
		}
	}
}
