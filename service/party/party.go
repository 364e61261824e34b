// Package party takes part in a federation: it asks the server what is next, over
// connections that it opens itself, checks that against what was accepted and the party's
// own policy, has the party train, and answers. Its state is sealed in one folder and
// saved before anything that follows from it is sent, so that it may be killed at any
// moment and started again.
package party

import (
	"context"
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
)

// ErrSpent: this party has submitted in as many rounds as it agreed to.
var ErrSpent = errors.New("party: all rounds that this party agreed to are spent")

// Work is a round's, for a party to train.
type Work struct {
	Round int
	Spec  *tensor.Spec
	Model []float64
	File  []byte // the model, as the safetensors file that came
	// Metrics says that the federation sums loss and accuracy.
	Metrics bool
}

// Update is what a party makes of it: the change to the model, and, if the federation
// sums metrics, the party's own.
type Update struct {
	Vector         []float64
	Loss, Accuracy float64
	// Values is the whole submission, in place of Vector, of a training that the
	// federation declares: see [Declared].
	Values [][]uint64
}

// Trainer trains on a party's own rows. An error is an absence in that round; ctx ends
// when the round goes on without the party.
type Trainer interface {
	Train(ctx context.Context, w *Work) (*Update, error)
}

// TrainerFunc is a function as a Trainer.
type TrainerFunc func(ctx context.Context, w *Work) (*Update, error)

// Train calls the function.
func (f TrainerFunc) Train(ctx context.Context, w *Work) (*Update, error) { return f(ctx, w) }

// Party is one party of a federation. Set the fields, then call Run.
type Party struct {
	Federation *federation.Federation // worked out from what was accepted
	Identity   crypto.Signer          // Ed25519, of the roster
	Server     *Server
	Trainer    Trainer
	Folder     string               // for the state; one process at a time
	Key        *keyexchange.SealKey // seals the state
	Policy     *Policy              // nil: everything is accepted
	Log        *slog.Logger         // nil: nothing is logged

	// LeastNumber and Spent are for a party whose state is lost: the least number of a
	// session that it may take part in, which must be above all that it has used, and how
	// many rounds count as submitted in, at least as many as it may have. Spent above 0 is
	// the party's word that the state is lost: with 0, a counter that knows of a newer one
	// than the folder has is hushsum.ErrOldState. A state that is the newest knows better.
	// Whoever lost the counter too says both in the same way.
	LeastNumber uint64
	Spent       int

	// Turns is taken a place of while the party computes, so that many parties of one
	// process share its machine; nil: it waits for nobody.
	Turns chan struct{}

	// Submitted, for tests, is shown each submission, noise and all, before it is masked.
	Submitted func(round int, values [][]uint64)

	random io.Reader
}

// running is a Party that runs.
type running struct {
	Party
	store     *store
	series    *protocol.ClientSeries
	present   uint64 // numbers of the sessions, 0 for none
	successor uint64
	round     uint64 // the last of the federation that it knows of
	absent    uint64 // the round that it is absent from, since it could not train
	submitted int    // rounds that it submitted in
	seen      []string
	most      int64
	working   context.Context // of what the party is at, see watch
	turns     bool            // it has a place of Turns
}

// Waits after a request that failed.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
	mostSeen    = 4
)

// Run takes part until the federation ends, and returns the last model's file. It fails
// with the context's error; with [ErrPolicy], [ErrStored] or [ErrLocked] before anything
// is sent; with [ErrServer] if the server is another; with [ErrSpent]; and with errors of
// the folder.
func (p *Party) Run(ctx context.Context) (model []byte, err error) {
	r := &running{Party: *p}
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	if p.Policy != nil {
		if err := p.Policy.Check(p.Federation); err != nil {
			return nil, err
		}
	}
	if err := p.checkLost(); err != nil {
		return nil, err
	}
	config := p.Federation.Config(1)
	r.most = int64(config.MaxMessage())
	if r.store, err = openStore(p.Folder, p.Key, p.Federation.ID, p.Identity); err != nil {
		return nil, err
	}
	defer r.store.Close()
	if err := r.load(config.Label); err != nil {
		return nil, err
	}
	defer r.series.Erase()
	wait := firstWait
	for {
		if err := r.Policy.wait(ctx, time.Now); err != nil {
			return nil, err
		}
		done, err := r.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && done:
			return r.last(ctx)
		case err == nil:
			wait = firstWait
			continue
		case fatal(err):
			return nil, err
		}
		r.Log.Warn("asking again", "error", err.Error(), "in", wait.String())
		r.seen = nil
		// Spread out, so that not all parties come back at once.
		if err := sleep(ctx, wait/2+time.Duration(rand.Int64N(int64(wait)))); err != nil {
			return nil, err
		}
		wait = min(2*wait, longestWait)
	}
}

// checkLost returns an error unless a lost state is told of in whole.
func (p *Party) checkLost() error {
	switch rounds := p.Federation.File.Rounds; {
	case p.Spent < 0 || p.Spent > rounds:
		return &hushsum.ConfigError{
			Field:  "Spent",
			Reason: fmt.Sprintf("%d is outside 0 to the federation's %d rounds", p.Spent, rounds),
		}
	case p.Spent > 0 && p.LeastNumber == 0:
		return &hushsum.ConfigError{
			Field:  "LeastNumber",
			Reason: "a party that lost its state does not know which numbers it has used",
			Advice: "ask the server's operator for one above those of all sessions",
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// localError marks errors that asking again does not mend.
type localError struct{ error }

func (e localError) Unwrap() error { return e.error }

func fatal(err error) bool {
	var local localError
	var refusal *RefusalError
	if errors.As(err, &refusal) {
		switch refusal.Kind {
		// Not "clock": clocks are put right, the server's as well as this party's.
		case "stranger", "unsigned", "signature":
			return true
		}
	}
	return errors.As(err, &local) || errors.Is(err, ErrServer) || errors.Is(err, ErrSpent)
}

func (r *running) ask() runner.Ask {
	ask := runner.Ask{Least: r.series.Least(), Round: r.round, Absent: r.absent, Seen: r.seen}
	for _, n := range []uint64{r.present, r.successor} {
		if n != 0 {
			ask.Sessions = append(ask.Sessions, n)
		}
	}
	return ask
}

// turn asks what is next and does it.
func (r *running) turn(ctx context.Context) (done bool, err error) {
	stop := func() {}
	defer func() { stop() }()
	defer r.rest()
	// A place is taken before the message is read: those that wait would hold theirs.
	asked := time.Now()
	due := func(next *runner.Next) error {
		r.see(next.Item)
		r.working, stop = r.watch(ctx, next.Session)
		return r.takeTurn(ctx)
	}
	next, err := r.Server.next(ctx, r.Federation.ID, r.ask(), r.most, due)
	if err != nil {
		return false, err
	}
	switch next.Kind {
	case runner.Nothing:
		// A server that does not wait before it says so is asked ten times a second at most.
		return false, sleep(ctx, firstWait-time.Since(asked))
	case runner.End:
		return true, nil
	case runner.Join:
		return false, r.join(ctx, next.Session)
	case runner.Message:
		return false, r.message(ctx, next)
	}
	return false, fmt.Errorf("%w: it says %.20q is next", ErrServer, next.Kind)
}

// takeTurn takes a place in Turns.
func (r *running) takeTurn(ctx context.Context) error {
	if r.Turns == nil {
		return nil
	}
	select {
	case r.Turns <- struct{}{}:
		r.turns = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rest gives the party's place in Turns free.
func (r *running) rest() {
	if r.turns {
		<-r.Turns
		r.turns = false
	}
}

// see notes an item as had. The last few will do.
func (r *running) see(item string) {
	if item == "" || slices.Contains(r.seen, item) {
		return
	}
	r.seen = append(r.seen, item)
	if len(r.seen) > mostSeen {
		r.seen = slices.Clone(r.seen[len(r.seen)-mostSeen:])
	}
}

// join makes keys for a session.
func (r *running) join(ctx context.Context, number uint64) error {
	if number == r.successor && r.series.Successor() != nil {
		return r.send(ctx, output(r.series.Successor()))
	}
	if number == r.present {
		return nil
	}
	announce, err := r.series.Succeed(r.Federation.Config(number))
	if errors.Is(err, protocol.ErrNumber) {
		// Its keys are gone, and others under its number could be confused with them.
		r.Log.Warn("a session that this party cannot join", "session", number,
			"least", r.series.Least())
		return nil
	}
	if err != nil {
		return localError{err}
	}
	r.successor = number
	if err := r.save(); err != nil {
		return err
	}
	r.Log.Info("joining", "session", number)
	return r.send(ctx, announce)
}

// output is the last message that a client made.
func output(c *protocol.Client) []byte {
	if out := c.Output(); out != nil {
		return out
	}
	return c.Announce()
}

// client returns the client of a session, nil if there is none.
func (r *running) client(number uint64) *protocol.Client {
	switch number {
	case r.present:
		return r.series.Present()
	case r.successor:
		return r.series.Successor()
	}
	return nil
}

// message takes a message of the server and answers it.
func (r *running) message(ctx context.Context, next runner.Next) error {
	c := r.client(next.Session)
	if c == nil {
		return nil
	}
	answer, err := r.series.Receive(next.Message)
	if r.successor != 0 && r.series.Successor() == nil {
		r.present, r.successor = r.successor, 0
		r.Log.Info("session took over", "session", r.present)
	}
	switch {
	case errors.Is(err, protocol.ErrReplay), errors.Is(err, protocol.ErrPhase):
		// The server asks again: it has not had the answer.
		if _, due := c.Due(); due {
			return r.work(ctx, next)
		}
		return r.send(ctx, output(c))
	case err != nil:
		r.Log.Warn("a message was refused", "session", next.Session, "error", err.Error())
		return nil
	}
	if err := r.save(); err != nil {
		return err
	}
	if answer != nil {
		return r.send(ctx, answer)
	}
	if _, due := c.Due(); due {
		return r.work(ctx, next)
	}
	return nil
}

// send sends a message. What the server does not wait for is no error: the next question
// tells what it does wait for.
func (r *running) send(ctx context.Context, message []byte) error {
	r.rest()
	err := r.Server.Send(ctx, r.Federation.ID, message)
	var refusal *RefusalError
	if errors.As(err, &refusal) {
		switch refusal.Kind {
		case "due", "ended":
			r.Log.Info("an answer came too late", "kind", refusal.Kind, "detail", refusal.Detail)
			return nil
		case "message":
			r.Log.Warn("an answer was refused", "kind", refusal.Kind, "detail", refusal.Detail)
			return nil
		}
	}
	return err
}

// work trains for a round and submits.
func (r *running) work(ctx context.Context, next runner.Next) error {
	if next.Round < 1 || next.Round > r.Federation.File.Rounds {
		return fmt.Errorf("%w: it begins round %d of %d", ErrServer, next.Round,
			r.Federation.File.Rounds)
	}
	if r.absent == uint64(next.Round) {
		return nil // asked again before it could say so
	}
	if r.submitted >= r.Federation.File.Rounds {
		return fmt.Errorf("%w: %d", ErrSpent, r.submitted)
	}
	most := int64(r.Federation.Spec.Len())*8 + 2<<20
	file, err := r.Server.Model(ctx, r.Federation.ID, next.Round, most)
	if err != nil {
		var refusal *RefusalError
		if errors.As(err, &refusal) && refusal.Kind == "due" {
			return nil // the round went on
		}
		return err
	}
	w, err := r.open(file, next.Round)
	if err != nil {
		r.Log.Warn("the model was refused", "round", next.Round, "error", err.Error())
		return nil
	}
	update, err := r.Trainer.Train(r.working, w)
	if err == nil && update == nil {
		err = fmt.Errorf("%w: it returned no update", ErrTraining)
	}
	if cause := context.Cause(r.working); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		r.Log.Warn("no update for this round", "round", next.Round, "error", err.Error())
		r.absent = uint64(next.Round)
		return ctx.Err()
	}
	values, err := r.encode(update, w)
	var local localError
	if errors.As(err, &local) {
		return err
	}
	if err != nil {
		r.Log.Warn("no update for this round", "round", next.Round, "error", err.Error())
		r.absent = uint64(next.Round)
		return nil
	}
	if r.Submitted != nil {
		r.Submitted(next.Round, values)
	}
	message, err := r.series.Submit(file, values...)
	for _, v := range values {
		clear(v)
	}
	if errors.Is(err, protocol.ErrBroadcast) {
		r.Log.Warn("the model is not the one that the round began with", "round", next.Round)
		return nil
	}
	if err != nil {
		return localError{err}
	}
	r.round = max(r.round, uint64(next.Round))
	r.submitted++
	if err := r.save(); err != nil {
		return err
	}
	r.Log.Info("submitted", "round", next.Round)
	return r.send(ctx, message)
}

// encode makes the submission of an update.
func (r *running) encode(update *Update, w *Work) ([][]uint64, error) {
	switch declared := r.Federation.File.Training != nil; {
	case declared && update.Values == nil:
		return nil, localError{errors.New("party: the federation declares the training; use Declared")}
	case declared:
		return update.Values, nil
	case update.Values != nil: // which nothing would clip, nor add noise to
		return nil, localError{errors.New("party: the federation declares no training; leave Vector, " +
			"not Values")}
	case len(update.Vector) != len(w.Model):
		return nil, localError{fmt.Errorf("party: the update has %d numbers, the model %d",
			len(update.Vector), len(w.Model))}
	}
	vector, err := r.Federation.Join(update.Vector, update.Loss, update.Accuracy)
	if err != nil {
		return nil, err
	}
	return r.Federation.Settled.Encode(w.File, vector, r.random)
}

// open checks a broadcast.
func (r *running) open(file []byte, round int) (*Work, error) {
	spec, values, notes, err := tensor.Parse(file)
	if err != nil {
		return nil, err
	}
	if err := r.Federation.Spec.Same(&spec); err != nil {
		return nil, err
	}
	fresh, err := hex.DecodeString(notes["fresh"])
	if err != nil || len(fresh) != 32 || notes["federation"] != r.Federation.ID ||
		notes["round"] != strconv.Itoa(round) {
		return nil, fmt.Errorf("%w: the notes of the model", ErrServer)
	}
	return &Work{
		Round:   round,
		Spec:    &r.Federation.Spec,
		Model:   values,
		File:    file,
		Metrics: r.Federation.File.Metrics.Share > 0,
	}, nil
}

// watch tells the server that this party is there while it is at work, for a session, for more
// than a moment, by a request that stays open. working ends when the round goes on without
// the party.
func (r *running) watch(
	ctx context.Context, session uint64,
) (working context.Context, stop func()) {
	working, cancel := context.WithCancelCause(ctx)
	ask := r.ask()
	ask.Working, ask.Seen = true, slices.Clone(ask.Seen)
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait := runner.DefaultGrace(r.Federation.Settled.Roster().Len()) / 4
		for ; sleep(working, wait) == nil; wait = 0 {
			next, err := r.Server.Next(working, r.Federation.ID, ask, r.most)
			switch {
			case err != nil:
				if sleep(working, time.Second) != nil {
					return
				}
			case next.Kind == runner.Join || next.Session != session && next.Kind != runner.End:
				ask.Seen = append(ask.Seen, next.Item) // it can wait
				if len(ask.Seen) > mostSeen {
					ask.Seen = ask.Seen[len(ask.Seen)-mostSeen:]
				}
			case next.Kind != runner.Nothing:
				cancel(errWentOn)
				return
			}
		}
	}()
	return working, func() {
		cancel(nil)
		<-done
	}
}

var errWentOn = errors.New("party: the round went on without this party")

// last takes the last model.
func (r *running) last(ctx context.Context) ([]byte, error) {
	most := int64(r.Federation.Spec.Len())*8 + 2<<20
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		b, err := r.Server.Model(ctx, r.Federation.ID, 0, most)
		if err == nil || fatal(err) {
			return b, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}
