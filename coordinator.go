package hushsum

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Coordinator runs a job: it forms sessions among the parties that are there, holds the
// rounds, and has no secret of any party. Set the fields, then call Run.
//
// A round is held among those who are connected, at least the plan's MinSurvivors, and
// waits for who is connected for StepTime in each of its steps, for who is not for a moment
// only, and not at all for a party that says that it is absent. A round without a sum,
// whatever the reason, is lost: it has spent its ε all the same, and counts among the plan's
// Rounds. After five such rounds in a row the job ends, with [ErrStalled]. Whoever connects
// and is not in the session, being new or having lost its state, comes in with the next one,
// which forms while rounds go on.
type Coordinator struct {
	Plan     *Settled
	Listener Listener
	// Committee is where members are heard, for a plan with Oneshot only. Its indices are
	// those of the committee.
	Committee Listener

	// Model is what the first round begins with, Length coordinates; nil: zeros.
	Model []float64
	// Apply returns the next model from the mean of the parties' vectors in a round;
	// nil: the sum of both. The coordinator keeps what it returns, which must not change
	// any more; model is Apply's to change and to return. With an error, or a model that is
	// not finite, the round is lost.
	Apply func(r Round, model []float64) ([]float64, error)

	// Store keeps what must not be lost when the process ends; nil: nothing does. Key
	// seals it, and must be set with Store.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	// Folder is where submissions of more than a megabyte are while they come in, without
	// names; empty: os.TempDir.
	Folder string

	// StepTime is how long a step waits for parties that are connected, their work
	// included; 0: 30 s.
	StepTime time.Duration

	Progress func(Event) // may be nil

	grace time.Duration // of tests; 0: graceTime
}

// Round is a round that gave a sum.
type Round struct {
	Number  uint64          // in the job, from 1
	Parties []int           // whose vectors are in the sum, by roster index
	Mean    []float64       // of their vectors, with noise
	Sum     *masking.Vector // of their submissions, in the ring
}

// Result is what a job has come to.
type Result struct {
	Model  []float64
	Rounds int // that were begun
	Lost   int // of these, without a sum
	// Spent is what the parties have spent at most; nil without noise.
	Spent *accounting.Spent
}

// stage is what a session in its set-up, or a round, waits for.
type stage int

const (
	stageAnnounce stage = iota + 1
	stageEncapsulate
	stageMaterial
	stageReady
	stageMasked
	stageSigned
	stageReveal
)

// session is a session of the series, present or forming.
type session struct {
	number uint64
	server *protocol.Server
	stage  stage
	since  time.Time // the stage began
	told   time.Time // the same, if it was reported who is waited for
}

// coordinator is a running Coordinator.
type coordinator struct {
	Coordinator
	vault   *vault
	ledger  *accounting.Ledger
	names   []string // of the roster
	model   []float64
	round   uint64 // the last that was begun
	lost    int
	cast    *broadcast // that it began with, or that ends the job
	begin   []byte     // the same as bytes, of an oneshotCoordinator
	kept    stored
	inRow   int          // rounds lost since the last sum
	stalled bool         // the job ended without what it is for
	absent  map[int]bool // parties that do not submit in the round
	present *session
	forming *session
	number  uint64 // the largest of any session
	hub
	ended     bool
	committee []byte // what an oneshotCoordinator saves
	first     time.Time

	// Parties that were there while a session formed and did not join it, how often in
	// turn, and from which round on they are worth another.
	shunned map[int]shunned
}

type shunned struct {
	times int
	until uint64 // round
}

// Times of the coordinator that are not for users to choose.
const (
	defaultStepTime = 30 * time.Second
	// graceTime is how long a step waits for parties whose connection is gone, and a
	// first session for parties that have not come.
	graceTime = 750 * time.Millisecond
	// longestUntold is how long a step waits for somebody before that is reported.
	longestUntold = 2 * time.Second
	tick          = 20 * time.Millisecond
	queueSize     = 32
)

// ErrStalled: the job ended early, since round after round gave no sum, or ended without any.
// The result is returned with it: what was spent is spent. The events say why each round was
// lost.
var ErrStalled = errors.New(
	"hushsum: the job ended without sums; see the events of its lost rounds")

// mostLost is how many rounds in a row may be lost before the job ends.
const mostLost = 5

// Run runs the job to its end. It fails with the context's error; with [ErrStalled]; with
// [ErrConfig] if a field is of no use; with [ErrOldState] or [ErrStore] if what is stored is of
// none; with [ErrLocked] if somebody else uses the Store; and with errors of Store and
// Listener. A job that was stopped goes on from its Store.
func (c *Coordinator) Run(ctx context.Context) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &coordinator{
		Coordinator: *c,
		hub:         newHub(c.Folder, c.Plan.maxFrame()),
		first:       time.Now(),
		shunned:     make(map[int]shunned),
	}
	if r.StepTime == 0 {
		r.StepTime = defaultStepTime
	}
	if r.grace == 0 {
		r.grace = graceTime
	}
	defer func() { r.vault.close() }()
	if c.Plan.oneshot != nil {
		return r.runOneshot(ctx)
	}
	for i := range c.Plan.Roster().Len() {
		r.names = append(r.names, c.Plan.Roster().Name(i))
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	r.limit = int64(c.Plan.Config(0).MaxMessage())
	failed := make(chan error, 1)
	go r.accept(ctx, r.Listener, failed)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-failed:
			return nil, err
		case a := <-r.events:
			r.arrived(a)
		case e := <-r.notices:
			r.report(e)
		case <-ticker.C:
		}
		if err := r.proceed(); err != nil {
			return nil, err
		}
		if r.ended && r.farewell() {
			return r.result()
		}
	}
}

func (c *coordinator) report(e Event) {
	if c.Progress != nil {
		c.Progress(e)
	}
}

// arrived handles what came from a party. Nothing of it ends the job.
func (c *coordinator) arrived(a arrival) {
	defer a.long.drop()
	switch {
	case a.err != nil || len(a.frame) == 0:
		if c.gone(a) {
			c.report(Event{Kind: Disconnected, Party: a.party, Err: a.err})
		}
		return
	case a.frame[0] == frameHello && !a.from.greeted:
		c.greet(a)
		return
	case a.frame[0] == frameAbsent && c.parties[a.party] == a.from:
		c.away(a)
		return
	case a.frame[0] != frameMessage || c.parties[a.party] != a.from:
		return
	}
	for _, s := range []*session{c.present, c.forming} {
		if s == nil {
			continue
		}
		var err error
		if a.long != nil {
			err = s.server.ReadMessage(a.party, a.long.message())
		} else {
			err = s.server.Receive(a.party, a.frame[1:])
		}
		if errors.Is(err, protocol.ErrSession) {
			continue
		}
		expected := errors.Is(err, protocol.ErrDuplicate) || errors.Is(err, protocol.ErrStale)
		if err != nil && !expected {
			c.report(Event{Kind: Refused, Session: s.number, Party: a.party, Err: err})
		}
		if err == nil && s.stage == stageAnnounce {
			a.from.sessions = append(a.from.sessions, s.number)
		}
		return
	}
}

// away takes a party's word that it does not submit in the round.
func (c *coordinator) away(a arrival) {
	var said absence
	if err := parseJSON(a.frame[1:], &said); err != nil {
		c.report(Event{Kind: Refused, Party: a.party, Err: err})
		return
	}
	if said.Absent != c.round || c.present == nil || c.present.stage != stageMasked ||
		c.absent[a.party] {
		return
	}
	c.absent[a.party] = true
	c.report(Event{Kind: Absent, Session: c.present.number, Round: c.round, Party: a.party,
		Err: fmt.Errorf("%w: %.40q", ErrAbsent, said.Why)})
}

// greet checks that a party has the same plan, and tells it what it needs.
func (c *coordinator) greet(a arrival) {
	h, refusal := c.Plan.check(a.frame[1:])
	if refusal != nil {
		c.refuse(a, refusal)
		return
	}
	c.admit(a)
	a.from.sessions, a.from.least = h.Sessions, h.Least
	c.report(Event{Kind: Connected, Party: a.party})
	if c.ended {
		c.dismiss(a.party)
		return
	}
	for _, s := range []*session{c.present, c.forming} {
		switch {
		case s == nil:
		case s.stage == stageAnnounce:
			c.send(a.party, joinFrame(s.number))
		default:
			c.deliver(s, a.party, s.server.Pending(a.party)...)
		}
	}
}

// sendTo queues a broadcast for a party.
func (b *broadcast) sendTo(h *hub, party int, kind byte) {
	h.queue(party, func(send func([]byte) error) error { return sendBody(kind, b, send) })
}

// deliver sends a party messages of a session, with the broadcast if a round begins.
func (c *coordinator) deliver(s *session, party int, messages ...[]byte) {
	if len(messages) > 0 && s.server.Step() == protocol.StepMasked {
		c.cast.sendTo(&c.hub, party, frameBroadcast)
	}
	for _, m := range messages {
		c.send(party, frame(frameMessage, m))
	}
}

func joinFrame(number uint64) []byte {
	return frame(frameJoin, binary.BigEndian.AppendUint64(nil, number))
}

// enter begins a stage of a session and sends its messages. The state is saved first: a
// decision is sent only when it cannot be forgotten. Who was not there or did not get them
// is sent what the server has pending when it connects again.
func (c *coordinator) enter(s *session, next stage, envelopes []protocol.Envelope) error {
	s.stage, s.since = next, time.Now()
	if err := c.save(); err != nil {
		return err
	}
	for _, e := range envelopes {
		c.deliver(s, e.To, e.Message)
	}
	return nil
}

// over reports whether a stage need not wait any longer: everybody has answered, or only
// those are missing who are not there or have had their time.
func (c *coordinator) over(s *session) bool {
	missing := s.server.Missing()
	if s.stage == stageMasked {
		missing = slices.DeleteFunc(missing, func(i int) bool { return c.absent[i] })
	}
	if len(missing) == 0 {
		return true
	}
	waited := time.Since(s.since)
	missing = slices.DeleteFunc(missing, func(i int) bool { return !c.holds(i, s) })
	if len(missing) == 0 {
		return waited > c.grace
	}
	if s.told != s.since && waited > min(c.StepTime/4, longestUntold) {
		s.told = s.since
		c.report(Event{Kind: Waiting, Session: s.number, Round: c.round, Parties: missing})
	}
	return waited > c.StepTime
}

// holds reports whether a party is there and has keys for a session.
func (c *coordinator) holds(party int, s *session) bool {
	from := c.parties[party]
	return from != nil && slices.Contains(from.sessions, s.number)
}

// proceed does what is due.
func (c *coordinator) proceed() error {
	if c.ended {
		return nil
	}
	if err := c.form(); err != nil {
		return err
	}
	if f := c.forming; f != nil && f.stage == stageReady &&
		(c.present == nil || c.present.stage == stageReady) {
		c.takeOver()
	}
	s := c.present
	if s == nil || s.stage != stageReady && !c.over(s) {
		return nil
	}
	switch s.stage {
	case stageReady:
		return c.prepare()
	case stageMaterial:
		return c.beginRound()
	case stageMasked:
		return c.step(stageSigned, s.server.Survivors)
	case stageSigned:
		return c.step(stageReveal, s.server.Certificate)
	case stageReveal:
		return c.sum()
	}
	return nil
}

// beginRound begins a round among those whose material is in, if they are enough.
func (c *coordinator) beginRound() error {
	s := c.present
	ledger, err := c.spend(s.server.Holders())
	if errors.Is(err, accounting.ErrBudget) {
		return c.end()
	} else if err != nil {
		return err
	}
	b := &broadcast{round: c.round + 1, model: c.model}
	if _, err := rand.Read(b.fresh[:]); err != nil {
		return err
	}
	if err := b.settle(); err != nil {
		return err
	}
	envelopes, err := s.server.BeginDigest(b.digest)
	if errors.Is(err, protocol.ErrTooFew) {
		s.stage, s.since = stageReady, time.Now()
		return nil
	} else if err != nil {
		return err
	}
	c.round, c.cast, c.ledger, c.absent = c.round+1, b, ledger, make(map[int]bool)
	e := Event{Kind: Begun, Session: c.present.number, Round: c.round}
	for _, to := range envelopes {
		e.Parties = append(e.Parties, to.To)
	}
	if err := c.enter(c.present, stageMasked, envelopes); err != nil {
		return err
	}
	c.report(e)
	return nil
}

// spend returns the ledger as it is after one more round with some parties, nil without
// noise. It fails with accounting.ErrBudget if the round would take one over its budget.
func (c *coordinator) spend(parties []int) (*accounting.Ledger, error) {
	if c.ledger == nil {
		return nil, nil
	}
	b, err := c.ledger.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after := new(accounting.Ledger)
	if err := after.UnmarshalJSON(b); err != nil {
		return nil, err
	}
	names := make([]string, len(parties))
	for i, party := range parties {
		names[i] = c.names[party]
	}
	return after, after.SpendRound(c.Plan.Round(), names...)
}

// step ends one step of the round and begins the next.
func (c *coordinator) step(next stage, call func() ([]protocol.Envelope, error)) error {
	envelopes, err := call()
	if errors.Is(err, protocol.ErrTooFew) {
		return c.lose(err)
	} else if err != nil {
		return err
	}
	return c.enter(c.present, next, envelopes)
}

// lose ends a round without a sum.
func (c *coordinator) lose(err error) error {
	c.lost++
	c.inRow++
	number := c.present.number
	if failed := c.enter(c.present, stageReady, nil); failed != nil {
		return failed
	}
	c.report(Event{Kind: Lost, Session: number, Round: c.round, Err: err})
	if c.inRow == mostLost {
		return c.end()
	}
	return nil
}

// sum ends the round.
func (c *coordinator) sum() error {
	s := c.present
	before := s.server.Excluded()
	sum, err := s.server.SumVector()
	for _, party := range s.server.Excluded() {
		if !slices.Contains(before, party) {
			c.report(Event{Kind: LeftOut, Session: s.number, Round: c.round, Party: party})
		}
	}
	if err != nil {
		return c.lose(err)
	}
	r := Round{Number: c.round, Parties: s.server.Included(), Sum: sum}
	r.Mean = make([]float64, c.Plan.plan.Length)
	err = DecodeTo(r.Mean, c.Plan, c.cast.digest, sum, len(r.Parties))
	if err == nil {
		err = c.advance(r)
	}
	if err != nil {
		return c.lose(err)
	}
	if err := c.enter(s, stageReady, nil); err != nil {
		return err
	}
	c.report(Event{Kind: Summed, Session: s.number, Round: c.round, Parties: r.Parties})
	return nil
}

// advance makes the next model. The present one does not change: it may still be on its
// way to parties.
func (c *coordinator) advance(r Round) error {
	next := r.Mean
	if c.Apply == nil {
		for i, x := range c.model {
			next[i] += x
		}
	} else {
		var err error
		if next, err = c.Apply(r, slices.Clone(c.model)); err != nil {
			return err
		}
	}
	if len(next) != c.Plan.plan.Length {
		return &ConfigError{Field: "Apply",
			Reason: fmt.Sprintf("it returned %d coordinates, the plan has %d", len(next),
				c.Plan.plan.Length)}
	}
	for i, x := range next {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return &ConfigError{Field: "Apply", Reason: fmt.Sprintf("coordinate %d is not finite", i)}
		}
	}
	c.model, c.inRow = next, 0
	c.kept.version++
	return nil
}

// end sends the last model to all who are there.
func (c *coordinator) end() error {
	c.stalled = c.inRow == mostLost || c.round > 0 && uint64(c.lost) == c.round
	c.cast = &broadcast{round: c.round, model: c.model}
	if err := c.cast.settle(); err != nil {
		return err
	}
	c.ended, c.present, c.forming, c.first = true, nil, nil, time.Now()
	if err := c.save(); err != nil {
		return err
	}
	for i := range c.parties {
		c.dismiss(i)
	}
	return nil
}

// dismiss tells a party that the job is done: with the last model, or where there was no sum at
// all why there is none.
func (c *coordinator) dismiss(party int) {
	if c.stalled && uint64(c.lost) == c.round {
		c.send(party, withoutSum())
		return
	}
	c.cast.sendTo(&c.hub, party, frameEnd)
}

// withoutSum tells somebody that the job is done and came to nothing.
func withoutSum() []byte {
	return jsonFrame(frameRefusal, refusal{Ours: "the job ended, and no round gave a sum"})
}

// farewell reports whether parties have had the time to take the last model: those that
// have it hang up.
func (c *coordinator) farewell() bool {
	waited := time.Since(c.first)
	return len(c.parties) == 0 && waited > 2*c.grace || waited > c.StepTime
}

func (c *coordinator) result() (*Result, error) {
	r := &Result{Model: c.model, Rounds: int(c.round), Lost: c.lost}
	var stalled error
	if c.stalled {
		stalled = fmt.Errorf("%w (%d of %d)", ErrStalled, c.lost, c.round)
	}
	if c.ledger == nil {
		return r, stalled
	}
	for _, client := range c.ledger.Clients() {
		spent, err := c.ledger.Spent(client)
		if err != nil {
			return nil, err
		}
		if r.Spent == nil || spent.Upper > r.Spent.Upper {
			r.Spent = &spent
		}
	}
	return r, stalled
}
