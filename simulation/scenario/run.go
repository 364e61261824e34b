package scenario

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation/clock"
	"github.com/hushsum/hushsum/simulation/cost"
	"github.com/hushsum/hushsum/simulation/crowd"
	"github.com/hushsum/hushsum/training"
)

// Rows are the rows of a data set, of one shape.
type Rows struct {
	Train, Test *learning.Dataset
	// Parties has the training rows of each party, of a job with world.data.split; nil: Run deals
	// them, by world.data.draw.
	Parties []*learning.Dataset
}

// Hooks hold what a caller may see or decide of a run. The zero value does nothing.
type Hooks struct {
	// Round is told of every round as it ends.
	Round func(RoundResult)
	// Progress is told how far a long round is, for crowds; from several goroutines.
	Progress func(round, done, of int)
	// Units are those of the times that are not given; the zero value: cost.Reference.
	Units cost.Units
	// Now is a clock for what the simulation itself takes; nil: that is not measured.
	Now func() time.Time
}

// party is one party while it runs.
type party struct {
	*kind
	index    int
	name     string
	identity ed25519.PrivateKey
	rows     []int // of the training rows, in the order in which they come
	fixed    *learning.Dataset
	gone     bool // for good

	alone []float64 // a model trained on its own rows only
	local []float64 // what it trained in this round
	next  []float64 // its next control variate, if this round has a sum
	model []float64 // what it holds: the federated model, without its noise if it subtracts that

	// In private sums.
	group   *group
	seat    int        // in the group
	machine drive.Part // nil: it has never been there
	up      bool
	line    int                    // counts its connections
	sending map[*hub]time.Duration // until when
	begun   time.Duration          // its work on what it was sent last

	sender sender // in one-message sums

	// Of this round.
	busy      time.Duration // until when it works
	held      *submission   // for its own use
	worked    time.Duration
	arrived   time.Duration
	has       bool // the result
	sent, got int

	submitted int // how often, in sums without messages
}

// run is a simulation under way.
type run struct {
	*world
	hooks   Hooks
	units   cost.Units
	ctx     context.Context
	clock   clock.Clock
	net     *clock.Network
	train   *learning.Dataset
	test    *learning.Dataset
	dealt   []*learning.Dataset // rows by party, nil: none are yet
	learner *training.Learner
	parties []*party
	loads   map[int]cost.Load

	first     []float64 // the first model
	broadcast []byte
	digest    [32]byte // of broadcast

	round    int
	groups   []*group
	playing  []*group      // this round
	began    time.Duration // this round
	inside   []*party      // who is in the sums in the clear
	dropped  []bool        // by party: it drops out of this round, by world.drop
	number   uint64
	over     bool
	pending  int // results that are on their way
	received int // bytes, by the servers
	failure  error
	lost     error // why the round has no sum
	summed   int   // how many are in the last sum
	notes    []string
	noted    map[string]bool
	noting   sync.Mutex     // parties train on several cores
	codecs   []*codec       // that were used
	layout   masking.Layout // of the last codec that was made
	crowd    *crowd.Crowd
	council  *committee // of one-message sums
	result   *Result
}

// Run simulates a job on some rows. It fails with [job.ErrConfig], see [Validate], with what
// training fails with, and with the error of ctx when that ends; the result is then of the rounds
// so far.
func Run(ctx context.Context, j *job.Job, rows Rows, hooks Hooks) (result *Result, err error) {
	r, err := newRun(ctx, j, rows, hooks)
	if err != nil {
		return nil, err
	}
	took := r.stopwatch()
	defer func() {
		if ended := r.conclude(); err == nil {
			err = ended
		}
		r.result.Notes, r.result.Took = r.notes, took()
		for _, p := range r.parties {
			if p.machine != nil {
				p.machine.Erase()
			}
		}
	}()
	for r.round = 1; r.round <= r.Rounds; r.round++ {
		if err := ctx.Err(); err != nil {
			return r.result, err
		}
		more, err := r.play()
		if err != nil {
			return r.result, err
		}
		if !more {
			break
		}
		if r.clock.Now() > clock.End/2 {
			return r.result, r.Mistake("rounds", "use shorter times, or fewer rounds",
				"virtual time ends in round %d, after more than a century", r.round)
		}
	}
	return r.result, nil
}

// newRun makes a run whose first round has not begun.
func newRun(ctx context.Context, j *job.Job, rows Rows, hooks Hooks) (*run, error) {
	w, err := settle(j)
	if err != nil {
		return nil, err
	}
	r := &run{world: w, hooks: hooks, ctx: ctx, train: rows.Train, test: rows.Test,
		dealt: rows.Parties, loads: map[int]cost.Load{}, noted: map[string]bool{}, units: hooks.Units}
	if r.units == (cost.Units{}) {
		r.units = cost.Reference()
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if caution := r.LargeDelta(); caution != "" {
		r.note(caution)
	}
	return r, nil
}

// stopwatch measures what the simulation takes.
func (r *run) stopwatch() func() time.Duration {
	if r.hooks.Now == nil {
		return func() time.Duration { return 0 }
	}
	begin := r.hooks.Now()
	return func() time.Duration { return r.hooks.Now().Sub(begin) }
}

// network puts the links into place.
func (w *world) network() (*clock.Network, error) {
	n := &clock.Network{Seed: w.seed}
	for _, l := range w.World.Link {
		if err := n.Connect(l.Between[0], l.Between[1], clock.Link{
			Latency:   l.Latency,
			Jitter:    l.Jitter,
			Loss:      l.Loss,
			Bandwidth: l.Bandwidth,
		}); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// prepare makes the parties, the model and the network.
func (r *run) prepare() error {
	var err error
	if r.net, err = r.network(); err != nil {
		return err
	}
	if r.train == nil || r.test == nil {
		return r.Mistake("world.data.set", "load the data", "there are no rows")
	}
	if err := r.chooseTraining(); err != nil {
		return err
	}
	for i, k := range r.of {
		p := &party{kind: k, index: i, name: r.names[i]}
		if r.World.Fidelity == messages {
			if p.identity, err = keyexchange.GenerateIdentity(nil); err != nil {
				return err
			}
		}
		r.parties = append(r.parties, p)
	}
	if err := r.deal(); err != nil {
		return err
	}
	for _, p := range r.parties {
		p.model = r.first
		if r.compares() {
			p.alone = slices.Clone(r.first)
		}
	}
	r.noteLinks()
	r.result = &Result{Job: r.Job, Weights: len(r.first), Parties: len(r.parties)}
	return nil
}

// noteLinks says which links nobody can use.
func (r *run) noteLinks() {
	places := map[string]bool{}
	for _, p := range r.parties {
		places[p.Place] = true
	}
	if !r.serverless() {
		for _, place := range r.World.Servers {
			places[place] = true
		}
	}
	if r.Oneshot() {
		for k := range r.Sum.Members {
			places[r.memberOf(k).Place] = true
		}
	}
	for _, l := range r.World.Link {
		for _, place := range l.Between {
			if !places[place] {
				r.note(fmt.Sprintf("nobody is in %q: its links are for nothing", place))
			}
		}
	}
}

// chooseTraining makes the model for the rows, and how it is trained.
func (r *run) chooseTraining() error {
	var err error
	if r.declared, err = training.WithRows(r.declared, r.train, r.test); err != nil {
		return err
	}
	o, err := training.OptionsOf(r.declared)
	if err != nil {
		return err
	}
	r.learner = training.NewLearner(o, make([]*learning.Dataset, r.Size()))
	r.first = r.learner.Weights
	return nil
}

// weights returns the federated model.
func (r *run) weights() []float64 { return r.learner.Weights }

// active are the parties of this round that have joined and not left.
func (r *run) active() []*party {
	var list []*party
	for _, p := range r.parties {
		if p.Joins <= r.round && !p.gone {
			list = append(list, p)
		}
	}
	return list
}

// away reports whether a party is absent for the whole of a round.
func (p *party) away(round int) bool {
	return awayIn(p.Crash, round)
}

// awayIn reports whether a party with such crashes is absent for the whole of a round.
func awayIn(crashes []job.Crash, round int) bool {
	return slices.ContainsFunc(crashes, func(c job.Crash) bool {
		return c.Round < round && round < c.Back
	})
}

// downAt reports whether a party is away when it would get a message of a step.
func (p *party) downAt(round int, step string) bool { return downAt(p.Crash, round, step) }

// downAt reports whether somebody with such crashes is.
func downAt(crashes []job.Crash, round int, step string) bool {
	moments := []string{AtBegin, AtSubmit, AtSign, AtReveal}
	order := func(s string) int { return slices.Index(moments, s) }
	for _, c := range crashes {
		switch {
		case round > c.Round && round < c.Back:
			return true
		case round == c.Round && order(step) >= order(c.At):
			return true
		}
	}
	return false
}

// play plays one round. No further round is played if too few parties are left.
func (r *run) play() (more bool, err error) {
	active := r.active()
	if len(active) < 2 {
		r.note(fmt.Sprintf("round %d: fewer than two parties are left", r.round))
		return false, nil
	}
	if why := r.usedUp(); why != "" {
		r.note(fmt.Sprintf("round %d: %s", r.round, why))
		return false, nil
	}
	for _, p := range active {
		p.has, p.sent, p.got, p.worked, p.local, p.held = false, 0, 0, 0, nil, nil
	}
	r.received, r.dropped = 0, r.dropOuts(active, len(active))
	if r.broadcast, err = aggregation.AppendModel(nil, r.weights()); err != nil {
		return false, err
	}
	hash := protocol.NewBroadcastHash()
	hash.Write(r.broadcast)
	r.digest = [32]byte(hash.Sum(nil))
	var out RoundResult
	switch {
	case r.Oneshot():
		out, err = r.playCommittee(active)
	case r.World.Fidelity == messages:
		out, err = r.playSessions(active)
	case r.World.Fidelity == crowded:
		out, err = r.playCrowd(active)
	default:
		out, err = r.playRing(active)
	}
	if err != nil {
		return false, err
	}
	if err := r.judge(&out, active); err != nil {
		return false, err
	}
	r.result.Rounds = append(r.result.Rounds, out)
	if r.hooks.Round != nil {
		r.hooks.Round(out)
	}
	return true, nil
}

// usedUp returns why no more rounds are held of parties that submit a number of times, else empty.
func (r *run) usedUp() string {
	if r.Parties.Participations == 0 || len(r.groups) == 0 || len(r.groups[0].hubs) == 0 {
		return ""
	}
	return r.groups[0].hubs[0].server.Status().Ended
}

// judge says how good the models are, and who leaves.
func (r *run) judge(out *RoundResult, active []*party) error {
	score := func(w []float64) (float64, float64, error) {
		m, err := learning.Evaluate(r.learner.Model, w, r.test)
		return m.Accuracy(), m.MCC(), err
	}
	var err error
	if out.Accuracy, out.MCC, err = score(r.weights()); err != nil {
		return err
	}
	for k, p := range active {
		seen := &out.Parties[k]
		seen.Accuracy, seen.MCC = out.Accuracy, out.MCC
		if !r.compares() {
			r.leave(p, out, k, false)
			continue
		}
		if &p.model[0] != &r.weights()[0] {
			if seen.Accuracy, seen.MCC, err = score(p.model); err != nil {
				return err
			}
		}
		if p.local != nil {
			if seen.Local, _, err = score(p.local); err != nil {
				return err
			}
		}
		if seen.Alone, _, err = score(p.alone); err != nil {
			return err
		}
		converged := r.World.Tolerance > 0 && p.has && p.local != nil && out.Lost == "" &&
			near(p.model, p.local, r.World.Tolerance)
		r.leave(p, out, k, converged)
	}
	return nil
}

// leave notes that a party has left for good, if it has.
func (r *run) leave(p *party, out *RoundResult, k int, converged bool) {
	if converged || p.Leaves == r.round {
		p.gone, out.Parties[k].Left = true, true
		out.Left = append(out.Left, p.name)
	}
}

// MostCompared is the most parties with which each also trains a model of its own rows.
const MostCompared = 100

// compares reports whether parties are looked at one by one.
func (r *run) compares() bool {
	return r.World.Fidelity != crowded && len(r.parties) <= MostCompared ||
		r.World.Tolerance > 0 || r.World.SubtractOwn
}

// note keeps a remark, once.
func (r *run) note(text string) {
	r.noting.Lock()
	defer r.noting.Unlock()
	if !r.noted[text] {
		r.noted[text] = true
		r.notes = append(r.notes, text)
	}
}

// fail ends the run.
func (r *run) fail(err error) {
	if r.failure == nil {
		r.failure = err
	}
	r.over = true
}

// at has something happen at a time that is not over.
func (r *run) at(at time.Duration, do func()) { r.clock.After(at-r.clock.Now(), do) }

// transit returns how long a message takes.
func (r *run) transit(from, to string, bytes int) time.Duration {
	if len(r.World.Link) == 0 {
		return 0
	}
	r.number++
	took, err := r.net.Transit(strconv.FormatUint(r.number, 10), from, to, bytes)
	if err != nil {
		r.fail(err)
	}
	return took
}

// load is the work of a party in a session of n.
func (r *run) load(n int) cost.Load {
	l, ok := r.loads[n]
	if !ok {
		l = r.costs(n).Party(r.units)
		r.loads[n] = l
	}
	return l
}

// costs is a session of n parties as package cost has it.
func (r *run) costs(n int) cost.Session {
	s := cost.Session{Parties: n, Bits: r.layout[0].Bits}
	for _, segment := range r.layout {
		s.Length += segment.Length
	}
	if !r.Recovers() {
		return s
	}
	s.Recovery, s.Classical = true, r.Sum.Classical
	// So few may be left of a session on a sparse graph that none could be set up among them.
	if recovery, err := r.Recovery(r.Parties.Fewest(n), n); err == nil {
		s.Neighbours, s.Threshold = recovery.Degree, recovery.Threshold
	}
	return s
}

// serverWork returns how long a server of some parties needs for a step of a session of n.
func (r *run) serverWork(step string, parties []*party, n int) time.Duration {
	given := func(p *party) bool { return len(p.Compute) > 0 }
	if step == "" || slices.ContainsFunc(parties, given) {
		return 0 // all times are given
	}
	l := r.costs(n).Server(r.units)
	return map[string]time.Duration{
		stepMembers:   l.SetUp,
		stepSurvivors: l.Submissions,
		stepReveal:    l.Certify,
		"sum":         l.Sum,
	}[step]
}

// now is the time as package drive has it.
func (r *run) now() drive.Time { return drive.Time(r.clock.Now()) }
