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
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
	model     []float64
	modelRef  *record.Ref
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
	mostLost     = 5 // rounds in a row, after which it pauses
	comeBack     = 8 * time.Second // parties wait 7.5 s between two tries at most
)

// Start loads what is recorded, or begins, and leads until ctx ends or the record is
// lost. Call Run next.
func Start(ctx context.Context, o Options) (*Runner, error) {
	settled := o.Federation.Settled
	n := settled.Roster().Len()
	if o.Grace == 0 {
		o.Grace = defaultGrace + time.Duration(n)*graceForEach
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

// Ask is what a party says when it asks what is next.
type Ask struct {
	Sessions []uint64 // that it has keys for
	Least    uint64   // the least number of a session that it may join
	Round    uint64   // the last round that it knows of
	Absent   uint64   // a round that it does not submit in
	Seen     []string // items that it has
	Working  bool     // it is busy with what it has, and wants to hear only what is newer
}

// Kind says what is next.
type Kind string

// The kinds.
const (
	Nothing Kind = ""        // nothing yet: ask again
	Join    Kind = "join"    // make keys for the session of this number
	Message Kind = "message" // take this message
	End     Kind = "end"     // the federation has ended; the model is the last one
)

// Next is what is next for a party.
type Next struct {
	Kind    Kind
	Item    string // name it as seen
	Session uint64
	Round   int // of the federation, where the message begins one
	Message []byte
	sent    func()
}

// Sent gives the message's room free. Call it once the message is written, or cannot be:
// until then the party counts as there.
func (n *Next) Sent() {
	if n.sent != nil {
		n.sent()
	}
}

// Next waits until there is something for a party to do, or ctx ends, when it returns
// Nothing. Call the result's Sent. It fails with [ErrStopped].
func (r *Runner) Next(ctx context.Context, i int, ask Ask) (Next, error) {
	if err := r.acquire(ctx); err != nil {
		return Next{}, orNothing(ctx, err)
	}
	p := &r.parties[i]
	p.polls++
	p.seen, p.sessions, p.told, p.least = time.Now(), ask.Sessions, ask.Round, ask.Least
	p.absent = ask.Absent
	r.poke()
	r.release()
	room := int64(0)
	left := func() {
		r.out.Release(room)
		<-r.lock
		p.polls--
		p.seen = time.Now()
		r.release()
		r.poke()
	}
	for {
		room = min(r.largest.Load(), r.OutRoom)
		if r.out.Acquire(ctx, room) != nil {
			room = 0
			left()
			return Next{}, nil
		}
		if err := r.acquire(ctx); err != nil {
			left()
			return Next{}, orNothing(ctx, err)
		}
		next, again := r.next(i, ask)
		changed := r.changed
		size := min(int64(len(next.Message)), r.OutRoom)
		if size > r.largest.Load() {
			r.largest.Store(size)
		}
		r.release()
		switch {
		case next.Kind == Nothing:
		case size <= room:
			next.sent = left
			return next, nil
		case r.out.TryAcquire(size - room):
			room, next.sent = size, left
			return next, nil
		default: // the first of their size: made again when there is room
			r.out.Release(room)
			continue
		}
		r.out.Release(room)
		room = 0
		var timer <-chan time.Time
		if again > 0 {
			timer = time.After(again)
		}
		select {
		case <-ctx.Done():
			left()
			return Next{}, nil
		case <-changed:
		case <-timer:
		}
	}
}

func orNothing(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// next finds what a party has to do, and after what time to look again.
func (r *Runner) next(i int, ask Ask) (n Next, again time.Duration) {
	if r.ended != "" {
		return Next{Kind: End, Item: "end", Round: r.round}, 0
	}
	p := &r.parties[i]
	for _, s := range r.sessions() {
		if s == r.present && r.absent(i) {
			continue
		}
		found, seen := r.question(s, i, &ask)
		if found.Kind == Nothing {
			continue
		}
		if !seen {
			p.asked, p.askedWhen = found.Item, time.Now()
			return found, 0
		}
		if ask.Working {
			continue
		}
		// It has the question and is not at work on it: the answer was lost, with a
		// runner that died or on the way.
		wait := resendAfter - time.Since(p.askedWhen)
		if p.asked != found.Item || wait <= 0 {
			p.asked, p.askedWhen = found.Item, time.Now()
			return found, 0
		}
		if again == 0 || wait < again {
			again = wait
		}
	}
	return Next{}, again
}

// question returns the first question of a session that a party has not seen, or the last
// of those that it has seen and not answered.
func (r *Runner) question(s *session, i int, ask *Ask) (found Next, seen bool) {
	server := r.server(s)
	has := slices.Contains(ask.Sessions, s.number)
	if s.stage == Announcing {
		item := fmt.Sprintf("%d.join", s.number)
		if ask.Least <= s.number && !has || has && r.missing(s, i) {
			found = Next{Kind: Join, Item: item, Session: s.number}
		}
		return found, slices.Contains(ask.Seen, item)
	}
	if !has {
		return Next{}, false
	}
	for _, message := range server.Pending(i) {
		digest := sha256.Sum256(message)
		found = Next{
			Kind:    Message,
			Item:    fmt.Sprintf("%d.%x", s.number, digest[:8]),
			Session: s.number,
			Message: message,
		}
		if server.Step() == protocol.StepMasked {
			found.Round = r.round
		}
		if !slices.Contains(ask.Seen, found.Item) {
			return found, false
		}
	}
	return found, true
}

// missing reports whether a session waits for a party.
func (r *Runner) missing(s *session, i int) bool {
	return slices.Contains(r.server(s).Missing(), i)
}

// ReadMessage takes a message of a party, of so many bytes, which are all there to be read. A
// copy of one that it has is taken like the first. It fails with [ErrStopped], [ErrEnded],
// or an error of package protocol.
func (r *Runner) ReadMessage(ctx context.Context, i int, message io.Reader, size int64) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	r.parties[i].seen = time.Now()
	if r.ended != "" {
		return ErrEnded
	}
	err := r.series.ReadMessage(r.Federation.Settled.Roster().Key(i), message)
	switch {
	case errors.Is(err, protocol.ErrDuplicate):
		return nil
	case err != nil:
		r.refused++
		return err
	}
	r.bytesIn += size
	r.dirty, r.heard = true, time.Now()
	r.poke()
	return nil
}

// Broadcast returns to a party, or to nobody of the roster with i negative, what a round
// began with: the model as a safetensors file. It fails with [ErrNotDue] if that round is
// not the present one, 0 standing for the last model.
func (r *Runner) Broadcast(ctx context.Context, i, round int) ([]byte, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	if i >= 0 {
		r.parties[i].seen = time.Now()
	}
	if round == 0 {
		return r.last()
	}
	if round != r.round || r.present == nil || r.present.stage != Submitting {
		return nil, ErrNotDue
	}
	return r.begin()
}

// last returns the last model. All who ask share the bytes.
func (r *Runner) last() ([]byte, error) {
	if r.broadcast != nil && r.of == -r.round {
		return r.broadcast, nil
	}
	b, err := r.Federation.Spec.Append(nil, r.model, map[string]string{
		"federation": r.Federation.ID,
		"after":      strconv.Itoa(r.round),
	})
	if err == nil && (r.present == nil || r.present.stage < Submitting) {
		r.broadcast, r.of = b, -r.round
	}
	return b, err
}

// begin returns the broadcast of the present round. What varies between rounds with the
// same model is fresh, which the rotation follows from.
func (r *Runner) begin() ([]byte, error) {
	if r.broadcast != nil && r.of == r.round {
		return r.broadcast, nil
	}
	b, err := r.Federation.Spec.Append(nil, r.model, map[string]string{
		"federation": r.Federation.ID,
		"round":      strconv.Itoa(r.round),
		"fresh":      hex.EncodeToString(r.fresh[:]),
	})
	if err == nil {
		r.broadcast, r.of = b, r.round
	}
	return b, err
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

// proceed decides what is due.
func (r *Runner) proceed(ctx context.Context) error {
	if r.dirty && time.Since(r.recorded) > keepEvery {
		if err := r.record(ctx); err != nil {
			return err
		}
	}
	if r.ended != "" {
		return nil
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	if err := r.form(ctx); err != nil {
		return err
	}
	if f := r.forming; f != nil && f.stage == Ready && (r.present == nil || r.present.stage == Ready) {
		if err := r.takeOver(ctx); err != nil {
			return err
		}
	}
	s := r.present
	if s == nil || s.stage != Ready && !r.over(s) {
		return nil
	}
	switch s.stage {
	case Ready:
		return r.prepare(ctx)
	case Preparing:
		return r.beginRound(ctx)
	case Submitting:
		return r.step(ctx, Signing)
	case Signing:
		return r.step(ctx, Revealing)
	case Revealing:
		return r.sum(ctx)
	}
	return nil
}

// step ends one step of a round and begins the next.
func (r *Runner) step(ctx context.Context, next Stage) error {
	err := r.series.Present().EndStep() // parties are told when they ask, see question
	if errors.Is(err, protocol.ErrTooFew) {
		return r.lose(ctx, err)
	} else if err != nil {
		return err
	}
	return r.enter(ctx, r.present, next)
}

// beginRound begins a round among those whose material is in, if they are enough and the
// budget lasts.
func (r *Runner) beginRound(ctx context.Context) error {
	s, server := r.present, r.series.Present()
	ledger, err := r.charge(server.Holders(), 1)
	if errors.Is(err, accounting.ErrBudget) {
		return r.end(ctx, "the privacy budget is spent")
	} else if err != nil {
		return err
	}
	r.round++
	r.broadcast = nil
	if _, err := rand.Read(r.fresh[:]); err != nil {
		return err
	}
	broadcast, err := r.begin()
	if err != nil {
		return err
	}
	envelopes, err := server.Begin(broadcast)
	if errors.Is(err, protocol.ErrTooFew) {
		r.round--
		r.why = fmt.Sprintf("round %d could not begin: %v", r.round+1, err)
		s.stage, s.since = Ready, time.Now()
		return nil
	} else if err != nil {
		return err
	}
	r.ledger, r.roundTime, r.why = ledger, time.Now(), ""
	if err := r.enter(ctx, s, Submitting); err != nil {
		return err
	}
	r.audit(record.Line{Event: "begun", Round: r.round, Parties: len(envelopes),
		Digest: digestOf(broadcast), Size: len(broadcast)})
	return nil
}

func digestOf(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}

// charge returns the ledger as it is after so many more rounds with some parties.
func (r *Runner) charge(parties []int, rounds int) (*accounting.Ledger, error) {
	if r.ledger == nil {
		return nil, nil
	}
	b, err := r.ledger.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after := new(accounting.Ledger)
	if err := after.UnmarshalJSON(b); err != nil {
		return nil, err
	}
	var names []string
	for _, i := range parties {
		names = append(names, r.names[i])
	}
	for range rounds {
		if err := after.SpendRound(r.Federation.Round(), names...); err != nil {
			return nil, err
		}
	}
	return after, nil
}

// lose ends a round without a sum.
func (r *Runner) lose(ctx context.Context, why error) error {
	r.lost++
	r.past(Past{Lost: why.Error()})
	r.why = fmt.Sprintf("round %d was lost: %v", r.round, why)
	tries := 0
	for _, p := range slices.Backward(r.history) {
		if p.Lost == "" || p.Round <= r.resumed {
			break
		}
		tries++
	}
	if tries >= mostLost {
		r.paused = true
		r.why = fmt.Sprintf("%d rounds in a row were lost, each at the cost of a round's privacy; "+
			"resume when the cause is mended. The last: %v", tries, why)
		defer r.audit(record.Line{Event: "paused", Round: r.round, Note: r.why})
	}
	if err := r.enter(ctx, r.present, Ready); err != nil {
		return err
	}
	r.audit(record.Line{Event: "lost", Round: r.round, Note: why.Error()})
	return nil
}

func (r *Runner) past(p Past) {
	p.Round, p.Session = r.round, r.present.number
	p.Began, p.Seconds = r.roundTime, time.Since(r.roundTime).Seconds()
	p.Epsilon = r.epsilon()
	r.history = append(r.history, p)
}

// epsilon is what any party has spent at most.
func (r *Runner) epsilon() float64 {
	most := 0.
	if r.ledger == nil {
		return most
	}
	for _, client := range r.ledger.Clients() {
		if spent, err := r.ledger.Spent(client); err == nil {
			most = max(most, spent.Upper)
		}
	}
	return most
}

// sum ends a round with its sum, and makes the next model.
func (r *Runner) sum(ctx context.Context) error {
	server := r.series.Present()
	broadcast, err := r.begin()
	if err != nil {
		return err
	}
	sum, err := server.Sum()
	if errors.Is(err, protocol.ErrTooFew) || errors.Is(err, protocol.ErrMaterial) {
		return r.lose(ctx, err)
	} else if err != nil {
		return err
	}
	parties := server.Included()
	if r.Summed != nil {
		r.Summed(r.round, parties, sum)
	}
	model, metric, err := r.Federation.Next(r.optimizer, r.model, broadcast, sum, parties)
	if err != nil {
		return r.lose(ctx, err)
	}
	r.model = model
	r.spent = append(r.spent, r.modelRef)
	if r.modelRef, err = r.putModel(ctx); err != nil {
		return err
	}
	p := Past{Parties: len(parties), Metric: metric, Digest: r.modelRef.Digest}
	if r.Judge != nil {
		p.Accuracy = r.Judge(model)
	}
	r.past(p)
	if err := r.enter(ctx, r.present, Ready); err != nil {
		return err
	}
	r.audit(record.Line{Event: "summed", Round: r.round, Parties: len(parties),
		Epsilon: r.history[len(r.history)-1].Epsilon, Digest: r.modelRef.Digest, Size: r.modelRef.Size})
	return nil
}

// end ends the federation.
func (r *Runner) end(ctx context.Context, reason string) error {
	r.ended, r.present, r.forming = reason, nil, nil
	r.series = protocol.NewServerSeries(r.Federation.Config(1).Label, r.series.Least())
	if err := r.record(ctx); err != nil {
		return err
	}
	r.audit(record.Line{Event: "ended", Round: r.round, Epsilon: r.epsilon(), Note: reason})
	r.announce()
	return nil
}

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

// Due reports whether a message of a party is waited for, and how long it can be at
// most. It fails with [ErrStopped] or [ErrEnded].
func (r *Runner) Due(ctx context.Context, i int) (due bool, most int, err error) {
	if err := r.acquire(ctx); err != nil {
		return false, 0, err
	}
	defer r.release()
	r.parties[i].seen = time.Now()
	if r.ended != "" {
		return false, 0, ErrEnded
	}
	for _, s := range r.sessions() {
		due = due || r.missing(s, i)
	}
	return due, r.most, nil
}
