package hushsum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/transport"
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
type Coordinator struct {
	Job      *Settled
	Listener Listener
	// Committee listens for members, for a job with one-message sums only. It identifies members by
	// their index in the committee.
	Committee Listener

	// The first round begins with Model, the job's ModelLength coordinates; nil: zeros. For
	// a job that trains its model itself, training.First returns it, and training.Apply
	// returns Apply.
	Model []float64
	// Apply returns the next model from the mean of the parties' vectors in a round; nil: the sum of
	// both. The coordinator keeps the model that Apply returns, which must not change any more; Apply
	// may change and return its argument model. The round is lost if Apply returns an error, or a
	// model that is not finite or of another length, and also if the sum does not decode. Apply runs
	// in a goroutine of its own, one call at a time, while parties come and sessions form. The sum is
	// stored before: a coordinator whose process ends during the call calls Apply again for the same
	// round after a restart. Run does not return before Apply has.
	Apply func(r Round, model []float64) ([]float64, error)

	// Model32 and Apply32 are Model and Apply for models that the coordinator holds as float32, in
	// half the memory; a coordinator with either of them ignores Model and Apply. Parties are sent
	// the same numbers as with Model, exactly, and may hold them as they like. The first round begins
	// with Model32, zeros if it is nil; the coordinator keeps Model32, which must not change any
	// more. Apply32 finds the mean in Mean32, and may change and return the mean too; without Apply32
	// the sum of model and mean is rounded to float32. Both are for pairwise sums.
	Model32 []float32
	Apply32 func(r Round, model []float32) ([]float32, error)

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
type Result struct {
	Model   []float64
	Model32 []float32 // in place of Model, of a coordinator with Model32 or Apply32
	Rounds  int       // that were begun
	Lost    int       // of these, without a sum
	// Spent bounds what the parties have spent; nil without noise.
	Spent *accounting.Claim
}

// narrow reports whether models are held as float32.
func (c *Coordinator) narrow() bool { return c.Model32 != nil || c.Apply32 != nil }

// coordinator is a running Coordinator whose sums are pairwise: it carries what a drive.Lead
// decides.
type coordinator struct {
	*leader
	drive  drive.Lead
	cast   *transport.Broadcast // that the last round began with
	behind map[int]bool         // parties that may have something pending which is not queued
	next   chan applied
}

// applied holds what has come of a round's sum.
type applied struct {
	round uint64
	model transport.Weights
	err   error
}

// Times of the coordinator that are not for users to choose.
const (
	defaultStepTime = 30 * time.Second
	// shortestSleep keeps a coordinator from asking the time over and over.
	shortestSleep = time.Millisecond
	// clogTime is how often it looks for those who take nothing.
	clogTime  = time.Second
	queueSize = 32
)

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
// unusable; with [ErrLocked] if somebody else uses the Store; and with errors of Store and
// Listener. A job that was stopped, or is paused, goes on from its Store. When Run returns it has
// no goroutine left.
func (c *Coordinator) Run(ctx context.Context) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l := newLeader(c)
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		l.hub.running.Wait()
		l.vault.Close()
	}()
	if c.Job.Oneshot() != nil {
		return l.runOneshot(ctx)
	}
	r := newCoordinator(l)
	if err := r.load(); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

func newCoordinator(l *leader) *coordinator {
	l.limit = int64(l.Job.Config(0).MaxMessage())
	return &coordinator{
		leader: l,
		behind: make(map[int]bool),
		next:   make(chan applied, 1),
	}
}

// run waits for what happens, and does what is due.
func (c *coordinator) run(ctx context.Context) (*Result, error) {
	failed := make(chan error, 1)
	c.running.Go(func() { c.accept(ctx, c.Listener, failed) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := c.proceed(); err != nil {
			return nil, err
		}
		sleep := c.sleep()
		switch status := c.drive.Status(); {
		case status.Paused:
			return c.result(status, c.drive.Ledger())
		case status.Ended != "":
			left := c.farewell()
			if left <= 0 {
				return c.result(status, c.drive.Ledger())
			}
			sleep = min(sleep, left)
		}
		timer.Reset(max(sleep, shortestSleep))
		select {
		case <-ctx.Done():
		case err := <-failed:
			return nil, err
		case a := <-c.events:
			c.arrived(a)
		case e := <-c.notices:
			c.report(e)
		case a := <-c.next:
			if a.err == nil {
				c.adopt(a.model)
			}
			c.drive.Applied(c.now(), a.round, a.err)
		case <-c.drained:
		case <-timer.C:
		}
		if err := ctx.Err(); err != nil { // links end with it: nobody has gone for that
			return nil, c.stop(err)
		}
	}
}

// stop saves what is held, so that who has sent it is not asked again, and returns why it stops.
func (c *coordinator) stop(why error) error {
	c.drive.Keep()
	if r, _ := c.drive.Ready(); r.Save {
		if err := c.save(); err != nil {
			return err
		}
	}
	return why
}

// sleep returns how long nothing is due, unless something happens.
func (c *coordinator) sleep() time.Duration {
	sleep := time.Hour
	if wake := c.drive.Wake(); wake != drive.Never {
		sleep = min(sleep, time.Duration(wake-c.now()))
	}
	if len(c.behind) > 0 {
		sleep = min(sleep, clogTime)
	}
	return sleep
}

// proceed does what is due.
func (c *coordinator) proceed() error {
	err := c.decide(c.drive, c.save, func(out drive.Orders) {
		if out.Apply != nil {
			c.apply(out.Apply)
		}
		for i := range c.parties {
			if out.Tell {
				c.behind[i] = true
			}
		}
	})
	if err != nil {
		return err
	}
	for i := range c.behind {
		if c.pump(i) {
			delete(c.behind, i)
		}
	}
	c.unclog(c.StepTime)
	return nil
}

// pump queues what is pending for a party and was not queued on its connection, and reports
// whether there was room for all. Where there was none it goes on once something was sent.
func (c *coordinator) pump(party int) bool {
	to := c.parties[party]
	if to == nil {
		return true // it is told when it connects
	}
	pending := make(map[string]bool)
	for item := range c.drive.Pending(drive.Peer{Index: party}) {
		if !to.had[item.Name] {
			if !c.offer(to, c.outgoing(item)) {
				return false
			}
			to.had[item.Name] = true
		}
		pending[item.Name] = true
	}
	to.had = pending
	return true
}

// outgoing is an item as frames. A message that begins a round follows its broadcast.
func (c *coordinator) outgoing(item drive.Item) outgoing {
	switch item.Kind {
	case drive.Join:
		return single(transport.NumberFrame(transport.KindJoin, item.Session))
	case drive.Last:
		if c.drive.Status().Stalled {
			return single(withoutSum())
		}
		last := &transport.Broadcast{Round: item.Round, Model: c.model}
		return outgoing{write: func(send func([]byte) error) error {
			return transport.SendBody(transport.KindEnd, last, send)
		}}
	}
	cast := c.cast
	return outgoing{own: len(item.Own), write: func(send func([]byte) error) error {
		if item.Round > 0 {
			if err := transport.SendBody(transport.KindBroadcast, cast, send); err != nil {
				return err
			}
		}
		return send(slices.Concat([]byte{transport.KindMessage}, item.Shared, item.Own))
	}}
}

// begins returns the digest of what a round begins with, which is sent once the round is saved.
func (c *coordinator) begins(round uint64, fresh [32]byte) ([32]byte, error) {
	b := &transport.Broadcast{Round: round, Fresh: fresh, Model: c.model}
	if err := b.Settle(); err != nil {
		return b.Digest, err
	}
	c.cast = b
	collect(c.Job) // what was of the round before
	return b.Digest, nil
}

// apply has the next model made from a sum, while the job goes on.
func (c *coordinator) apply(a *drive.Apply) {
	r := Round{Number: a.Round, Parties: a.Parties, Sum: a.Sum, Broadcast: c.cast.Digest}
	model := c.model
	c.running.Go(func() {
		collect(c.Job) // room for submissions
		next := applied{round: a.Round}
		if next.err = c.decode(&r); next.err == nil {
			next.model, next.err = c.nextModel(r, model)
		}
		c.next <- next
	})
}

// decode fills in the mean of a round. A job that trains reads the sum itself.
func (c *coordinator) decode(r *Round) error {
	switch {
	case c.Job.Trains():
		return nil
	case more(c.Job):
		total, err := c.Job.DecodeTotal(r.Broadcast, r.Sum.Values(), len(r.Parties))
		r.Mean = total.Mean
		return err
	case c.narrow():
		r.Mean32 = make([]float32, c.Job.Length())
		return job.DecodeTo(r.Mean32, c.Job, r.Broadcast, r.Sum, len(r.Parties))
	}
	r.Mean = make([]float64, c.Job.Length())
	return job.DecodeTo(r.Mean, c.Job, r.Broadcast, r.Sum, len(r.Parties))
}

// arrived handles what came from a party. Nothing of it ends the job.
func (c *coordinator) arrived(a arrival) {
	defer a.long.Drop()
	switch {
	case a.err != nil || len(a.frame) == 0:
		if c.gone(a) {
			c.drive.Gone(c.now(), drive.Peer{Index: a.party})
			c.report(Event{Kind: Disconnected, Party: a.party, Err: a.err})
		}
	case a.frame[0] == transport.KindHello && !a.from.greeted:
		c.greet(a)
	case c.parties[a.party] != a.from:
	case a.frame[0] == transport.KindAbsent:
		c.said(a)
	case a.frame[0] == transport.KindMessage:
		c.message(a)
	}
}

// greet checks that a party has the same job. It is told next what it needs.
func (c *coordinator) greet(a arrival) {
	h, refusal := checkGreeting(c.Job, a.frame[1:])
	if refusal != nil {
		c.refuse(a, refusal)
		return
	}
	c.admit(a)
	hello := drive.Hello{Sessions: h.Sessions, Least: h.Least}
	c.drive.Connected(c.now(), drive.Peer{Index: a.party}, hello)
	c.behind[a.party] = true
	c.report(Event{Kind: Connected, Party: a.party})
}

// said takes a party's word of the last round that it has submitted in, and that it does not
// submit in the one that goes on. Absent 0: the first alone.
func (c *coordinator) said(a arrival) {
	var said transport.Absence
	if err := transport.ParseJSON(a.frame[1:], &said); err != nil {
		c.report(Event{Kind: Refused, Party: a.party, Err: err})
		return
	}
	says := drive.Said{Told: said.Told, Absent: said.Absent}
	if c.drive.Said(c.now(), drive.Peer{Index: a.party}, says) {
		c.report(Event{Kind: Absent, Session: c.drive.Status().Session, Round: said.Absent,
			Party: a.party, Err: fmt.Errorf("%w: %.40q", ErrAbsent, said.Why)})
	}
}

// message hands on a message of a party.
func (c *coordinator) message(a arrival) {
	var from io.Reader = bytes.NewReader(a.frame[1:])
	if a.long != nil {
		from = a.long.Message()
	}
	err := c.drive.Receive(c.now(), drive.Peer{Index: a.party}, from)
	for _, expected := range []error{nil, protocol.ErrDuplicate, protocol.ErrStale,
		protocol.ErrSession, drive.ErrEnded} {
		if errors.Is(err, expected) {
			return
		}
	}
	c.report(Event{Kind: Refused, Session: c.drive.Status().Session, Party: a.party, Err: err})
}
