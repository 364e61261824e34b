package simulation

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// group is the parties of one server, or all if there is none, and who adds up for them: a job
// as package drive has it.
type group struct {
	run     *timed
	place   string
	label   string
	parties []*party // all that are in it at one time or another, in the order of the roster
	roster  *keyexchange.Roster
	hubs    []*hub
	active  []*party         // those who are in the scenario now
	inside  []*party         // without a server: those of them who were there when hubs was made
	next    terms            // of the next session
	plans   map[uint64]*plan // of the sessions that were proposed
	least   uint64           // number of the next session
	told    int              // the last set-up's place in the result and 1; 0: there was none
}

// terms hold what a session promises to its parties, and how they keep it.
type terms struct {
	config *protocol.Config // less its number
	codec  *codec
}

// plan is a session with a number.
type plan struct {
	terms
	proposed bool
	formed   bool
	began    time.Duration // its set-up
	bytes    int           // of its set-up
	told     int           // its set-up's place in the result and 1; 0 before it has formed
}

// newGroup makes the group of the server in a place, in which nobody is yet.
func (r *timed) newGroup(place string, parties []*party) (*group, error) {
	g := &group{run: r, place: place, label: "hushsum scenario " + place, parties: parties,
		plans: map[uint64]*plan{}, least: 1}
	keys := make([]ed25519.PrivateKey, len(parties))
	for i, p := range parties {
		p.group, p.seat, keys[i] = g, i, p.identity
	}
	if len(parties) == len(r.parties) {
		g.roster = r.course.settled.Roster()
		return g, nil
	}
	var err error
	g.roster, err = rosterOf(keys, partyName)
	return g, err
}

// settle settles what the next session promises to those who are in the scenario now. A session
// that stands keeps its own terms: what it promises holds for as many as are left of it.
func (g *group) settle(active []*party) error {
	if slices.Equal(active, g.active) {
		return nil
	}
	g.active = active
	n := len(active)
	files := job.Files{Roster: g.roster, Present: n}
	if err := g.run.own(len(g.parties)).Sessions(files); err != nil {
		if g.next.codec != nil && within(active, g.next.codec.parties) {
			return nil // they were more when it was settled, and are bound by that
		}
		return err
	}
	codec, err := g.run.newCodec(active, files)
	if err != nil {
		return err
	}
	config := codec.settled.Config(0)
	config.Label = g.label
	g.next = terms{config, codec}
	if g.run.Recovers() && codec.settled.MinSurvivors() == g.run.most(n) {
		g.run.course.note("parties.drop_out %v of %d parties is less than one: "+
			"nobody may be missing", g.run.Parties.DropOut, n)
	}
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

// propose returns the configuration of a session that a server asks for, on the terms of now
// unless it was proposed already.
func (g *group) propose(number uint64) *protocol.Config {
	p := g.plans[number]
	if p == nil || !p.proposed {
		config := *g.next.config
		config.Number = number
		p = &plan{terms: terms{&config, g.next.codec}}
		g.plans[number] = p
	}
	return p.config
}

// accept returns the configuration of a session that was proposed to a party.
func (g *group) accept(number uint64) *protocol.Config { return g.plans[number].config }

// proposed notes that the set-up of a session has begun.
func (g *group) proposed(number uint64) {
	p := g.plans[number]
	if !p.proposed {
		p.proposed, p.began = true, g.run.clock.Now()
		g.least = number + 1
	}
}

// formed notes that a session is set up, and of several servers' tells it as one.
func (g *group) formed(number uint64, parties int) {
	r, p := g.run, g.plans[number]
	if p.formed {
		return
	}
	p.formed = true
	round := r.round
	if g.begun() {
		round++ // it ran in parallel with this one
	}
	ups := &r.result.SetUps
	last := len(*ups) - 1
	if last < 0 || (*ups)[last].Round != round || g.told == last+1 {
		*ups = append(*ups, SetUp{Round: round})
		last++
	}
	g.told, p.told = last+1, last+1
	up := &(*ups)[last]
	up.Parties += parties
	up.Bytes += p.bytes
	up.Took = max(up.Took, r.clock.Now()-p.began)
}

// begun reports whether somebody who adds up has begun this round.
func (g *group) begun() bool {
	return slices.ContainsFunc(g.hubs, func(h *hub) bool { return h.begun })
}

// carried notes a message of a session's set-up.
func (g *group) carried(p *plan, bytes int) {
	p.bytes += bytes
	if p.told > 0 {
		g.run.result.SetUps[p.told-1].Bytes += bytes
	}
}

// arrived notes that a message of a session's set-up has arrived.
func (g *group) arrived(p *plan) {
	if p.told > 0 {
		up := &g.run.result.SetUps[p.told-1]
		up.Took = max(up.Took, g.run.clock.Now()-p.began)
	}
}

// makeGroups puts each party to the server that it names, or the one that is nearest.
func (r *timed) makeGroups() error {
	by := map[string][]*party{}
	for _, p := range r.parties {
		at := r.World.Servers[0]
		if !r.serverless() && len(r.World.Servers) > 1 {
			at = r.serverOf(p)
		}
		by[at] = append(by[at], p)
	}
	for _, place := range r.World.Servers {
		if len(by[place]) < 2 {
			if len(by[place]) == 1 {
				return r.alone(place)
			}
			continue
		}
		g, err := r.newGroup(place, by[place])
		if err != nil {
			return err
		}
		r.groups = append(r.groups, g)
	}
	return nil
}

func (r *timed) serverOf(p *party) string {
	at, nearest := p.Server, time.Duration(0)
	if at != "" {
		return at
	}
	for _, place := range r.World.Servers {
		l, ok := r.net.Link(p.Place, place)
		if (ok || len(r.World.Link) == 0) && (at == "" || l.Latency < nearest) {
			at, nearest = place, l.Latency
		}
	}
	return at
}

func (r *timed) alone(place string) error {
	return r.Mistake("world.servers", "use fewer servers, or more parties near each",
		"the server in %s has one party, whose vector its sum would show", place)
}

// open has those who add up begin, with nobody connected yet.
//
// Without a server nobody decides for all when a session follows another, and each party would
// let it take over when it has heard from the others. So there the parties begin anew, all at
// once and between rounds, when somebody is there who is not in their session, or one who is in
// it has left for good; and when a round has failed, since they may not have seen the same of it.
func (g *group) open(there []*party, failed bool) error {
	if !g.run.serverless() {
		if g.hubs != nil {
			return nil
		}
		h, err := g.newHub(g.place, -1, min(g.run.Time.BeginWith, len(g.parties)))
		g.hubs = []*hub{h}
		return err
	}
	if g.hubs != nil && !failed && within(there, g.inside) && within(g.inside, g.active) {
		return nil
	}
	for _, h := range g.hubs {
		h.close()
	}
	for _, p := range g.parties {
		p.leaves()
		if p.machine != nil {
			p.machine.Erase()
			p.machine = nil
		}
	}
	g.hubs, g.inside = nil, there
	for _, p := range there {
		h, err := g.newHub(p.Place, p.seat, len(there)) // nobody else comes
		if err != nil {
			return err
		}
		g.hubs = append(g.hubs, h)
	}
	return nil
}

// hubOf returns what a party adds up for itself with, without a server.
func (g *group) hubOf(p *party) *hub {
	return g.hubs[slices.IndexFunc(g.hubs, func(h *hub) bool { return h.owner == p.seat })]
}

// first returns who has the group's sum, nil if nobody has.
func (g *group) first() *hub {
	for _, h := range g.hubs {
		if h.apply != nil {
			return h
		}
	}
	return nil
}

// sameSum reports whether all who add up and have a sum have the same.
func (g *group) sameSum() bool {
	first := g.first()
	for _, h := range g.hubs {
		if h.apply != nil && (!slices.Equal(h.apply.Parties, first.apply.Parties) ||
			!slices.EqualFunc(h.apply.Sum.Values(), first.apply.Sum.Values(), slices.Equal[[]uint64])) {
			return false
		}
	}
	return true
}

// Why a round has no sum.
var (
	errStuck = errors.New("simulation: somebody who is not there is waited for; " +
		"shorten time.step_time")
	errFew  = errors.New("simulation: too few of the parties are there for a round")
	errSums = errors.New("simulation: those who added up have different sums")
)
