// Package runner leads a federation: package drive decides, and package host carries out, with this
// package's record, clock and model. A runner holds the private sum's server in memory, takes the
// parties' messages, and records each decision before anything that follows from it is sent.
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
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// Errors of a runner's callers.
var (
	// ErrStopped: this runner no longer leads; ask the node that does.
	ErrStopped = host.ErrStopped
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
	// OutRoom is how many bytes of messages to parties are being written at once, and likewise to
	// members of the committee, 0 for 64 MiB: all are told of a decision at the same moment, and the
	// message to each is made for it. One message may be longer.
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
	heard  time.Time
	number uint64 // of the last question

	process, before  uint64 // that asked last, and before that one
	twice, twiceTold time.Time
}

// Runner leads one federation. It is safe for concurrent use.
type Runner struct {
	Options
	host  *host.Leader
	clock clock
	// untroubled is how long the clock had stood still when the open round began; negative: the
	// record was away before this runner led.
	untroubled time.Duration
	outages    int // rounds that were lost while the record was away in them
	orders     uint64

	drive     drive.Lead
	sums      *oneshot.Config // with a committee, else nil
	ahead     ahead           // submissions that wait for the lock
	optimizer *aggregation.Optimizer
	spends    paid
	model     []float64
	modelRef  *record.Ref   // nil: the model is not recorded yet
	made      applied       // the last
	objects   []object      // of the open round
	spent     []*record.Ref // objects that the next decision makes superfluous
	broadcast []byte        // made when asked for
	of        int           // the round that broadcast is of; negative: the model after it
	history   []Past
	why       string // why it is paused, or why the last round was lost or could not begin
	heads     heads
	missing   error // why an older state was loaded; nil: the newest was, or that has been said

	parties []peer
	members []peer // of the committee
	seen    []bool // parties that were ever present, including under an earlier leader
	steps   stepTimes
	was     drive.Status // when steps were timed last
	lacks   lacking
	// notices and lines are those of the next decision, salt hides who takes part, and recorded is
	// the stage that the last decision began.
	notices  []drive.Notice
	lines    []record.Line
	salt     []byte
	recorded drive.Stage
	among    []int // the parties that the open round began with; nil: unknown
	tracing  tracing

	receipts    receipts
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
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	r.recorded, r.salt = r.drive.Status().Stage, r.Hold.Salt("parties")
	r.begins()
	r.receipts.secret = r.Hold.Salt(saltPurpose)
	r.host = r.newLeader()
	r.tidy(ctx)
	return r, nil
}

// newLeader makes the leader that this runner is around.
func (r *Runner) newLeader() *host.Leader {
	o := host.Options{
		Lead:   r.drive,
		Record: told{recorder{r}},
		Clock:  r.now,
		Next:   r.apply,
		Note:   r.decided,
		Stands: r.goes,
		Room:   int(r.OutRoom),
	}
	if r.Pass != nil {
		o.Pass = func() error {
			if r.Pass() {
				return ErrPassed
			}
			return nil
		}
	}
	return host.NewLeader(o)
}

// operator is whoever takes the runner's lock in no party's turn.
var operator = Peer{Member: true}

func (r *Runner) now() drive.Time { return r.clock.now() }

// Run leads until ctx ends, when it saves what it holds, or until a decision cannot be recorded,
// which Run returns, or until Pass has it end, with [ErrPassed]. The runner is then no longer
// usable.
func (r *Runner) Run(ctx context.Context) error {
	err := r.host.Run(ctx)
	r.tracing.end(r.now(), 0, "this node no longer leads")
	return err
}

// decided notes what was decided, and returns what follows once it is recorded.
func (r *Runner) decided(notices []drive.Notice) (recorded func()) {
	r.timeSteps()
	lines := r.note(notices)
	r.notices, r.lines = append(r.notices, notices...), append(r.lines, lines...)
	return func() {
		r.timeSteps()
		r.tracing.follow(r.drive.Status(), r.now())
		for _, line := range lines {
			r.say(line)
		}
	}
}

// Confirm has the record say that this runner still leads, and stops a runner that does not: a
// runner that has nothing to decide would not find out otherwise. Call it when another node is
// heard to lead, and once this process has stood still. It fails with [ErrStopped] if the runner
// does not lead, and with record.ErrUnavailable if the record does not say.
func (r *Runner) Confirm(ctx context.Context) error {
	return r.host.With(ctx, operator, func(drive.Lead, drive.Time) error {
		err := r.Hold.Keep(ctx)
		if errors.Is(err, record.ErrLost) {
			r.host.Stop(err)
			return ErrStopped
		}
		r.follow()
		return err
	})
}

// Poke has the runner check whether anything is due.
func (r *Runner) Poke() { r.host.Poke() }

// say has the log say what the record has.
func (r *Runner) say(line record.Line) {
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
