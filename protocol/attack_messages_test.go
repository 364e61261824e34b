package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
)

// weakServer takes every message for one of the present round and session.
type weakServer struct{ *Server }

func (w weakServer) Receive(message []byte) error {
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	if h.Type != wire.TypeAnnounce {
		h.Session, h.Round = w.session, w.round
	}
	return w.Server.Receive(append(h.Append(nil), body...))
}

// recording keeps all messages of some sessions, by direction.
type recording struct {
	toServer, toClients [][]byte
}

func (r *recording) carry(_, to int, message []byte) []byte {
	list := &r.toClients
	if to == -1 {
		list = &r.toServer
	}
	*list = append(*list, bytes.Clone(message))
	return message
}

// attackReplay delivers every recorded message of one direction and counts those
// that were accepted.
func attackReplay(messages [][]byte, receive func([]byte) error) (accepted int, refusals []error) {
	for _, m := range messages {
		if err := receive(m); err != nil {
			refusals = append(refusals, err)
		} else {
			accepted++
		}
	}
	return accepted, refusals
}

// typed are the errors of refused messages that are documented.
var typed = []error{ErrTruncated, ErrTrailing, ErrOversized, ErrVersion, ErrType, ErrEncoding, ErrSession, ErrSender, ErrDuplicate,
	ErrSignature, ErrPublicKey, ErrOwnKey, ErrReplay, ErrStale, ErrSkip, ErrParticipants, ErrTooFew, ErrSurvivors, ErrCertificate, ErrPhase}

// Messages of earlier rounds, of other sessions and for the other side, replayed
// to both sides. Receivers that ignore round and session take them and come to a
// wrong sum; the real ones refuse every one of them at every step, with a
// documented error, and are as they were before.
func TestAttackReplay(t *testing.T) {
	const n = 4
	in, sum := inputs(attackSeed(t), attackLayout, n)
	signers, config := attackConfig(t, n, nil)

	// A server that ignores the round: a submission of round 1 in round 2.
	for _, weak := range []bool{true, false} {
		l, err := NewLocal(config, signers, attackRandom(t))
		if err != nil {
			t.Fatal(err)
		}
		var r recording
		l.Carry = r.carry
		if got, err := l.Round(nil, in); err != nil || !equal(got, sum) {
			t.Fatal(err)
		}
		l.Carry = nil
		receive := l.Server.Receive
		if weak {
			receive = weakServer{l.Server}.Receive
		}
		if err := l.step(func() ([]Envelope, error) { return l.Server.Begin(nil) }); err != nil {
			t.Fatal(err)
		}
		old := slices.DeleteFunc(r.toServer, func(m []byte) bool { return m[1] != byte(wire.TypeMasked) })
		accepted, refusals := attackReplay(old[:1], receive)
		for i, client := range l.Clients {
			message, err := client.Submit(nil, in[i]...)
			if err != nil {
				t.Fatal(err)
			}
			if err := receive(message); err != nil && !weak {
				t.Fatal(err)
			}
		}
		got, err := l.Server.Sum()
		switch {
		case err != nil:
			t.Fatal(err)
		case weak && (accepted != 1 || agreements(got, sum) != 0):
			t.Fatal("a server that ignores rounds: the attack fails where it has to succeed")
		case !weak && (accepted != 0 || !errors.Is(refusals[0], ErrStale) || !equal(got, sum)):
			t.Fatalf("real server: %d accepted, %v", accepted, refusals)
		}
		t.Logf("server, weakened %v: %d of 1 old submissions accepted, %d of 32 values of the sum right", weak, accepted, agreements(got, sum))
	}

	// A party that ignores round and session: it works on an old round's model, in
	// a round of its own that nobody else is in.
	for _, without := range []defence{current, 0} {
		c, err := newCheater(config, attackTarget(t, config, signers, without), signers, without)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.setUp(); err != nil {
			t.Fatal(err)
		}
		c.nextRound()
		begin := &wire.Begin{Broadcast: broadcastDigest([]byte("old")), Participants: wire.FullSet(n)}
		old := begin.Append(c.header(wire.TypeBegin).Append(nil))
		if _, err := c.parties[0].Receive(old); err != nil {
			t.Fatal(err)
		}
		if _, err := c.parties[0].Submit([]byte("old"), in[0]...); err != nil {
			t.Fatal(err)
		}
		c.nextRound()
		_, err = c.parties[0].Receive(old)
		if without == 0 {
			if !errors.Is(err, ErrReplay) {
				t.Errorf("real party: got %v, want ErrReplay", err)
			}
			continue
		}
		if _, again := c.parties[0].Submit([]byte("old"), in[0]...); err != nil || again != nil {
			t.Errorf("a party that ignores rounds: the attack fails where it has to succeed: %v, %v", err, again)
		}
		t.Log("party, weakened: an old model taken for a new round")
	}

	for _, recovery := range []*Recovery{nil, {Threshold: 2}} {
		replayEverything(t, fmt.Sprintf("recovery %v", recovery != nil), recovery, in)
	}
	replaySignatures(t, in)
}

// replayEverything records two rounds of a session, three of a session of the
// same configuration and three of one of another, and delivers all of it to
// everybody at every step of the third round, with what that round has brought
// so far.
func replayEverything(t *testing.T, name string, recovery *Recovery, in [][][]uint64) {
	t.Helper()
	signers, config := attackConfig(t, len(in), recovery)
	other := *config
	other.Label = "another"
	random := attackRandom(t)
	var r recording
	var l *Local
	for session, config := range []*Config{&other, config, config} {
		var err error
		if l, err = NewLocal(config, signers, random); err != nil {
			t.Fatal(err)
		}
		l.Carry = r.carry
		r.toClients = append(r.toClients, setUpMessages(t, l)...)
		// The other sessions have a third round, whose number is due here next. In
		// round 1 a party drops out, so that there are invitations too.
		rounds := []int{3, 3, 2}[session]
		for round := range rounds {
			here := slices.Clone(in)
			if round == 0 && recovery != nil {
				here[len(in)-1] = nil
			}
			if _, err := l.Round(nil, here); err != nil {
				t.Fatal(err)
			}
		}
	}
	delivered, steps := 0, 0
	check := func() {
		t.Helper()
		steps++
		all := slices.Concat(r.toServer, r.toClients)
		receivers := map[any]func([]byte) error{l.Server: l.Server.Receive}
		for _, client := range l.Clients {
			receivers[client] = func(m []byte) error { _, err := client.Receive(m); return err }
		}
		for receiver, receive := range receivers {
			before := snapshot(receiver)
			accepted, refusals := attackReplay(all, receive)
			delivered += len(all)
			for _, err := range refusals {
				if !slices.ContainsFunc(typed, func(target error) bool { return errors.Is(err, target) }) {
					t.Errorf("%s: an error that is not documented: %v", name, err)
				}
			}
			if accepted != 0 || snapshot(receiver) != before {
				t.Errorf("%s, step %d: %T accepts %d replayed messages, state changed %v", name, steps, receiver, accepted, snapshot(receiver) != before)
			}
		}
	}
	check() // from here on what was just delivered is replayed too
	if err := l.step(func() ([]Envelope, error) { return l.Server.Begin(nil) }); err != nil {
		t.Fatal(err)
	}
	check()
	for i, client := range l.Clients {
		message, err := client.Submit(nil, in[i]...)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.toServer(i, message); err != nil {
			t.Fatal(err)
		}
	}
	check()
	if recovery != nil {
		for _, next := range []func() ([]Envelope, error){l.Server.Survivors, l.Server.Certificate} {
			if err := l.step(next); err != nil {
				t.Fatal(err)
			}
			check()
		}
	}
	sum, err := l.Server.Sum()
	if err != nil || !equal(sum, sumOf(attackLayout, in, upTo(len(in)))) {
		t.Errorf("%s: the round among replays: %v", name, err)
	}
	t.Logf("real: %s: %d messages delivered at %d steps, none accepted", name, delivered, steps)
}

// setUpMessages returns what the server said during set-up, which Local sends
// before there is anything to record with.
func setUpMessages(t *testing.T, l *Local) [][]byte {
	t.Helper()
	envelopes, err := l.Server.Keys()
	if err != nil {
		t.Fatal(err)
	}
	out := [][]byte{envelopes[0].Message}
	for _, client := range l.Clients {
		out = append(out, client.Announce())
	}
	return out
}

// replaySignatures shows a party of round 2 the signatures of round 1, on the
// same survivors.
func replaySignatures(t *testing.T, in [][][]uint64) {
	t.Helper()
	n := len(in)
	signers, config := attackConfig(t, n, &Recovery{})
	c, err := newCheater(config, attackTarget(t, config, signers, 0), signers, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.setUp(); err != nil {
		t.Fatal(err)
	}
	var old wire.Certificate
	for round := range 2 {
		c.nextRound()
		for i := range n {
			err := c.begin(i, upTo(n), nil)
			if err == nil {
				err = c.submit(i, nil, in[i])
			}
			if err == nil {
				err = c.survivors(i, upTo(n))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			if old, err = c.certificate(0, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.reveal(0, old); !errors.Is(err, ErrSignature) {
		t.Errorf("signatures of an earlier round: got %v, want ErrSignature", err)
	}
}
