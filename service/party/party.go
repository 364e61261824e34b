// Package party takes part in a federation: it asks the server what is next, over connections that
// it opens itself, checks the answer against the accepted job and the party's own policy, has the
// party train, and answers. The party's state is sealed in one folder and saved before any message
// that follows from it is sent, so the process may be killed at any moment and restarted.
package party

import (
	"bytes"
	"context"
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
)

// Work holds what a party needs to train in a round.
type Work struct {
	Round int
	Spec  *tensor.Spec
	Model []float64
	File  []byte // the model, as the safetensors file that came
	// Metrics says that the federation sums loss and accuracy.
	Metrics bool
	// Coins say how the update sums over records, in a federation whose unit is a record.
	Coins *job.Coins
}

// Update is the result of a party's work: the change to the model, and, if the federation sums
// metrics, the party's own.
type Update struct {
	Vector         []float64
	Loss, Accuracy float64
	// Values is the whole submission, in place of Vector, of a training that the federation
	// declares: see [Declared]. With sum.buffer it is Message, since the round in which it will be
	// submitted is not known yet.
	Values  [][]uint64
	Message *job.Update[float64]
	// Without says why Vector is without some records, for the party's log alone: see [Gradients].
	Without error
}

// Trainer trains on a party's own rows. After an error the party is absent from that round. With
// noise it submits zeros instead, after an error or a panic, so that only the party's own log shows
// the failure. ctx ends when the round goes on without the party.
type Trainer interface {
	Train(ctx context.Context, w *Work) (*Update, error)
}

// TrainerFunc is a function that implements Trainer.
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
	Policy     *consent.Policy      // nil: everything is accepted
	Book       *consent.Book        // nil: what other federations spend is not counted
	Log        *slog.Logger         // nil: nothing is logged

	// LeastNumber and Spent are for a party whose state is lost: LeastNumber is the least number of a
	// session in which it may take part, above all numbers that it has used, and Spent is the last
	// round in which it may have submitted. All rounds up to Spent count as spent, and none of them
	// is answered again. A Spent above 0 declares that the state is lost: with 0, Run fails with
	// store.ErrOldState if the counter has seen a newer state than the folder's. Where the newest
	// state is there, the greater of its count and Spent counts. A party that has lost the counter too
	// sets both in the same way.
	LeastNumber uint64
	Spent       int

	// Turns holds places. The party takes one while it computes, so that many parties of one process
	// share the machine; nil: the party waits for no other.
	Turns chan struct{}

	// Submitted, for tests, is shown each submission, including its noise, before it can be sent.
	Submitted func(round int, values [][]uint64)

	random io.Reader
	fault  func(file string) error // see store; nil: there is none
}

// A machine decides for a party, or for a member of the committee: by sessions, see running itself,
// or by one message.
type machine interface {
	load() error
	ask() exchange.Ask
	take(next *exchange.Next) error
	proceed(ctx context.Context) error
}

// running is a Party while it runs.
type running struct {
	Party
	machine
	path     string // where it asks and sends
	store    *store
	party    drive.Part
	accepted *consent.Accepted // nil: a member spends nothing
	absent   uint64            // the round that it is absent from
	seen     []string
	most     int64
	working  context.Context // of what the party is at, see watch
	turns    bool            // it has a place of Turns
	worker   instant.Worker  // of a federation with an instant

	unproved int // rounds in which the program has failed, in a job by records

	due time.Time // until when a step may be waiting for it

	// With sum.buffer:
	life      context.Context // of Run
	trainings sync.WaitGroup
	woken     chan struct{} // has one when the trainer has ended; else nil
}

// Waits after a request that failed.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
	mostSeen    = 4
	// While a step may be waiting for it, a party asks again after soonest to soonest + spread, and
	// before it counts as gone. How long a step may wait, it does not know: its leader may have died,
	// and its time stands still while the record is away.
	soonest = 500 * time.Millisecond
	spread  = 1500 * time.Millisecond
	away    = time.Minute
	fewHere = 1000 // parties; more of them would keep the nodes from coming back
)

// Run takes part until the federation ends, and returns the last model's file: at once, if the
// federation has already ended according to the party's book. It fails with the context's error;
// with the errors of [consent.Book.Accept], [ErrStored] or [ErrLocked] before anything is sent;
// with [ErrServer] if it is another server; and with errors of the folder. A round in which the
// party has already submitted, or that would exceed what the party agreed to, is not an error: the
// party declines the round, logs that, and tells the server that it is absent.
func (p *Party) Run(ctx context.Context) (model []byte, err error) {
	r := &running{Party: *p, path: partyPath(p.Federation.ID)}
	if err := p.checkLost(); err != nil {
		return nil, err
	}
	by := &bySessions{r}
	r.machine = by
	if one := p.Federation.Settled.Oneshot(); one != nil {
		r.machine, r.most = &sending{running: r}, int64(one.MaxMessage())
	} else {
		r.most = int64(p.Federation.Settled.Config(1).MaxMessage())
		defer by.erase()
	}
	r.accepted, err = p.Book.Accept(p.Policy, p.Federation.Settled, p.Identity.Public())
	switch {
	case err != nil:
		return nil, err
	case r.accepted.Ended:
		return r.last(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer r.worker.Wait()
	defer r.trainings.Wait()
	defer cancel()
	if r.life = ctx; p.Federation.Settled.Buffer() > 0 {
		r.woken = make(chan struct{}, 1)
	}
	if err := r.run(ctx, kindParty); err != nil {
		return nil, err
	}
	guard := r.party.Guard()
	if err := r.tellSpent(guard); err != nil {
		return nil, err
	}
	if err := r.accepted.End(*guard); err != nil {
		return nil, err
	}
	return r.last(ctx)
}

// tellSpent logs what this party's own ledger shows, whatever the server counts.
func (r *running) tellSpent(guard *drive.Guard) error {
	log := r.Log.With("submissions", guard.Count())
	spent, err := guard.Spent()
	if err != nil {
		return err
	}
	if spent != nil {
		log = log.With("spent", *spent)
	}
	if r.unproved > 0 {
		log = log.With("unproved_rounds", r.unproved)
	}
	log.Info("the federation has ended")
	return nil
}

// count has the party's book count what has left, once the state that counts it is saved and before
// anything of it is sent.
func (r *running) count() error {
	if err := r.accepted.Count(*r.party.Guard()); err != nil {
		return localError{err}
	}
	return nil
}

// run takes part until the federation ends, in a folder of the given kind of owner.
func (r *running) run(ctx context.Context, kind string) (err error) {
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	if r.store, err = openStore(r.Folder, r.Key, kind, r.Federation.ID, r.Identity); err != nil {
		return err
	}
	defer r.store.Close()
	if r.fault != nil {
		r.store.fault = r.fault
	}
	if err := r.load(); err != nil {
		return fmt.Errorf("%s (%.16s…), whose state is in %s: %w", r.Federation.Job.Name,
			r.Federation.ID, r.Folder, err)
	}
	if r.accepted != nil {
		if err := r.count(); err != nil {
			return err
		}
	}
	r.Server.wait.Store(int64(exchange.Wait(r.Federation.Settled.Roster().Len())))
	wait := firstWait
	for {
		_, stop, err := r.Policy.Hours(ctx)
		if err != nil {
			return err
		}
		stop() // what is begun within them may end later
		done, err := r.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && done:
			return nil
		case err == nil:
			wait = firstWait
			continue
		case fatal(err):
			return err
		}
		// Spread out, so that not all parties come back at once.
		pause := wait/2 + rand.N(wait)
		if r.awaited(err) {
			grace := exchange.DefaultGrace(r.Federation.Settled.Roster().Len())
			pause = soonest + rand.N(min(spread, (grace-soonest)/2))
		}
		r.Log.Warn("asking again", "error", err.Error(), "in", pause.Round(time.Millisecond).String())
		r.seen = nil
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		wait = min(2*wait, longestWait)
	}
}

// awaited reports whether a step may wait for the party although no node could help it.
func (r *running) awaited(err error) bool {
	var refusal *RefusalError
	return time.Now().Before(r.due) && r.Federation.Settled.Roster().Len() <= fewHere &&
		(!errors.As(err, &refusal) || refusal.Status >= http.StatusInternalServerError)
}

// checkLost returns an error unless a lost state is declared in full.
func (p *Party) checkLost() error {
	switch err := checkSpent(p.Federation, p.Spent); {
	case err != nil:
		return err
	case p.Federation.Settled.Oneshot() != nil && p.LeastNumber > 0:
		return &job.ConfigError{
			Path:   "LeastNumber",
			Reason: "one-message sums have no sessions",
			Advice: "set only Spent",
		}
	case p.Federation.Settled.Oneshot() != nil:
	case p.Spent > 0 && p.LeastNumber == 0:
		return &job.ConfigError{
			Path:   "LeastNumber",
			Reason: "a party that lost its state does not know which numbers it has used",
			Advice: "ask the server's operator for one above those of all sessions",
		}
	case p.LeastNumber > protocol.MaxNumber:
		return &job.ConfigError{
			Path:   "LeastNumber",
			Reason: fmt.Sprintf("%d is above %d, the last one", p.LeastNumber, protocol.MaxNumber),
		}
	}
	return nil
}

// checkSpent returns an error unless a federation has the last round of a lost state.
func checkSpent(f *federation.Federation, spent int) error {
	rounds := f.Settled.Rounds()
	if spent >= 0 && spent <= rounds {
		return nil
	}
	return &job.ConfigError{Path: "Spent",
		Reason: fmt.Sprintf("%d is outside 0 to the %d rounds of %s", spent, rounds, f.Job.Name)}
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

// localError marks errors that asking again does not cure.
type localError struct{ error }

func (e localError) Unwrap() error { return e.error }

func fatal(err error) bool {
	var local localError
	var refusal *RefusalError
	if errors.As(err, &refusal) {
		switch refusal.Kind {
		// Not "clock": clocks are corrected, the server's as well as this party's.
		case "stranger", "unsigned", "signature":
			return true
		}
	}
	return errors.As(err, &local) || errors.Is(err, ErrServer)
}

// bySessions is a party whose sums are pairwise.
type bySessions struct{ *running }

func (r *bySessions) erase() {
	if r.party != nil {
		r.party.Erase()
	}
}

func (r *bySessions) load() error { return r.loadParty() }

func (r *bySessions) ask() exchange.Ask {
	hello := r.party.Hello()
	return exchange.Ask{
		Sessions: hello.Sessions,
		Least:    hello.Least,
		Round:    hello.Told,
		Absent:   r.absent,
		Seen:     r.seen,
	}
}

// turn asks what is next and handles it.
func (r *running) turn(ctx context.Context) (done bool, err error) {
	stop := func() {}
	defer func() { stop() }()
	defer r.rest()
	// A place is taken before the message is read: those that wait would otherwise hold their
	// messages.
	asked := time.Now()
	due := func(next *exchange.Next) error {
		r.due = time.Now().Add(time.Duration(r.Federation.Job.Time.StepTime) + away)
		r.see(next.Item)
		r.working, stop = r.watch(ctx, next.Session)
		return r.takeTurn(ctx)
	}
	seen := r.seen
	waiting, heard := r.hearing(ctx)
	defer heard()
	next, err := r.Server.next(waiting, r.path, r.ask(), r.most, due)
	switch {
	case err != nil && context.Cause(waiting) == errMade && ctx.Err() == nil:
		r.seen = seen // what was being read is asked for again
		return false, r.proceed(ctx)
	case err != nil:
		return false, err
	}
	switch next.Kind {
	case exchange.Nothing:
		// A server that answers this without waiting is asked ten times a second at most.
		return false, sleep(ctx, firstWait-time.Since(asked))
	}
	if err := r.take(&next); err != nil {
		return false, err
	}
	return next.Kind == exchange.End, r.proceed(ctx)
}

// errNext: an answer that a server of this federation never gives.
func errNext(next *exchange.Next) error {
	return fmt.Errorf("%w: it says %.20q is next", ErrServer, next.Kind)
}

// take handles what is next.
func (r *bySessions) take(next *exchange.Next) (err error) {
	switch next.Kind {
	case exchange.Join:
		err = r.party.Receive(drive.Item{Kind: drive.Join, Session: next.Session})
	case exchange.Message:
		err = r.party.Receive(drive.Item{Kind: drive.Carry, Own: next.Message,
			Round: uint64(next.Round)})
	case exchange.End:
	default:
		return errNext(next)
	}
	if err != nil {
		return localError{err}
	}
	return nil
}

// proceed carries out what the party has decided: it saves, then sends, then trains.
func (r *bySessions) proceed(ctx context.Context) error {
	for {
		ready, some := r.party.Ready()
		if !some {
			return nil
		}
		if ready.Save {
			if err := r.save(); err != nil {
				return err
			}
			if err := r.count(); err != nil {
				return err
			}
		}
		for _, one := range ready.Reports {
			r.tell(one)
		}
		out := r.party.Advance()
		for _, away := range out.Away {
			r.absent = away.Number // which the next question tells
		}
		for _, message := range out.Send {
			if err := r.send(ctx, message); err != nil {
				return err
			}
		}
		if out.Ask != nil {
			if err := r.work(ctx, *out.Ask); err != nil {
				return err
			}
		}
	}
}

// tell logs what the party has decided.
func (r *running) tell(one drive.Report) {
	log := r.Log
	if one.Session != 0 {
		log = log.With("session", one.Session)
	}
	if one.Round != 0 {
		log = log.With("round", one.Round)
	}
	if one.Err != nil {
		log = log.With("error", one.Err.Error())
	}
	kind := one.Kind
	if kind == drive.Missed && r.Federation.Settled.SubmitAfter() > 0 {
		kind = drive.Blank // its zeros are ready
	}
	if kind == drive.Blank && r.Federation.Settled.OwnGradients() {
		r.unproved++
		log = log.With("epsilon", "none is proved of this party's records for this round, unless what "+
			"failed had nothing to do with them")
	}
	switch kind {
	case drive.Joined:
		log.Info("joining")
	case drive.TookOver:
		log.Info("session took over")
	case drive.Submitted:
		log.Info("submitted")
	case drive.Declined:
		log.Warn("this party declines the round: the server has forgotten it, was set back, or cheats")
	case drive.Missed:
		log.Warn("no update for this round")
	case drive.CaughtUp:
		log.Warn("this party's state is not the newest")
	case drive.Blank:
		log.Warn("no update for this round: zeros with noise are submitted, and nobody else learns it")
	case drive.Late:
		log.Info("the round continued without this party's update")
	default:
		if errors.Is(one.Err, protocol.ErrParticipants) {
			log = log.With("perhaps", "another copy of the folder has run in between")
		}
		log.Warn("what the server sent was refused")
	}
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

// rest releases the party's place in Turns.
func (r *running) rest() {
	if r.turns {
		<-r.Turns
		r.turns = false
	}
}

// see notes an item as received. It keeps the last few, which suffice.
func (r *running) see(item string) {
	if item == "" || slices.Contains(r.seen, item) {
		return
	}
	r.seen = append(r.seen, item)
	if len(r.seen) > mostSeen {
		r.seen = slices.Clone(r.seen[len(r.seen)-mostSeen:])
	}
}

// send sends a message, which may be the latest submission. A message that the server does not wait
// for is no error: the answer to the next question says what it does wait for.
func (r *running) send(ctx context.Context, m drive.Message) error {
	r.rest()
	message := m.Bytes
	if s := r.party.Object(drive.SubmissionName); message == nil && s != nil {
		var b bytes.Buffer
		if sized, ok := s.(interface{ Size() int64 }); ok {
			b.Grow(int(sized.Size()))
		}
		if _, err := s.WriteTo(&b); err != nil {
			return err
		}
		message = b.Bytes()
	} else if message == nil {
		var err error
		if message, err = r.store.submitted(r.most); err != nil {
			r.absent = r.party.Hello().Told
			r.Log.Warn("the round continues without this party", "round", r.absent, "error", err.Error())
			return nil
		}
	}
	_, err := r.post(ctx, message)
	return err
}

// post sends a message, and reports whether the server accepted it. A refusal because it is not
// wanted is no error.
func (r *running) post(ctx context.Context, message []byte) (taken bool, err error) {
	err = r.Server.send(ctx, r.path, message)
	var refusal *RefusalError
	if errors.As(err, &refusal) {
		switch refusal.Kind {
		case "due", "ended":
			r.Log.Info("an answer arrived too late", "kind", refusal.Kind, "detail", refusal.Detail)
			return false, nil
		case "message":
			r.Log.Warn("an answer was refused", "kind", refusal.Kind, "detail", refusal.Detail)
			return false, nil
		}
	}
	return err == nil, err
}

// errRound: a round without a number, which cannot be one of the federation's.
var errRound = fmt.Errorf("%w: it names no round", ErrServer)

// begun fetches the broadcast that a round begins with, nil if the round went on. A broadcast that
// is no such model is refused.
func (r *running) begun(ctx context.Context, round int) (w *Work, refused, err error) {
	most := int64(r.Federation.Spec.Len())*8 + 2<<20
	file, err := r.Server.Model(ctx, r.Federation.ID, round, most)
	if err != nil {
		var refusal *RefusalError
		if errors.As(err, &refusal) && refusal.Kind == "due" {
			err = nil
		}
		return nil, nil, err
	}
	if w, err = r.open(file, round); err != nil {
		return nil, fmt.Errorf("the model is refused: %w", err), nil
	}
	return w, nil, nil
}

// work trains for a round, and has the party answer with the result.
func (r *running) work(ctx context.Context, ask drive.Ask) error {
	switch ask.Round {
	case 0:
		r.party.Absent(ask.ID, ask.Round, errRound)
		return nil
	case r.absent:
		return nil // asked again before it could say so
	}
	at := time.Now().Add(time.Duration(ask.After))
	w, refused, err := r.begun(ctx, int(ask.Round))
	switch {
	case err != nil:
		return err
	case refused != nil:
		r.party.Absent(ask.ID, ask.Round, refused)
		return nil
	case w == nil: // the round went on
		return nil
	}
	if ask.After > 0 {
		return r.workUntil(ctx, at, ask, w)
	}
	update, err := r.train(r.working, w)
	switch cause := context.Cause(r.working); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && cause != nil: // the round is over
		r.party.Absent(ask.ID, ask.Round, cause)
		return nil
	case err == nil:
		if err := r.check(update); err != nil {
			return localError{err}
		}
	}
	answer := drive.Answer{
		ID:        ask.ID,
		Round:     ask.Round,
		Broadcast: job.BroadcastDigest(w.File),
		Fill:      func(v *masking.Vector) error { return r.encode(v, update, w) },
		Err:       err,
	}
	if err := r.party.Answer(answer); err != nil {
		return localError{err}
	}
	return nil
}

// train has the trainer make an update. With noise, a panic must not end the process.
func (r *running) train(ctx context.Context, w *Work) (update *Update, err error) {
	work := func() error {
		update, err = r.Trainer.Train(ctx, w)
		switch {
		case err != nil:
			return err
		case update == nil:
			return fmt.Errorf("%w: it returned no update", ErrTraining)
		case update.Values == nil && update.Message == nil && len(update.Vector) != len(w.Model):
			return fmt.Errorf("%w: the update has %d numbers, the model %d", ErrTraining,
				len(update.Vector), len(w.Model))
		}
		return nil
	}
	if r.Federation.Settled.Mechanism() != nil {
		err = drive.Caught(work)
	} else {
		err = work()
	}
	if err == nil && update.Without != nil {
		r.Log.Warn("this round's sum is without some records, and nobody else learns it",
			"round", w.Round, "error", update.Without.Error())
	}
	return update, err
}

// check returns why an update does not fit the federation: the trainer is code of others, and
// another round would not help.
func (r *running) check(update *Update) error {
	encoded := update.Values != nil || update.Message != nil
	switch declared := r.Federation.Settled.Trains(); {
	case declared && !encoded:
		return errors.New("party: the federation declares the training; use Declared")
	case declared:
		return nil
	case encoded: // which nothing would clip, nor add noise to
		return errors.New("party: the federation declares no training; leave Vector, not Values")
	}
	return nil
}

// encode writes the submission of an update to v.
func (r *running) encode(v *masking.Vector, update *Update, w *Work) error {
	if update.Values != nil {
		return set(v, update.Values)
	}
	made := job.Update[float64]{Vector: update.Vector, Loss: update.Loss, Accuracy: update.Accuracy}
	return job.EncodeTo(v, r.Federation.Settled, job.BroadcastDigest(w.File), made, r.random)
}

// set writes values to v, and erases them.
func set(v *masking.Vector, values [][]uint64) error {
	err := v.Set(values...)
	for _, lane := range values {
		clear(lane)
	}
	return err
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
		Metrics: r.Federation.Job.Metrics.Share > 0,
		Coins:   r.Federation.Settled.Coins(),
	}, nil
}

// watch tells the server that this party is present while it works, for a session, for more than a
// moment, by a request that stays open. working ends when the round goes on without the party.
func (r *running) watch(
	ctx context.Context, session uint64,
) (working context.Context, stop func()) {
	working, cancel := context.WithCancelCause(ctx)
	ask := r.ask()
	ask.Working, ask.Seen = true, slices.Clone(ask.Seen)
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Steps go on without a party that is silent for four times as long.
		grace := exchange.DefaultGrace(r.Federation.Settled.Roster().Len())
		wait := min(grace, time.Duration(drive.DefaultComeBack)) / 4
		for ; sleep(working, wait) == nil; wait = 0 {
			next, err := r.Server.next(working, r.path, ask, r.most, nil)
			switch {
			case err != nil:
				if sleep(working, time.Second) != nil {
					return
				}
			case next.Kind == exchange.Join || next.Session != session && next.Kind != exchange.End:
				ask.Seen = append(ask.Seen, next.Item) // it can wait
				if len(ask.Seen) > mostSeen {
					ask.Seen = ask.Seen[len(ask.Seen)-mostSeen:]
				}
			case next.Kind != exchange.Nothing:
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

// errMade ends a question: the party has a result to report.
var errMade = errors.New("party: the trainer has ended")

var errWentOn = errors.New("party: the round continued without this party")

// last receives the last model.
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
