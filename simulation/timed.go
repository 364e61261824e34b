package simulation

import (
	"context"
	"crypto/ed25519"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation/clock"
	"github.com/hushsum/hushsum/simulation/cost"
	"github.com/hushsum/hushsum/simulation/crowd"
	"github.com/hushsum/hushsum/training"
)

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
	model []float64 // what it holds: the federated model, without its noise if it subtracts that

	// In private sums.
	group   *group
	seat    int           // in the group
	machine drive.Part    // nil: it has never been there
	begun   time.Duration // its work on what it was sent last

	sender sender // in one-message sums

	// Of this round.
	busy      time.Duration // until when it works
	held      *submission   // for its own use
	worked    time.Duration
	arrived   time.Duration
	has       bool // the result
	sent, got int
}

// timed are the rounds of a federation, in virtual time.
type timed struct {
	*federation
	course  *course
	ctx     context.Context
	units   cost.Units
	clock   clock.Clock
	net     *clock.Network
	learner *training.Learner
	parties []*party
	named   map[string]*party
	loads   map[int]cost.Load

	first     []float64 // the first model
	broadcast []byte
	digest    [32]byte // of broadcast

	round    int
	out      *RoundResult
	active   []*party        // of this round that have joined and not left
	works    []training.Work // by party: what it made last, but for what the server must not see
	groups   []*group
	playing  []*group      // this round
	began    time.Duration // this round
	ring     *summer
	inside   []*party // who is in its sums
	dropped  []bool   // by party: it drops out of this round, by world.drop
	number   uint64
	over     bool
	pending  int // results that are on their way
	received int // bytes, by the servers
	failure  error
	lost     error          // why the round has no sum
	summed   int            // how many are in the last sum
	codecs   []*codec       // that were used
	layout   masking.Layout // of the last codec that was made
	crowd    *crowd.Crowd
	council  *committee // of one-message sums
	result   *Result
}

// newTimed makes the parties, and deals rows to them.
func newTimed(x *course) (*timed, error) {
	r := &timed{federation: x.federation, course: x, ctx: x.ctx, learner: x.learned.Learner,
		first: x.learned.Weights, loads: map[int]cost.Load{}, named: map[string]*party{}, units: x.Units,
		result: x.out}
	own := *x.setting
	r.ring, r.works = &summer{setting: &own}, make([]training.Work, len(r.of))
	if r.units == (cost.Units{}) {
		r.units = cost.Reference()
	}
	var err error
	if r.net, err = r.network(); err != nil {
		return nil, err
	}
	for i, k := range r.of {
		p := &party{kind: k, index: i, name: r.names[i], model: r.first}
		if x.keys != nil {
			p.identity = x.keys[i]
		}
		r.parties, r.named[p.name] = append(r.parties, p), p
	}
	if err := r.deal(); err != nil {
		return nil, err
	}
	if r.compares() {
		for _, p := range r.parties {
			p.alone = slices.Clone(r.first)
		}
	}
	r.noteLinks()
	return r, nil
}

// setUp does nothing: sessions are set up during the rounds.
func (r *timed) setUp(context.Context) (Cost, error) { return Cost{}, nil }

// erase forgets keys.
func (r *timed) erase() {
	for _, p := range r.parties {
		if p.machine != nil {
			p.machine.Erase()
		}
	}
}

// network puts the links into place.
func (w *federation) network() (*clock.Network, error) {
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

// noteLinks says which links nobody can use.
func (r *timed) noteLinks() {
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
				r.course.note("nobody is in %q: its links are for nothing", place)
			}
		}
	}
}

// weights returns the federated model.
func (r *timed) weights() []float64 { return r.learner.Weights }

// present returns the parties that have joined by this round and not left.
func (r *timed) present() (list []*party) {
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
	moments := []string{atBegin, atSubmit, atSign, atReveal}
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
func (r *timed) play(_ context.Context, out *RoundResult) (err error) {
	r.round, r.out, r.active = out.Round, out, nil
	if r.clock.Now() > clock.End/2 {
		return r.Mistake("rounds", "use shorter times, or fewer rounds",
			"virtual time ends in round %d, after more than a century", r.round-1)
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.active = r.present()
	why := r.usedUp()
	if len(r.active) < 2 {
		why = "fewer than two parties are left"
	}
	if why != "" {
		r.course.note("round %d: %s", r.round, why)
		return errOver
	}
	for _, p := range r.active {
		p.has, p.sent, p.got, p.worked, p.local, p.held = false, 0, 0, 0, nil, nil
	}
	r.received, r.dropped = 0, r.dropOuts(r.active, len(r.active))
	if r.broadcast, err = aggregation.AppendModel(nil, r.weights()); err != nil {
		return err
	}
	hash := protocol.NewBroadcastHash()
	hash.Write(r.broadcast)
	r.digest = [32]byte(hash.Sum(nil))
	switch {
	case r.Oneshot():
		err = r.playCommittee(out)
	case r.World.Fidelity == Messages:
		err = r.playSessions(out)
	case r.World.Fidelity == Crowd:
		err = r.playCrowd(out)
	default:
		err = r.playRing(out)
	}
	if err != nil {
		return err
	}
	for k, p := range r.active {
		converged := r.World.Tolerance > 0 && p.has && p.local != nil && out.Lost == nil &&
			near(p.model, p.local, r.World.Tolerance)
		if converged || p.Leaves == r.round {
			p.gone, out.Each[k].Left = true, true
			out.Gone = append(out.Gone, p.name)
		}
	}
	return nil
}

// usedUp returns why no more rounds are held of parties that submit a number of times, else empty.
func (r *timed) usedUp() string {
	if r.Parties.Participations == 0 || len(r.groups) == 0 || len(r.groups[0].hubs) == 0 {
		return ""
	}
	return r.groups[0].hubs[0].server.Status().Ended
}

// judge says how good the models are.
func (r *timed) judge(out *RoundResult) (err error) {
	if out.Test, err = r.course.score(r.weights()); err != nil {
		return err
	}
	accuracy, mcc := out.Test.Accuracy(), out.Test.MCC()
	score := func(w []float64) float64 {
		m, failed := r.course.score(w)
		if err == nil {
			err = failed
		}
		return m.Accuracy()
	}
	for k := range out.Each {
		seen := &out.Each[k]
		p := r.named[seen.Party]
		seen.Accuracy, seen.MCC = accuracy, mcc
		if !r.compares() {
			continue
		}
		if &p.model[0] != &r.weights()[0] {
			m, err := r.course.score(p.model)
			if err != nil {
				return err
			}
			seen.Accuracy, seen.MCC = m.Accuracy(), m.MCC()
		}
		if p.local != nil {
			seen.Local = score(p.local)
		}
		seen.Alone = score(p.alone)
	}
	return err
}

// MostCompared is the most parties with which each also trains a model of its own rows.
const MostCompared = 100

// compares reports whether parties are looked at one by one.
func (r *timed) compares() bool {
	return r.World.Fidelity != Crowd && len(r.parties) <= MostCompared && !r.World.SkipClear ||
		r.World.Tolerance > 0 || r.World.SubtractOwn
}

// fail ends the run.
func (r *timed) fail(err error) {
	if r.failure == nil {
		r.failure = err
	}
	r.over = true
}

// at has something happen at a time that is not over.
func (r *timed) at(at time.Duration, do func()) { r.clock.After(at-r.clock.Now(), do) }

// transit returns how long a message takes.
func (r *timed) transit(from, to string, bytes int) time.Duration {
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

// now is the time as package drive has it.
func (r *timed) now() drive.Time { return drive.Time(r.clock.Now()) }
