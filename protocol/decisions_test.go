package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// errKilled ends what the server was doing.
var errKilled = errors.New("killed")

// decisions is a server that saves its decisions and nothing else: what it receives
// after one is lost when it is killed. Parties save before they send, and when they
// connect again they send their last message.
type decisions struct {
	t       *testing.T
	config  *Config
	key     keyexchange.SealKey
	rounds  int
	parts   bool                        // the sum is saved next to the state
	away    func(party, round int) bool // a party that misses a round
	kill    func() bool                 // at every save and every message
	inputs  [][][]uint64
	clients []*Client

	server *Server
	sums   [][][]uint64
	// What is on disk: the server's state and the sums that were taken.
	state []byte
	sum   []byte
	kept  int
}

// event is a moment at which the server may be killed.
func (d *decisions) event() error {
	if d.kill() {
		return errKilled
	}
	return nil
}

func (d *decisions) save() error {
	var sum bytes.Buffer
	state, err := d.server.Save(&d.key)
	if d.parts {
		var beside io.WriterTo
		if state, beside, err = d.server.SaveParts(&d.key); err == nil && beside != nil {
			_, err = beside.WriteTo(&sum)
		}
	}
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.event(); err != nil { // before it is on disk
		return err
	}
	if sum.Len() > 0 {
		d.sum = sum.Bytes() // first, in place of one that no state is with any more
	}
	if err := d.event(); err != nil {
		return err
	}
	d.state, d.kept = state, len(d.sums)
	return d.event()
}

func (d *decisions) load() *Server {
	server, err := ReadServer(d.config, &d.key, d.state, bytes.NewReader(d.sum))
	if err != nil {
		d.t.Fatal(err)
	}
	return server
}

// run takes all sums, however often the server is killed.
func (d *decisions) run() {
	if err := d.start(); err != nil {
		d.t.Fatal(err)
	}
	for {
		switch err := d.live(); {
		case err == nil:
			return
		case err != errKilled:
			d.t.Fatal(err)
		}
		d.sums = d.sums[:d.kept]
		d.server = d.load()
	}
}

func (d *decisions) start() (err error) {
	if d.server, err = NewServer(d.config); err != nil {
		return err
	}
	d.state, err = d.server.Save(&d.key)
	return err
}

// present reports whether a party is connected. A party that misses a round comes back
// when the round is over.
func (d *decisions) present(party int) bool {
	round := len(d.sums)
	return d.server.Step() <= StepBetween || d.away == nil || !d.away(party, round)
}

// live is the life of a server from its start to its end, or until it is killed.
func (d *decisions) live() error {
	if err := d.connect(); err != nil {
		return err
	}
	for len(d.sums) < d.rounds {
		for _, i := range d.server.Missing() {
			if d.present(i) {
				return fmt.Errorf("%v waits for party %d, which is there", d.server.Step(), i)
			}
		}
		state, err := d.server.Save(&d.key)
		if err != nil {
			return err
		}
		step := d.server.Step()
		twin, err := LoadServer(d.config, &d.key, state)
		if err != nil {
			return err
		}
		envelopes, err := d.decide()
		if err != nil {
			return err
		}
		if err := d.save(); err != nil {
			return err
		}
		d.checkPending(d.load(), envelopes)
		begins := step == StepBetween
		sums := step == StepReveal || step == StepMasked && d.config.Recovery == nil
		switch err := twin.EndStep(); {
		case begins || sums:
			if !errors.Is(err, ErrPhase) {
				d.t.Errorf("EndStep ends %v: %v", step, err)
			}
		case err != nil:
			d.t.Errorf("EndStep does not end %v: %v", step, err)
		default:
			d.checkPending(twin, envelopes)
		}
		for _, e := range envelopes {
			if d.present(e.To) {
				if err := d.toClient(e.To, e.Message); err != nil {
					return err
				}
			}
		}
		if d.server.Step() == StepBetween {
			if err := d.connect(); err != nil { // who was away comes back
				return err
			}
		}
	}
	return nil
}

// decide is the next call.
func (d *decisions) decide() ([]Envelope, error) {
	s := d.server
	switch s.Step() {
	case StepAnnounce:
		return s.Keys()
	case StepEncapsulate:
		return s.Members()
	case StepBetween:
		return s.Begin([]byte{byte(len(d.sums))})
	case StepMasked:
		if d.config.Recovery != nil {
			return s.Survivors()
		}
	case StepSigned:
		return s.Certificate()
	}
	sum, err := s.Sum()
	if err != nil {
		return nil, err
	}
	if want := sumOf(d.config.Layout, d.inputs, s.Included()); !equal(sum, want) {
		return nil, fmt.Errorf("a wrong sum of %v", s.Included())
	}
	for i := range d.clients {
		away := d.away != nil && d.away(i, len(d.sums))
		if slices.Contains(s.Included(), i) == away {
			return nil, fmt.Errorf("round %d: the sum is of %v", len(d.sums), s.Included())
		}
	}
	d.sums = append(d.sums, sum)
	return nil, nil
}

// checkPending compares the messages that were made with those that another server makes:
// one from what is on disk, or one that made none as it ended the step.
func (d *decisions) checkPending(loaded *Server, envelopes []Envelope) {
	d.t.Helper()
	if loaded.Step() != d.server.Step() {
		d.t.Errorf("%v comes back as %v", d.server.Step(), loaded.Step())
	}
	for _, e := range envelopes {
		pending := loaded.Pending(e.To)
		if len(pending) == 0 || !bytes.Equal(pending[len(pending)-1], e.Message) {
			d.t.Errorf("%v: party %d would not be sent the same again", d.server.Step(), e.To)
		}
	}
}

// connect has every party that is there send its last message, and take what is pending.
func (d *decisions) connect() error {
	for i, c := range d.clients {
		if !d.present(i) {
			continue
		}
		if err := d.toServer(i, c.Output()); err != nil {
			return err
		}
		if err := d.submit(i); err != nil {
			return err
		}
		for _, message := range d.server.Pending(i) {
			if err := d.toClient(i, message); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *decisions) toServer(from int, message []byte) error {
	if err := d.event(); err != nil { // it is lost on its way
		return err
	}
	err := d.server.Receive(from, message)
	if err != nil && !errors.Is(err, ErrDuplicate) && !errors.Is(err, ErrStale) {
		return fmt.Errorf("a message of party %d: %w", from, err)
	}
	return nil
}

func (d *decisions) toClient(to int, message []byte) error {
	if err := d.event(); err != nil {
		return err
	}
	answer, err := d.clients[to].Receive(message)
	switch {
	case errors.Is(err, ErrPhase), errors.Is(err, ErrReplay), errors.Is(err, ErrStale):
		return nil // it has had that, and has sent its answer
	case err != nil:
		return fmt.Errorf("a message to party %d: %w", to, err)
	}
	d.restart(to)
	if answer != nil {
		return d.toServer(to, answer)
	}
	return d.submit(to)
}

func (d *decisions) submit(party int) error {
	c := d.clients[party]
	if _, due := c.Due(); !due {
		return nil
	}
	message, err := c.Submit([]byte{byte(len(d.sums))}, d.inputs[party]...)
	if err != nil {
		return err
	}
	d.restart(party)
	return d.toServer(party, message)
}

// restart has a party saved and loaded, as if it were killed before it sends.
func (d *decisions) restart(party int) {
	state, err := d.clients[party].Save(&d.key)
	if err != nil {
		d.t.Fatal(err)
	}
	c := d.clients[party]
	if d.clients[party], err = LoadClient(d.config, c.identity, nil, &d.key, state); err != nil {
		d.t.Fatal(err)
	}
}

// A server's decisions are all that it has to save: killed at any moment, before or after
// any save and any message, it goes on from the last of them, and no round is lost, nobody
// is left out and no sum is wrong. First every moment of a session, one by one; then many
// at random.
func TestDecisionsSuffice(t *testing.T) {
	const n, rounds = 4, 3
	signers, roster := parties(t, n)
	layout := masking.Layout{{Length: 3, Bits: 20}}
	in, _ := inputs(2, layout, n)
	missed := func(party, round int) bool { return party == 2 && round == 1 }
	for name, c := range map[string]struct {
		config Config
		away   func(party, round int) bool
		parts  bool
	}{
		"without recovery":           {config: Config{}},
		"classical":                  {config: Config{Classical: true, Recovery: new(Recovery)}},
		"with recovery":              {config: Config{Recovery: &Recovery{Threshold: 2}}, away: missed},
		"in parts":                   {config: Config{Recovery: &Recovery{Threshold: 2}}, away: missed, parts: true},
		"in parts, without recovery": {parts: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Roster, c.config.Layout = roster, layout
			session := func(kill func() bool) {
				d := &decisions{
					t: t, config: &c.config, key: keyexchange.SealKey{1}, rounds: rounds, away: c.away,
					kill: kill, inputs: in, parts: c.parts,
				}
				for i := range signers {
					client, err := NewClient(&c.config, signers[i], nil)
					if err != nil {
						t.Fatal(err)
					}
					d.clients = append(d.clients, client)
				}
				d.run()
			}
			events := 0
			session(func() bool { events++; return false })
			t.Logf("%d moments", events)
			// Every moment in the long form; else some, spread out.
			step := suite.Size(10, 10, 1, 1)
			for at := 0; at < events; at += step {
				now := -1
				session(func() bool { now++; return now == at })
			}
			rng := rand.New(rand.NewPCG(7, 0))
			for range suite.Size(8, 8, 20, 20) {
				session(func() bool { return rng.IntN(20) == 0 })
			}
		})
	}
}
