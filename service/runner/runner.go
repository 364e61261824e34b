// Package runner leads a federation: it holds the private sum's server in memory, takes
// what parties send, decides by deadlines, and records each decision before anything that
// follows from it is sent.
//
// A decision is who is in a session, who takes part in a round and from which model, who
// is in its sum, what certifies that, and the new model. Between decisions nothing is
// written: what parties have sent since is held, a party is asked for it again if the
// runner dies, and sends the same bytes. A runner whose decision is not recorded, for
// whatever reason, is of no more use; the record is claimed and loaded anew.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// Errors of a runner's callers.
var (
	// ErrStopped: this runner leads no more; ask the node that does.
	ErrStopped = errors.New("runner: this node does not lead the federation now")
	// ErrNotDue: the runner waits for no such message of this party.
	ErrNotDue = errors.New("runner: no such message is due of this party")
	// ErrEnded: the federation has ended.
	ErrEnded = errors.New("runner: the federation has ended")
)

// Stage is what a session waits for.
type Stage int

// The stages.
const (
	Announcing Stage = iota + 1
	Encapsulating
	Preparing // recovery material
	Ready
	Submitting
	Signing
	Revealing
)

var stageNames = []string{"", "announcing keys", "exchanging keys", "preparing", "ready",
	"submitting", "signing", "revealing"}

func (s Stage) String() string {
	if s < 0 || int(s) >= len(stageNames) {
		return "stage " + strconv.Itoa(int(s))
	}
	return stageNames[s]
}

// Options make a runner.
type Options struct {
	Federation *federation.Federation
	Records    *record.Records
	Hold       *record.Hold
	Node       string
	Key        *keyexchange.SealKey // seals the sessions' states
	Log        *slog.Logger
	// Grace is how long a step waits for parties that are not there: 0 for a second, and
	// a second more for every hundred parties.
	Grace time.Duration
	// OutRoom is how many bytes of messages are being written at once, 0 for 64 MiB: all
	// parties are told of a decision in the same moment, and what each is sent is made for
	// it. One message may be longer.
	OutRoom int64
	// Judge tells the accuracy of a model on rows that no party has; nil: nobody does.
	Judge func(model []float64) float64
	// Summed, for tests, is shown each sum before it is decoded; may be nil.
	Summed func(round int, parties []int, sum [][]uint64)
}

// session is one of the series, present or forming.
type session struct {
	number uint64
	stage  Stage
	since  time.Time
}

// party is what the runner knows of one, in memory only.
type party struct {
	polls     int // that are open
	seen      time.Time
	sessions  []uint64 // that it has keys for
	told      uint64   // the last round that it knows of
	least     uint64   // the least number of a session that it may join
	absent    uint64   // the round that it says it is absent from
	asked     string   // item that it was last asked for
	askedWhen time.Time
}

// Runner leads one federation. It is safe for concurrent use.
type Runner struct {
	Options
	lock    chan struct{} // holds one token while free
	changed chan struct{} // closed, and replaced, when there is something new for parties
	wake    chan struct{}
	stopped error
	out     *semaphore.Weighted
	largest atomic.Int64 // bytes of the messages that were sent

	series    *protocol.ServerSeries
	present   *session
	forming   *session
	optimizer *aggregation.Optimizer
	ledger    *accounting.Ledger
	mostOf    *accounting.Ledger // that mostSpent is of
	mostSpent float64
	model     []float64
	modelRef  *record.Ref
	sumRef    *record.Ref   // a long sum of the open round, when no more can come to it
	spent     []*record.Ref // objects that the next decision makes superfluous
	round     int           // the last that was begun
	fresh     [32]byte      // of its broadcast
	broadcast []byte        // made of model, round and fresh when asked for
	of        int           // the round that broadcast is of; negative: the model after it
	history   []Past
	roundTime time.Time // the last round began
	lost      int
	resumed   int // the last round when a pause was ended
	paused    bool
	why       string // why it is paused, or why the last round was lost or could not begin
	ended     string // reason, empty while it goes on

	parties  []party
	names    []string
	shunned  map[int]shunned
	dirty    bool // something is held that is not kept
	recorded time.Time
	loaded   time.Time // when a recorded state was, zero for a runner that began
	heard    time.Time // the last message was taken
	bytesIn  int64
	most     int // bytes of a message
	refused  int64
}

// shunned is a party that was there while a session formed and did not join it.
type shunned struct {
	times int
	until int // round from which on another session is formed for it
}

// Past is a round that is over.
type Past struct {
	Round    int                `json:"round"`
	Session  uint64             `json:"session"`
	Parties  int                `json:"parties"` // in the sum; 0 if there is none
	Began    time.Time          `json:"began"`
	Seconds  float64            `json:"seconds"`
	Lost     string             `json:"lost,omitempty"` // why there is no sum
	Epsilon  float64            `json:"epsilon,omitempty"`
	Metric   *federation.Metric `json:"metric,omitempty"`
	Accuracy float64            `json:"accuracy,omitempty"` // of Judge
	Digest   string             `json:"digest,omitempty"`   // of the model
}

const (
	defaultOutRoom = 64 << 20

	defaultGrace = time.Second
	graceForEach = 10 * time.Millisecond // since all come at once
	tick         = 50 * time.Millisecond
	resendAfter  = 3 * time.Second // a party is not asked for the same more often
	keepEvery    = time.Minute
	mostLost     = 5               // rounds in a row, after which it pauses
	mostHistory  = 1000            // rounds that are remembered; the audit log has all
	comeBack     = 8 * time.Second // parties wait 7.5 s between two tries at most
)

// DefaultGrace is how long a step waits for parties that are not there, of so many. A
// party that is at work is heard of more often than four times in it.
func DefaultGrace(parties int) time.Duration {
	return defaultGrace + time.Duration(parties)*graceForEach
}

// Start loads what is recorded, or begins, and leads until ctx ends or the record is
// lost. Call Run next.
func Start(ctx context.Context, o Options) (*Runner, error) {
	settled := o.Federation.Settled
	n := settled.Roster().Len()
	if o.Grace == 0 {
		o.Grace = DefaultGrace(n)
	}
	if o.OutRoom == 0 {
		o.OutRoom = defaultOutRoom
	}
	r := &Runner{
		Options:   o,
		lock:      make(chan struct{}, 1),
		changed:   make(chan struct{}),
		wake:      make(chan struct{}, 1),
		out:       semaphore.NewWeighted(o.OutRoom),
		optimizer: o.Federation.Optimizer(),
		parties:   make([]party, n),
		shunned:   make(map[int]shunned),
		series:    protocol.NewServerSeries(o.Federation.Config(1).Label, 1),
		recorded:  time.Now(),
		most:      o.Federation.Config(1).MaxMessage(),
	}
	for i := range n {
		r.names = append(r.names, settled.Roster().Name(i))
	}
	r.lock <- struct{}{}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
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

func (r *Runner) release() { r.lock <- struct{}{} }

// Run leads until ctx ends, when it saves what it holds, or until a decision cannot be
// recorded, which is returned. The runner is then of no more use.
func (r *Runner) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-ticker.C:
		case <-r.wake:
		}
		<-r.lock
		if r.stopped != nil { // by an order that was not recorded, or by Confirm
			err := r.stopped
			r.release()
			return err
		}
		began, decisions := time.Now(), r.Hold.Number()
		if err == nil {
			err = r.proceed(ctx)
		} else if r.dirty {
			// A graceful end: the next runner goes on in mid-step.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			if failed := r.record(last); failed != nil {
				err = failed
			}
			cancel()
		}
		if err != nil {
			r.stopped = err
			r.announce()
		}
		decided := r.Hold.Number() > decisions
		r.release()
		if err != nil {
			return err
		}
		// Every message has the state of all parties looked at. So that this grows with the
		// parties and not with their square, it takes a fifth of the time at most.
		if !decided {
			time.Sleep(min(4*time.Since(began), tick))
		}
	}
}

// Confirm asks the record whether this runner still leads, and stops it if it does not: one
// that has nothing to decide would not find out. Call it when another node is heard to lead.
func (r *Runner) Confirm(ctx context.Context) {
	if r.acquire(ctx) != nil {
		return
	}
	defer r.release()
	if err := r.Hold.Held(ctx); errors.Is(err, record.ErrLost) {
		_ = r.fatal(err)
	}
}

// announce tells those who wait that there is something new.
func (r *Runner) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Runner) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// server returns the state machine of a session.
func (r *Runner) server(s *session) *protocol.Server {
	if s == r.present {
		return r.series.Present()
	}
	return r.series.Successor()
}

// sessions lists those that there are.
func (r *Runner) sessions() []*session {
	var out []*session
	for _, s := range []*session{r.present, r.forming} {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

// enter records what was decided and lets parties have what follows from it.
func (r *Runner) enter(ctx context.Context, s *session, stage Stage) error {
	r.Log.Debug("a stage begins", "stage", stage.String(), "session", s.number, "round", r.round,
		"after", time.Since(s.since).String())
	s.stage, s.since = stage, time.Now()
	if err := r.record(ctx); err != nil {
		return err
	}
	s.since = time.Now() // parties are told now, and nobody was heard while it was recorded
	r.announce()
	return nil
}

// present reports whether a party is there.
func (r *Runner) here(i int) bool {
	p := &r.parties[i]
	return p.polls > 0 || !p.seen.IsZero() && time.Since(p.seen) < r.Grace
}

// holds reports whether a party is there and has keys for a session.
func (r *Runner) holds(i int, s *session) bool {
	return r.here(i) && slices.Contains(r.parties[i].sessions, s.number)
}

// absent reports whether a party has said that it does not submit in the present round.
func (r *Runner) absent(i int) bool {
	s := r.present
	return s != nil && s.stage == Submitting && r.parties[i].absent == uint64(r.round)
}

// over reports whether a stage need not wait any longer: all have answered, or only those
// have not who are gone or have had their time.
func (r *Runner) over(s *session) bool {
	missing := r.server(s).Missing()
	if len(missing) == 0 {
		return true
	}
	waited := time.Since(s.since)
	here := func(i int) bool { return r.holds(i, s) && !(s == r.present && r.absent(i)) }
	if slices.ContainsFunc(missing, here) {
		return waited > time.Duration(r.Federation.File.StepTime)
	}
	// Who is silent may only be slow while others are still heard.
	return waited > r.Grace && time.Since(r.heard) > r.Grace/4 && r.settled()
}

// settled reports whether parties have had the time to come back to a runner that was
// just loaded: they wait longer and longer between two tries.
func (r *Runner) settled() bool { return time.Since(r.loaded) > comeBack }

// audit writes a line in the background: the record itself does not depend on it.
func (r *Runner) audit(line record.Line) {
	line.Time, line.Node = time.Now().UTC(), r.Node
	r.Log.Info(line.Event, "federation", r.Federation.File.Name, "round", line.Round,
		"parties", line.Parties, "epsilon", line.Epsilon, "note", line.Note)
	go func() {
		if err := r.Records.Audit(context.Background(), r.Federation.ID, line); err != nil {
			r.Log.Warn("a line of the audit log was not written", "error", err.Error())
		}
	}()
}

// Plan returns what the federation has settled.
func (r *Runner) Plan() *hushsum.Settled { return r.Federation.Settled }
