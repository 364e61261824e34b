package protocol

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// moment is how far recoverySession runs a round.
type moment int

const (
	afterSetUp moment = iota
	afterBegin
	afterMasked
	afterSurvivors
	afterSigned
	afterCertificate
	afterReveal
)

// recoverySession is a session of five on a complete graph that stops in the
// middle of a round, in which the last party drops out before submitting. The
// messages that were not delivered yet are at hand.
type recoverySession struct {
	*Local
	t       *testing.T
	config  *Config
	in      [][][]uint64
	toParty map[int][]byte // of the stage, by receiver
	toHost  map[int][]byte // of the stage, by sender
}

const dropped = 4

func recoveryAt(t *testing.T, stop moment) *recoverySession {
	t.Helper()
	signers, roster := parties(t, 5)
	config := testConfig(roster)
	config.Recovery = &Recovery{Threshold: 3}
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &recoverySession{Local: l, t: t, config: config}
	s.in, _ = inputs(11, config.Layout, 5)
	s.run(afterSetUp, stop)
	return s
}

// run goes on from one stage to a later one.
func (s *recoverySession) run(from, stop moment) {
	s.t.Helper()
	for at := from; at < stop; at++ {
		var envelopes []Envelope
		var err error
		switch at {
		case afterSetUp:
			envelopes, err = s.Server.Begin(nil)
		case afterMasked:
			envelopes, err = s.Server.Survivors()
		case afterSigned:
			envelopes, err = s.Server.Certificate()
		case afterBegin, afterSurvivors, afterCertificate:
			// The parties' turn: what they were sent arrives, and they answer.
			s.toHost = map[int][]byte{}
			for to, message := range s.toParty {
				answer, err := s.Clients[to].Receive(message)
				if err == nil && at == afterBegin && to != dropped {
					answer, err = s.Clients[to].Submit(nil, s.in[to]...)
				}
				if err != nil {
					s.t.Fatal(err)
				}
				if answer != nil {
					s.toHost[to] = answer
				}
			}
			if at+1 < stop {
				s.arrive()
			}
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		s.toParty = map[int][]byte{}
		for _, e := range envelopes {
			s.toParty[e.To] = e.Message
		}
		if stop == at+1 {
			return
		}
	}
}

// arrive gives the parties' messages of the stage to the server.
func (s *recoverySession) arrive() {
	s.t.Helper()
	for _, from := range sortedKeys(s.toHost) {
		if err := deliver(s.Server, s.toHost[from]); err != nil {
			s.t.Fatal(err)
		}
	}
}

// The bad messages of sessions with recovery: each gives its own documented error
// and changes nothing.
func TestBadRecoveryInput(t *testing.T) {
	body := func(message []byte, change func(body []byte) []byte) []byte {
		m := bytes.Clone(message)
		return append(m[:wire.HeaderSize:wire.HeaderSize], change(m[wire.HeaderSize:])...)
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte {
			if at < 0 {
				at += len(b)
			}
			b[at] ^= 1
			return b
		}
	}
	round := func(message []byte, r byte) []byte {
		m := bytes.Clone(message)
		m[41] = r
		return m
	}
	certificate := func(change func(wire.Certificate) wire.Certificate) func([]byte) []byte {
		return func(b []byte) []byte {
			c, err := wire.ParseCertificate(b, 5)
			if err != nil {
				t.Fatal(err)
			}
			return change(c).Append(nil)
		}
	}
	survivors := func(parties ...int) func(s *recoverySession) []byte {
		return func(s *recoverySession) []byte {
			m := wire.Survivors{Survivors: wire.SetOf(5, parties)}
			m.Shares = make([]wire.SealedShare, len(m.Survivors.Of([]int{1, 2, 3, 4})))
			return append(bytes.Clone(s.toParty[0][:wire.HeaderSize]), m.Append(nil)...)
		}
	}
	invite := func(r uint64) func(s *recoverySession) []byte {
		return func(s *recoverySession) []byte {
			h := wire.Header{Type: wire.TypeInvite, Session: s.Server.session, Round: r,
				Sender: wire.ServerIndex}
			return append(h.Append(nil), wire.FullSet(5).Bytes()...)
		}
	}
	begin := func(parties ...int) func(s *recoverySession) []byte {
		return func(s *recoverySession) []byte {
			m := wire.Begin{Participants: wire.SetOf(5, parties)}
			m.Shares = make([]wire.SealedShare, len(m.Participants.Of([]int{1, 2, 3, 4})))
			h := wire.Header{Type: wire.TypeBegin, Session: s.Server.session, Round: 1,
				Sender: wire.ServerIndex}
			return m.Append(h.Append(nil))
		}
	}

	for _, c := range []struct {
		name    string
		at      moment
		want    error
		toParty func(s *recoverySession) []byte // for party 0
		toHost  func(s *recoverySession) []byte
	}{
		{name: "begin with too few parties", at: afterSetUp, want: ErrTooFew, toParty: begin(0, 1, 2)},
		{name: "begin without this party", at: afterSetUp, want: ErrParticipants, toParty: begin(1, 2, 3, 4)},
		{name: "begin with a share missing", at: afterBegin, want: ErrTruncated,
			toParty: func(s *recoverySession) []byte { return s.toParty[0][:len(s.toParty[0])-1] }},
		{name: "begin with a share too many", at: afterBegin, want: ErrTrailing,
			toParty: func(s *recoverySession) []byte {
				return append(bytes.Clone(s.toParty[0]), make([]byte, wire.SealedShareSize)...)
			}},
		{name: "begin without material for it", at: afterSetUp, want: ErrParticipants,
			toParty: func(s *recoverySession) []byte { return round(begin(0, 1, 2, 3, 4)(s), 2) }},
		{name: "survivors before the submission", at: afterBegin, want: ErrPhase,
			toParty: func(s *recoverySession) []byte {
				if _, err := s.Clients[0].Receive(s.toParty[0]); err != nil {
					t.Fatal(err)
				}
				m := survivors(0, 1, 2, 3)(s)
				m[1] = byte(wire.TypeSurvivors)
				return m
			}},
		{name: "survivors with a stranger to the round", at: afterSurvivors, want: ErrEncoding,
			toParty: func(s *recoverySession) []byte {
				return body(survivors(0, 1, 2, 3)(s), func(b []byte) []byte { b[0] |= 1 << 5; return b })
			}},
		{name: "survivors without this party", at: afterSurvivors, want: ErrSurvivors, toParty: survivors(1, 2, 3, 4)},
		{name: "too few survivors", at: afterSurvivors, want: ErrTooFew, toParty: survivors(0, 1, 2)},
		{name: "survivors of another round", at: afterSurvivors, want: ErrPhase,
			toParty: func(s *recoverySession) []byte { return round(s.toParty[0], 2) }},
		{name: "survivors of an earlier round", at: afterSurvivors, want: ErrStale,
			toParty: func(s *recoverySession) []byte { return round(s.toParty[0], 0) }},
		{name: "a second list of survivors", at: afterCertificate, want: ErrReplay,
			toParty: func(s *recoverySession) []byte {
				m := survivors(0, 1, 2, 3)(s)
				m[1] = byte(wire.TypeSurvivors)
				return m
			}},
		{name: "certificate short by one signature", at: afterCertificate, want: ErrCertificate,
			toParty: func(s *recoverySession) []byte {
				return body(s.toParty[0],
					certificate(func(c wire.Certificate) wire.Certificate { return c[:2] }))
			}},
		{name: "certificate with a signature twice", at: afterCertificate, want: ErrEncoding,
			toParty: func(s *recoverySession) []byte {
				return body(s.toParty[0],
					certificate(func(c wire.Certificate) wire.Certificate { return append(c, c[2]) }))
			}},
		{name: "certificate with a bad signature", at: afterCertificate, want: ErrSignature,
			toParty: func(s *recoverySession) []byte { return body(s.toParty[0], flip(-1)) }},
		{name: "certificate with a party that dropped out", at: afterCertificate, want: ErrCertificate,
			toParty: func(s *recoverySession) []byte {
				return body(s.toParty[0],
					certificate(func(c wire.Certificate) wire.Certificate { c[2].Party = dropped; return c }))
			}},
		{name: "certificate with a stranger", at: afterCertificate, want: ErrEncoding,
			toParty: func(s *recoverySession) []byte {
				return body(s.toParty[0],
					certificate(func(c wire.Certificate) wire.Certificate { c[2].Party = 5; return c }))
			}},
		{name: "certificate before the survivors", at: afterSurvivors, want: ErrPhase,
			toParty: func(s *recoverySession) []byte {
				m := bytes.Clone(s.toParty[0])
				m[1] = byte(wire.TypeCertificate)
				return m
			}},
		{name: "certificate after the shares", at: afterReveal, want: ErrPhase,
			toParty: func(s *recoverySession) []byte { return s.toParty[0] }},
		{name: "invitation to an earlier round", at: afterBegin, want: ErrStale,
			toParty: func(s *recoverySession) []byte {
				if _, err := s.Clients[0].Receive(s.toParty[0]); err != nil {
					t.Fatal(err)
				}
				return invite(0)(s)
			}},
		{name: "invitation too far ahead", at: afterSetUp, want: ErrSkip, toParty: invite(math.MaxUint64)},
		{name: "invitation with a byte too many", at: afterSetUp, want: ErrTrailing,
			toParty: func(s *recoverySession) []byte { return append(invite(0)(s), 0) }},

		{name: "submission with other material", at: afterMasked, want: ErrEncoding,
			toHost: func(s *recoverySession) []byte {
				upload := wire.UploadSize(4)
				return body(s.toHost[0], func(b []byte) []byte { b[len(b)-upload+7] ^= 1; return b })
			}},
		{name: "submission of a party that answers twice", at: afterSurvivors, want: ErrStale,
			toHost: func(s *recoverySession) []byte { return s.toHost[0] }},
		{name: "second submission with another input", at: afterMasked, want: ErrDuplicate,
			toHost: func(s *recoverySession) []byte {
				if err := deliver(s.Server, s.toHost[0]); err != nil {
					t.Fatal(err)
				}
				return body(s.toHost[0], flip(0))
			}},
		{name: "upload that is in already", at: afterSetUp, want: ErrDuplicate,
			toHost: func(s *recoverySession) []byte { return s.Clients[0].Output() }},
		{name: "upload of an earlier round", at: afterBegin, want: ErrStale,
			toHost: func(s *recoverySession) []byte { return s.Clients[0].Output() }},
		{name: "upload for a round to come", at: afterSetUp, want: ErrPhase,
			toHost: func(s *recoverySession) []byte { return round(s.Clients[0].Output(), 3) }},
		{name: "upload cut short", at: afterSetUp, want: ErrTruncated,
			toHost: func(s *recoverySession) []byte { m := s.Clients[0].Output(); return m[:len(m)-1] }},
		{name: "signature before the survivors", at: afterMasked, want: ErrPhase,
			toHost: func(s *recoverySession) []byte {
				m := bytes.Clone(s.toHost[0])
				m[1] = byte(wire.TypeSigned)
				return m
			}},
		{name: "bad signature on the survivors", at: afterSigned, want: ErrSignature,
			toHost: func(s *recoverySession) []byte { return body(s.toHost[0], flip(3)) }},
		{name: "signature of a party that dropped out", at: afterSigned, want: ErrParticipants,
			toHost: func(s *recoverySession) []byte {
				m := bytes.Clone(s.toHost[0])
				m[45] = dropped
				return m
			}},
		{name: "signed twice", at: afterSigned, want: ErrDuplicate,
			toHost: func(s *recoverySession) []byte {
				if err := deliver(s.Server, s.toHost[0]); err != nil {
					t.Fatal(err)
				}
				return s.toHost[0]
			}},
		{name: "shares of another round", at: afterReveal, want: ErrStale,
			toHost: func(s *recoverySession) []byte { return round(s.toHost[0], 0) }},
		{name: "a share that the sender does not hold", at: afterReveal, want: ErrEncoding,
			toHost: func(s *recoverySession) []byte { return body(s.toHost[1], flip(3)) }}, // of itself
		{name: "a share that is no scalar", at: afterReveal, want: ErrEncoding,
			toHost: func(s *recoverySession) []byte {
				return body(s.toHost[0], func(b []byte) []byte { b[4+31] = 0xff; return b })
			}},
		{name: "shares cut short", at: afterReveal, want: ErrTruncated,
			toHost: func(s *recoverySession) []byte { m := s.toHost[0]; return m[:len(m)-1] }},
		{name: "revealed twice", at: afterReveal, want: ErrDuplicate,
			toHost: func(s *recoverySession) []byte {
				if err := deliver(s.Server, s.toHost[0]); err != nil {
					t.Fatal(err)
				}
				return s.toHost[0]
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := recoveryAt(t, c.at)
			var object any
			var err error
			if c.toParty != nil {
				message := c.toParty(s)
				object = s.Clients[0]
				before := snapshot(object)
				_, err = s.Clients[0].Receive(message)
				if snapshot(object) != before {
					t.Error("the client's state changed")
				}
			} else {
				message := c.toHost(s)
				object = s.Server
				before := snapshot(object)
				err = deliver(s.Server, message)
				if snapshot(object) != before {
					t.Error("the server's state changed")
				}
			}
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// finish runs the round to its end, and the next one.
func (s *recoverySession) finish(from moment) ([][]uint64, error) {
	s.t.Helper()
	s.run(from, afterReveal)
	s.arrive()
	return s.Server.Sum()
}

func (s *recoverySession) nextRound(absent ...int) {
	s.t.Helper()
	in := slices.Clone(s.in)
	for _, i := range absent {
		in[i] = nil
	}
	sum, err := s.Round(nil, in)
	if err != nil {
		s.t.Fatalf("the next round: %v", err)
	}
	if !equal(sum, sumOf(s.config.Layout, s.in, s.Server.Included())) {
		s.t.Fatal("the next round: wrong sum")
	}
	for _, i := range s.Server.Included() {
		if slices.Contains(absent, i) {
			s.t.Fatalf("party %d is in the sum", i)
		}
	}
}

// A party whose recovery material is wrong costs the round in which it drops out,
// and is named. If it must be at fault, and no holder of its shares can be, it is
// left out until it is readmitted.
func TestBadMaterial(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    func(u *wire.Upload)
		want     error
		excluded bool
	}{
		"blob does not open": {func(u *wire.Upload) { u.Blob[30] ^= 1 }, ErrMaterial, true},
		// Of four shares one may be wrong as well, and three are needed.
		"other commitment": {func(u *wire.Upload) { u.Commitment[0] ^= 1 }, ErrMaterial, false},
		// Two holders could not open theirs, and no more than one party is at fault.
		"too few shares opened": {func(u *wire.Upload) { u.Shares[0][30] ^= 1; u.Shares[1][30] ^= 1 }, ErrMaterial, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := recoveryAt(t, afterSetUp)
			c.spoil(s.Server.uploads[dropped])
			_, err := s.finish(afterSetUp)
			var party *PartyError
			if !errors.Is(err, c.want) || !errors.As(err, &party) || party.Party != dropped {
				t.Fatalf("got %v, want %v of party %d", err, c.want, dropped)
			}
			if excluded := slices.Equal(s.Server.Excluded(), []int{dropped}); excluded != c.excluded {
				t.Fatalf("excluded: %v", s.Server.Excluded())
			}
			if c.excluded {
				s.nextRound(dropped)
				s.Server.Readmit(dropped)
			}
			s.nextRound()
			if !slices.Contains(s.Server.Included(), dropped) {
				t.Error("the party did not come back")
			}
		})
	}
}

// A bad share for one holder harms nobody as long as its owner stays, and one
// holder less if it drops out.
func TestShareThatDoesNotOpen(t *testing.T) {
	for _, owner := range []int{0, dropped} {
		s := recoveryAt(t, afterSetUp)
		s.Server.uploads[owner].Shares[1][40] ^= 1
		sum, err := s.finish(afterSetUp)
		if err != nil || !equal(sum, sumOf(s.config.Layout, s.in, []int{0, 1, 2, 3})) {
			t.Errorf("owner %d: %v", owner, err)
		}
		s.nextRound()
	}
}

// With shares to spare, wrong ones are corrected: the sum is right, and who must be
// at fault is left out. One wrong share tells nobody who that is; several of one
// holder, or of one owner, do.
func TestWrongSharesAreCorrected(t *testing.T) {
	signers, roster := parties(t, 7)
	spoilReveal := func(l *Local, holder, shares int) {
		l.Carry = func(from, to int, message []byte) []byte {
			if from == holder && message[1] == byte(wire.TypeReveal) {
				message = bytes.Clone(message)
				for i := range shares {
					message[wire.HeaderSize+36*i+4] ^= 1
				}
			}
			return message
		}
	}
	// An owner that deals wrong shares, in its own client, with the right seals.
	spoilOwner := func(l *Local, owner, shares int) {
		original := l.Clients[owner]
		l.Carry = func(from, to int, message []byte) []byte {
			if from != owner || message[1] != byte(wire.TypeMasked) {
				return message
			}
			m, err := wire.ParseMasked(message[wire.HeaderSize:], original.config.Layout.PackedSize(), 6, 6)
			if err != nil {
				t.Fatal(err)
			}
			nonce := keyexchange.Nonce(m.Nonce)
			for i := range shares {
				box, err := keyexchange.Seal(&nonce,
					original.open.channels[i].Key(keyexchange.SelfMaskShare, owner, original.open.neighbours[i]),
					make([]byte, 32), shareData(keyexchange.SelfMaskShare, original.session, original.last, owner,
						original.open.neighbours[i], original.open.context))
				if err != nil {
					t.Fatal(err)
				}
				m.Shares[i] = wire.SealedShare(box)
			}
			return m.Append(bytes.Clone(message[:wire.HeaderSize]))
		}
	}
	for _, c := range []struct {
		name     string
		spoil    func(l *Local)
		excluded []int
	}{
		{"one share", func(l *Local) { spoilReveal(l, 1, 1) }, nil},
		{"all shares of a holder", func(l *Local) { spoilReveal(l, 1, 6) }, []int{1}},
		{"one share of an owner", func(l *Local) { spoilOwner(l, 6, 1) }, nil},
		{"two shares of an owner", func(l *Local) { spoilOwner(l, 6, 2) }, []int{6}},
		// Party 6 deals a wrong share to party 0 and reveals a wrong one of party 0's:
		// two wrong pairs with one counterparty, which is not framed by them.
		{"both sides of a pair", func(l *Local) {
			spoilOwner(l, 6, 1)
			deal := l.Carry
			spoilReveal(l, 6, 1)
			reveal := l.Carry
			l.Carry = func(from, to int,
				message []byte) []byte {
				return reveal(from, to, deal(from, to, message))
			}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := testConfig(roster)
			// Of six shares two are needed: two wrong ones can be corrected.
			config.Recovery = &Recovery{Adversary: CuriousServer, Threshold: 2}
			l, err := NewLocal(config, signers, nil)
			if err != nil {
				t.Fatal(err)
			}
			in, want := inputs(3, config.Layout, 7)
			c.spoil(l)
			sum, err := l.Round(nil, in)
			if err != nil || !equal(sum, want) {
				t.Fatalf("the sum: %v", err)
			}
			if !slices.Equal(l.Server.Excluded(), c.excluded) {
				t.Errorf("excluded: %v, want %v", l.Server.Excluded(), c.excluded)
			}
		})
	}
}

// Rules of Validate that keep the promises of recovery.
func TestRecoveryConfigErrors(t *testing.T) {
	_, roster := parties(t, 10)
	for name, change := range map[string]func(c *Config, r *Recovery){
		"threshold of one":           func(_ *Config, r *Recovery) { r.Threshold = 1 },
		"threshold too low to cheat": func(_ *Config, r *Recovery) { r.Threshold = 4 },
		"threshold below colluders": func(c *Config,
			r *Recovery) {
			*r = Recovery{Adversary: CuriousServer, Threshold: 3}
			c.Colluders = 3
		},
		"threshold above holders":       func(_ *Config, r *Recovery) { r.Threshold = 10 },
		"negative threshold":            func(_ *Config, r *Recovery) { r.Threshold = -1 },
		"too many colluders":            func(c *Config, _ *Recovery) { c.Colluders = 9 },
		"negative colluders":            func(c *Config, _ *Recovery) { c.Colluders = -1 },
		"survivors below the quorum":    func(_ *Config, r *Recovery) { r.MinSurvivors = 5 },
		"more survivors than parties":   func(_ *Config, r *Recovery) { r.MinSurvivors = 11 },
		"sparse with a cheating server": func(_ *Config, r *Recovery) { r.Degree = 4; r.Threshold = 3 },
		"degree of one": func(_ *Config,
			r *Recovery) {
			*r = Recovery{Adversary: CuriousServer, Degree: 1}
		},
		"degree too large": func(_ *Config,
			r *Recovery) {
			*r = Recovery{Adversary: CuriousServer, Degree: 10}
		},
		"odd degree, odd parties": func(c *Config,
			r *Recovery) {
			*r = Recovery{Adversary: CuriousServer, Degree: 3}
			c.PerRound = 9
		},
		"unknown adversary":           func(_ *Config, r *Recovery) { r.Adversary = 7 },
		"one party a round":           func(c *Config, _ *Recovery) { c.PerRound = 1 },
		"more parties than there are": func(c *Config, _ *Recovery) { c.PerRound = 11 },
	} {
		config := testConfig(roster)
		config.Recovery = new(Recovery)
		change(config, config.Recovery)
		if err := config.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", name, err)
		} else {
			t.Log(err)
		}
	}
}

// The figures that the documentation of MinSurvivors and the README give.
func TestDefaultMinSurvivors(t *testing.T) {
	for n, want := range map[int]int{2: 2, 3: 3, 4: 4, 5: 4, 10: 8, 100: 68} {
		_, roster := parties(t, n)
		config := testConfig(roster)
		config.Recovery = new(Recovery)
		effective, err := config.EffectiveRecovery()
		if err != nil || effective.MinSurvivors != want {
			t.Errorf("n = %d: %+v (%v), want %d survivors", n, effective, err, want)
		}
	}
	_, roster := parties(t, 3)
	if effective, err := testConfig(roster).EffectiveRecovery(); effective != nil || err != nil {
		t.Errorf("without recovery: %v, %v", effective, err)
	}
	if _, err := NewServer(nil); !errors.Is(err, ErrConfig) {
		t.Errorf("no configuration: %v", err)
	}
}
