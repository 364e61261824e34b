package scenario

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/clock"
)

// playSessions plays a round of private sums.
func (r *run) playSessions(active []*party) (RoundResult, error) {
	if err := r.gather(active); err != nil {
		return RoundResult{}, err
	}
	for !r.over && r.clock.Now() < clock.End/2 && r.clock.Step() {
		if err := r.ctx.Err(); err != nil {
			return RoundResult{}, err
		}
	}
	if !r.over {
		r.lost = r.stuck()
	}
	if r.failure != nil {
		return RoundResult{}, r.failure
	}
	out := RoundResult{
		Number: r.round,
		Began:  r.began,
		Took:   r.clock.Now() - r.began,
		Server: r.received,
	}
	included := map[*party]bool{}
	if r.lost != nil {
		out.Lost = r.lost.Error()
	} else {
		for _, g := range r.playing {
			for _, i := range g.first().apply.Parties {
				included[g.parties[i]] = true
			}
		}
	}
	out.Included = len(included)
	for _, p := range active {
		seen := r.seen(p)
		seen.Included = included[p]
		if p.has {
			seen.Received, seen.Took = true, p.arrived-r.began
		}
		out.Parties = append(out.Parties, seen)
	}
	for _, g := range r.playing {
		for _, h := range g.hubs {
			h.answer(r.lost)
			h.proceed()
		}
	}
	return out, r.failure
}

// gather has those come who are there in this round, and those go who are not, and the jobs go
// on to the next round.
func (r *run) gather(active []*party) error {
	if r.groups == nil {
		if err := r.makeGroups(); err != nil {
			return err
		}
	}
	failed := r.lost != nil
	r.over, r.pending, r.lost, r.began, r.playing = false, 0, nil, r.clock.Now(), nil
	var back []*party
	for _, g := range r.groups {
		own := slices.DeleteFunc(slices.Clone(active), func(p *party) bool { return p.group != g })
		for _, p := range g.parties {
			if !p.up || p.away(r.round) || !slices.Contains(own, p) {
				p.leaves() // also if not all have heard of its crash yet
			}
		}
		switch len(own) {
		case 0:
			continue // nobody is left there, or there yet
		case 1:
			return r.alone(g.place)
		}
		r.playing = append(r.playing, g)
		if err := g.settle(slices.Clone(own)); err != nil {
			return err
		}
		there := slices.DeleteFunc(own, func(p *party) bool { return p.away(r.round) })
		if err := g.open(there, failed); err != nil {
			return err
		}
		for _, p := range there {
			if p.up {
				continue
			}
			if err := p.come(); err != nil {
				return err
			}
			back = append(back, p)
		}
		for _, h := range g.hubs {
			h.next()
		}
	}
	for _, g := range r.playing {
		for _, h := range g.hubs {
			h.proceed()
		}
	}
	for _, p := range back { // what they sent last may have been lost
		p.machine.Connected()
		p.proceed()
	}
	return r.failure
}

// stuck returns why nothing happens any more before the round is over.
func (r *run) stuck() error {
	for _, g := range r.playing {
		if !g.begun() {
			return errFew
		}
	}
	return errStuck
}

func (r *run) seen(p *party) PartyRound {
	return PartyRound{Party: p.name, Place: p.Place, Work: p.worked, Sent: p.sent, Got: p.got}
}

// hubDone goes on when all who add up have a sum, or will have none.
func (r *run) hubDone() {
	if r.over || r.pending > 0 {
		return
	}
	for _, g := range r.playing {
		for _, h := range g.hubs {
			if !h.over() {
				return
			}
		}
	}
	if r.lost = r.differ(); r.lost != nil {
		r.over = true
		return
	}
	if err := r.merge(); err != nil {
		r.fail(err)
		return
	}
	r.tell()
}

// differ returns why there is no sum of all, nil if there is.
func (r *run) differ() error {
	for _, g := range r.playing {
		for _, h := range g.hubs {
			if h.lost != nil {
				return h.lost
			}
		}
		switch {
		case g.first() == nil:
			return errFew
		case !g.sameSum():
			return errSums
		}
	}
	return nil
}

// merge makes the next model of the sums.
func (r *run) merge() error {
	var sums []job.Total
	var included []*party
	for _, g := range r.playing {
		h := g.first()
		values := h.apply.Sum.Values()
		copied := make([][]uint64, len(values))
		for s := range values {
			copied[s] = slices.Clone(values[s])
		}
		sum, err := h.plan.codec.settled.Decode(r.digest, copied, len(h.apply.Parties))
		if err != nil {
			return err
		}
		sums = append(sums, sum)
		for _, i := range h.apply.Parties {
			included = append(included, g.parties[i])
		}
	}
	return r.move(sums, included)
}

// tell sends the new model to the parties.
func (r *run) tell() {
	size := 8 * len(r.first)
	for k, g := range r.playing {
		from := g.first()
		ready := from.done
		for j, other := range r.playing { // servers wait for each other's sums
			if j != k {
				h := other.first()
				ready = max(ready, h.done+r.transit(h.place, from.place, size))
			}
		}
		for _, p := range g.active {
			switch {
			case p.downAt(r.round, AtReveal):
			case r.serverless():
				p.arrived = g.hubOf(p).done
				r.give(p, slices.Contains(from.apply.Parties, p.seat))
			default:
				r.sendModel(p, from.place, ready, slices.Contains(from.apply.Parties, p.seat))
			}
		}
	}
	if r.pending == 0 {
		r.over = true
	}
}

// sendModel sends a party the new model, at a time; included says that it is in the sum.
func (r *run) sendModel(p *party, from string, ready time.Duration, included bool) {
	size := 8 * len(r.first)
	p.got += size
	r.pending++
	r.at(ready+r.transit(from, p.Place, size), func() {
		p.arrived = r.clock.Now()
		r.give(p, included)
		if r.pending--; r.pending == 0 {
			r.over = true
		}
	})
}

// give lets a party have the new model; included says that it is in the sum.
func (r *run) give(p *party, included bool) {
	p.has, p.model = true, r.weights()
	if !r.World.SubtractOwn || p.held == nil || !included {
		return
	}
	noise, err := p.held.codec.ownNoise(p.held)
	if err != nil {
		r.fail(err)
		return
	}
	p.model = slices.Clone(r.weights())
	for k := range noise {
		p.model[k] -= noise[k] / float64(r.summed)
	}
}

// playRing sums whole numbers without messages: nothing takes time.
func (r *run) playRing(active []*party) (RoundResult, error) {
	parties := r.submitting(active)
	out := RoundResult{Number: r.round, Included: len(parties)}
	if !slices.Equal(r.inside, active) {
		c, err := r.newOpenCodec(active)
		if err != nil {
			return out, err
		}
		r.use(c)
		r.inside = active
	}
	r.note(`sums in a ring take no time and send nothing: world.fidelity = "messages" or "crowd" does`)
	c := r.codecs[len(r.codecs)-1]
	var sum [][]uint64
	for _, p := range parties {
		made, err := r.submission(c, p)
		if err != nil {
			return out, err
		}
		p.held = made
		if sum == nil {
			sum = make([][]uint64, len(made.values))
			for k := range sum {
				sum[k] = make([]uint64, len(made.values[k]))
			}
		}
		for k := range sum {
			for j, y := range made.values[k] {
				sum[k][j] += y
			}
		}
	}
	total, err := c.settled.Decode(r.digest, sum, len(parties))
	if err != nil {
		return out, err
	}
	if err := r.move([]job.Total{total}, parties); err != nil {
		return out, err
	}
	for _, p := range active {
		seen := r.seen(p)
		if !r.dropped[p.index] {
			seen.Received, seen.Included = true, slices.Contains(parties, p)
			r.give(p, seen.Included)
		}
		out.Parties = append(out.Parties, seen)
	}
	return out, r.failure
}

// submitting draws whose submissions are in a sum without messages, of the parties that are there:
// with parties.per_round those that have submitted least often, and no drop-outs.
func (r *run) submitting(active []*party) (parties []*party) {
	drawn := slices.Clone(active)
	if k := r.Parties.PerRound; k > 0 {
		rand.New(r.source("draw", 0)).Shuffle(len(drawn), func(i, j int) {
			drawn[i], drawn[j] = drawn[j], drawn[i]
		})
		slices.SortStableFunc(drawn, func(a, b *party) int { return a.submitted - b.submitted })
		drawn = drawn[:min(k, len(drawn))]
		slices.SortFunc(drawn, func(a, b *party) int { return a.index - b.index })
	}
	r.dropped = r.dropOuts(drawn, len(active))
	for _, p := range drawn {
		if p.submitted++; !r.dropped[p.index] {
			parties = append(parties, p)
		}
	}
	return parties
}

// playCommittee plays a round of one-message sums.
func (r *run) playCommittee(active []*party) (RoundResult, error) {
	if r.council == nil {
		var err error
		if r.council, err = r.newCommittee(); err != nil {
			return RoundResult{}, err
		}
	}
	c := r.council
	c.next(active)
	for !r.over && r.clock.Now() < clock.End/2 && r.clock.Step() {
		if err := r.ctx.Err(); err != nil {
			return RoundResult{}, err
		}
	}
	if !r.over {
		r.lost = c.stuck()
	}
	if r.failure != nil {
		return RoundResult{}, r.failure
	}
	c.passed(c.stage())
	out := RoundResult{
		Number: r.round,
		Began:  r.began,
		Took:   r.clock.Now() - r.began,
		Server: r.received,
		Steps:  c.steps,
		Waited: c.waited,
	}
	in := c.included()
	if r.lost != nil {
		out.Lost = r.lost.Error()
		clear(in)
	}
	for _, p := range active {
		seen := r.seen(p)
		if seen.Included = in[p.index]; seen.Included {
			out.Included++
			seen.Stale = p.sender.stale
		}
		if p.has {
			seen.Received, seen.Took = true, p.arrived-r.began
		}
		out.Parties = append(out.Parties, seen)
	}
	for _, m := range c.members {
		out.Members = append(out.Members, MemberRound{m.name, m.Place, m.worked, m.sent, m.got})
	}
	if c.apply != nil {
		c.server.Applied(r.now(), c.apply.Round, r.lost)
		c.proceed()
	}
	return out, r.failure
}

// next has those come who are there in the scenario's next round, and those go who are not, and
// the job go on.
func (c *committee) next(active []*party) {
	r := c.run
	r.over, r.pending, r.lost, r.began = false, 0, nil, r.clock.Now()
	c.begun = c.server.Status().Stage >= drive.Submitting // one that waits for parties is still open
	c.apply, c.lost, c.done, c.steps, c.waited = nil, nil, 0, nil, nil
	c.entered = r.clock.Now()
	if name := stages[c.server.Status().Stage]; name != "" {
		c.steps = []Step{{Name: name}}
	}
	there := make([]bool, len(r.parties))
	for _, p := range active {
		there[p.index] = !p.away(r.round)
	}
	for _, p := range r.parties {
		switch {
		case !p.up && there[p.index]:
			c.server.Gone(r.now(), drive.Peer{Index: p.index}) // if it has not heard of that yet
			c.come(p)
		case !there[p.index]:
			c.leaves(p)
		}
	}
	for _, m := range c.members {
		m.worked, m.sent, m.got = 0, 0, 0
		switch away := awayIn(m.Crash, r.round); {
		case !m.up && !away:
			c.server.Gone(r.now(), m.peer())
			m.come()
		case m.up && away:
			m.leaves()
		}
	}
	if c.server.Status().Paused {
		c.server.Order(r.now(), toNext)
	}
	c.proceed()
}
