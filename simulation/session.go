package simulation

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// sessionLabel keeps signatures made in a simulation from serving elsewhere.
const sessionLabel = "hushsum simulation"

// session is a private sum among simulated parties, round after round: who they
// are, what they and the server hold, and who drops out. What the vectors mean is
// not its business.
type session struct {
	config     *protocol.Config
	identities []crypto.Signer
	server     *protocol.Server
	clients    []*protocol.Client
	drops      *dropOuts
	now        func() time.Time
	progress   func(round, done int) // may be nil
	shown      [2]int                // the round and the number that progress was last called with
}

func partyName(i int) string { return fmt.Sprintf("party-%d", i+1) }

// newSession makes identities and roster of n parties. Identities are long-term
// keys that exist before any session, so that making them is no part of the cost.
// config has all but label and roster.
func newSession(n int, config protocol.Config, drops *dropOuts, now func() time.Time, progress func(round, done int)) (*session, error) {
	members := make([]keyexchange.Member, n)
	s := &session{
		config: &config, identities: make([]crypto.Signer, n), clients: make([]*protocol.Client, n),
		drops: drops, now: now, progress: progress, shown: [2]int{-1},
	}
	if now == nil {
		s.now = func() time.Time { return time.Time{} }
	}
	for i := range members {
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return nil, err
		}
		s.identities[i] = identity
		members[i] = keyexchange.Member{Name: partyName(i), Key: identity.Public().(ed25519.PublicKey)}
	}
	var err error
	config.Label = sessionLabel
	config.Roster, err = keyexchange.NewRoster(members)
	return s, err
}

func (s *session) erase() {
	for _, c := range s.clients {
		if c != nil {
			c.Erase()
		}
	}
}

// each calls work for 0 to n − 1, several at a time; work says which party it was.
// index is the step of the round that this is, −1 for one that progress does not
// show.
func (s *session) each(ctx context.Context, round, index, n int, work func(i int) (party int, err error)) error {
	steps := 1
	if s.config.Recovery != nil && round > 0 {
		steps = 3 // submit, sign, reveal
	}
	progress := func(done int) {
		if s.progress == nil || index < 0 {
			return
		}
		parties := len(s.clients)
		now := [2]int{round, (index*parties + done*parties/max(n, 1)) / steps}
		if now != s.shown {
			s.progress(now[0], now[1])
			s.shown = now
		}
	}
	progress(0)
	return parallel(ctx, n, func(i int) error {
		party, err := work(i)
		if err != nil && ctx.Err() == nil {
			return failure(round, party, err)
		}
		return err
	}, progress)
}

// setUp runs the key exchange and, with recovery, takes the material for the
// first round. The cost is the mean over parties.
func (s *session) setUp(ctx context.Context) (Cost, error) {
	now := s.now
	n := len(s.clients)
	times := make([]time.Duration, n)
	var cost Cost

	start := now()
	server, err := protocol.NewServer(s.config)
	if err != nil {
		return cost, err
	}
	s.server = server
	cost.Server += now().Sub(start)
	for i, identity := range s.identities {
		if err := ctx.Err(); err != nil {
			return cost, err
		}
		start := now()
		client, err := protocol.NewClient(s.config, identity, nil)
		if err != nil {
			return cost, failure(0, i, err)
		}
		announce := client.Announce()
		times[i] = now().Sub(start)
		s.clients[i] = client

		start = now()
		if err := s.server.Receive(i, announce); err != nil {
			return cost, failure(0, i, err)
		}
		cost.Server += now().Sub(start)
		cost.BytesUp += int64(len(announce))
	}
	// With hybrid keys the parties answer Keys with ciphertexts and Members with the
	// material for the first round; with classical keys there is no Members.
	for step, next := range []func() ([]protocol.Envelope, error){s.server.Keys, s.server.Members} {
		start := now()
		envelopes, err := next()
		if err != nil {
			return cost, err
		}
		cost.Server += now().Sub(start)
		answers := make([][]byte, n)
		err = s.each(ctx, 0, -step, len(envelopes), func(k int) (int, error) {
			i := envelopes[k].To
			start := now()
			answer, err := s.clients[i].Receive(envelopes[k].Message)
			times[i] += now().Sub(start)
			answers[i] = answer
			return i, err
		})
		if err != nil {
			return cost, err
		}
		for _, e := range envelopes {
			cost.BytesDown += int64(len(e.Message))
		}
		start = now()
		for i, answer := range answers {
			if answer == nil {
				continue
			}
			if err := s.server.Receive(i, answer); err != nil {
				return cost, failure(0, i, err)
			}
			cost.BytesUp += int64(len(answer))
		}
		cost.Server += now().Sub(start)
	}
	for i := range times {
		cost.Client += times[i]
	}
	return cost.perParty(n), nil
}

// perParty turns sums over all parties into means.
func (c Cost) perParty(n int) Cost {
	c.BytesUp /= int64(n)
	c.BytesDown /= int64(n)
	c.Train /= time.Duration(n)
	c.Client /= time.Duration(n)
	return c
}

// submission is what a party makes of the broadcast.
type submission struct {
	values [][]uint64
	train  time.Duration // of local training
	aside  time.Duration // of what is no part of the private sum, such as a comparison
}

// exchange is one round of a session while it lasts.
type exchange struct {
	*session
	round     int
	leaves    []moment // by party
	broadcast []byte
	submit    func(ctx context.Context, party int) (submission, error)
	turns     []turn        // by party
	worked    time.Duration // by the server
}

// turn is what one party did in one round.
type turn struct {
	message []byte // its last answer, until the server takes it
	part    bool   // it was told of the round
	cost    Cost
}

// outcome is what a round came to.
type outcome struct {
	sum      [][]uint64 // nil if the round is lost
	included []int      // whose submissions are in the sum
	dropped  int        // of those who were told of the round
	lost     error      // protocol.ErrTooFew: too few were left to unmask anything
	cost     Cost       // of one party, the mean over all; of the server
}

// play runs one round. submit is called for every party that takes part and has
// not dropped out by then, several at a time. A round that has too few parties to
// unmask anything is lost, which is no error. An error of the server is as package
// protocol has it, one of a party a RoundError.
func (s *session) play(ctx context.Context, round int, broadcast []byte, submit func(ctx context.Context, party int) (submission, error)) (outcome, error) {
	x := &exchange{session: s, round: round, leaves: s.drops.next(len(s.clients)), broadcast: broadcast, submit: submit, turns: make([]turn, len(s.clients))}
	var out outcome
	sum, err := x.run(ctx)
	var party *RoundError
	switch {
	case err == nil:
		out.sum, out.included = sum, s.server.Included()
	case s.config.Recovery != nil && errors.Is(err, protocol.ErrTooFew) && !errors.As(err, &party):
		out.lost = err
	default:
		return out, err
	}
	out.cost.Server = x.worked
	parts := 0
	for i := range x.turns {
		out.cost.add(x.turns[i].cost)
		if !x.turns[i].part {
			continue
		}
		parts++
		if x.leaves[i] != never {
			out.dropped++
		}
	}
	out.cost = out.cost.perParty(max(parts, 1))
	return out, nil
}

// skip leaves a round out, so that sessions that go together keep step; s may be nil.
func (s *session) skip() error {
	if s == nil {
		return nil
	}
	s.drops.next(len(s.clients))
	return s.server.Skip()
}

// run passes all messages of the round.
func (x *exchange) run(ctx context.Context) (sum [][]uint64, err error) {
	begin := func() ([]protocol.Envelope, error) { return x.server.Begin(x.broadcast) }
	if x.config.Recovery == nil {
		err = x.step(ctx, 0, begin, x.takePart)
	} else {
		// Who dropped out of the last round comes back first.
		err = x.step(ctx, -1, x.server.Invite, x.answer)
		for i, step := range []struct {
			send func() ([]protocol.Envelope, error)
			take func(context.Context, int, []byte) error
		}{
			{begin, x.takePart},
			{x.server.Survivors, x.answerUnless(beforeSign)},
			{x.server.Certificate, x.answerUnless(beforeReveal)},
		} {
			if err == nil {
				err = x.step(ctx, i, step.send, step.take)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	err = x.serve(func() (err error) {
		sum, err = x.server.Sum()
		return err
	})
	return sum, err
}

// serve has the server work.
func (x *exchange) serve(work func() error) error {
	start := x.now()
	err := work()
	x.worked += x.now().Sub(start)
	return err
}

// step has the server make messages, the parties take them, and the server take
// their answers. index is for progress, −1 for none.
func (x *exchange) step(ctx context.Context, index int, send func() ([]protocol.Envelope, error), take func(context.Context, int, []byte) error) error {
	var envelopes []protocol.Envelope
	err := x.serve(func() (err error) {
		envelopes, err = send()
		return err
	})
	if err != nil {
		return err
	}
	err = x.each(ctx, x.round, index, len(envelopes), func(i int) (int, error) {
		return envelopes[i].To, take(ctx, envelopes[i].To, envelopes[i].Message)
	})
	if err != nil {
		return err
	}
	return x.serve(func() error {
		for i := range x.turns {
			t := &x.turns[i]
			if t.message == nil {
				continue
			}
			if err := x.server.Receive(i, t.message); err != nil {
				return failure(x.round, i, err)
			}
			t.cost.BytesUp += int64(len(t.message))
			t.message = nil
		}
		return nil
	})
}

// answer has a party take a message of the server.
func (x *exchange) answer(_ context.Context, i int, message []byte) (err error) {
	t := &x.turns[i]
	start := x.now()
	t.message, err = x.clients[i].Receive(message)
	t.cost.Client += x.now().Sub(start)
	t.cost.BytesDown += int64(len(message))
	return err
}

// answerUnless is answer for parties that have not dropped out by then.
func (x *exchange) answerUnless(gone moment) func(context.Context, int, []byte) error {
	return func(ctx context.Context, i int, message []byte) error {
		if x.leaves[i] <= gone {
			return nil
		}
		return x.answer(ctx, i, message)
	}
}

// takePart is a party's part of a round up to its submission.
func (x *exchange) takePart(ctx context.Context, i int, begin []byte) error {
	t := &x.turns[i]
	t.part = true
	if err := x.answer(ctx, i, begin); err != nil {
		return err
	}
	t.cost.BytesDown += int64(len(x.broadcast))
	if x.leaves[i] == beforeSubmit {
		return nil
	}
	start := x.now()
	made, err := x.submit(ctx, i)
	if err != nil {
		return err
	}
	if t.message, err = x.clients[i].Submit(x.broadcast, made.values...); err != nil {
		return err
	}
	t.cost.Train = made.train
	t.cost.Client += x.now().Sub(start) - made.train - made.aside
	return nil
}
