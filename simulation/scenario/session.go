package scenario

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation/clock"
)

// session is one private sum: the parties that are in it and who adds up.
type session struct {
	run     *run
	config  *protocol.Config
	parties []*party // in the order of the roster
	clients []*protocol.Client
	codec   *codec
	hubs    []*hub
	held    []*submission // what parties submitted in the open round, for their own use
}

// hub is a server, or the server's part that a party takes for itself.
type hub struct {
	session *session
	place   string
	owner   int // in the session, −1 for a server
	server  *protocol.Server

	early    []letter // that are not due yet
	then     func()   // when nothing is missing; nil: it does not wait
	deadline *clock.Event

	sum      [][]uint64
	included []int
	over     bool
	done     time.Duration // when it had the sum
	failed   error
}

// letter is a message to a hub.
type letter struct {
	from    int
	message []byte
}

// newSession makes the session of some parties, with fresh keys.
func (r *run) newSession(number uint64, place string, parties []*party) (*session, error) {
	s := &session{run: r, parties: parties, clients: make([]*protocol.Client, len(parties))}
	members := make([]keyexchange.Member, len(parties))
	identities := make([]crypto.Signer, len(parties))
	for i, p := range parties {
		identities[i] = p.identity
		members[i] = keyexchange.Member{
			Name: "party-" + strconv.Itoa(p.index+1), // names of scenarios may be any text
			Key:  p.identity.Public().(ed25519.PublicKey),
		}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	if s.codec, err = r.newCodec(parties); err != nil {
		return nil, err
	}
	s.config = r.config(len(parties))
	s.config.Roster, s.config.Layout, s.config.Number = roster, s.codec.layout, number
	s.config.Label = "hushsum scenario " + place
	for i := range s.clients {
		if s.clients[i], err = protocol.NewClient(s.config, identities[i], nil); err != nil {
			return nil, err
		}
	}
	if r.Sum.Topology != Serverless {
		s.hubs = []*hub{{session: s, place: place, owner: -1}}
	} else {
		for i, p := range parties {
			s.hubs = append(s.hubs, &hub{session: s, place: p.place, owner: i})
		}
	}
	for _, h := range s.hubs {
		if h.server, err = protocol.NewServer(s.config); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// config is that of a session of n parties, less its roster, layout, label and number.
func (s *Scenario) config(n int) *protocol.Config {
	c := &protocol.Config{Colluders: s.Privacy.Colluders}
	r := s.Recovery
	if r == nil {
		return c
	}
	c.Classical = r.Classical
	c.Recovery = &protocol.Recovery{
		Adversary:    protocol.CheatingServer,
		MinSurvivors: s.fewest(n),
		Degree:       s.Sum.Degree,
	}
	switch r.Adversary {
	case "curious":
		c.Recovery.Adversary = protocol.CuriousServer
	case "semi-malicious":
		c.Recovery.Adversary = protocol.SemiMaliciousServer
	}
	if s.Sum.Degree == 0 { // the least thresholds that keep the promise
		c.Recovery.Threshold = c.Colluders + 1
		if c.Recovery.Adversary != protocol.CuriousServer {
			c.Recovery.Threshold = (n-1+c.Colluders)/2 + 1
		}
	}
	return c
}

// trial is a configuration of n parties to be checked, with keys that anybody knows.
func (s *Scenario) trial(n int) (*protocol.Config, error) {
	members := make([]keyexchange.Member, n)
	for i := range members {
		seed := [ed25519.SeedSize]byte{byte(i), byte(i >> 8), byte(i >> 16)}
		key := ed25519.NewKeyFromSeed(seed[:])
		members[i] = keyexchange.Member{Name: fmt.Sprint(i), Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	c := s.config(n)
	c.Roster, c.Label, c.Layout = roster, "trial", masking.Layout{{Length: 1, Bits: 8}}
	return c, nil
}

// erase forgets all keys.
func (s *session) erase() {
	for _, c := range s.clients {
		c.Erase()
	}
}

// toHubs sends a party's message to whoever adds up, when it is made.
func (s *session) toHubs(from int, message []byte, at time.Duration) {
	if message == nil {
		return
	}
	p := s.parties[from]
	for _, h := range s.hubs {
		took := time.Duration(0)
		if h.owner != from {
			p.sent += len(message)
			took = s.run.transit(p.place, h.place, len(message))
		}
		s.run.at(at+took, func() { h.receive(letter{from, message}) })
	}
}

// receive takes a message, or keeps it until it is due.
func (h *hub) receive(l letter) {
	if h.over {
		return
	}
	if h.owner < 0 || h.owner != l.from {
		h.session.run.received += len(l.message)
	}
	err := h.server.Receive(l.from, l.message)
	if errors.Is(err, protocol.ErrPhase) {
		h.early = append(h.early, l)
		return
	}
	h.look() // what is refused for another reason came too late
}

// wait has something happen when nothing is missing any more, or when time is up.
func (h *hub) wait(then func()) {
	h.then = then
	// Set-up is beside the rounds: it can wait for those who are busy.
	if limit := h.session.run.StepTime.Duration; limit > 0 && !h.session.run.setting {
		h.deadline = h.session.run.clock.After(limit, h.fire)
	}
	early := h.early
	h.early = nil
	for _, l := range early {
		if errors.Is(h.server.Receive(l.from, l.message), protocol.ErrPhase) {
			h.early = append(h.early, l)
		}
	}
	h.look()
}

func (h *hub) look() {
	if h.then != nil && len(h.server.Missing()) == 0 {
		h.fire()
	}
}

func (h *hub) fire() {
	h.session.run.clock.Cancel(h.deadline)
	then := h.then
	h.then, h.deadline = nil, nil
	if then != nil {
		then()
	}
}

// deliver sends what the server has made to the parties, and their answers back.
func (h *hub) deliver(step string, envelopes []protocol.Envelope) {
	s := h.session
	for _, e := range envelopes {
		if h.owner >= 0 && e.To != h.owner {
			continue // that party makes it for itself
		}
		p, took := s.parties[e.To], time.Duration(0)
		if h.owner < 0 {
			p.got += len(e.Message)
			took = s.run.transit(h.place, p.place, len(e.Message))
		}
		s.run.travelling++
		s.run.clock.After(took, func() {
			s.run.travelling--
			s.take(e.To, step, e.Message)
		})
	}
}

// take has a party take a message and answer.
func (s *session) take(i int, step string, message []byte) {
	r, p := s.run, s.parties[i]
	if p.downAt(r.round, step) {
		return
	}
	begin := max(r.clock.Now(), p.busy)
	answer, err := s.clients[i].Receive(message)
	if err != nil {
		r.note(fmt.Sprintf("%s refused a message of %s", p.name, step))
		return
	}
	p.busy = begin + r.work(p, step, len(s.parties))
	if step != stepBegin {
		s.toHubs(i, answer, p.busy)
		return
	}
	if _, due := s.clients[i].Due(); !due || p.downAt(r.round, stepSubmit) {
		return
	}
	made, err := r.submission(s, i)
	if err != nil {
		r.fail(err)
		return
	}
	s.held[i] = made
	if answer, err = s.clients[i].Submit(r.broadcast, made.values...); err != nil {
		r.fail(err)
		return
	}
	p.busy = begin + r.workRound(p, made, len(s.parties))
	s.toHubs(i, answer, p.busy)
}

// The steps of a session, as parties know them.
const (
	stepKeys      = "keys"
	stepMembers   = "members"
	stepInvite    = "invite"
	stepBegin     = AtBegin
	stepSubmit    = AtSubmit
	stepSurvivors = AtSign
	stepReveal    = AtReveal
)

// setUp has the parties announce, and goes on until the session stands.
func (s *session) setUp() {
	for _, h := range s.hubs {
		h.wait(func() {
			h.make(stepKeys, h.server.Keys, func() {
				h.make(stepMembers, h.server.Members, func() { h.over = true })
			})
		})
	}
	for i, c := range s.clients {
		p := s.parties[i]
		p.busy = max(s.run.clock.Now(), p.busy) + s.run.work(p, "announce", len(s.parties))
		s.toHubs(i, c.Announce(), p.busy)
	}
}

// make has the server make messages after the time that this takes it, delivers them,
// and waits for the answers.
func (h *hub) make(step string, next func() ([]protocol.Envelope, error), then func()) {
	h.session.run.clock.After(h.session.run.serverWork(step, h), func() {
		envelopes, err := next()
		if err != nil {
			h.end(err)
			return
		}
		h.deliver(step, envelopes)
		h.wait(then)
	})
}

// begin begins a round.
func (h *hub) begin() {
	h.over, h.sum, h.included, h.failed = false, nil, nil, nil
	round := func() {
		h.make(stepBegin, func() ([]protocol.Envelope, error) {
			return h.server.Begin(h.session.run.broadcast)
		}, h.submitted)
	}
	if h.session.config.Recovery == nil {
		round()
		return
	}
	h.make(stepInvite, h.server.Invite, round)
}

// submitted goes on when the submissions are in.
func (h *hub) submitted() {
	if h.session.config.Recovery == nil {
		h.finish()
		return
	}
	h.make(stepSurvivors, h.server.Survivors, func() {
		h.make(stepReveal, h.server.Certificate, h.finish)
	})
}

// finish takes the sum.
func (h *hub) finish() {
	h.session.run.clock.After(h.session.run.serverWork("sum", h), func() {
		sum, err := h.server.Sum()
		if err == nil {
			h.sum, h.included = sum, h.server.Included()
			if h.session.config.Recovery == nil {
				h.included = everybody(len(h.session.parties))
			}
		}
		h.end(err)
	})
}

func (h *hub) end(err error) {
	h.failed, h.over = err, true
	h.early = nil
	h.session.run.hubDone(h)
}

func everybody(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// sameSum reports whether all hubs that have a sum have the same.
func (s *session) sameSum() bool {
	var first *hub
	for _, h := range s.hubs {
		if h.sum == nil {
			continue
		}
		if first == nil {
			first = h
		}
		if !slices.Equal(h.included, first.included) ||
			!slices.EqualFunc(h.sum, first.sum, slices.Equal[[]uint64]) {
			return false
		}
	}
	return true
}
