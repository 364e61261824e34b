package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// succession is a series of sessions among changing parties, who are known by their
// names.
type succession struct {
	*testing.T
	rng    *rand.Rand
	server *ServerSeries
	people []ed25519.PrivateKey
	series []*ClientSeries // by person
	name   map[string]int  // of keys
	away   map[int]bool    // who is not there in the present round
	crash  bool            // load everybody after every message
	config map[uint64]*Config
}

// Sessions follow each other without a round lost between them: while rounds go on in
// one, the next is set up, with newcomers, without some who leave, and with parties
// that have lost all their state; parties drop out of every round. Every sum is exact.
func TestSuccession(t *testing.T) {
	successions := suite.Size(40, 60, 150, 1000)
	s := &succession{T: t, rng: rand.New(rand.NewPCG(3, 0)), server: NewServerSeries("series", 0),
		name: map[string]int{}, config: map[uint64]*Config{}}
	for i := range 9 {
		seed := sha256.Sum256(fmt.Appendf(nil, "person %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		s.people = append(s.people, key)
		s.name[string(key.Public().(ed25519.PublicKey))] = i
		s.series = append(s.series, NewClientSeries("series", 0, key, nil))
	}
	s.announce()
	s.keys()
	s.members()
	s.takeOver()
	var rounds, lost, newcomers int
	for n := range successions {
		s.crash = n%10 == 0
		// Somebody loses its state, and is out of the present session for it.
		forgetful := s.rng.IntN(len(s.people))
		s.series[forgetful].Erase()
		s.series[forgetful] = NewClientSeries("series", s.server.Least(), s.people[forgetful], nil)
		before := s.enrolled()
		rounds++
		if !s.round() {
			lost++
		}
		if err := s.server.TakeOver(); err != nil {
			t.Fatal(err)
		}
		if got := s.server.Present().config.Number; got != uint64(n+1) {
			t.Fatalf("session %d is present, want %d", got, n+1)
		}
		for _, i := range s.enrolled() {
			if i == forgetful || !slices.Contains(before, i) {
				newcomers++
			}
		}
	}
	if lost > 0 || newcomers < successions/2 {
		t.Errorf("%d of %d rounds lost, %d came in", lost, rounds, newcomers)
	}
	t.Logf("%d successions, %d rounds, %d lost; %d came in, new or without their state", successions,
		rounds, lost, newcomers)
}

// enrolled returns the people of the present session.
func (s *succession) enrolled() []int {
	var out []int
	for _, i := range s.server.Present().Enrolled() {
		out = append(out, s.person(s.server.Present(), i))
	}
	return out
}

func (s *succession) person(session *Server, party int) int {
	return s.name[string(session.config.Roster.Key(party))]
}

// announce begins the next session, of a random part of the people, and delivers the
// announcements of all of them but one.
func (s *succession) announce() {
	people := s.rng.Perm(len(s.people))[:7+s.rng.IntN(3)]
	var members []keyexchange.Entry
	for _, i := range people {
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprint("person-", i),
				Key: s.people[i].Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	s.must(err)
	config := &Config{
		Label:      "series",
		Number:     s.server.Least(),
		Roster:     roster,
		MinMembers: len(people) - 2,
		Layout:     masking.Layout{{Length: 4, Bits: 20}},
		Recovery:   &Recovery{Adversary: CuriousServer, Threshold: 2},
	}
	s.config[config.Number] = config
	s.must(s.server.Succeed(config))
	for _, i := range people[1:] {
		message, err := s.series[i].Succeed(config)
		s.must(err)
		s.must(s.server.Receive(s.people[i].Public().(ed25519.PublicKey), message))
	}
}

func (s *succession) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *succession) keys() {
	envelopes, err := s.server.Successor().Keys()
	s.must(err)
	// One of those who announced never answers.
	s.deliver(s.server.Successor(), envelopes[1:])
}

func (s *succession) members() {
	envelopes, err := s.server.Successor().Members()
	s.must(err)
	s.deliver(s.server.Successor(), envelopes)
}

func (s *succession) takeOver() { s.must(s.server.TakeOver()) }

// deliver carries messages of a session to the people who are there, and their
// answers back.
func (s *succession) deliver(session *Server, envelopes []Envelope) {
	s.Helper()
	for _, e := range envelopes {
		i := s.person(session, e.To)
		if session == s.server.Present() && s.away[i] {
			continue
		}
		answer, err := s.series[i].Receive(e.Message)
		if errors.Is(err, ErrSession) && session == s.server.Present() {
			continue // it has lost its state
		}
		s.must(err)
		s.send(i, answer)
		if s.crash {
			s.reload(i)
			session = s.same(session)
		}
	}
}

// same returns the session that is in the place of another since the server was
// loaded.
func (s *succession) same(session *Server) *Server {
	if p := s.server.Present(); p != nil && p.config.digest == session.config.digest {
		return p
	}
	return s.server.Successor()
}

func (s *succession) send(i int, message []byte) {
	s.Helper()
	if message != nil {
		s.must(s.server.Receive(s.people[i].Public().(ed25519.PublicKey), message))
	}
}

// reload saves a person and the server, and loads them again.
func (s *succession) reload(i int) {
	key := keyexchange.SealKey{7}
	state, err := s.series[i].Save(&key)
	s.must(err)
	configs := func(number uint64) *Config { return s.config[number] }
	s.series[i], err = LoadClientSeries("series", s.people[i], nil, &key, state, configs)
	s.must(err)
	state, err = s.server.Save(&key)
	s.must(err)
	s.server, err = ReadServerSeries("series", &key, state, configs, nil)
	s.must(err)
}

// round runs a round of the present session, while the next one is set up between its
// steps, and reports whether there was a sum.
func (s *succession) round() bool {
	step := func(next func() ([]Envelope, error)) error {
		envelopes, err := next()
		if err == nil {
			s.deliver(s.server.Present(), envelopes)
		}
		return err
	}
	s.away = map[int]bool{}
	if step(s.server.Present().Invite) != nil ||
		step(func() ([]Envelope, error) { return s.server.Present().Begin(nil) }) != nil {
		return false
	}
	s.announce()
	want := make([]uint64, 4)
	missing, present := 0, s.server.Present()
	// one has lost its state, perhaps
	spare := present.open.participants.Len() - present.terms.minSurvivors - 1
	for i := range present.open.participants.All() {
		person := s.person(present, i)
		if _, due := s.series[person].Due(); !due {
			s.away[person] = true
			continue
		}
		if missing < spare && s.rng.IntN(4) == 0 {
			s.away[person] = true
			missing++
			continue
		}
		input := []uint64{1, uint64(person), s.rng.Uint64N(1 << 16), 5}
		for k, x := range input {
			want[k] = (want[k] + x) & (1<<20 - 1)
		}
		message, err := s.series[person].Submit(nil, input)
		s.must(err)
		s.send(person, message)
	}
	s.keys()
	err := step(s.server.Present().Survivors)
	if err == nil {
		err = step(s.server.Present().Certificate)
	}
	s.members()
	if err != nil {
		s.Log(err)
		return false
	}
	sum, err := s.server.Present().Sum()
	if err != nil {
		s.Log(err)
		return false
	}
	if !slices.Equal(sum[0], want) {
		s.Fatalf("a wrong sum: %v, want %v", sum[0], want)
	}
	return true
}

// Numbers only go up, labels stay, and a message of no session is refused.
func TestSeriesRefusals(t *testing.T) {
	signers, roster := parties(t, 3)
	config := testConfig(roster)
	config.Label, config.Number = "series", 4
	client, server := NewClientSeries("series", 3, signers[0], nil), NewServerSeries("series", 3)
	announce, err := client.Succeed(config)
	if err != nil || server.Succeed(config) != nil || client.Least() != 5 || server.Least() != 5 {
		t.Fatalf("number 4 after 3: %v", err)
	}
	other := *config
	other.Label, other.Number = "another", 9
	for name, c := range map[string]struct {
		config *Config
		want   error
	}{
		"the same number": {config, ErrNumber},
		"another label":   {&other, ErrConfig},
		"none":            {nil, ErrConfig},
	} {
		if _, err := client.Succeed(c.config); !errors.Is(err, c.want) {
			t.Errorf("client, %s: %v", name, err)
		}
		if err := server.Succeed(c.config); !errors.Is(err, c.want) {
			t.Errorf("server, %s: %v", name, err)
		}
	}
	if err := server.Receive(roster.Key(1), announce); !errors.Is(err, ErrSender) {
		t.Errorf("another's announcement: %v", err)
	}
	stranger := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	if err := server.Receive(stranger, announce); !errors.Is(err, ErrIdentity) {
		t.Errorf("a stranger's announcement: %v", err)
	}
	announce[5] ^= 1
	if err := server.Receive(roster.Key(0), announce); !errors.Is(err, ErrSession) {
		t.Errorf("another session: %v", err)
	}
	if _, err := client.Receive(announce); !errors.Is(err, ErrSession) {
		t.Errorf("another session: %v", err)
	}
	if err := server.TakeOver(); !errors.Is(err, ErrPhase) {
		t.Errorf("TakeOver before set-up is over: %v", err)
	}
	if _, due := client.Due(); due {
		t.Error("a round is due before there is a session")
	}
	if _, err := client.Submit(nil); !errors.Is(err, ErrPhase) {
		t.Errorf("Submit before there is a session: %v", err)
	}
}

// A state is loaded with the configuration that it was saved with, and with no other.
func TestSeriesConfigs(t *testing.T) {
	signers, roster := parties(t, 3)
	config := testConfig(roster)
	config.Label, config.Number = "series", 4
	client := NewClientSeries("series", 3, signers[0], nil)
	announce, err := client.Succeed(config)
	if err != nil {
		t.Fatal(err)
	}
	key := keyexchange.SealKey{7}
	state, err := client.Save(&key)
	if err != nil {
		t.Fatal(err)
	}
	load := func(configs func(number uint64) *Config) (*ClientSeries, error) {
		return LoadClientSeries("series", signers[0], nil, &key, state, configs)
	}
	server := NewServerSeries("series", 3)
	if err := server.Succeed(config); err != nil {
		t.Fatal(err)
	}
	ofServer, err := server.Save(&key)
	if err != nil {
		t.Fatal(err)
	}
	other := *config
	other.Number = 5
	for name, configs := range map[string]func(number uint64) *Config{
		"nothing":      nil,
		"none":         func(uint64) *Config { return nil },
		"another's":    func(uint64) *Config { return &other },
		"an empty one": func(uint64) *Config { return new(Config) },
	} {
		if _, err := load(configs); !errors.Is(err, ErrState) && !errors.Is(err, ErrConfig) {
			t.Errorf("with %s: %v", name, err)
		}
		_, err := ReadServerSeries("series", &key, ofServer, configs, nil)
		if !errors.Is(err, ErrState) && !errors.Is(err, ErrConfig) {
			t.Errorf("the server with %s: %v", name, err)
		}
	}
	loaded, err := load(func(number uint64) *Config {
		if number != 4 {
			t.Errorf("the configuration of session %d is asked for", number)
		}
		return config
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(loaded.Successor().Announce(), announce) || loaded.Least() != 5 {
		t.Error("another party comes back")
	}
	loadedServer, err := ReadServerSeries("series", &key, ofServer,
		func(uint64) *Config { return config }, nil)
	if err != nil || loadedServer.Successor() == nil || loadedServer.Least() != 5 {
		t.Errorf("the server: %v", err)
	}
}

// formedSeries is three parties of whom each session has a server of its own, so that any of
// them may go on.
type formedSeries struct {
	*testing.T
	config  *Config
	series  []*ClientSeries
	servers map[uint64]*Server
}

func newFormedSeries(t *testing.T) *formedSeries {
	signers, roster := parties(t, 3)
	f := &formedSeries{T: t, config: testConfig(roster), servers: map[uint64]*Server{}}
	f.config.Label = "series"
	f.config.Recovery = &Recovery{Adversary: CuriousServer, Threshold: 2}
	for _, signer := range signers {
		f.series = append(f.series, NewClientSeries("series", 0, signer, nil))
	}
	return f
}

func (f *formedSeries) numbered(number uint64) *Config {
	config := *f.config
	config.Number = number
	return &config
}

// join has all parties make keys for a session.
func (f *formedSeries) join(number uint64) {
	f.Helper()
	s, err := NewServer(f.numbered(number))
	if err != nil {
		f.Fatal(err)
	}
	f.servers[number] = s
	for i, c := range f.series {
		announce, err := c.Succeed(f.numbered(number))
		if err == nil {
			err = s.Receive(i, announce)
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

// end ends a step of a session.
func (f *formedSeries) end(number uint64) {
	f.Helper()
	if err := f.servers[number].EndStep(); err != nil {
		f.Fatal(err)
	}
	f.push(number)
}

// push delivers what is pending in a session, and the answers to it.
func (f *formedSeries) push(number uint64) {
	f.Helper()
	s := f.servers[number]
	for i, c := range f.series {
		for _, m := range s.Pending(i) {
			answer, err := c.Receive(m)
			if err == nil && answer != nil {
				err = s.Receive(i, answer)
			}
			if err != nil {
				f.Fatalf("session %d, party %d: %v", number, i, err)
			}
		}
	}
}

// setUp sets a session up.
func (f *formedSeries) setUp(number uint64) {
	f.Helper()
	f.join(number)
	f.end(number)
	f.end(number)
}

// round runs a round of a session among all.
func (f *formedSeries) round(number uint64) {
	f.Helper()
	s := f.servers[number]
	if _, err := s.Begin(nil); err != nil {
		f.Fatal(err)
	}
	f.push(number)
	in, want := inputs(number, f.config.Layout, 3)
	for i, c := range f.series {
		message, err := c.Submit(nil, in[i]...)
		if err == nil {
			err = s.Receive(i, message)
		}
		if err != nil {
			f.Fatalf("session %d, party %d: %v", number, i, err)
		}
	}
	f.end(number)
	f.end(number)
	sum, err := s.Sum()
	if err != nil {
		f.Fatal(err)
	}
	for j := range want {
		if !slices.Equal(sum[j], want[j]) {
			f.Errorf("session %d: a wrong sum", number)
		}
	}
}

// have checks which sessions the parties have.
func (f *formedSeries) have(numbers ...uint64) {
	f.Helper()
	for i, c := range f.series {
		var got []uint64
		for _, session := range c.Sessions() {
			got = append(got, session.Number())
		}
		if !slices.Equal(got, numbers) {
			f.Errorf("party %d has sessions %v, want %v", i, got, numbers)
		}
	}
}

// over checks that a session is of nobody any more.
func (f *formedSeries) over(number uint64) {
	f.Helper()
	s := f.servers[number]
	if s.Step() == StepBetween {
		if _, err := s.Begin(nil); err != nil {
			f.Fatal(err)
		}
	}
	messages := s.Pending(0)
	if len(messages) == 0 {
		f.Errorf("session %d has nothing to say", number)
	}
	for _, m := range messages {
		if _, err := f.series[0].Receive(m); !errors.Is(err, ErrSession) {
			f.Errorf("session %d goes on: %v", number, err)
		}
	}
}

// A session that is set up may take over although parties have keys for another after it; the
// one before it is over then, the one after it is not. Saved and loaded it is the same.
func TestSeriesFormed(t *testing.T) {
	key := keyexchange.SealKey{7}
	for name, save := range map[string]func(s *ClientSeries, key *keyexchange.SealKey) ([]byte, error){
		"as it is": nil,
		"saved":    (*ClientSeries).Save,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormedSeries(t)
			again := func() {
				t.Helper()
				for i, c := range f.series {
					if save == nil {
						continue
					}
					state, err := save(c, &key)
					if err != nil {
						t.Fatal(err)
					}
					f.series[i], err = LoadClientSeries("series", c.identity, nil, &key, state, f.numbered)
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			f.setUp(1)
			f.round(1)
			f.setUp(2)
			f.join(3)
			again()
			f.have(1, 2, 3)
			f.round(1) // the present one goes on
			again()
			f.round(2) // the one that is set up takes over
			f.have(2, 3)
			f.over(1)
			again()
			f.end(3)
			f.end(3)
			f.join(4)
			f.have(2, 3, 4)
			f.join(5) // in the place of one that was not set up
			again()
			f.have(2, 3, 5)
			f.round(2)
			f.end(5)
			f.end(5)
			f.join(6) // what is set up last is kept
			again()
			f.have(2, 5, 6)
			f.over(3)
			f.end(6)
			f.end(6)
			again()
			f.round(6)
			f.have(6)
			f.over(2)
			f.over(5)
			f.round(6)
			if least := f.series[0].Least(); least != 7 {
				t.Errorf("the least is %d", least)
			}
		})
	}
}
