package oneshot

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
)

// TestCoverCanonical: a coefficient of the modulus or more under a cover convicts, though the proof
// holds of its residue.
func TestCoverCanonical(t *testing.T) {
	remember(t)
	w := newWorld(5, 7, covered(Terms{Colluders: 1}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	beyond := false
	cheat := dealer{masked: func(s *settled, packed []byte) {
		y := s.unpack(packed)
		for i := range y {
			if sum := y[i] + s.Modulus; !beyond && sum < 1<<s.ModulusBits {
				y[i], beyond = sum, true
			}
		}
		if s.ring.AppendPacked(packed[:0], y); beyond == (s.ring.CheckPacked(packed, s.length) == nil) {
			t.Fatal("it is not what it is for")
		}
	}}
	var messages [][]byte
	for i := range 3 {
		messages = append(messages, must(w.submit(i)))
	}
	message := w.deal(3, cheat)
	for tries := 0; !beyond; tries++ { // no coefficient was small enough
		if message = w.deal(3, cheat); tries > 2000 {
			t.Fatal("no small coefficient")
		}
	}
	messages = append(messages, message)
	w.certified(t, messages, nil)
	for _, m := range messages {
		if err := w.server.Uncover(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.reduce(nil); err != nil {
		t.Fatal(err)
	}
	w.near(t, must(w.server.Sum()), w.total(0, 1, 2))
	if got := w.server.Included(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("%v are in", got)
	}
}

// TestTooFewLeft: dealers that are out again leave MinSurvivors parties in the sum, and noise of
// C − 2f members, or there is none, whatever the server says.
func TestTooFewLeft(t *testing.T) {
	remember(t)
	const cheat = "another cover"
	w, messages := reducing(t, map[int]string{1: cheat, 3: cheat, 4: cheat})
	before := w.server.Included()
	for _, m := range messages {
		if err := w.server.Uncover(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.server.Reduce(); !errors.Is(err, ErrTooFew) {
		t.Fatalf("two parties are left: %v", err)
	}
	if got := w.server.Included(); !slices.Equal(got, before) || len(w.server.Convicted()) != 3 {
		t.Errorf("%v are in, and %v", got, w.server.Convicted())
	}
	lies := *w.server.config
	lies.MinSurvivors = 2
	w.server.config = &lies
	pieces := must(w.server.Reduce())
	for _, m := range w.members {
		for _, guilty := range pieces[:3] {
			must(m.Receive(guilty))
		}
		if out, err := m.Receive(pieces[3]); !errors.Is(err, ErrTooFew) || out != nil {
			t.Errorf("a member answers for two parties: %v", err)
		}
	}

	terms := boundedNoise(7, 2)
	terms.Covered = true
	s := must(newWorld(5, 7, terms).config.settle())
	for _, c := range []struct {
		parties, noises int
		want            error
	}{{3, 3, nil}, {5, 7, nil}, {2, 7, ErrTooFew}, {5, 2, ErrTooFew}} {
		left := wire.NewSet(s.dealers())
		for i := range c.parties {
			left.Add(i)
		}
		for k := range c.noises {
			left.Add(5 + k)
		}
		if err := s.checkLeft(left); !errors.Is(err, c.want) {
			t.Errorf("%d parties and noise of %d members: %v", c.parties, c.noises, err)
		}
	}
}

// TestCoverLiar: a member whose values of covers do not fit the leaves is out of the round, and its
// part of the key is not taken; a cover opens by f + 1 others' values.
func TestCoverLiar(t *testing.T) {
	remember(t)
	for name, at := range map[string]int{"value": 0, "blind": scalarSize} {
		w := newWorld(5, 7, covered(Terms{Colluders: 1}))
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		var messages [][]byte
		for i := range 3 {
			messages = append(messages, must(w.submit(i)))
		}
		lie := func(_, k int, answer []byte) []byte {
			if k == 0 { // of the last party in the chain
				answer = bytes.Clone(answer)
				answer[bodyAt+2*coverPlainSize+at] ^= 1
			}
			return answer
		}
		w.certified(t, messages, lie)
		for _, m := range messages {
			if err := w.server.Uncover(m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := w.server.Excluded(); !slices.Equal(got, []int{0}) || len(w.server.Convicted()) > 0 {
			t.Errorf("%s: members %v are out, convicted %v", name, got, w.server.Convicted())
		}
		reduction := must(w.server.Reduce())[0]
		part := must(w.members[0].Receive(reduction))
		if err := w.server.Receive(part); !errors.Is(err, ErrExcluded) {
			t.Errorf("%s: the part of a member that lied: %v", name, err)
		}
		if err := w.reduce(nil); err != nil {
			t.Fatal(err)
		}
		w.near(t, must(w.server.Sum()), w.total(0, 1, 2))
	}
}
