package simulation

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/cost"
	"github.com/hushsum/hushsum/simulation/crowd"
)

// playCrowd plays a round of a crowd: real keys, chains and masks, each made once, and
// the times that real parties would need, from what package cost says.
func (r *timed) playCrowd(out *RoundResult) error {
	active := r.active
	if r.crowd == nil {
		if err := r.gatherCrowd(active); err != nil {
			return err
		}
	}
	c := r.codecs[0]
	sum, err := r.crowd.Round(r.ctx, r.broadcast, r.crowdDropped(), func(i int, dst []uint64) error {
		p := active[i]
		made, err := r.submission(c, p)
		if err != nil {
			return err
		}
		copy(dst, made.values[0])
		return nil
	})
	if err != nil {
		return err
	}
	in := make([]bool, len(r.parties))
	var included []int
	for _, p := range active {
		if in[p.index] = !r.dropped[p.index]; in[p.index] {
			included = append(included, p.index)
		}
	}
	total, err := c.settled.Decode(r.digest, [][]uint64{sum}, len(included))
	if err != nil {
		return err
	}
	if err := r.move([]job.Total{total}, included); err != nil {
		return err
	}
	counts := r.crowd.Counts()
	r.result.Pairs = &counts
	r.timeCrowd(len(included))
	r.tell(out, in)
	return nil
}

// gatherCrowd sets the crowd up.
func (r *timed) gatherCrowd(active []*party) error {
	n := len(active)
	c, err := r.newOpenCodec(active)
	if err != nil {
		return err
	}
	r.use(c)
	degree, config := 0, c.settled.Config(0)
	if config.Recovery != nil {
		degree = config.Recovery.Degree
	}
	r.crowd, err = crowd.New(r.ctx, crowd.Options{
		Parties:   n,
		Degree:    degree,
		Length:    c.layout[0].Length,
		Bits:      c.layout[0].Bits,
		Classical: r.Recovers() && r.Sum.Classical,
		SelfMasks: r.Recovers(),
		Seed:      sha256.Sum256(fmt.Appendf(nil, "hushsum scenario graph %d", r.seed)),
		Progress:  r.course.Progress,
	})
	if err != nil {
		return err
	}
	costs := r.crowdCosts(n)
	setUp, server, bytes := costs.Party(r.units).SetUp(), costs.Server(r.units).SetUp, costs.Wire()
	slowest := time.Duration(0)
	for _, p := range active {
		// Two exchanges with the server.
		slowest = max(slowest, 2*(r.transit(p.Place, r.World.Servers[0], int(bytes.SetUpSent)/2)+
			r.transit(r.World.Servers[0], p.Place, int(bytes.SetUpReceived)/2)))
	}
	r.result.SetUps = append(r.result.SetUps, SetUp{
		Round:   1,
		Parties: n,
		Took:    setUp + server + slowest,
		Bytes:   n * int(bytes.SetUpSent+bytes.SetUpReceived),
	})
	r.clock.After(setUp+server+slowest, func() {})
	r.clock.Run()
	return nil
}

func (r *timed) crowdCosts(n int) cost.Session {
	s := r.costs(n)
	s.Dropped = r.DropOuts(n)
	return s
}

// crowdDropped returns who drops out, of a crowd in which somebody can.
func (r *timed) crowdDropped() []bool {
	if r.World.Drop == 0 {
		return nil
	}
	return r.dropped
}

// dropOuts draws which parties, of some of a round's n, drop out of it, by their numbers.
func (r *timed) dropOuts(of []*party, n int) []bool {
	dropped := make([]bool, len(r.parties))
	for _, i := range rand.New(r.source("drop", 0)).Perm(len(of))[:r.DropOuts(n)] {
		dropped[of[i].index] = true
	}
	return dropped
}

// timeCrowd works out when everybody is done.
func (r *timed) timeCrowd(included int) {
	active := r.active
	n := len(active)
	costs := r.crowdCosts(n)
	load, server, bytes := costs.Party(r.units), costs.Server(r.units), costs.Wire()
	place, last, submitted := r.World.Servers[0], time.Duration(0), time.Duration(0)
	trips := 1
	if r.Recovers() {
		trips = 3 // submissions, signatures, shares
	}
	for _, p := range active {
		if r.dropped[p.index] {
			continue
		}
		work, ok := r.given(p)
		if !ok {
			work = load.Round() + r.training(r.rowsNow(p))
		}
		p.worked = time.Duration(float64(work) * r.slowness(p))
		p.sent, p.got = int(bytes.RoundSent), int(bytes.RoundReceived)+8*len(r.first)
		arrival := p.worked
		for trip := range trips { // the model comes last, see below
			arrival += r.transit(place, p.Place, int(bytes.RoundReceived)/trips) +
				r.transit(p.Place, place, p.sent/trips)
			if trip == 0 {
				submitted = max(submitted, arrival)
			}
		}
		last = max(last, arrival)
	}
	if included < n { // nobody tells the server that somebody is gone
		last += max(0, r.Time.StepTime-submitted)
	}
	if limit := r.Time.StepTime; limit > 0 && last > limit*time.Duration(trips) {
		r.course.note("the slowest of the crowd takes %v, longer than step_time allows", last)
	}
	last += server.Round()
	r.began = r.clock.Now()
	took := time.Duration(0)
	for _, p := range active {
		if !r.dropped[p.index] {
			own := last + r.transit(place, p.Place, 8*len(r.first))
			p.has, p.arrived = true, r.began+own
			took = max(took, own)
			r.received += p.sent
		}
	}
	r.clock.After(took, func() {})
	r.clock.Run()
}
