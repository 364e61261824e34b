package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/training"
)

// submission holds what a party makes of the round's model.
type submission struct {
	values [][]uint64    // nil for sums in the clear
	train  time.Duration // of local training
	aside  time.Duration // of what is no part of the sum, such as a comparison

	// In virtual time also:
	codec     *codec
	broadcast [32]byte // digest of the round's
	work      training.Work
	rows      int // that it trained on
}

// outcome holds what a sum came to.
type outcome struct {
	sum      [][]uint64 // nil if the round is lost; without messages not yet cut to the rings
	included []int      // whose submissions are in the sum; with hidden coins, who trained
	summed   int        // submissions in the sum
	dropped  int        // of those who were told of the round
	refused  int        // who cheated
	lost     error      // too few were left to unmask anything, or too few were drawn
	cost     Cost       // of one party, the mean over all; of the server
}

// privateSums are sums by a protocol, with all its messages: a session or oneshotSums.
type privateSums interface {
	setUp(ctx context.Context) (Cost, error)
	// play runs one round, with the model as it is broadcast.
	play(ctx context.Context, round int, broadcast []byte, submit submitter) (outcome, error)
	skip() error // leaves a round out
	erase()
}

// summer has the parties of a round submit, and sums.
type summer struct {
	*setting
	private privateSums                // of sums by message, else nil
	counts  map[int]int                // rounds that parties were in, of those that are in a number
	blank   func() ([][]uint64, error) // what a party submits that its hidden coin leaves out
}

// submitter does what a party does in a round, given by its index.
type submitter = func(ctx context.Context, party int) (submission, error)

// sum runs one round, of the given model. submit is called for every party that takes
// part, several at a time. A round without a sum is lost, which is no error. An error of
// a party is a RoundError.
func (s *summer) sum(
	ctx context.Context, round int, model []float64, submit submitter,
) (outcome, error) {
	if s.private != nil {
		return s.sumPrivate(ctx, round, model, submit)
	}
	return s.among(ctx, round, everybody(len(s.Parties)), submit)
}

// among is sum without messages, of those of some parties that are drawn.
func (s *summer) among(
	ctx context.Context, round int, there []int, submit submitter,
) (outcome, error) {
	var out outcome
	parties, err := s.drawn(round, there)
	if err != nil {
		return out, err
	}
	out.included = parties
	if s.hidden() {
		parties, submit = s.withBlanks(parties, submit)
	}
	if len(parties) == 0 {
		out.lost = errTooFew
		return out, nil
	}
	lost := s.losses(round, len(there), len(parties))
	times := make([]time.Duration, len(parties))
	var adding sync.Mutex
	err = cores.Each(ctx, len(parties), func(k int) error {
		made, err := submit(ctx, parties[k])
		if err != nil && ctx.Err() == nil {
			return failure(round, parties[k], err)
		}
		if err != nil {
			return err
		}
		times[k] = made.train
		if made.values != nil && !lost[k] {
			adding.Lock()
			defer adding.Unlock()
			out.sum = addRing(out.sum, made.values)
		}
		return nil
	}, func(done int) {
		if s.Progress != nil {
			s.Progress(round, done, len(parties))
		}
	})
	if err != nil {
		return out, err
	}
	for _, d := range times {
		out.cost.Train += d
	}
	out.cost.Train /= time.Duration(max(len(out.included), 1))
	s.arrived(round, parties, lost, &out)
	return out, nil
}

// arrived takes what was lost out of what a round has come to.
func (s *summer) arrived(round int, parties []int, lost []bool, out *outcome) {
	gone := make(map[int]bool)
	for k, i := range parties {
		if lost[k] {
			gone[i] = true
		}
	}
	out.dropped, out.summed = len(gone), len(parties)-len(gone)
	out.included = slices.DeleteFunc(slices.Clone(out.included), func(i int) bool { return gone[i] })
	switch {
	case s.loses(round):
		out.lost = errLost
	case s.job.Recovers() && out.summed < s.settled.MinSurvivors() || out.summed == 0:
		out.lost = errTooFew
	}
}

// sumPrivate is sum by a protocol.
func (s *summer) sumPrivate(
	ctx context.Context, round int, model []float64, submit submitter,
) (outcome, error) {
	broadcast, err := aggregation.AppendModel(nil, model)
	if err != nil {
		return outcome{}, err
	}
	var lucky []int
	if s.hidden() {
		if lucky, err = s.tossed(); err != nil {
			return outcome{}, err
		}
		_, submit = s.withBlanks(lucky, submit)
	}
	out, err := s.private.play(ctx, round, broadcast, submit)
	out.summed = len(out.included)
	if s.hidden() {
		out.included = slices.DeleteFunc(slices.Clone(out.included), func(i int) bool {
			_, found := slices.BinarySearch(lucky, i)
			return !found
		})
	}
	return out, err
}

// withBlanks has all parties submit: those that their coins leave out submit their noise alone.
func (s *summer) withBlanks(drawn []int, submit submitter) ([]int, submitter) {
	return everybody(len(s.Parties)), func(ctx context.Context, i int) (made submission, err error) {
		if _, found := slices.BinarySearch(drawn, i); found {
			return submit(ctx, i)
		}
		made.values, err = s.blank()
		return made, err
	}
}

// skip leaves a round out, so that sessions that go together keep step.
func (s *summer) skip() error {
	if s.private == nil {
		return nil
	}
	return s.private.skip()
}

func (s *summer) setUp(ctx context.Context) (Cost, error) {
	if s.private == nil {
		return Cost{}, nil
	}
	return s.private.setUp(ctx)
}

func (s *summer) erase() {
	if s.private != nil {
		s.private.erase()
	}
}

// addRing adds a submission to a sum, nil at first. The rings' moduli are powers
// of two, so that what is above them can be cut off later, once.
func addRing(sum, values [][]uint64) [][]uint64 {
	if sum == nil {
		for _, v := range values {
			sum = append(sum, slices.Clone(v))
		}
		return sum
	}
	for s := range sum {
		for j, y := range values[s] {
			sum[s][j] += y
		}
	}
	return sum
}

// playRing sums without messages: nothing takes time.
func (r *timed) playRing(out *RoundResult) error {
	r.course.note(
		`sums in a ring take no time and send nothing: world.fidelity = "messages" or "crowd" does`)
	if !slices.Equal(r.inside, r.active) {
		c, err := r.newOpenCodec(r.active)
		if err != nil {
			return err
		}
		r.use(c)
		r.inside = r.active
	}
	c, there := r.codecs[len(r.codecs)-1], make([]int, len(r.active))
	for k, p := range r.active {
		there[k] = p.index
	}
	r.ring.settled = c.settled
	sum, err := r.ring.among(r.ctx, r.round, there,
		func(_ context.Context, i int) (made submission, err error) {
			p := r.parties[i]
			if p.held, err = r.submission(c, p); err != nil {
				return made, err
			}
			return *p.held, nil
		})
	if err != nil {
		return err
	}
	r.began, r.lost = r.clock.Now(), sum.lost
	if r.lost == nil {
		total, err := c.settled.Decode(r.digest, sum.sum, sum.summed)
		if err != nil {
			return err
		}
		if err := r.move([]job.Total{total}, sum.included); err != nil {
			return err
		}
	}
	in := make([]bool, len(r.parties))
	for _, i := range sum.included {
		in[i] = true
	}
	for _, p := range r.active {
		if r.lost == nil && (p.held == nil || in[p.index]) { // it was not drawn, or what it sent arrived
			p.arrived = r.clock.Now()
			r.give(p, in[p.index])
		}
	}
	r.tell(out, in)
	out.Dropped = sum.dropped
	return r.failure
}

// drawn returns the parties of a round, sorted, of those that are there: by parties.per_round some
// of them, and those who were in the fewest rounds where each is in a number of them.
func (s *summer) drawn(round int, there []int) ([]int, error) {
	k := s.job.Parties.PerRound
	switch {
	case s.Replay != nil:
		return s.Replay[round-1], nil
	case s.hidden():
		return s.tossed()
	case k == 0 || k >= len(there):
		return there, nil
	}
	parties := make([]int, len(there))
	for i, at := range rand.New(rand.NewPCG(s.derived("parties", round, 0), 0)).Perm(len(there)) {
		parties[i] = there[at]
	}
	if s.job.Parties.Participations > 0 {
		slices.SortStableFunc(parties, func(a, b int) int { return s.counts[a] - s.counts[b] })
	}
	parties = parties[:k]
	slices.Sort(parties)
	if s.counts == nil {
		s.counts = map[int]int{}
	}
	for _, i := range parties {
		s.counts[i]++
	}
	return parties, nil
}

// tossed returns the parties whose own coins have luck.
func (o *setting) tossed() (lucky []int, err error) {
	for i := range o.Parties {
		luck, err := entropy.Coin("simulation", o.Random, o.job.Parties.Hidden)
		if err != nil {
			return nil, err
		}
		if luck {
			lucky = append(lucky, i)
		}
	}
	return lucky, nil
}

func everybody(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// derived returns a seed for one purpose.
func (o *setting) derived(purpose string, round, party int) uint64 {
	return training.DerivedSeed(o.Seed, purpose, round, party)
}
