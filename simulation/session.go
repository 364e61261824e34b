package simulation

import (
	"context"
	"crypto/ed25519"
	"errors"
	"time"

	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/protocol"
)

// session is a private sum among simulated parties, round after round: who they
// are, what they and the server hold, who drops out, and what all that costs. What the
// vectors mean is not its business. A protocol.Carrier carries the messages.
type session struct {
	identities []ed25519.PrivateKey
	carrier    protocol.Carrier[*protocol.Server, *member]
	drops      *dropOuts
	now        func() time.Time
	progress   func(round, done int) // may be nil
	shown      [2]int                // the round and the number that progress was last called with

	// The round that is under way.
	ctx    context.Context
	round  int
	step   int      // of the round, for progress; −1: one that it does not show
	gone   moment   // who left at that moment, or before, gets no message
	leaves []moment // by party
	turns  []turn   // by party
	worked time.Duration
}

// turn records what one party did in one round.
type turn struct {
	part bool // it was told of the round
	cost Cost
}

// member is a party, whose failures say which it is.
type member struct {
	*protocol.Client
	session *session
}

// Submit calls the client's Submit.
func (m *member) Submit(broadcast []byte, values ...[]uint64) ([]byte, error) {
	message, err := m.Client.Submit(broadcast, values...)
	if err != nil {
		return nil, failure(m.session.round, m.Party(), err)
	}
	return message, nil
}

// newSession makes a session of the configuration, whose roster is of these keys.
func newSession(
	keys []ed25519.PrivateKey, config *protocol.Config, drops *dropOuts, now func() time.Time,
	progress func(round, done int),
) *session {
	s := &session{
		identities: keys,
		drops:      drops,
		now:        now,
		progress:   progress,
		shown:      [2]int{-1},
	}
	s.carrier = protocol.Carrier[*protocol.Server, *member]{
		Config:  config,
		Carry:   s.carry,
		Refused: s.refused,
		Work:    s.work,
		Each:    s.each,
	}
	return s
}

func (s *session) erase() {
	for _, c := range s.carrier.Clients {
		c.Erase()
	}
}

// carry counts the bytes of a message, unless its receiver has dropped out.
func (s *session) carry(from, to int, message []byte) []byte {
	if from >= 0 {
		s.turns[from].cost.BytesUp += int64(len(message))
		return message
	}
	if s.leaves[to] <= s.gone {
		return nil
	}
	s.turns[to].cost.BytesDown += int64(len(message))
	return message
}

// refused names the party that refused a message, or whose message was refused.
func (s *session) refused(from, to int, err error) error {
	return failure(s.round, max(from, to), err)
}

// work measures how long a party works, or the server.
func (s *session) work(party int) (done func()) {
	spent := &s.worked
	if party >= 0 {
		spent = &s.turns[party].cost.Client
	}
	start := s.now()
	return func() { *spent += s.now().Sub(start) }
}

// each has parties work several at a time, and shows progress.
func (s *session) each(n int, work func(i int) error) error {
	steps := 1
	if s.carrier.Config.Recovery != nil && s.round > 0 {
		steps = 3 // submit, sign, reveal
	}
	progress := func(done int) {
		if s.progress == nil || s.step < 0 {
			return
		}
		parties := len(s.turns)
		now := [2]int{s.round, (s.step*parties + done*parties/max(n, 1)) / steps}
		if now != s.shown {
			s.progress(now[0], now[1])
			s.shown = now
		}
	}
	progress(0)
	return cores.Each(s.ctx, n, work, progress)
}

// begin forgets what was under way.
func (s *session) begin(ctx context.Context, round int, leaves []moment) {
	s.ctx, s.round, s.step, s.gone, s.worked = ctx, round, 0, -1, 0
	s.leaves, s.turns = leaves, make([]turn, len(s.identities))
}

// setUp runs the key exchange and, with recovery, takes the material for the
// first round. The cost is the mean over parties.
func (s *session) setUp(ctx context.Context) (cost Cost, err error) {
	s.begin(ctx, 0, make([]moment, len(s.identities)))
	done := s.work(-1)
	s.carrier.Server, err = protocol.NewServer(s.carrier.Config)
	done()
	if err != nil {
		return cost, err
	}
	for i, identity := range s.identities {
		if err := ctx.Err(); err != nil {
			return cost, err
		}
		done := s.work(i)
		client, err := protocol.NewClient(s.carrier.Config, identity, nil)
		done()
		if err != nil {
			return cost, failure(0, i, err)
		}
		s.carrier.Clients = append(s.carrier.Clients, &member{client, s})
	}
	for i, c := range s.carrier.Clients {
		if err := s.carrier.ToServer(i, c.Announce()); err != nil {
			return cost, err
		}
	}
	if err := s.carrier.Step(s.carrier.Server.Keys); err != nil {
		return cost, err
	}
	s.step = -1
	if err := s.carrier.Step(s.carrier.Server.Members); err != nil {
		return cost, err
	}
	for i := range s.turns {
		cost.add(s.turns[i].cost)
	}
	cost = cost.perParty(len(s.turns))
	cost.Server = s.worked
	return cost, nil
}

// play runs one round. submit is called for every party that takes part and has
// not dropped out by then, several at a time. A round that has too few parties to
// unmask anything is lost, which is no error. An error of the server is as package
// protocol has it, one of a party a RoundError.
func (s *session) play(
	ctx context.Context, round int, broadcast []byte, submit submitter,
) (outcome, error) {
	s.begin(ctx, round, s.drops.next(len(s.identities)))
	var out outcome
	sum, err := s.exchange(broadcast, submit)
	var party *RoundError
	switch {
	case err == nil:
		out.sum, out.included = sum, s.carrier.Server.Included()
	case s.carrier.Config.Recovery != nil && errors.Is(err, protocol.ErrTooFew) &&
		!errors.As(err, &party):
		out.lost = err
	default:
		return out, err
	}
	parts := 0
	for i := range s.turns {
		out.cost.add(s.turns[i].cost)
		if !s.turns[i].part {
			continue
		}
		parts++
		if s.leaves[i] != never {
			out.dropped++
		}
	}
	out.cost = out.cost.perParty(max(parts, 1))
	out.cost.Server = s.worked
	return out, nil
}

// skip leaves a round out, so that sessions that go together keep step.
func (s *session) skip() error {
	s.drops.next(len(s.identities))
	return s.carrier.Server.Skip()
}

// exchange passes all messages of the round.
func (s *session) exchange(broadcast []byte, submit submitter) ([][]uint64, error) {
	c, server := &s.carrier, s.carrier.Server
	s.step = -1
	if c.Config.Recovery != nil {
		// Who dropped out of the last round comes back first.
		if err := c.Step(server.Invite); err != nil {
			return nil, err
		}
	}
	if err := c.Step(func() ([]protocol.Envelope, error) {
		return server.Begin(broadcast)
	}); err != nil {
		return nil, err
	}
	s.step = 0
	if err := c.Submit(broadcast, s.input(broadcast, submit)); err != nil {
		return nil, err
	}
	if c.Config.Recovery != nil {
		for i, send := range []func() ([]protocol.Envelope, error){server.Survivors, server.Certificate} {
			s.step, s.gone = 1+i, beforeSign+moment(i)
			if err := c.Step(send); err != nil {
				return nil, err
			}
		}
	}
	defer s.work(-1)()
	return server.Sum()
}

// input has a party that was told of the round train and encode, unless it has dropped
// out.
func (s *session) input(broadcast []byte, submit submitter) func(i int) ([][]uint64, error) {
	return func(i int) ([][]uint64, error) {
		t := &s.turns[i]
		t.part = true
		t.cost.BytesDown += int64(len(broadcast))
		if s.leaves[i] == beforeSubmit {
			return nil, nil
		}
		start := s.now()
		made, err := submit(s.ctx, i)
		if err != nil {
			if s.ctx.Err() == nil {
				err = failure(s.round, i, err)
			}
			return nil, err
		}
		t.cost.Train = made.train
		t.cost.Client += s.now().Sub(start) - made.train - made.aside
		return made.values, nil
	}
}
