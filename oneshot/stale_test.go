package oneshot

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// staleWorld is in round 5 of a configuration that takes inputs made up to 3 rounds before.
func staleWorld(t *testing.T, covered bool) *world {
	t.Helper()
	terms := vectorTerms(covered)
	terms.Stale = 3
	w := newWorld(5, 7, terms)
	w.server.Skip(4)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestStaleRound: inputs made from the broadcasts of different rounds add up, covered and not.
func TestStaleRound(t *testing.T) {
	for _, covered := range []bool{false, true} {
		w := staleWorld(t, covered)
		var messages [][]byte
		for i := range 5 {
			messages = append(messages, must(w.submit(i)))
			if err := w.server.Receive(messages[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.deliver(nil); err != nil {
			t.Fatal(err)
		}
		if covered {
			uncover := func(step, _ int, answer []byte) []byte { return answer }
			if _, err := w.finish(uncover); !errors.Is(err, ErrPhase) {
				t.Fatal(err)
			}
			for _, m := range messages {
				if err := w.server.Uncover(m); err != nil {
					t.Fatal(err)
				}
			}
			w.near(t, must(w.server.Sum()), w.total(0, 1, 2, 3, 4))
			continue
		}
		w.near(t, must(w.finish(nil)), w.total(0, 1, 2, 3, 4))
	}
}

// TestStaleRefused: nobody takes an input from a broadcast that is too old, or that there was not
// yet: not the party that would make it, not the server, and not a member that a server asks to.
func TestStaleRefused(t *testing.T) {
	for _, made := range []uint64{1, 6, 1 << 63} {
		w := staleWorld(t, false)
		s := must(w.config.settle())
		p := w.party(0)
		digest := broadcastDigest([]byte("model"))
		if _, err := p.SubmitDigest(w.opening, digest, made, w.values(0)); !errors.Is(err, ErrStale) {
			t.Errorf("a party, made %d: %v", made, err)
		}
		if p.Round() != 0 {
			t.Errorf("a party has used round %d up", p.Round())
		}
		// A party that does not keep to it signs it all the same.
		_, body, err := wire.ParseHeader(w.opening)
		if err != nil {
			t.Fatal(err)
		}
		o := must(s.parseOpening(5, body))
		context := w.server.open.context
		of := submitter{s, p.signer, p.random, p.self, s.noise}
		m := must(of.submission(&context, o, made, w.values(0), p.random))
		message := m.append(s.header(typeSubmission, &context, 5, 0))
		if err := w.server.Receive(message); !errors.Is(err, ErrStale) {
			t.Errorf("the server, made %d: %v", made, err)
		}
		// And a server that colludes with it shows it to the members.
		leaves := make([][32]byte, s.c)
		for k := range leaves {
			leaves[k] = [32]byte(m.leaves[32*k:])
		}
		e := &entry{signature: m.signature, masked: hash(labels.OneshotMasked, m.masked), extra: m.extra,
			path: path(tree(leaves, s.depth), 0), box: m.boxes[:s.boxSize()]}
		if one, _ := w.members[0].check(e); one.good {
			t.Errorf("a member has taken an input made in round %d", made)
		}
		e.extra = uint64Bytes(2)
		if one, _ := w.members[0].check(e); one.good {
			t.Error("a member has taken a round that the party did not sign")
		}
	}
}

// TestStaleSigned: the round that an input was made in is in what the party signs, under a label
// that no other statement has.
func TestStaleSigned(t *testing.T) {
	w := staleWorld(t, false)
	s := must(w.config.settle())
	message := must(w.submit(1))
	at := wire.HeaderSize + s.packed
	if !bytes.Equal(message[at:at+8], uint64Bytes(4)) {
		t.Fatalf("made in %x", message[at:at+8])
	}
	changed := slices.Clone(message)
	changed[at+7] = 5
	if err := w.server.Receive(changed); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
	_, body, err := wire.ParseHeader(message)
	if err != nil {
		t.Fatal(err)
	}
	sub := must(s.checkSubmission(5, &w.server.open.context, w.server.open.members, 1, body))
	signature := must(s.parseSubmission(body, s.c)).signature
	for label, want := range map[string]error{
		labels.OneshotStale: nil, labels.OneshotParty: ErrSignature,
	} {
		err := keyexchange.Verify(s.Roster.Key(1), label, sub.statement, &signature)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", label, err)
		}
	}
}

// TestStaleDigest: who disagrees about how old inputs may be disagrees on the configuration, and
// without it a submission is of the round's own broadcast.
func TestStaleDigest(t *testing.T) {
	digests := make(map[[32]byte]int)
	for _, stale := range []int{0, 1, 2, maxStale} {
		terms := vectorTerms(false)
		terms.Stale = stale
		digests[must(newWorld(5, 7, terms).config.Digest())] = stale
	}
	if len(digests) != 4 {
		t.Errorf("%d digests of 4 configurations", len(digests))
	}
	for _, stale := range []int{-1, maxStale + 1} {
		terms := vectorTerms(false)
		terms.Stale = stale
		if _, err := newWorldConfig(terms).Digest(); !errors.Is(err, ErrConfig) {
			t.Errorf("Stale %d: %v", stale, err)
		}
	}
	w := newWorld(5, 7, vectorTerms(false))
	w.server.Skip(4)
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	_, err := w.party(0).SubmitDigest(w.opening, broadcastDigest([]byte("model")), 4, w.values(0))
	if !errors.Is(err, ErrStale) {
		t.Error(err)
	}
}

func newWorldConfig(t Terms) *Config {
	roster, _ := people("party", 5)
	committee, _ := people("member", 7)
	return &Config{Label: "test", Roster: roster, Committee: committee, Terms: t}
}
