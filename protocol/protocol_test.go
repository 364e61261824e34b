package protocol

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

func equal(a, b [][]uint64) bool { return slices.EqualFunc(a, b, slices.Equal) }

// One key exchange serves many rounds, and every sum is exact.
func TestRounds(t *testing.T) {
	for _, n := range []int{2, 3, 7} {
		l, config := local(t, n)
		var last []byte
		l.Carry = func(from, _ int, message []byte) []byte {
			if from == 0 {
				if bytes.Equal(message, last) {
					t.Error("two rounds carry the same bytes")
				}
				last = message
			}
			return message
		}
		in, want := inputs(1, config.Layout, n)
		for round := uint64(1); round <= 4; round++ {
			sum, err := l.Round([]byte{byte(round)}, in) // the same input each time
			if err != nil {
				t.Fatal(err)
			}
			if !equal(sum, want) || l.Server.Round() != round {
				t.Fatalf("n = %d, round %d: wrong sum", n, round)
			}
		}
	}
}

// A missing party ends the round with an error that names it; the session goes
// on, for all parties, the one that was missing included.
func TestMissingParty(t *testing.T) {
	l, config := local(t, 5)
	in, want := inputs(2, config.Layout, 5)
	short := slices.Clone(in)
	short[1], short[3] = nil, nil
	_, err := l.Round(nil, short)
	var missing *MissingError
	if !errors.Is(err, ErrMissing) || !errors.As(err, &missing) ||
		!slices.Equal(missing.Parties, []int{1, 3}) || missing.Round != 1 {
		t.Fatalf("got %v, want parties 1 and 3 missing in round 1", err)
	}
	if text := err.Error(); !strings.Contains(text, "party-1, party-3") {
		t.Errorf("the error does not name the parties: %s", text)
	}
	// Party 2 misses the beginning of three rounds as well.
	l.Carry = func(_, to int, message []byte) []byte {
		if to == 2 {
			return nil
		}
		return message
	}
	for range 3 {
		if _, err := l.Round(nil, in); !errors.Is(err, ErrMissing) {
			t.Fatalf("got %v, want ErrMissing", err)
		}
	}
	l.Carry = nil
	if sum, err := l.Round(nil, in); err != nil || !equal(sum, want) || l.Server.Round() != 5 {
		t.Fatalf("round 5 after four lost ones: %v", err)
	}
}

// What the parties must agree on is part of the masks: if the server shows two
// groups different broadcasts, the masks do not cancel and it learns nothing.
func TestBroadcastsThatDiffer(t *testing.T) {
	l, config := local(t, 4)
	in, sum := inputs(3, config.Layout, 4)
	if _, err := l.Server.Begin([]byte("model for the others")); err != nil {
		t.Fatal(err)
	}
	begin := func(broadcast string) []byte {
		h := wire.Header{Type: wire.TypeBegin, Session: l.Server.session, Round: 1,
			Sender: wire.ServerIndex}
		m := wire.Begin{Broadcast: broadcastDigest([]byte(broadcast)), Participants: wire.FullSet(4)}
		return m.Append(h.Append(nil))
	}
	for i, client := range l.Clients {
		broadcast := "model for the others"
		if i == 2 {
			broadcast = "model for the target"
		}
		if _, err := client.Receive(begin(broadcast)); err != nil {
			t.Fatal(err)
		}
		message, err := client.Submit([]byte(broadcast), in[i]...)
		if err != nil {
			t.Fatal(err)
		}
		if err := deliver(l.Server, message); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.Server.Sum()
	if err != nil {
		t.Fatal(err)
	}
	// 64-bit coordinates: equal by chance with probability 2^-64.
	if got[1][0] == sum[1][0] || got[1][1] == sum[1][1] {
		t.Error("the sum came out although the parties were shown different broadcasts")
	}
}

// snapshot is a deep copy of everything that a message or an input could change.
func snapshot(v any) string { return string(describe(nil, reflect.ValueOf(v), 0)) }

func describe(b []byte, v reflect.Value, depth int) []byte {
	if depth > 12 {
		return append(b, "…"...)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "nil"...)
		}
		switch v.Type() {
		case reflect.TypeFor[*settled](), reflect.TypeFor[*topology](),
			reflect.TypeFor[*keyexchange.Roster]():
			// They do not change, or only remember what they computed.
			return append(b, v.Type().String()...)
		}
		return describe(append(b, '&'), v.Elem(), depth+1)
	case reflect.Struct:
		b = append(b, '{')
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if name == "vector" {
				continue // room for submissions, which are never left in it unmasked
			}
			b = append(append(b, name...), ':')
			b = append(describe(b, v.Field(i), depth+1), ' ')
		}
		return append(b, '}')
	case reflect.Slice, reflect.Array:
		b = append(b, '[')
		for i := range v.Len() {
			b = append(describe(b, v.Index(i), depth+1), ' ')
		}
		return append(b, ']')
	case reflect.Map: // of integers to pointers
		for i := range 8 {
			if e := v.MapIndex(reflect.ValueOf(i)); e.IsValid() {
				b = append(strconv.AppendInt(b, int64(i), 10), ':')
				b = append(describe(b, e, depth+1), ' ')
			}
		}
		return b
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return strconv.AppendUint(b, v.Uint(), 10) // most of a state
	default:
		return fmt.Append(b, v)
	}
}

// The bad inputs of the session: each gives its own documented error, changes
// nothing and does not panic. Package aggregation has those of weights (not
// finite, out of range), package learning those of data files.
func TestBadInput(t *testing.T) {
	const n = 3
	signers, roster := parties(t, n)
	config := testConfig(roster)
	strangers, _ := parties(t, n+1)

	setUp := func(t *testing.T) *Local {
		l, err := NewLocal(config, signers, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	header := func(session [32]byte, kind wire.Type, round uint64, sender uint32) []byte {
		h := wire.Header{Type: kind, Session: session, Round: round, Sender: sender}
		return h.Append(nil)
	}
	begun := func(t *testing.T, l *Local) (begin []byte) {
		envelopes, err := l.Server.Begin(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range envelopes {
			if _, err := l.Clients[e.To].Receive(e.Message); err != nil {
				t.Fatal(err)
			}
		}
		return envelopes[0].Message
	}
	in, _ := inputs(5, config.Layout, n)
	submitted := func(t *testing.T, l *Local, party int) []byte {
		message, err := l.Clients[party].Submit(nil, in[party]...)
		if err != nil {
			t.Fatal(err)
		}
		return message
	}
	changed := func(message []byte, at int, to byte) []byte {
		m := bytes.Clone(message)
		m[at] = to
		return m
	}
	newServer := func(t *testing.T, config *Config) *Server {
		s, err := NewServer(config)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	newClient := func(t *testing.T, config *Config, party int) *Client {
		c, err := NewClient(config, signers[party], nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// keysFor returns the Keys message for a client that is not set up, after
	// spoil has had its way with the list.
	keysFor := func(t *testing.T, c *Client, spoil func(*wire.Keys)) []byte {
		s := newServer(t, config)
		for i := range n {
			client := c
			if i != c.Party() {
				client = newClient(t, config, i)
			}
			if err := deliver(s, client.Announce()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Keys(); err != nil {
			t.Fatal(err)
		}
		keys := s.sharedKeys()
		for _, i := range s.topology.higher(c.Party()) {
			keys.Encapsulation = append(keys.Encapsulation, s.announcements[i].Encapsulation)
		}
		spoil(keys)
		return keys.Append(header(digestOf(config), wire.TypeKeys, 0, wire.ServerIndex))
	}
	nothing := func(*wire.Keys) {}

	for _, c := range []struct {
		name string
		want error
		// run prepares an object, and returns it with the call that must fail.
		run func(t *testing.T) (object any, call func() error)
	}{
		{"server: empty message", ErrTruncated, func(t *testing.T) (any, func() error) {
			s := newServer(t, config)
			return s, func() error { return deliver(s, nil) }
		}},
		{"server: header cut short", ErrTruncated, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, m[:wire.HeaderSize-1]) }
		}},
		{"server: announcement cut short", ErrTruncated, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, m[:len(m)-1]) }
		}},
		{"server: announcement with a trailing byte", ErrTrailing,
			func(t *testing.T) (any, func() error) {
				s, m := newServer(t, config), newClient(t, config, 0).Announce()
				return s, func() error { return deliver(s, append(m, 0)) }
			}},
		{"server: oversized message", ErrOversized, func(t *testing.T) (any, func() error) {
			s := newServer(t, config)
			return s, func() error { return deliver(s, make([]byte, config.MaxMessage()+1)) }
		}},
		{"server: another version", ErrVersion, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, changed(m, 0, 2)) }
		}},
		{"server: unknown type", ErrType, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, changed(m, 1, 99)) }
		}},
		{"server: a message that servers send", ErrType, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, changed(m, 1, byte(wire.TypeKeys))) }
		}},
		{"server: announcement under another label", ErrSession, func(t *testing.T) (any, func() error) {
			other := *config
			other.Label = "other"
			s, m := newServer(t, config), newClient(t, &other, 0).Announce()
			return s, func() error { return deliver(s, m) }
		}},
		{"server: announcement for another layout", ErrSession, func(t *testing.T) (any, func() error) {
			other := *config
			other.Layout = masking.Layout{{Length: 5, Bits: 21}}
			s, m := newServer(t, config), newClient(t, &other, 0).Announce()
			return s, func() error { return deliver(s, m) }
		}},
		{"server: announcement for a round", ErrEncoding, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, changed(m, 41, 1)) }
		}},
		{"server: unknown identity", ErrSender, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, changed(m, 45, n)) }
		}},
		{"server: the server as sender", ErrSender, func(t *testing.T) (any, func() error) {
			s := newServer(t, config)
			m := append(header(digestOf(config), wire.TypeAnnounce, 0, wire.ServerIndex),
				make([]byte, wire.AnnounceSize(true))...)
			return s, func() error { return deliver(s, m) }
		}},
		{"server: one party's key as another's", ErrSignature, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, changed(m, 45, 1)) }
		}},
		{"server: bad signature", ErrSignature, func(t *testing.T) (any, func() error) {
			s, m := newServer(t, config), newClient(t, config, 0).Announce()
			return s, func() error { return deliver(s, changed(m, len(m)-1, m[len(m)-1]^1)) }
		}},
		{"server: low-order key", ErrPublicKey, func(t *testing.T) (any, func() error) {
			s := newServer(t, config)
			m := newClient(t, config, 0).Announce()
			clear(m[wire.HeaderSize : wire.HeaderSize+32])
			return s, func() error { return deliver(s, m) }
		}},
		{"server: announced twice", ErrDuplicate, func(t *testing.T) (any, func() error) {
			s, a := newServer(t, config), newClient(t, config, 0)
			if err := deliver(s, a.Announce()); err != nil {
				t.Fatal(err)
			}
			return s, func() error { return deliver(s, newClient(t, config, 0).Announce()) }
		}},
		{"server: keys are missing", ErrMissing, func(t *testing.T) (any, func() error) {
			s := newServer(t, config)
			return s, func() error { _, err := s.Keys(); return err }
		}},
		{"server: round before set-up", ErrPhase, func(t *testing.T) (any, func() error) {
			s := newServer(t, config)
			return s, func() error { _, err := s.Begin(nil); return err }
		}},
		{"server: sum without a round", ErrPhase, func(t *testing.T) (any, func() error) {
			s := setUp(t).Server
			return s, func() error { _, err := s.Sum(); return err }
		}},
		{"server: submission before set-up", ErrPhase, func(t *testing.T) (any, func() error) {
			s := newServer(t, config)
			m := append(header(digestOf(config), wire.TypeMasked, 1, 0),
				make([]byte, config.Layout.PackedSize())...)
			return s, func() error { return deliver(s, m) }
		}},
		{"server: submission of another session", ErrSession, func(t *testing.T) (any, func() error) {
			l, other := setUp(t), setUp(t)
			begun(t, l)
			begun(t, other)
			m := submitted(t, other, 1)
			return l.Server, func() error { return deliver(l.Server, m) }
		}},
		{"server: submission for a round to come", ErrPhase, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			m := submitted(t, l, 1)
			return l.Server, func() error { return deliver(l.Server, changed(m, 41, 2)) }
		}},
		{"server: submission for the round before", ErrStale, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			m := submitted(t, l, 1)
			begun(t, l)
			return l.Server, func() error { return deliver(l.Server, m) }
		}},
		{"server: submission after the sum", ErrStale, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			m := submitted(t, l, 1)
			if _, err := l.Server.Sum(); !errors.Is(err, ErrMissing) {
				t.Fatal(err)
			}
			return l.Server, func() error { return deliver(l.Server, m) }
		}},
		{"server: submitted twice", ErrDuplicate, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			m := submitted(t, l, 1)
			if err := deliver(l.Server, m); err != nil {
				t.Fatal(err)
			}
			return l.Server, func() error { return deliver(l.Server, m) }
		}},
		{"server: submission cut short", ErrTruncated, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			m := submitted(t, l, 1)
			return l.Server, func() error { return deliver(l.Server, m[:len(m)-1]) }
		}},
		{"server: submission with padding set", ErrEncoding, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			m := submitted(t, l, 1)
			return l.Server, func() error { return deliver(l.Server, changed(m, len(m)-1, 0xff)) }
		}},

		{"client: the server's message cut short", ErrTruncated, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, nothing)
			return c, func() error { _, err := c.Receive(m[:len(m)-1]); return err }
		}},
		{"client: a trailing byte", ErrTrailing, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			envelopes, _ := l.Server.Begin(nil)
			c := l.Clients[0]
			return c, func() error { _, err := c.Receive(append(envelopes[0].Message, 0)); return err }
		}},
		{"client: oversized message", ErrOversized, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			return c, func() error { _, err := c.Receive(make([]byte, config.MaxMessage()+1)); return err }
		}},
		{"client: another version", ErrVersion, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, nothing)
			return c, func() error { _, err := c.Receive(changed(m, 0, 0)); return err }
		}},
		{"client: a message that parties send", ErrType, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			return c, func() error { _, err := c.Receive(c.Announce()); return err }
		}},
		{"client: a party as sender of the keys", ErrSender, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, nothing)
			return c, func() error { _, err := c.Receive(changed(m, 45, 1)); return err }
		}},
		{"client: keys of another configuration", ErrSession, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, nothing)
			return c, func() error { _, err := c.Receive(changed(m, 2, m[2]^1)); return err }
		}},
		{"client: own key replaced", ErrOwnKey, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, func(keys *wire.Keys) { keys.Entries[0] = keys.Entries[1] })
			return c, func() error { _, err := c.Receive(m); return err }
		}},
		{"client: another's key replaced", ErrSignature, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, func(keys *wire.Keys) { keys.Entries[2].Key = keys.Entries[1].Key })
			return c, func() error { _, err := c.Receive(m); return err }
		}},
		{"client: another's key not canonical", ErrPublicKey, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, func(keys *wire.Keys) { keys.Entries[2].Key[31] |= 0x80 })
			return c, func() error { _, err := c.Receive(m); return err }
		}},
		{"client: keys twice", ErrPhase, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := keysFor(t, c, nothing)
			if _, err := c.Receive(m); err != nil {
				t.Fatal(err)
			}
			return c, func() error { _, err := c.Receive(m); return err }
		}},
		{"client: round before the keys", ErrPhase, func(t *testing.T) (any, func() error) {
			c := newClient(t, config, 0)
			m := (&wire.Begin{Participants: wire.FullSet(n)}).
				Append(header(digestOf(config), wire.TypeBegin, 1, wire.ServerIndex))
			return c, func() error { _, err := c.Receive(m); return err }
		}},
		{"client: round of another session", ErrSession, func(t *testing.T) (any, func() error) {
			l, other := setUp(t), setUp(t)
			m := begun(t, other)
			return l.Clients[0], func() error { _, err := l.Clients[0].Receive(m); return err }
		}},
		{"client: round replayed while it waits", ErrReplay, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			m := begun(t, l)
			return l.Clients[0], func() error { _, err := l.Clients[0].Receive(m); return err }
		}},
		{"client: round replayed after the submission", ErrReplay,
			func(t *testing.T) (any, func() error) {
				l := setUp(t)
				m := begun(t, l)
				submitted(t, l, 0)
				return l.Clients[0], func() error { _, err := l.Clients[0].Receive(m); return err }
			}},
		{"client: round number going back", ErrStale, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			m := begun(t, l)
			begun(t, l)
			return l.Clients[0], func() error { _, err := l.Clients[0].Receive(m); return err }
		}},
		{"client: round zero", ErrStale, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			m := (&wire.Begin{Participants: wire.FullSet(n)}).
				Append(header(l.Server.session, wire.TypeBegin, 0, wire.ServerIndex))
			return l.Clients[0], func() error { _, err := l.Clients[0].Receive(m); return err }
		}},
		{"client: round too far ahead", ErrSkip, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			m := (&wire.Begin{Participants: wire.FullSet(n)}).
				Append(header(l.Server.session, wire.TypeBegin, math.MaxUint64, wire.ServerIndex))
			return l.Clients[0], func() error { _, err := l.Clients[0].Receive(m); return err }
		}},
		{"client: round without one of the parties", ErrParticipants,
			func(t *testing.T) (any, func() error) {
				l := setUp(t)
				set := wire.NewSet(n)
				set.Add(0)
				set.Add(1)
				m := (&wire.Begin{Participants: set}).
					Append(header(l.Server.session, wire.TypeBegin, 1, wire.ServerIndex))
				return l.Clients[0], func() error { _, err := l.Clients[0].Receive(m); return err }
			}},
		{"client: participants beyond the roster", ErrEncoding, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			m := (&wire.Begin{Participants: wire.FullSet(n)}).
				Append(header(l.Server.session, wire.TypeBegin, 1, wire.ServerIndex))
			return l.Clients[0], func() error {
				_, err := l.Clients[0].Receive(changed(m, len(m)-1, 0xff))
				return err
			}
		}},
		{"client: submission that is not due", ErrPhase, func(t *testing.T) (any, func() error) {
			c := setUp(t).Clients[0]
			return c, func() error { _, err := c.Submit(nil, in[0]...); return err }
		}},
		{"client: another broadcast", ErrBroadcast, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			return l.Clients[0], func() error {
				_, err := l.Clients[0].Submit([]byte("other"), in[0]...)
				return err
			}
		}},
		{"client: a segment too few", ErrLength, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			return l.Clients[0], func() error {
				_, err := l.Clients[0].Submit(nil, in[0][:2]...)
				return err
			}
		}},
		{"client: a value too many", ErrLength, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			return l.Clients[0], func() error {
				_, err := l.Clients[0].Submit(nil, in[0][0], []uint64{1, 2, 3}, in[0][2])
				return err
			}
		}},
		{"client: a value outside the ring", ErrRange, func(t *testing.T) (any, func() error) {
			l := setUp(t)
			begun(t, l)
			return l.Clients[0], func() error {
				_, err := l.Clients[0].Submit(nil, in[0][0], in[0][1], []uint64{8})
				return err
			}
		}},

		{"config: roster of one", keyexchange.ErrRosterSize, func(t *testing.T) (any, func() error) {
			one := []keyexchange.Entry{{Name: roster.Name(0), Key: roster.Key(0)}}
			return nil, func() error { _, err := keyexchange.NewRoster(one); return err }
		}},
		{"config: duplicate identity", keyexchange.ErrDuplicateIdentity,
			func(t *testing.T) (any, func() error) {
				twice := []keyexchange.Entry{{Name: "a", Key: roster.Key(0)}, {Name: "b", Key: roster.Key(0)}}
				return nil, func() error { _, err := keyexchange.NewRoster(twice); return err }
			}},
		{"config: no roster", ErrConfig, func(t *testing.T) (any, func() error) {
			return nil, func() error { _, err := NewServer(&Config{Layout: config.Layout}); return err }
		}},
		{"config: no layout", ErrConfig, func(t *testing.T) (any, func() error) {
			return nil, func() error { _, err := NewServer(&Config{Roster: roster}); return err }
		}},
		{"config: bits outside 1 to 64", masking.ErrLayout, func(t *testing.T) (any, func() error) {
			bad := &Config{Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 65}}}
			return nil, func() error { _, err := NewClient(bad, signers[0], nil); return err }
		}},
		{"config: long label", ErrConfig, func(t *testing.T) (any, func() error) {
			bad := &Config{Label: strings.Repeat("x", 256), Roster: roster, Layout: config.Layout}
			return nil, func() error { _, err := NewServer(bad); return err }
		}},
		{"config: identity of a stranger", ErrIdentity, func(t *testing.T) (any, func() error) {
			return nil, func() error { _, err := NewClient(config, strangers[n], nil); return err }
		}},
		{"config: no identity", ErrIdentity, func(t *testing.T) (any, func() error) {
			return nil, func() error { _, err := NewClient(config, nil, nil); return err }
		}},
		{"config: no randomness", io.EOF, func(t *testing.T) (any, func() error) {
			return nil, func() error {
				_, err := NewClient(config, signers[0], bytes.NewReader(nil))
				return err
			}
		}},
		{"config: identities out of order", ErrIdentity, func(t *testing.T) (any, func() error) {
			swapped := []crypto.Signer{signers[1], signers[0], signers[2]}
			return nil, func() error { _, err := NewLocal(config, swapped, nil); return err }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			object, call := c.run(t)
			before := snapshot(object)
			err := call()
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			// The one exception: asking for the sum closes the round.
			if after := snapshot(object); after != before {
				t.Errorf("the state changed:\n%s\n%s", before, after)
			}
		})
	}
}

// Every prefix of every message is refused, by both sides, without a trace.
func TestTruncation(t *testing.T) {
	l, config := local(t, 2)
	in, _ := inputs(9, config.Layout, 2)
	begin, err := l.Server.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	client, server := l.Clients[0], l.Server
	before := snapshot(client)
	for n := range begin[0].Message {
		if _, err := client.Receive(begin[0].Message[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("%d bytes of Begin: %v", n, err)
		}
	}
	if snapshot(client) != before {
		t.Error("a cut message changed the client")
	}
	if _, err := client.Receive(begin[0].Message); err != nil {
		t.Fatal(err)
	}
	masked, err := client.Submit(nil, in[0]...)
	if err != nil {
		t.Fatal(err)
	}
	before = snapshot(server)
	for n := range masked {
		if err := deliver(server, masked[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("%d bytes of Masked: %v", n, err)
		}
	}
	if snapshot(server) != before {
		t.Error("a cut message changed the server")
	}
}

// A party's error is told with its name.
func TestPartyError(t *testing.T) {
	l, _ := local(t, 3)
	h := wire.Header{Type: wire.TypeMasked, Session: l.Server.session, Round: 7, Sender: 2}
	err := deliver(l.Server, h.Append(nil))
	var party *PartyError
	if !errors.As(err, &party) || party.Party != 2 || party.Name != "party-2" ||
		!errors.Is(err, ErrPhase) {
		t.Errorf("got %v, want party 2", err)
	}
}

func TestClientErase(t *testing.T) {
	l, config := local(t, 3)
	c := l.Clients[0]
	c.Erase()
	for i, chain := range c.chains {
		if chain != nil && strings.Trim(snapshot(chain), "&{}keyround:[]01 ") != "" {
			t.Errorf("chain %d is still there: %s", i, snapshot(chain))
		}
	}
	_ = config
}
