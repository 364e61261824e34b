package simulation

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"math"
	"time"

	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/crook"
)

// OneshotBits returns how many bits of the ring let the noise of one among n parties hide its key,
// with a multiplier of 1/8 and more: an update then has Clip·Scale = 2^(bits−1)/n, and a share of
// the noise has a standard deviation of multiplier·Clip·Scale/√n, which must be at least 6.4.
func OneshotBits(parties int) int {
	return 1 + int(math.Ceil(1.5*math.Log2(float64(parties))+math.Log2(6.4*8)))
}

// Committee reports the work of one member in all rounds of a run together, in the mean over all
// members.
type Committee struct {
	Members   int           // 0: there was no committee
	BytesDown int64         // of the server's messages to it
	Work      time.Duration // 0 without a clock
}

// oneshotSums takes them by package oneshot.
type oneshotSums struct {
	config     *oneshot.Config
	layout     masking.Layout
	identities []ed25519.PrivateKey
	signers    []ed25519.PrivateKey // of the members
	server     *oneshot.Server
	members    []*oneshot.Member
	drops      *dropOuts
	now        func() time.Time
	progress   func(round, done int)
	committee  Committee // of all members together
	honest     int       // parties that do not cheat, the first ones
}

// newOneshotSums makes the sums of a number by the committee, of submissions of the layout: of
// updates, and without noise of gradients.
func newOneshotSums(
	o *setting, number int, layout masking.Layout, progress func(round, done int),
) (*oneshotSums, error) {
	s := &oneshotSums{
		config:     o.settled.Oneshot(),
		layout:     layout,
		identities: o.keys,
		signers:    o.members,
		drops:      o.newDropOuts(0),
		honest:     len(o.Parties) - Cheats(o.job, len(o.Parties)),
		now:        o.Now,
		progress:   progress,
	}
	s.committee.Members = len(s.signers)
	if number == 0 {
		return s, nil
	}
	s.config.Label, s.config.Terms = s.config.Label+" gradients", o.job.Terms()
	if err := job.Fill(s.config, layout, nil, false); err != nil {
		return nil, err
	}
	if _, err := s.config.Parameters(); err != nil {
		return nil, because("sum.protocol", err)
	}
	return s, nil
}

func (s *oneshotSums) setUp(context.Context) (cost Cost, err error) {
	if s.server, err = oneshot.NewServer(s.config, 0); err != nil {
		return cost, err
	}
	for _, signer := range s.signers {
		m, err := oneshot.NewMember(s.config, signer, nil)
		if err != nil {
			return cost, err
		}
		s.members = append(s.members, m)
	}
	return cost, nil
}

func (s *oneshotSums) erase() {
	for _, m := range s.members {
		m.Abandon()
	}
}

// oneshotRound is one round under way.
type oneshotRound struct {
	*oneshotSums
	ctx     context.Context
	cost    Cost
	covered [][]byte // submissions to be given again, by party
	dealt   [][]byte // noise, by member
}

// skip leaves a round out; the session of others has its own numbers.
func (s *oneshotSums) skip() error {
	s.drops.next(len(s.identities))
	return nil
}

func (s *oneshotSums) play(
	ctx context.Context, round int, broadcast []byte, submit submitter,
) (outcome, error) {
	r := &oneshotRound{oneshotSums: s, ctx: ctx, covered: make([][]byte, len(s.identities))}
	var out outcome
	if err := r.tell(s.server.Invite()); err != nil {
		return out, err
	}
	var opening []byte
	err := r.serve(func() (err error) { opening, err = s.server.Open(broadcast); return err })
	if err != nil {
		return out, err
	}
	if err := r.tell(opening); err != nil {
		return out, err
	}
	if s.config.CommitteeNoise && s.config.Norm > 0 {
		var coin []byte
		if err := r.serve(func() (err error) { coin, err = s.server.Coin(nil); return err }); err != nil {
			return out, err
		}
		if err := r.tell(coin); err != nil {
			return out, err
		}
	}
	if s.config.CommitteeNoise {
		for _, m := range s.members {
			r.dealt = append(r.dealt, m.Output())
		}
		if err := r.settle(); err != nil {
			return out, err
		}
	}
	leaves := s.drops.next(len(s.identities))
	done := 0
	for first := 0; first < len(leaves); first += oneshot.DefaultBatch {
		last := min(first+oneshot.DefaultBatch, len(leaves))
		if err := r.collect(round, first, leaves[first:last], opening, broadcast, submit,
			&done, &out); err != nil {
			return out, err
		}
	}
	for _, moment := range leaves {
		if moment == beforeSubmit {
			out.dropped++
		}
	}
	switch err := r.finish(&out); {
	case errors.Is(err, oneshot.ErrTooFew):
		out.lost = err
	case err != nil:
		return out, err
	}
	server := r.cost.Server
	out.cost = r.cost.perParty(len(leaves))
	out.cost.Server = server
	return out, nil
}

// serve measures the server's work.
func (r *oneshotRound) serve(work func() error) error {
	start := r.now()
	defer func() { r.cost.Server += r.now().Sub(start) }()
	return work()
}

// tell gives members a message of the server's and the server their answers.
func (r *oneshotRound) tell(message []byte) error {
	envelopes := make([]oneshot.Envelope, len(r.members))
	for k := range envelopes {
		envelopes[k] = oneshot.Envelope{To: k, Message: message}
	}
	return r.ask(envelopes)
}

func (r *oneshotRound) ask(envelopes []oneshot.Envelope) error {
	answers, times := make([][]byte, len(envelopes)), make([]time.Duration, len(envelopes))
	err := cores.Each(r.ctx, len(envelopes), func(i int) (err error) {
		start := r.now()
		answers[i], err = r.members[envelopes[i].To].Receive(envelopes[i].Message)
		times[i] = r.now().Sub(start)
		return err
	}, nil)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		r.committee.BytesDown += int64(len(envelopes[i].Message))
		r.committee.Work += times[i]
		if answer == nil {
			continue
		}
		if err := r.serve(func() error { return r.server.Receive(answer) }); err != nil {
			return err
		}
	}
	return nil
}

// collect has the parties from first on submit, and the committee take them in.
func (r *oneshotRound) collect(
	round, first int, leaves []moment, opening, broadcast []byte, submit submitter, done *int,
	out *outcome,
) error {
	messages := make([][]byte, len(leaves))
	costs := make([]Cost, len(leaves))
	err := cores.Each(r.ctx, len(leaves), func(i int) error {
		if leaves[i] == beforeSubmit {
			return nil
		}
		made, err := submit(r.ctx, first+i)
		if err != nil {
			return failure(round, first+i, err)
		}
		start := r.now()
		party, err := oneshot.NewParty(r.config, r.identities[first+i], nil)
		if err != nil {
			return failure(round, first+i, err)
		}
		values := masking.Signed(r.layout, made.values)
		messages[i], err = r.message(party, opening, broadcast, values)
		if err != nil {
			return failure(round, first+i, err)
		}
		costs[i] = Cost{BytesUp: int64(len(messages[i])), Train: made.train, Client: r.now().Sub(start)}
		return nil
	}, func(int) {
		if *done++; r.progress != nil {
			r.progress(round, *done)
		}
	})
	if err != nil {
		return err
	}
	if err := r.serve(func() error { r.server.Check(messages); return nil }); err != nil {
		return err
	}
	for i, message := range messages {
		r.cost.add(costs[i])
		r.cost.BytesDown += int64(len(opening) + len(broadcast))
		if message == nil {
			continue
		}
		err := r.serve(func() error { return r.server.Receive(message) })
		if errors.Is(err, oneshot.ErrProof) && first+i >= r.honest {
			out.refused++
			continue
		}
		if err != nil {
			return failure(round, first+i, err)
		}
		if r.config.Covered {
			r.covered[first+i] = message
		}
	}
	if r.server.Waiting() == 0 {
		return nil
	}
	return r.settle()
}

// settle has the committee take in what waits.
func (r *oneshotRound) settle() error {
	var envelopes []oneshot.Envelope
	if err := r.serve(func() (err error) {
		envelopes, err = r.server.Batch()
		return err
	}); err != nil {
		return err
	}
	if err := r.ask(envelopes); err != nil {
		return err
	}
	var settled []byte
	if err := r.serve(func() (err error) {
		settled, err = r.server.Settle()
		return err
	}); err != nil {
		return err
	}
	return r.tell(settled)
}

// message returns what a party sends: an honest one its values, and a cheat its own.
func (r *oneshotRound) message(
	p *oneshot.Party, opening, broadcast []byte, values []int64,
) ([]byte, error) {
	if p.Index() < r.honest {
		return p.Submit(opening, broadcast, values)
	}
	// All cheats together take half of the sum's range.
	parties := len(r.identities)
	most := int64(parties) << (r.config.Bits - 1) / int64(2*(parties-r.honest))
	shift := make([]int64, len(values))
	for k, v := range values {
		shift[k] = -most * int64(cmp.Compare(v, 0))
	}
	clear(values)
	message, err := p.Submit(opening, broadcast, values)
	if err != nil {
		return nil, err
	}
	return crook.Shift(r.config, r.identities[p.Index()], message, shift)
}

// finish takes the key off.
func (r *oneshotRound) finish(out *outcome) error {
	for _, next := range []func() ([]byte, error){r.server.Close, r.server.Certificate} {
		var message []byte
		if err := r.serve(func() (err error) { message, err = next(); return err }); err != nil {
			return err
		}
		if err := r.tell(message); err != nil {
			return err
		}
	}
	if r.config.Covered {
		if err := r.serve(r.uncover); err != nil {
			return err
		}
	}
	if r.config.Covered && r.config.Norm > 0 {
		var messages [][]byte
		if err := r.serve(func() (err error) {
			messages, err = r.server.Reduce()
			return err
		}); err != nil {
			return err
		}
		for _, message := range messages {
			if err := r.tell(message); err != nil {
				return err
			}
		}
	}
	out.refused += len(r.server.Convicted())
	out.included = r.server.Included()
	return r.serve(func() error {
		sum, err := r.server.Sum()
		if err != nil {
			return err
		}
		out.sum = masking.FromSigned(r.layout, sum)
		return nil
	})
}

// uncover takes covers off the submissions that are in.
func (r *oneshotRound) uncover() error {
	for _, i := range r.server.Included() {
		if err := r.server.Uncover(r.covered[i]); err != nil {
			return err
		}
	}
	for _, k := range r.server.NoiseOf() {
		if err := r.server.Uncover(r.dealt[k]); err != nil {
			return err
		}
	}
	return nil
}
