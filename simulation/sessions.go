package simulation

import (
	"slices"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/clock"
)

// playSessions plays a round of private sums.
func (r *timed) playSessions(out *RoundResult) error {
	if err := r.gather(r.active); err != nil {
		return err
	}
	if err := r.happen(r.stuck); err != nil {
		return err
	}
	in := make([]bool, len(r.parties))
	if r.lost == nil {
		for _, g := range r.playing {
			for _, i := range g.first().apply.Parties {
				in[g.parties[i].index] = true
			}
		}
	}
	r.tell(out, in)
	for _, g := range r.playing {
		for _, h := range g.hubs {
			h.answer(r.lost)
			h.proceed()
		}
	}
	return r.failure
}

// happen lets events happen until the round is over; stuck says why it never will be.
func (r *timed) happen(stuck func() error) error {
	for !r.over && r.clock.Now() < clock.End/2 && r.clock.Step() {
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
	if !r.over {
		r.lost = stuck()
	}
	return r.failure
}

// tell says what came of a round; in says, by party, who is in the sum.
func (r *timed) tell(out *RoundResult, in []bool) {
	out.Began, out.Took, out.Received = r.began, r.clock.Now()-r.began, r.received
	if out.Lost = r.lost; r.lost != nil {
		clear(in)
	}
	for _, p := range r.active {
		seen := PartyRound{Party: p.name, Place: p.Place, Rows: r.rowsNow(p), Work: p.worked,
			Sent: p.sent, Got: p.got, Included: in[p.index]}
		out.Cost.BytesUp += int64(p.sent)
		out.Cost.BytesDown += int64(p.got)
		out.Largest = max(out.Largest, r.works[p.index].Largest)
		if r.dropped[p.index] {
			out.Dropped++
		}
		if seen.Included {
			out.Included = append(out.Included, p.index)
			seen.Stale = p.sender.stale
		}
		if p.has {
			seen.Received, seen.Took = true, p.arrived-r.began
		}
		out.Each = append(out.Each, seen)
	}
	out.Parties, out.Cost = len(out.Included), out.Cost.perParty(len(r.active))
}

// gather has those come who are there in this round, and those go who are not, and the jobs go
// on to the next round.
func (r *timed) gather(active []*party) error {
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
			if !p.up() || p.away(r.round) || !slices.Contains(own, p) {
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
			if p.up() {
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
func (r *timed) stuck() error {
	for _, g := range r.playing {
		if !g.begun() {
			return errFew
		}
	}
	return errStuck
}

// hubDone goes on when all who add up have a sum, or will have none.
func (r *timed) hubDone() {
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
	r.spread()
}

// differ returns why there is no sum of all, nil if there is.
func (r *timed) differ() error {
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
func (r *timed) merge() error {
	var sums []job.Total
	var included []int
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
			included = append(included, g.parties[i].index)
		}
	}
	return r.move(sums, included)
}

// spread sends the new model to the parties.
func (r *timed) spread() {
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
			case p.downAt(r.round, atReveal):
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
func (r *timed) sendModel(p *party, from string, ready time.Duration, included bool) {
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
func (r *timed) give(p *party, included bool) {
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
