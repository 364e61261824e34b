package fuzz

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// series is four parties and a server in sessions that follow each other, with their
// messages in transit. A party is known by its identity: each session has a roster of its
// own, of three or of all four.
type series struct {
	t       *testing.T
	signers []crypto.Signer
	keys    []ed25519.PublicKey
	server  *protocol.ServerSeries
	clients []*protocol.ClientSeries
	pending []seriesPost
	archive []seriesPost
	configs map[uint64]*protocol.Config
	joined  []map[uint64]*protocol.Config // of each party
	last    uint64                        // number of the last session that the server began
	present uint64                        // number of the present one
}

type seriesPost struct {
	from, to int // the server is -1
	message  []byte
}

// The operations of a series, one byte each, with the bytes after them as arguments.
const (
	seriesDeliver   = iota // i
	seriesFlush            // all messages in transit, and their answers
	seriesDrop             // i
	seriesDuplicate        // i
	seriesReplay           // i
	seriesCorrupt          // as opCorrupt
	seriesSucceed          // who is left out (4: nobody), and who does not take part
	seriesNumber           // party or server (4), number: a session that may be used
	seriesEndStep          // whether of the successor
	seriesTakeOver
	seriesBegin
	seriesSubmit // party
	seriesSum
	seriesGather // present
	seriesCrash  // party, the server after the last
	seriesForget // party: it has lost its state
	seriesOperations
)

const seriesParties = 4

func newSeries(t *testing.T) *series {
	s := &series{t: t, configs: make(map[uint64]*protocol.Config),
		server: protocol.NewServerSeries("fuzz", 0)}
	_, s.signers = identities("ana", "ben", "eva", "ida")
	for i, signer := range s.signers {
		s.keys = append(s.keys, signer.Public().(ed25519.PublicKey))
		s.clients = append(s.clients, protocol.NewClientSeries("fuzz", 0, signer, endless("series", i)))
		s.joined = append(s.joined, make(map[uint64]*protocol.Config))
	}
	return s
}

// config is that of a session without one of the parties, or of all.
func (s *series) config(number uint64, without int) *protocol.Config {
	var members []keyexchange.Entry
	for i, name := range []string{"ana", "ben", "eva", "ida"} {
		if i != without {
			members = append(members, keyexchange.Entry{Name: name, Key: s.keys[i]})
		}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		s.t.Fatal(err)
	}
	return &protocol.Config{
		Label:      "fuzz",
		Number:     number,
		Roster:     roster,
		MinMembers: 3,
		Layout:     masking.Layout{{Length: 2, Bits: 16}},
		Recovery:   &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 2, MinSurvivors: 3},
		Classical:  number%2 == 0,
	}
}

// known returns the configuration of a session by its number.
func (s *series) known(number uint64) *protocol.Config { return s.configs[number] }

// knownTo returns that of a party, which may have joined a session that the server refused.
func (s *series) knownTo(i int) func(number uint64) *protocol.Config {
	return func(number uint64) *protocol.Config { return s.joined[i][number] }
}

// refused checks that a call that fails does so with one of these errors, and changes
// nothing.
func (s *series) refused(what string, v any, before string, err error, expected ...error) {
	s.t.Helper()
	if err == nil {
		return
	}
	if !isOneOf(err, expected) {
		s.t.Fatalf("%s: an undocumented error: %v", what, err)
	}
	if fingerprint(v) != before {
		s.t.Fatalf("%s fails with %v, and the state has changed", what, err)
	}
}

func (s *series) send(p seriesPost) {
	if p.message != nil {
		s.pending, s.archive = append(s.pending, p), append(s.archive, p)
	}
}

// serve puts a session's messages on their way: its parties are numbers in its roster.
func (s *series) serve(config *protocol.Config, envelopes []protocol.Envelope) {
	for _, e := range envelopes {
		to := slices.IndexFunc(s.keys, func(k ed25519.PublicKey) bool {
			return k.Equal(config.Roster.Key(e.To))
		})
		s.send(seriesPost{-1, to, e.Message})
	}
}

func (s *series) deliver(p seriesPost) {
	message := bytes.Clone(p.message)
	if p.to < 0 {
		before := fingerprint(s.server)
		err := s.server.Receive(s.keys[p.from], message)
		s.refused("the server", s.server, before, err, append(documented, protocol.ErrIdentity)...)
		return
	}
	c := s.clients[p.to]
	before := fingerprint(c)
	answer, err := c.Receive(message)
	s.refused("a party", c, before, err, documented...)
	s.send(seriesPost{p.to, -1, answer})
}

func (s *series) flush() {
	for n := 0; len(s.pending) > 0 && n < 200; n++ {
		p := s.pending[0]
		s.pending = s.pending[1:]
		s.deliver(p)
	}
}

// succeed has the server and those who take part begin the next session.
func (s *series) succeed(number uint64, without int, taking func(i int) bool) {
	config := s.config(number, without)
	before, least := fingerprint(s.server), s.server.Least()
	err := s.server.Succeed(config)
	s.refused("Succeed", s.server, before, err, protocol.ErrNumber)
	if (err == nil) != (number >= least) {
		s.t.Fatalf("session %d where the least is %d: %v", number, least, err)
	}
	if err == nil {
		s.last, s.configs[number] = number, config
	}
	for i, c := range s.clients {
		if i == without || !taking(i) {
			continue
		}
		before, least := fingerprint(c), c.Least()
		announce, err := c.Succeed(config)
		s.refused("a party's Succeed", c, before, err, protocol.ErrNumber)
		if (err == nil) != (number >= least) {
			s.t.Fatalf("party %d joins session %d where its least is %d: %v", i, number, least, err)
		}
		if err == nil {
			s.joined[i][number] = config
		}
		s.send(seriesPost{i, -1, announce})
	}
}

// endStep ends a step of the present session or of the successor, and sends everybody
// what is pending.
func (s *series) endStep(successor bool) {
	session := s.server.Present()
	if successor {
		session = s.server.Successor()
	}
	if session == nil {
		return
	}
	if err := session.EndStep(); err != nil && !isOneOf(err, documentedSteps) {
		s.t.Fatalf("EndStep: an undocumented error: %v", err)
	}
	s.push(session)
}

// push sends everybody what a session has for it.
func (s *series) push(session *protocol.Server) {
	config := s.configOf(session)
	for i := range config.Roster.Len() {
		for _, message := range session.Pending(i) {
			s.serve(config, []protocol.Envelope{{To: i, Message: message}})
		}
	}
}

// configOf is the configuration of the present session or of its successor.
func (s *series) configOf(session *protocol.Server) *protocol.Config {
	if session == s.server.Successor() {
		return s.configs[s.last]
	}
	return s.configs[s.present]
}

func (s *series) takeOver() bool {
	before := fingerprint(s.server)
	err := s.server.TakeOver()
	s.refused("TakeOver", s.server, before, err, protocol.ErrPhase)
	if err == nil {
		s.present = s.last
	}
	return err == nil
}

// submit has a party submit ones.
func (s *series) submit(i int) {
	c := s.clients[i]
	before := fingerprint(c)
	_, due := c.Due()
	message, err := c.Submit([]byte("model"), []uint64{1, uint64(i)})
	s.refused("Submit", c, before, err, documentedSteps...)
	if due != (err == nil) {
		s.t.Fatalf("party %d is due: %v, and Submit fails with %v", i, due, err)
	}
	s.send(seriesPost{i, -1, message})
}

// begin begins a round of the present session.
func (s *series) begin() bool {
	present := s.server.Present()
	if present == nil {
		return false
	}
	envelopes, err := present.Begin([]byte("model"))
	if err != nil && !isOneOf(err, documentedSteps) {
		s.t.Fatalf("Begin: an undocumented error: %v", err)
	}
	s.serve(s.configs[s.present], envelopes)
	return err == nil
}

// sum ends a round, and checks its sum.
func (s *series) sum(forged bool) (parties int) {
	present := s.server.Present()
	if present == nil {
		return 0
	}
	sum, err := present.Sum()
	if err != nil {
		if !isOneOf(err, documentedSteps) {
			s.t.Fatalf("Sum: an undocumented error: %v", err)
		}
		return 0
	}
	config, want := s.configs[s.present], uint64(0)
	for _, i := range present.Included() {
		want += uint64(slices.IndexFunc(s.keys, func(k ed25519.PublicKey) bool {
			return k.Equal(config.Roster.Key(i))
		}))
	}
	parties = len(present.Included())
	if !forged && (sum[0][0] != uint64(parties) || sum[0][1] != want) || parties < 3 {
		s.t.Fatalf("the sum of %v is %v", present.Included(), sum)
	}
	return parties
}

// crash saves a party or the server, throws it away, and loads it.
func (s *series) crash(who int) {
	if who == seriesParties {
		state, err := s.server.Save(&key)
		if err != nil {
			s.t.Fatal(err)
		}
		before := fingerprint(s.server)
		if s.server, err = protocol.ReadServerSeries("fuzz", &key, state, s.known, nil); err != nil {
			s.t.Fatalf("the server does not load: %v", err)
		}
		if fingerprint(s.server) != before {
			s.t.Fatal("the server comes back otherwise")
		}
		return
	}
	c := s.clients[who]
	before := fingerprint(c)
	state, err := c.Save(&key)
	if err != nil {
		s.t.Fatal(err)
	}
	c.Erase()
	s.clients[who], err = protocol.LoadClientSeries("fuzz", s.signers[who], endless("series", who),
		&key, state, s.knownTo(who))
	if err != nil || fingerprint(s.clients[who]) != before {
		s.t.Fatalf("party %d comes back otherwise: %v", who, err)
	}
}

// FuzzSeries runs sessions that follow each other by a schedule. Whatever is done to their
// messages, numbers only go up, a call or message that is refused changes nothing, every
// sum is exact, and in the end another session of all takes over and has a round of all.
func FuzzSeries(f *testing.F) {
	setUp := []byte{seriesFlush, seriesEndStep, 1, seriesFlush, seriesEndStep, 1, seriesFlush}
	round := []byte{seriesBegin, seriesFlush, seriesSubmit, 0, seriesSubmit, 1, seriesSubmit, 2,
		seriesSubmit, 3, seriesFlush, seriesEndStep, 0, seriesFlush, seriesEndStep, 0, seriesFlush,
		seriesSum}
	first := slices.Concat([]byte{seriesSucceed, 4, 0}, setUp, []byte{seriesTakeOver, seriesFlush})
	f.Add(slices.Concat(first, round, []byte{seriesSucceed, 1, 0}, setUp, round,
		[]byte{seriesTakeOver}, round))
	f.Add(slices.Concat(first, []byte{seriesSucceed, 4, 2}, setUp, []byte{seriesBegin, seriesTakeOver},
		round, []byte{seriesTakeOver, seriesReplay, 3, seriesReplay, 9}, round))
	f.Add(slices.Concat(first, []byte{seriesForget, 2, seriesCrash, 4, seriesCrash, 0}, round,
		[]byte{seriesSucceed, 4, 0, seriesCrash, 1, seriesDrop, 0}, setUp, []byte{seriesCrash, 4,
			seriesTakeOver, seriesGather, 7, seriesFlush}, round))
	f.Add([]byte{seriesNumber, 4, 5, seriesNumber, 0, 3, seriesNumber, 4, 5, seriesSucceed, 0, 0,
		seriesSubmit, 1, seriesSum, seriesEndStep, 0, seriesTakeOver})
	f.Add([]byte{seriesNumber, 4, 5, seriesNumber, 0, 3, seriesCrash, 0})
	f.Add(slices.Concat(first, []byte{seriesCorrupt, 0, 0, 0, 60, 1}, round, []byte{seriesBegin,
		seriesDuplicate, 0, seriesDrop, 1, seriesDeliver, 0}, round))
	f.Fuzz(func(t *testing.T, input []byte) {
		s, schedule := newSeries(t), schedule(input)
		forged := false
		take := func() (seriesPost, bool) {
			i := schedule.next()
			if len(s.pending) == 0 {
				return seriesPost{}, false
			}
			i %= len(s.pending)
			p := s.pending[i]
			s.pending = slices.Delete(slices.Clone(s.pending), i, i+1)
			return p, true
		}
		for n := 0; len(schedule) > 0 && n < mostOperations; n++ {
			switch schedule.next() % seriesOperations {
			case seriesDeliver:
				if p, ok := take(); ok {
					s.deliver(p)
				}
			case seriesFlush:
				s.flush()
			case seriesDrop:
				take()
			case seriesDuplicate:
				if p, ok := take(); ok {
					s.pending = append(s.pending, p, p)
				}
			case seriesReplay:
				if i := schedule.next(); len(s.archive) > 0 {
					s.deliver(s.archive[i%len(s.archive)])
				}
			case seriesCorrupt:
				if p, ok := take(); ok {
					p.message, forged = corrupt(p.message, &schedule), true
					s.pending = append(s.pending, p)
				}
			case seriesSucceed:
				without, absent := schedule.next()%5, schedule.next()
				s.succeed(s.server.Least(), without, func(i int) bool { return absent>>i&1 == 0 })
			case seriesNumber:
				who, number := schedule.next()%5, uint64(schedule.next())
				s.succeed(number, 4, func(i int) bool { return i == who })
			case seriesEndStep:
				s.endStep(schedule.next()&1 == 1)
			case seriesTakeOver:
				s.takeOver()
			case seriesBegin:
				s.begin()
			case seriesSubmit:
				s.submit(schedule.next() % seriesParties)
			case seriesSum:
				s.sum(forged)
			case seriesGather:
				var present []int
				bits := schedule.next()
				for i := range 3 { // the least that a roster has
					if bits>>i&1 == 1 {
						present = append(present, i)
					}
				}
				if session := s.server.Present(); session != nil {
					envelopes, err := session.Gather(present)
					if err != nil && !isOneOf(err, append(documentedSteps, protocol.ErrMembers)) {
						t.Fatalf("Gather: an undocumented error: %v", err)
					}
					s.serve(s.configs[s.present], envelopes)
				}
			case seriesCrash:
				s.crash(schedule.next() % (seriesParties + 1))
			case seriesForget:
				i := schedule.next() % seriesParties
				s.clients[i].Erase()
				s.clients[i] = protocol.NewClientSeries("fuzz", s.server.Least(), s.signers[i],
					endless("forgot", n))
			}
			s.pending = s.pending[max(0, len(s.pending)-60):]
		}
		s.recover()
	})
}

// recover is the end of every series: another session of all, and a round of all.
func (s *series) recover() {
	for range 3 { // an open round ends, whatever it comes to
		if session := s.server.Present(); session != nil {
			_ = session.EndStep()
			_, _ = session.Sum()
		}
	}
	s.pending = nil
	number := s.server.Least()
	for _, c := range s.clients {
		number = max(number, c.Least())
	}
	s.succeed(number, 4, func(int) bool { return true })
	s.flush()
	for range 2 {
		s.endStep(true)
		s.flush()
	}
	if !s.takeOver() {
		s.t.Fatal("another session does not take over")
	}
	if !s.begin() {
		s.t.Fatal("a round does not begin in another session")
	}
	s.flush()
	for i := range s.clients {
		s.submit(i)
	}
	s.flush()
	for range 2 {
		s.endStep(false)
		s.flush()
	}
	if parties := s.sum(false); parties != seriesParties {
		s.t.Fatalf("a sum of %d parties in another session", parties)
	}
}
