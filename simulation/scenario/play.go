package scenario

import (
	"fmt"
	"slices"
	"time"
)

// ensure sees that the sessions are among those who are there, and sets new ones up if
// they are not. Set-up is beside the rounds, as the thesis has it: its time is told apart.
func (r *run) ensure(active []*party) error {
	there := slices.DeleteFunc(slices.Clone(active), func(p *party) bool { return p.away(r.round) })
	if r.sessions != nil && within(there, r.inside) && within(r.inside, active) {
		return nil
	}
	if len(there) < 2 {
		return errStuck
	}
	for _, s := range r.sessions {
		s.erase()
	}
	if n := len(there); r.Recovery != nil && r.fewest(n) == n {
		r.note(fmt.Sprintf("recovery.drop_out %v of %d parties is less than one: nobody may be missing",
			r.Recovery.DropOut, n))
	}
	r.sessions, r.inside = nil, there
	groups, places := r.groups(there)
	for k, group := range groups {
		if len(group) < 2 {
			return bad("sum.servers", "use fewer servers, or more parties near each",
				"the server in %s has one party, whose vector its sum would show", places[k])
		}
		s, err := r.newSession(uint64(r.round), places[k], group)
		if err != nil {
			return err
		}
		r.sessions = append(r.sessions, s)
	}
	begin, before := r.clock.Now(), r.carried(active)
	r.setting, r.over = true, false
	for _, s := range r.sessions {
		s.setUp()
	}
	// The last message of set-up must arrive before a round may begin.
	standing := func() bool {
		if r.travelling > 0 {
			return false
		}
		for _, s := range r.sessions {
			for _, h := range s.hubs {
				if !h.over {
					return false
				}
			}
		}
		return true
	}
	for !standing() && !r.over && r.clock.Step() {
	}
	r.setting = false
	if r.failure != nil {
		return r.failure
	}
	if !standing() {
		return errStuck
	}
	for _, s := range r.sessions {
		for _, h := range s.hubs {
			if h.failed != nil {
				return fmt.Errorf("scenario: set-up before round %d: %w", r.round, h.failed)
			}
		}
	}
	r.result.SetUps = append(r.result.SetUps, SetUp{
		Round:   r.round,
		Parties: len(there),
		Took:    r.clock.Now() - begin,
		Bytes:   r.carried(active) - before,
	})
	for _, p := range active {
		p.sent, p.got, p.worked = 0, 0, 0
	}
	r.received = 0
	return nil
}

func within(some, all []*party) bool {
	for _, p := range some {
		if !slices.Contains(all, p) {
			return false
		}
	}
	return true
}

func (r *run) carried(active []*party) (bytes int) {
	for _, p := range active {
		bytes += p.sent + p.got
	}
	return bytes
}

// groups are the parties of each server, each at the server that it names or the one
// that is nearest.
func (r *run) groups(active []*party) (groups [][]*party, places []string) {
	if r.Sum.Topology == Serverless || len(r.Sum.Servers) == 1 {
		return [][]*party{active}, r.Sum.Servers
	}
	by := map[string][]*party{}
	for _, p := range active {
		at := p.spec.Server
		if at == "" {
			nearest := time.Duration(0)
			for _, place := range r.Sum.Servers {
				l, ok := r.net.Link(p.place, place)
				if (ok || len(r.Links) == 0) && (at == "" || l.Latency < nearest) {
					at, nearest = place, l.Latency
				}
			}
		}
		by[at] = append(by[at], p)
	}
	for _, place := range r.Sum.Servers {
		if len(by[place]) > 0 {
			groups, places = append(groups, by[place]), append(places, place)
		}
	}
	return groups, places
}

// playSessions plays a round of private sums.
func (r *run) playSessions(active []*party) (Round, error) {
	if err := r.ensure(active); err != nil {
		return Round{}, err
	}
	begin := r.clock.Now()
	r.over, r.pending = false, 0
	for _, s := range r.sessions {
		s.held = make([]*submission, len(s.parties))
		for _, h := range s.hubs {
			h.over, h.done = false, 0
		}
	}
	for _, s := range r.sessions {
		for _, h := range s.hubs {
			h.begin()
		}
	}
	for !r.over && r.clock.Step() {
		if err := r.ctx.Err(); err != nil {
			return Round{}, err
		}
	}
	if r.failure != nil {
		return Round{}, r.failure
	}
	out := Round{Number: r.round, Began: begin, Took: r.clock.Now() - begin, Server: r.received}
	switch {
	case !r.over:
		out.Lost = errStuck.Error()
	case r.lost != "":
		out.Lost = r.lost
	}
	r.lost = ""
	included := map[*party]bool{}
	for _, s := range r.sessions {
		for _, i := range s.hubs[0].included {
			if out.Lost == "" {
				included[s.parties[i]] = true
			}
		}
	}
	out.Included = len(included)
	for _, p := range active {
		seen := r.seen(p)
		seen.Included = included[p]
		if p.has {
			seen.Received, seen.Took = true, p.arrived-begin
		}
		out.Parties = append(out.Parties, seen)
	}
	return out, nil
}

func (r *run) seen(p *party) PartyRound {
	return PartyRound{Party: p.name, Place: p.place, Work: p.worked, Sent: p.sent, Got: p.got}
}

// hubDone goes on when all who add up have a sum, or will have none.
func (r *run) hubDone(h *hub) {
	if r.setting {
		return
	}
	h.done = r.clock.Now()
	for _, s := range r.sessions {
		for _, other := range s.hubs {
			if !other.over {
				return
			}
		}
	}
	for _, s := range r.sessions {
		for _, other := range s.hubs {
			if other.failed != nil {
				r.lost, r.over = other.failed.Error(), true
				return
			}
		}
		if !s.sameSum() {
			r.lost, r.over = "those who added up have different sums", true
			return
		}
	}
	if err := r.merge(); err != nil {
		r.fail(err)
		return
	}
	r.tell()
}

// merge makes the next model of the sums.
func (r *run) merge() error {
	total, parties := make([]float64, len(r.weights)), 0
	for _, s := range r.sessions {
		h := s.hubs[0]
		copied := make([][]uint64, len(h.sum))
		for k := range h.sum {
			copied[k] = slices.Clone(h.sum[k])
		}
		mean, err := s.codec.decode(copied, len(h.included))
		if err != nil {
			return err
		}
		for k, v := range mean {
			total[k] += v * float64(len(h.included))
		}
		parties += len(h.included)
	}
	for k := range total {
		total[k] /= float64(parties)
	}
	r.weights = r.apply(total)
	r.summed = parties
	return nil
}

// tell sends the new model to the parties.
func (r *run) tell() {
	size := 8 * len(r.weights)
	for k, s := range r.sessions {
		ready := s.hubs[0].done
		for j, other := range r.sessions { // servers wait for each other's sums
			if j != k {
				h := other.hubs[0]
				ready = max(ready, h.done+r.transit(h.place, s.hubs[0].place, size))
			}
		}
		for i, p := range s.parties {
			if p.downAt(r.round, AtReveal) {
				continue
			}
			if r.Sum.Topology == Serverless {
				p.arrived = s.hubs[i].done
				r.give(s, i)
				continue
			}
			p.got += size
			r.pending++
			r.at(ready+r.transit(s.hubs[0].place, p.place, size), func() {
				p.arrived = r.clock.Now()
				r.give(s, i)
				if r.pending--; r.pending == 0 {
					r.over = true
				}
			})
		}
	}
	if r.pending == 0 {
		r.over = true
	}
}

// give lets a party have the new model.
func (r *run) give(s *session, i int) {
	p := s.parties[i]
	p.has, p.model = true, r.weights
	if !r.Privacy.SubtractOwn || s.held[i] == nil || !slices.Contains(s.hubs[0].included, i) {
		return
	}
	noise, err := s.codec.ownNoise(s.held[i].vector, s.held[i].values)
	if err != nil {
		r.fail(err)
		return
	}
	p.model = slices.Clone(r.weights)
	for k := range noise {
		p.model[k] -= noise[k] / float64(r.summed)
	}
}

// playClear sums in the clear, without messages: nothing takes time.
func (r *run) playClear(active []*party) (Round, error) {
	out := Round{Number: r.round, Included: len(active)}
	if !slices.Equal(r.inside, active) {
		if _, err := r.newCodec(active); err != nil {
			return out, err
		}
		r.inside = active
	}
	r.note(`sums in the clear take no time and send nothing: kind = "private" or "crowd" does`)
	c := r.codecs[len(r.codecs)-1]
	var sum [][]uint64
	s := &session{run: r, parties: active, codec: c, held: make([]*submission, len(active)),
		hubs: []*hub{{included: everybody(len(active))}}}
	for i := range active {
		made, err := r.submission(s, i)
		if err != nil {
			return out, err
		}
		s.held[i] = made
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
	c.cut(sum)
	mean, err := c.decode(sum, len(active))
	if err != nil {
		return out, err
	}
	r.weights, r.summed = r.apply(mean), len(active)
	for i, p := range active {
		r.give(s, i)
		seen := r.seen(p)
		seen.Received, seen.Included = true, true
		out.Parties = append(out.Parties, seen)
	}
	return out, r.failure
}
