package rounds

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
)

// This file has jobs in which parties take part by secret coins, and what shows of those of one
// party. The coordinator knows what all others submit but for their noise, and of one that too.

const (
	coinInstant = 20 * drive.Second
	overrun     = 25 * drive.Second // of training, behind the instant
	colluder    = 0
)

// coined is a job with secret coins. The zero value has all defences.
type coined struct {
	rate       float64 // of luck
	multiplier float64
	open       bool    // what is made leaves when it is made, and not at an instant
	asleep     float64 // the probability with which a party that its coin leaves out is away
	late       bool    // training that overruns the instant leaves when it is done
	sure       bool    // training fits the instant, so that only coins tell two rounds apart
	kept       bool    // the second of two rounds is a second try of the first, with its coin
}

// own reports whether the program tosses the coins, in place of package drive.
func (c *coined) own() bool { return c.open || c.asleep > 0 || c.late || c.kept }

// coin is one round of the party that is watched.
type coin struct {
	luck  bool
	added bool // its vector is in the sum: it had luck, and trained in time
	// shown holds what the coordinator sees of it, but for the sum: how many messages, refusals and
	// bytes, when the last message came, and of that message the first bytes, and the sums of each
	// eighth byte of the rest.
	shown []float64
	score float64 // of the sum, along the vector
}

// watched is a party that is watched.
type watched struct {
	coined
	world     *world
	random    *rand.Rand
	mechanism *privacy.Mechanism
	vector    []float64
	coins     []coin
	shares    map[uint64][][]uint64 // the colluder's, of each round
}

// play plays the given number of rounds.
func (c coined) play(r *runner, part, rounds uint64) ([]coin, error) {
	release := privacy.Release{
		Promise: privacy.Assumed(parties, parties-1),
		Noise: privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Multiplier: c.multiplier,
			Clip: 1, Bits: layout[0].Bits},
		Dimension: layout[0].Length,
		Rate:      c.rate,
	}
	p := &watched{coined: c, random: r.o.Rand(part), coins: make([]coin, rounds),
		vector: make([]float64, release.Dimension), shares: make(map[uint64][][]uint64)}
	p.vector[0] = release.Noise.Clip
	var err error
	if p.mechanism, err = release.Mechanism(); err != nil {
		return nil, err
	}
	if own, err := p.mechanism.Layout(); err != nil || !reflect.DeepEqual(own, layout) {
		return nil, fmt.Errorf("the layout is %v: %w", own, err)
	}
	o := options{rounds: rounds, colluders: 1, whole: c.asleep == 0, after: coinInstant,
		luck: c.rate, blank: p.blank}
	if c.open {
		o.after = 0
	}
	if c.own() {
		o.luck = 0
	}
	if p.world, err = newWorld(r, o); err != nil {
		return nil, err
	}
	for _, q := range p.world.parties {
		q.program = p.others
	}
	target := p.world.parties[bad]
	target.program, target.seen = p.answer, p.see
	if err = p.world.join(); err == nil {
		err = p.world.run(p.world.ended)
	}
	if err != nil {
		return nil, err
	}
	return p.coins, p.judge()
}

// blank writes what parties submit without a vector.
func (p *watched) blank(q *party, v *masking.Vector) error {
	values, err := p.mechanism.Blank(nil)
	if err != nil {
		return err
	}
	if q.index == colluder {
		p.shares[p.world.begun[len(p.world.begun)-1]] = values
	}
	return v.Set(values...)
}

// others have no vectors in any round.
func (p *watched) others(q *party, ask drive.Ask, a drive.Answer) error {
	if p.open {
		a.Err = errUnfit
		return q.machine.Answer(a)
	}
	return p.then(q, ask.After, a, q.machine.Instant)
}

// then has the party do something later.
func (p *watched) then(
	q *party, after drive.Time, a drive.Answer, do func(drive.Answer) error,
) error {
	fresh := p.world.server.Status().Fresh
	p.world.later = append(p.world.later, deed{p.world.now + after, func() error {
		if err := do(a); err != nil {
			return err
		}
		return q.proceed(fresh)
	}})
	return nil
}

// answer is the program of the party that is watched. A fourth of its training overruns the
// instant, and a fourth fails.
func (p *watched) answer(q *party, ask drive.Ask, a drive.Answer) error {
	c := &p.coins[a.Round-1]
	training := 5*drive.Second + drive.Time(p.random.Uint64N(uint64(10*drive.Second)))
	fate := p.random.IntN(4)
	if c.luck = !ask.Idle; p.own() {
		c.luck = p.random.Float64() < p.rate
	}
	if p.sure {
		fate = 3
	}
	if p.kept && a.Round%2 == 0 {
		c.luck = p.coins[a.Round-2].luck
	}
	a.Fill = func(v *masking.Vector) error {
		values, err := p.mechanism.Encode([32]byte{}, p.vector, nil, nil)
		if err != nil {
			return err
		}
		c.added = true
		return v.Set(values...)
	}
	switch fate {
	case 0:
		training = overrun
	case 1:
		a.Err = errUnfit
	}
	at := ask.After
	switch {
	case p.open && !c.luck:
		a.Err = errUnfit
		return q.machine.Answer(a)
	case p.open:
		return p.then(q, training, a, q.machine.Answer)
	case !c.luck:
		if p.random.Float64() < p.asleep {
			return p.then(q, at, a, func(a drive.Answer) error {
				q.machine.Absent(a.ID, a.Round, errUnfit)
				return nil
			})
		}
	case training > at && p.late:
		at = training
		fallthrough
	case training <= at:
		if err := p.then(q, training, a, q.machine.Answer); err != nil {
			return err
		}
	default:
		a.Err = instant.ErrOverrun
		if err := p.then(q, at, a, q.machine.Answer); err != nil {
			return err
		}
	}
	return p.then(q, at, a, q.machine.Instant)
}

// see takes a message of the party, nil if it tells that it is away.
func (p *watched) see(at drive.Time, message []byte) {
	if len(p.world.begun) == 0 {
		return // keys
	}
	const numbers, first, sums = 4, 16, 8
	c := &p.coins[p.world.begun[len(p.world.begun)-1]-1]
	if c.shown == nil {
		c.shown = make([]float64, numbers+first+sums)
	}
	c.shown[0]++
	if message == nil {
		c.shown[1]++
	}
	c.shown[2] += float64(len(message))
	c.shown[3] = float64(at - p.world.start)
	clear(c.shown[numbers:])
	for k, b := range message {
		if k >= first {
			k = first + k%sums
		}
		c.shown[numbers+k] += float64(b)
	}
}

// judge computes the scores of the sums.
func (p *watched) judge() error {
	for _, s := range p.world.sums {
		rest := minus(s.values, p.shares[s.round])
		vector, _, err := p.mechanism.Decode([32]byte{}, rest, 1)
		if err != nil {
			return err
		}
		for k, x := range vector {
			p.coins[s.round-1].score += x * p.vector[k]
		}
	}
	return nil
}
