package hushsum

import (
	"bytes"
	"context"
	"crypto"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// ErrRefused: the coordinator does not go on with this party, for the reason given.
var ErrRefused = errors.New("hushsum: the coordinator refuses this party")

// ErrNumber: a session's number was used before. A party makes keys for a number once.
var ErrNumber = errors.New("hushsum: the number of the session has been used")

// Participant is one party of a job. Set the fields, then call Run.
type Participant struct {
	Plan     *Settled
	Identity crypto.Signer // Ed25519, of the plan's roster
	Dialer   Dialer

	// Work returns this party's vector for a round, made from the model that the
	// coordinator has sent: the change that training on the party's own data makes to
	// it, say. Both have Length coordinates; model is good until Work returns. It is called
	// once or more for a round; an error of it is an absence in that round, and is reported
	// to Progress.
	Work func(ctx context.Context, round uint64, model []float64) ([]float64, error)

	// Store keeps what the party must not lose when its process ends; nil: nothing does,
	// and a party that is started again takes part from the next session on, or with
	// Oneshot from LeastNumber on. Key seals it, and must be set with Store.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	// LeastNumber is the least number of a session that the party may take part in. It
	// is for a party that lost its state: ask the coordinator for a number that it has
	// not used with this party. A stored state knows better. With Oneshot it is the least
	// number of a round.
	LeastNumber uint64
	// Spent, from 1 to the plan's Rounds, is the party's word that its state is lost, and
	// how many of the rounds count as spent by it: all that it may have submitted to, 1 if
	// that is none. It takes a LeastNumber. The party then starts without a state where the
	// Counter knows of one that Store does not have, or has an older one of; with 0 that is
	// [ErrOldState]. A stored state that is the newest knows better. Set it to 0 again once
	// the party has run.
	Spent int

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil

	// Submitted is shown each submission, noise and all, before it is masked: for tests
	// that compare sums. It may be called again for a round whose submission was not
	// sent yet. May be nil.
	Submitted func(round uint64, values [][]uint64)
}

// participantState is what a participant saves.
type participantState struct {
	Least   uint64
	Clients []clientState
	Kept    []byte // digest of the submission that is kept beside the state
}

// submissionName is that of what is kept.
const submissionName = "submission"

type clientState struct {
	Number uint64
	State  []byte // of protocol.Client.Save
}

// partyClient is the party in one session.
type partyClient struct {
	*protocol.Client
	number uint64
}

// participant is a running Participant.
type participant struct {
	Participant
	vault *vault // nil without a store
	least uint64
	// The sessions that the party has keys for: the present one, if there is one, and
	// after it what is to follow. Whichever begins a round ends those before it.
	clients   []*partyClient
	longest   int        // message of a session
	coming    coming     // a body of which parts have come
	broadcast *broadcast // the last that came
	// The last submission, until the next one, and the digest of the copy in the store.
	submission *protocol.Submission
	kept       []byte
	link       Link
}

// Run takes part until the job is done and returns the last model. It dials again
// whenever the connection breaks. It fails with the context's error; with [ErrConfig] if
// a field is of no use; with [ErrPlan] if the coordinator has another plan, and [ErrPeer] if
// it is another, or does not know this party; with [ErrOldState] or [ErrStore], if what is
// stored is of no use; with [ErrLocked], if somebody else uses the Store; and with errors of
// it.
func (p *Participant) Run(ctx context.Context) ([]float64, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Plan.oneshot != nil {
		return p.runOneshot(ctx)
	}
	r := &participant{Participant: *p, least: p.LeastNumber}
	r.longest = p.Plan.Config(0).MaxMessage()
	defer func() { r.vault.close() }()
	if err := r.load(); err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range r.clients {
			c.Erase()
		}
	}()
	return redial(ctx, r.report, r.connection)
}

// redial connects until a connection is done or has failed for good.
func redial(
	ctx context.Context, report func(Event),
	connection func(ctx context.Context) (model []float64, done bool, err error),
) ([]float64, error) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		began := time.Now()
		model, done, err := connection(ctx)
		switch {
		case done:
			return model, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case fatal(err):
			return nil, err
		}
		report(Event{Kind: Disconnected, Err: err})
		if time.Since(began) > longestWait {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Waits between two attempts to connect.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second
)

// storeError marks errors that another connection does not mend.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

func fatal(err error) bool {
	var s storeError
	return errors.Is(err, ErrConfig) || errors.Is(err, keyexchange.ErrSigner) ||
		errors.Is(err, ErrPlan) || errors.Is(err, ErrRefused) ||
		errors.Is(err, ErrPeer) || errors.As(err, &s)
}

func (p *participant) report(e Event) {
	if p.Progress != nil {
		p.Progress(e)
	}
}

// connection dials, takes what comes, and answers, until the connection breaks or the
// job is done.
func (p *participant) connection(ctx context.Context) (model []float64, done bool, err error) {
	if p.link, err = p.Dialer.Dial(ctx); err != nil {
		return nil, false, err
	}
	defer p.link.Close()
	greeting := p.Plan.greeting()
	greeting.Least = p.least
	for _, c := range p.clients {
		greeting.Sessions = append(greeting.Sessions, c.number)
	}
	if err := p.link.Send(ctx, jsonFrame(frameHello, greeting)); err != nil {
		return nil, false, err
	}
	p.report(Event{Kind: Connected})
	p.coming = coming{}
	// What was made last may never have arrived. Who has it refuses the copy.
	for _, c := range p.clients {
		if err := p.again(ctx, c); err != nil {
			return nil, false, err
		}
	}
	for {
		kind, body, err := receive(ctx, p.link)
		if err != nil {
			return nil, false, err
		}
		switch kind {
		case frameJoin:
			err = p.join(ctx, body)
		case framePart:
			err = p.part(body)
		case frameMessage:
			if body, err = p.rest(body); err == nil {
				err = p.message(ctx, body)
			}
		case frameBroadcast:
			if p.broadcast, err = p.restOfBroadcast(kind, body); err == nil {
				err = p.submit(ctx)
			}
		case frameEnd:
			last, err := p.restOfBroadcast(kind, body)
			if err != nil {
				return nil, false, err
			}
			return last.model, true, nil
		default:
			err = fmt.Errorf("%w: kind %d", ErrFrame, kind)
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// receive takes a frame of the coordinator. It fails if that is a refusal.
func receive(ctx context.Context, link Link) (kind byte, body []byte, err error) {
	in, err := link.Receive(ctx)
	switch {
	case err != nil:
		return 0, nil, err
	case len(in) == 0:
		return 0, nil, ErrFrame
	case in[0] == frameRefusal:
		return 0, nil, refused(in[1:])
	}
	return in[0], in[1:], nil
}

// again sends the last message of a session once more.
func (p *participant) again(ctx context.Context, c *partyClient) error {
	if _, kept := c.Kept(); !kept {
		return p.link.Send(ctx, frame(frameMessage, c.Output()))
	}
	send := func(frame []byte) error { return p.link.Send(ctx, frame) }
	if p.submission != nil {
		return sendBody(frameMessage, p.submission, send)
	}
	file, err := p.vault.get(submissionName, p.kept)
	if err != nil { // the round goes on without this party
		p.report(Event{Kind: Absent, Session: c.number, Err: err})
		return nil
	}
	defer file.Close()
	w := newPieceWriter(frameMessage, send)
	if _, err := io.Copy(w, file); err != nil {
		return err
	}
	return w.Close()
}

func refused(body []byte) error {
	var r refusal
	if err := parseJSON(body, &r); err != nil {
		return err
	}
	if r.Field == "" {
		return fmt.Errorf("%w: %.200q", ErrRefused, r.Ours)
	}
	return &DifferenceError{Field: r.Field, Ours: r.Theirs, Theirs: r.Ours}
}

// join makes keys for a session that forms.
func (p *participant) join(ctx context.Context, body []byte) error {
	if len(body) != 8 {
		return ErrFrame
	}
	number := binary.BigEndian.Uint64(body)
	for _, c := range p.clients {
		if c.number == number {
			return p.again(ctx, c)
		}
	}
	if number < p.least {
		// Its keys are gone, and others under its number could be confused with them.
		// An honest coordinator knows better from hello.
		p.report(Event{
			Kind:    Refused,
			Session: number,
			Err:     fmt.Errorf("%w: %d, where %d is the least", ErrNumber, number, p.least),
		})
		return nil
	}
	client, err := protocol.NewClient(p.Plan.Config(number), p.Identity, p.Random)
	if err != nil {
		return storeError{err}
	}
	// Of what was to follow the present session only the newest can.
	keep := p.clients[:0]
	for _, c := range p.clients {
		if c.Enrolled() != nil {
			keep = append(keep, c)
		} else {
			c.Erase()
		}
	}
	p.clients = append(keep, &partyClient{client, number})
	p.least = number + 1
	if err := p.save(); err != nil {
		return err
	}
	p.report(Event{Kind: Joining, Session: number})
	return p.link.Send(ctx, frame(frameMessage, client.Announce()))
}

// message hands a message to the session that it is of.
func (p *participant) message(ctx context.Context, message []byte) error {
	for i := len(p.clients) - 1; i >= 0; i-- {
		c := p.clients[i]
		answer, err := c.Receive(message)
		switch {
		case errors.Is(err, protocol.ErrSession):
			continue
		case errors.Is(err, protocol.ErrReplay), errors.Is(err, protocol.ErrPhase):
			// The coordinator asks again: it has not had the answer.
			if _, due := c.Due(); !due {
				return p.again(ctx, c)
			}
			return p.submit(ctx)
		case err != nil:
			p.report(Event{Kind: Refused, Session: c.number, Err: err})
			return nil
		}
		if _, due := c.Due(); due {
			// This session has taken over.
			for _, old := range p.clients[:i] {
				old.Erase()
			}
			p.clients = p.clients[i:]
		}
		if err := p.save(); err != nil {
			return err
		}
		if answer != nil {
			return p.link.Send(ctx, frame(frameMessage, answer))
		}
		return p.submit(ctx)
	}
	return nil
}

// submit works on the round that waits, if its broadcast is there.
func (p *participant) submit(ctx context.Context) error {
	if len(p.clients) == 0 || p.broadcast == nil {
		return nil
	}
	c := p.clients[0]
	if _, due := c.Due(); !due {
		return nil
	}
	b := p.broadcast
	absent := func(err error) error {
		p.report(Event{Kind: Absent, Session: c.number, Round: b.round, Err: err})
		return ctx.Err()
	}
	vector, err := p.Work(ctx, b.round, b.model)
	if err != nil {
		return absent(err)
	}
	p.submission = nil // its room is used again
	var unfit error
	submission, err := c.SubmitVector(b.digest, func(v *masking.Vector) error {
		if unfit = EncodeTo(v, p.Plan, b.digest, vector, p.Random); unfit == nil && p.Submitted != nil {
			p.Submitted(b.round, v.Values())
		}
		return unfit
	})
	switch {
	case unfit != nil:
		return absent(unfit)
	case errors.Is(err, protocol.ErrBroadcast):
		return nil // another is on its way
	case err != nil:
		return storeError{err}
	}
	p.submission = submission
	if p.vault != nil {
		if p.kept, err = p.vault.put(submissionName, submission); err != nil {
			return storeError{err}
		}
	}
	if err := p.save(); err != nil {
		return err
	}
	p.report(Event{Kind: Submitted, Session: c.number, Round: b.round})
	return p.again(ctx, c)
}

// save stores the state; what follows from it may be sent then, and not before.
func (p *participant) save() error {
	if p.vault == nil {
		return nil
	}
	state := participantState{Least: p.least, Kept: p.kept}
	for _, c := range p.clients {
		b, err := c.Save(p.Key)
		if err != nil {
			return storeError{err}
		}
		state.Clients = append(state.Clients, clientState{c.number, b})
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(state)
	if err == nil {
		err = p.vault.save(b.Bytes())
	}
	if err != nil {
		return storeError{err}
	}
	return nil
}

func (p *participant) load() error {
	var b []byte
	var err error
	p.vault, b, err = openVault(p.Store, p.Key, p.Counter,
		fmt.Sprintf("party %x", p.Identity.Public()), p.Spent > 0)
	if err != nil || b == nil {
		return err
	}
	var state participantState
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	p.least, p.kept = max(p.least, state.Least), state.Kept
	for _, s := range state.Clients {
		client, err := protocol.LoadClient(p.Plan.Config(s.Number), p.Identity, p.Random, p.Key, s.State)
		if err != nil {
			return fmt.Errorf("%w: session %d: %w", ErrStore, s.Number, err)
		}
		p.clients = append(p.clients, &partyClient{client, s.Number})
	}
	return nil
}
