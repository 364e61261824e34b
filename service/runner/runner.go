// Package runner leads a federation: package drive decides, and the runner carries out. It holds
// the private sum's server in memory, takes the parties' messages, and records each decision before
// anything that follows from it is sent.
//
// A decision fixes which parties are in a session, which take part in a round and from which model,
// which are in its sum, the signatures that certify this, and the new model. Between decisions
// nothing is written: the runner holds the messages that parties have sent since the last decision,
// and if it dies parties are asked for these messages again, and send the same bytes. A runner
// whose decision is not recorded, for whatever reason, is no longer usable; the record is claimed
// and loaded anew. docs/locks.md has the order of its locks.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// Errors of a runner's callers.
var (
	// ErrStopped: this runner no longer leads; ask the node that does.
	ErrStopped = errors.New("runner: this node does not lead the federation now")
	// ErrNotDue: the runner waits for no such message from this party.
	ErrNotDue = errors.New("runner: no such message is due from this party")
	// ErrPassed: this runner no longer leads, because [Options].Pass told it to end.
	ErrPassed = errors.New("runner: another node should lead the federation")
	// ErrEnded: the federation has ended.
	ErrEnded = errors.New("runner: the federation has ended")
)

// Options configure a [Runner].
type Options struct {
	Federation *federation.Federation
	Records    *record.Records
	Hold       *record.Hold
	Node       string
	Keys       *record.Keys // seal the sessions' states
	Log        *slog.Logger
	// Grace is how long a party that was heard from and has no request open counts as present; 0:
	// [exchange.DefaultGrace].
	Grace time.Duration
	// OutRoom is how many bytes of messages are being written at once, 0 for 64 MiB: all parties
	// are told of a decision at the same moment, and the message to each is made for it. One
	// message may be longer.
	OutRoom int64
	// Pass is called between rounds: if it returns true this runner ends, so that another leads; nil:
	// the runner never ends for that reason.
	Pass func() bool
	// Judge returns the accuracy of a model on rows that no party has; nil: it is not measured.
	Judge func(model []float64) float64
	// Traces takes spans of rounds; nil: there are none.
	Traces trace.TracerProvider
	// Outage reports that the record was away before this runner: the round that is open may have
	// suffered.
	Outage bool
	// Evidence keeps evidence that a party or a member cheated, which others can check (package
	// oneshot), and returns where; who consists of letters, digits and dashes. nil: evidence is not
	// kept.
	Evidence func(round uint64, who string, evidence []byte) (where string, err error)
	// Summed, for tests, is shown each sum before it is decoded; may be nil.
	Summed func(round int, parties []int, sum [][]uint64)
}

// peer holds the runner's knowledge of a party or a member, in memory only.
type peer struct {
	polls     int // that are open
	heard     time.Time
	number    uint64 // of the last question
	asked     string // item that it was last asked for
	askedWhen time.Time
	changed   chan struct{} // closed when there is something new for it; nil: it does not wait

	process, before  uint64 // that asked last, and before that one
	twice, twiceTold time.Time
}

// Runner leads one federation. It is safe for concurrent use.
type Runner struct {
	Options
	lock    chan struct{} // holds one token while free
	crowd   chan struct{} // holds one while a party waits for the lock
	wake    chan struct{}
	applied chan applied // at most one model at a time is made
	made    applied      // the last
	stopped error
	out     *semaphore.Weighted // bytes on their way to parties
	council *semaphore.Weighted // to members of the committee
	largest atomic.Int64        // bytes of the messages that were sent
	clock   clock
	// untroubled is how long the clock had stood still when the open round began; negative: the
	// record was away before this runner led.
	untroubled time.Duration
	outages    int       // rounds that were lost while the record was away in them
	recalled   time.Time // when the record was back, last

	drive     drive.Lead
	sums      *oneshot.Config // with a committee, else nil
	ahead     ahead           // submissions that wait for the lock
	optimizer *aggregation.Optimizer
	spends    paid
	model     []float64
	modelRef  *record.Ref
	objects   []object      // of the open round
	spent     []*record.Ref // objects that the next decision makes superfluous
	broadcast []byte        // made when asked for
	of        int           // the round that broadcast is of; negative: the model after it
	history   []Past
	why       string // why it is paused, or why the last round was lost or could not begin
	missing   error  // why an older state was loaded; nil: the newest was, or that has been said

	parties []peer
	members []peer // of the committee
	seen    []bool // parties that were ever present, including under an earlier leader
	steps   stepTimes
	was     drive.Status // when steps were timed last
	lacks   lacking
	among   []int // the parties that the open round began with; nil: unknown
	tracing tracing

	seenMembers []bool
	names       []string
	bytesIn     int64
	most        int // bytes of a message
	refused     int64
}

// Past describes a round that is over.
type Past struct {
	Round    int         `json:"round"`
	Session  uint64      `json:"session"`
	Parties  int         `json:"parties"` // in the sum; 0 if there is none
	Began    time.Time   `json:"began"`
	Seconds  float64     `json:"seconds"`
	Lost     string      `json:"lost,omitempty"`   // why there is no sum
	Outage   bool        `json:"outage,omitempty"` // the record was away in it, and it is lost
	Share    float64     `json:"share,omitempty"`  // of the budget, spent by then
	Metric   *job.Metric `json:"metric,omitempty"`
	Accuracy float64     `json:"accuracy,omitempty"` // of Judge
	Digest   string      `json:"digest,omitempty"`   // of the model
}

const (
	defaultOutRoom = 64 << 20

	resendAfter = 3 * time.Second  // a party is not asked for the same more often
	mostHistory = 1000             // rounds that are remembered; the audit log has all
	appears     = 10 * time.Second // an object that was put is on all nodes
)

// Start loads the recorded state, or begins, and leads until ctx ends or the record is lost. Call
// Run next.
func Start(ctx context.Context, o Options) (*Runner, error) {
	settled := o.Federation.Settled
	n := settled.Roster().Len()
	if o.Grace == 0 {
		o.Grace = exchange.DefaultGrace(n)
	}
	if o.OutRoom == 0 {
		o.OutRoom = defaultOutRoom
	}
	o.Log = o.Log.With("federation", o.Federation.Job.Name)
	r := &Runner{
		Options:   o,
		lock:      make(chan struct{}, 1),
		crowd:     make(chan struct{}, 1),
		wake:      make(chan struct{}, 1),
		applied:   make(chan applied, 1),
		out:       semaphore.NewWeighted(o.OutRoom),
		council:   semaphore.NewWeighted(o.OutRoom),
		clock:     clock{began: time.Now(), time: time.Now},
		optimizer: o.Federation.Optimizer(),
		parties:   make([]peer, n),
	}
	if one := settled.Oneshot(); one != nil {
		r.sums, r.members, r.most = one, make([]peer, one.Committee.Len()), one.MaxMessage()
	} else {
		r.most = settled.Config(1).MaxMessage()
	}
	for i := range n {
		r.names = append(r.names, settled.Roster().Name(i))
	}
	if o.Outage {
		r.untroubled = -1
	}
	r.tracing = r.newTracing()
	r.seen, r.seenMembers = make([]bool, n), make([]bool, len(r.members))
	r.lock <- struct{}{}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	r.tidy(ctx)
	return r, nil
}

// acquire takes the lock, or fails with the context's error or that of a stopped runner.
func (r *Runner) acquire(ctx context.Context) error {
	select {
	case <-r.lock:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.stopped != nil {
		r.release()
		return ErrStopped
	}
	return nil
}

// acquireFor is acquire for a party or a member. Of thousands of parties one at a time stands in
// the queue for the lock, so that no other is ahead of a member, or of the runner itself.
func (r *Runner) acquireFor(ctx context.Context, p Peer) error {
	if !p.Member {
		select {
		case r.crowd <- struct{}{}:
			defer func() { <-r.crowd }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.acquire(ctx)
}

func (r *Runner) release() { r.lock <- struct{}{} }

func (r *Runner) now() drive.Time { return r.clock.now() }

// Run leads until ctx ends, when it saves what it holds, or until a decision cannot be recorded,
// which Run returns, or until Pass has it end, with [ErrPassed]. The runner is then no longer
// usable.
func (r *Runner) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var answer *applied
	for {
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
		case <-r.wake:
		case a := <-r.applied:
			answer = &a
		}
		<-r.lock
		if r.stopped != nil { // by an order that was not recorded, or by Confirm
			err := r.stopped
			r.release()
			return err
		}
		ends := err != nil
		r.goes()
		if !ends {
			if err = r.take(ctx, answer); err == nil {
				err = r.proceed(ctx)
			}
			answer, ends = nil, errors.Is(err, ErrPassed)
		}
		if ends {
			// A graceful end: the next runner continues in mid-step.
			r.drive.Keep()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			if _, failed := r.carry(last); failed != nil {
				err = failed
			}
			cancel()
		}
		if err != nil {
			r.stopped = err
			r.tracing.end(r.now(), 0, "this node no longer leads")
			r.announce()
		} else {
			r.sayLacks()
			r.setTimer(timer)
		}
		r.release()
		if err != nil {
			return err
		}
	}
}

// setTimer sets a timer for when something may be due.
func (r *Runner) setTimer(timer *time.Timer) {
	stands, until := r.goes()
	wake := r.drive.Wake()
	switch {
	case stands && !until.IsZero():
		timer.Reset(time.Until(until))
	case !stands && wake != drive.Never:
		timer.Reset(time.Duration(wake - r.now()))
	}
}

// proceed decides what is due, and carries it out.
func (r *Runner) proceed(ctx context.Context) error {
	for {
		if r.Pass != nil && r.between() && r.Pass() {
			return ErrPassed
		}
		if err := r.drive.Tick(r.now()); err != nil {
			return err
		}
		if some, err := r.carry(ctx); err != nil || !some {
			return err
		}
	}
}

// between reports whether no round is open, no session forms, and every decision is recorded.
func (r *Runner) between() bool {
	at := r.drive.Status()
	if _, some := r.drive.Ready(); some {
		return false
	}
	resting := func(s drive.Stage) bool { return s == 0 || s == drive.Resting }
	return at.Ended != "" || resting(at.Stage) && resting(at.Next.Stage)
}

// carry carries out a decision, if there is one: records it, then gives parties what follows.
func (r *Runner) carry(ctx context.Context) (some bool, err error) {
	r.timeSteps()
	ready, some := r.drive.Ready()
	if !some {
		return false, nil
	}
	lines := r.note(ready.Notices)
	if ready.Save {
		if err := r.record(ctx); err != nil {
			return true, err
		}
	}
	orders := r.drive.Advance(r.now())
	r.timeSteps()
	r.tracing.follow(r.drive.Status(), r.now())
	for _, line := range lines {
		r.audit(line)
	}
	switch {
	case ready.Save:
		r.announce()
	case orders.Tell: // among thousands, the few that it concerns
		for _, i := range orders.Upload {
			r.parties[i].tell()
		}
	}
	if orders.Apply != nil {
		return true, r.apply(orders.Apply)
	}
	return true, nil
}

// Confirm has the record say that this runner still leads, and stops a runner that does not: a
// runner that has nothing to decide would not find out otherwise. Call it when another node is
// heard to lead, and once this process has stood still. It fails with [ErrStopped] if the runner
// does not lead, and with record.ErrUnavailable if the record does not say.
func (r *Runner) Confirm(ctx context.Context) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	err := r.Hold.Keep(ctx)
	if errors.Is(err, record.ErrLost) {
		_ = r.fatal(err)
		return ErrStopped
	}
	return err
}

// announce tells all waiting requests that there is something new.
func (r *Runner) announce() {
	for i := range r.parties {
		r.parties[i].tell()
	}
	for k := range r.members {
		r.members[k].tell()
	}
}

// tell has the requests of one peer look again.
func (p *peer) tell() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// wait returns a channel that is closed when there is something new for a peer.
func (p *peer) wait() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// Poke has the runner check whether anything is due.
func (r *Runner) Poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// audit writes a line in the background: the record itself does not depend on it.
func (r *Runner) audit(line record.Line) {
	line.Time, line.Node = time.Now().UTC(), r.Node
	level := slog.LevelInfo
	if line.Event == eventLost { // it was paid for
		level = slog.LevelWarn
	}
	said := given(slog.Int("round", line.Round), slog.Int("parties", line.Parties),
		slog.String("note", line.Note))
	if line.Spent != nil {
		said = append(said, slog.Any("spent", *line.Spent))
	}
	r.Log.LogAttrs(context.Background(), level, line.Event, said...)
	go func() {
		if err := r.Records.Audit(context.Background(), r.Federation.ID, line); err != nil {
			r.Log.Warn("a line of the audit log was not written", "error", err.Error())
		}
	}()
}

// given leaves out what an event does not have.
func given(attributes ...slog.Attr) []slog.Attr {
	return slices.DeleteFunc(attributes, func(a slog.Attr) bool {
		switch v := a.Value; v.Kind() {
		case slog.KindInt64:
			return v.Int64() == 0
		case slog.KindUint64:
			return v.Uint64() == 0
		case slog.KindFloat64:
			return v.Float64() == 0
		case slog.KindString:
			return v.String() == ""
		}
		return false
	})
}
