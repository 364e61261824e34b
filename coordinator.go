package hushsum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/store"
)

// Coordinator runs a job: it forms sessions among the connected parties, holds the rounds, and
// holds no party's secrets. Set the fields, then call Run.
//
// Package drive decides, see [drive.Lead]. A round is held among the connected parties, at least
// the job's MinSurvivors. Each step of a round waits for a connected party for at most StepTime,
// for a party whose connection broke for as long as coming back takes, and not at all for a party
// that says that it is absent. A party that has let steps pass is waited for less, and soon not at
// all for some rounds. A party that spoils a round is left out of the job, whichever keys it comes
// back with. A round without a sum, for any reason, is lost: its ε is spent all the same, and it
// counts among the job's Rounds. After five lost rounds in a row the job pauses, with [ErrPaused].
// A party that connects and is not in the session, being new or having lost its state, joins the
// next session, which forms while rounds go on.
//
// F is how the coordinator holds models: float64, or float32 in half the memory. Parties are sent
// the same numbers, exactly, and may hold them as they like.
type Coordinator[F Float] struct {
	Job      *Settled
	Listener Listener
	// Committee listens for members, for a job with one-message sums only. It identifies members by
	// their index in the committee.
	Committee Listener

	// The first round begins with Model, the job's ModelLength coordinates; nil: zeros. The
	// coordinator keeps Model, which must not change any more. For a job that trains its model
	// itself, training.First returns Model, and training.Apply returns Apply.
	Model []F
	// Apply returns the next model from the mean of the parties' vectors in a round; nil: the sum
	// of model and mean. The coordinator keeps the model that Apply returns, which must not change
	// any more; Apply may change and return the Model and Mean that it is given. The round is lost
	// if Apply returns an error, or a model that is not finite or of another length, and also if
	// the sum does not decode. Apply runs in a goroutine of its own, one call at a time, while
	// parties come and sessions form. The sum is stored before: a coordinator whose process ends
	// during the call calls Apply again for the same round after a restart. Run does not return
	// before Apply has.
	Apply func(d Done[F]) ([]F, error)
	// Round is called after Apply, with the next Model, which it must not change: for checkpoints and
	// early stops. If Round returns stop, the job ends with that model, and no other round is begun.
	// With an error Run ends, and fails with that error; another Run with the same Store calls Apply
	// and Round again for the same round. nil: nobody is told.
	Round func(d Done[F]) (stop bool, err error)

	// Store keeps what must not be lost when the process ends; nil: nothing is kept. Key seals it,
	// and must be set with Store. A stored float32 model can be resumed as float64; a float64 model
	// as float32 only if no weight is rounded.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	// Folder holds submissions of more than a megabyte while they arrive, in files without names;
	// empty: os.TempDir.
	Folder string

	// StepTime is how long a step waits for connected parties, including their work; 0: as the job
	// says, or 30 s.
	StepTime time.Duration

	Progress func(Event) // may be nil
}

// Result reports the outcome of a job.
type Result[F Float] struct {
	Model  []F
	Rounds int // that were begun
	Lost   int // of these, without a sum
	// Spent bounds what the parties have spent; nil without noise.
	Spent *accounting.Claim
}

// defaultStepTime is how long a step waits, unless somebody says.
const defaultStepTime = 30 * time.Second

// farewellTime is how long a coordinator whose job has ended waits for parties that may come back
// while none is connected. Tests shorten it: examples cannot run in virtual time.
var farewellTime = 1500 * time.Millisecond

// Errors of Run with which it returns a result too: what was spent is spent. The events say why
// rounds were lost.
var (
	// ErrStalled: each round of the job was lost.
	ErrStalled = errors.New("hushsum: the job ended without sums; see the events of its lost rounds")
	// ErrPaused: five rounds in a row were lost, or nobody submitted in one although enough parties
	// were connected, so that the next would cost as much for nothing. Parties go on dialing. Once the
	// cause is mended, another Run with the same Store goes on with the next round.
	ErrPaused = errors.New(
		"hushsum: the job is paused; mend the cause, and run its coordinator again from its store")
)

// Run runs the job to its end. It fails with the context's error; with [ErrStalled] or [ErrPaused];
// with [ErrConfig] if a field is unusable; with [ErrOldState] or [ErrStore] if the stored state is
// unusable; with [ErrLocked] if somebody else uses the Store; and with errors of Round, Store and
// Listener. A job that was stopped, or is paused, goes on from its Store. When Run returns it has
// no goroutine left.
func (c *Coordinator[F]) Run(ctx context.Context) (*Result[F], error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := newCoordinator(c)
	defer func() { r.vault.Close() }()
	lead, err := r.load()
	if err != nil {
		return nil, err
	}
	return r.run(ctx, lead)
}

// coordinator is a running Coordinator: it carries what drive.Lead decides.
type coordinator[F Float] struct {
	Coordinator[F]
	parties, members *hub // members: nil without a committee
	host             *host.Leader
	vault            *store.Vault
	record           *host.Vault // nil: nothing is kept
	model            link.Floats[F]
	cast             *link.Broadcast         // that the last round began with
	began            time.Time               // when the time of drive begins
	first            time.Time               // the coordinator runs, or the job has ended
	why              error                   // it is paused
	failed           context.CancelCauseFunc // ends Run with an error
}

// againRun is why a job that was paused goes on.
const againRun = "its coordinator runs again"

func newCoordinator[F Float](of *Coordinator[F]) *coordinator[F] {
	c := &coordinator[F]{Coordinator: *of, began: time.Now(), first: time.Now()}
	if c.StepTime == 0 {
		if c.StepTime = c.Job.Time().StepTime; c.StepTime == 0 {
			c.StepTime = defaultStepTime
		}
	}
	frame, limit := maxFrame(c.Job), int64(maxMessage(c.Job))
	c.parties = newHub(c.Folder, frame)
	c.parties.limit = limit
	if c.Job.Oneshot() != nil {
		c.members = newHub(c.Folder, frame)
		c.members.limit = limit
	}
	return c
}

// now is the time of drive.
func (c *coordinator[F]) now() drive.Time { return 1 + drive.Time(time.Since(c.began)) }

// run leads the job, and reads and writes connections meanwhile.
func (c *coordinator[F]) run(ctx context.Context, lead drive.Lead) (*Result[F], error) {
	ctx, stop := context.WithCancelCause(ctx)
	c.failed = stop
	options := host.Options{Lead: lead, Clock: c.now, Next: c.next, Watch: c.notice, Left: c.left,
		Room: mostUnsent}
	if c.record != nil {
		options.Record = c.record
	}
	c.host = host.NewLeader(options)
	defer c.serve(ctx, stop, c.parties, c.Listener).Wait()
	if c.members != nil {
		defer c.serve(ctx, stop, c.members, c.Committee).Wait()
	}
	defer stop(nil)
	if err := c.host.Run(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		return nil, err
	}
	return c.result(lead)
}

// serve takes connections, reads and writes, until the context ends. The result says when all of
// that has ended.
func (c *coordinator[F]) serve(
	ctx context.Context, stop context.CancelCauseFunc, h *hub, from Listener,
) *sync.WaitGroup {
	h.serve = func(ctx context.Context, party int, to *connection) { c.write(ctx, h, party, to) }
	h.running.Go(func() { h.accept(ctx, from, stop) })
	h.running.Go(func() { c.hear(ctx, h) })
	return &h.running
}

// notice reports what drive tells.
func (c *coordinator[F]) notice(n drive.Notice) {
	switch n.Kind {
	case drive.Ended:
		c.first = time.Now()
	case drive.Paused:
		c.why = n.Err
	}
	if e, known := host.EventOf(n); known {
		c.report(e)
	}
}

func (c *coordinator[F]) report(e Event) {
	if c.Progress != nil {
		c.Progress(e)
	}
}

// left returns how long parties still have to take the last model: those that have it hang up.
func (c *coordinator[F]) left(s drive.Status) time.Duration {
	if s.Paused {
		return 0
	}
	there := len(c.parties.there)
	if c.members != nil {
		there += len(c.members.there)
	}
	limit := c.StepTime
	if there == 0 {
		limit = min(limit, farewellTime)
	}
	return limit - time.Since(c.first)
}

// result returns what the job has come to.
func (c *coordinator[F]) result(lead drive.Lead) (*Result[F], error) {
	s, ledger := lead.Status(), lead.Ledger()
	r := &Result[F]{Model: c.model, Rounds: int(s.Round), Lost: int(s.Lost)}
	var failed error
	switch {
	case s.Paused:
		failed = fmt.Errorf("%w: %w", ErrPaused, c.why)
	case s.Stalled:
		failed = fmt.Errorf("%w (%d of %d)", ErrStalled, s.Lost, s.Round)
	}
	spent, err := most(ledger)
	if err != nil {
		return nil, err
	}
	r.Spent = spent
	return r, failed
}

// most bounds what the parties of a ledger have spent; nil without noise, and before the first
// round.
func most(ledger *accounting.Ledger) (*accounting.Claim, error) {
	if ledger == nil {
		return nil, nil
	}
	client, spent, err := ledger.Most()
	if err != nil || client == "" {
		return nil, err
	}
	return &spent, nil
}
