package simulation

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// hub is a server, or the server's part that a party takes for itself.
type hub struct {
	lead
	group *group
	owner int      // in the group, −1 for a server
	tell  bool     // somebody has come, and may have to be told something
	lines []line   // by party
	early []letter // that are not due yet, where parties are told by several hubs

	// Of the round.
	plan  *plan
	tries int // to begin
}

// letter is a message to a hub.
type letter struct {
	from    int
	session uint64
	message []byte
}

// mostTries is how often sessions and rounds may fail to begin before a round is given up.
const mostTries = 5

// newHub makes a hub, of a job in which nobody is yet and whose first round begins with the given
// number of parties.
func (g *group) newHub(place string, owner, begin int) (h *hub, err error) {
	r, n, survivors := g.run, len(g.parties), 2 // other sessions say how many they take
	if r.Recovers() && r.Threshold(n) == 0 {
		survivors = max(2, g.next.codec.settled.MinSurvivors())
	}
	h = &hub{lead: lead{run: r, place: place}, group: g, owner: owner}
	h.as = h
	h.server, err = drive.NewLead(drive.Settings{
		Session:   g.propose,
		Label:     g.label,
		Rounds:    uint64(r.Rounds),
		Survivors: survivors,
		Colluders: r.Job.Parties.Colluders,
		Broadcast: func(uint64, [32]byte) ([32]byte, error) { return r.digest, nil },
		StepTime:  drive.Time(r.Time.StepTime),
		BeginWith: begin,
		Sample:    r.Parties.PerRound,
		Draw:      r.draw,

		Submissions: uint64(r.Parties.Participations),
	}, r.now())
	for i, p := range g.parties {
		h.lines = append(h.lines, line{run: r, lead: h.server, proceed: h.proceed,
			peer: drive.Peer{Index: i}, from: p.Place, to: place, near: owner == i})
	}
	return h, err
}

// draw returns which of the parties that are there a round is held among.
func (r *timed) draw(round uint64, there []int, sample int) []int {
	random := rand.New(r.source("draw", int(round)))
	drawn := slices.Clone(there)
	random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	drawn = drawn[:min(sample, len(drawn))]
	slices.Sort(drawn)
	return drawn
}

// next has the job go on to the federation's next round.
func (h *hub) next() {
	h.begun, h.tries = false, 0
	h.lead.next()
}

// decided takes orders.
func (h *hub) decided(orders drive.Orders, _ bool) { h.tell = h.tell || orders.Tell }

// after reads what is due now, and goes on if the round is over.
func (h *hub) after() {
	early := h.early
	h.early = nil
	for _, l := range early {
		h.read(l)
	}
	if h.over() {
		h.run.hubDone()
	}
}

// notice takes note of what has happened.
func (h *hub) notice(n drive.Notice) {
	g := h.group
	switch n.Kind {
	case drive.Forms:
		g.proposed(n.Session)
	case drive.Formed:
		g.formed(n.Session, len(n.Parties))
	case drive.Following:
		if !h.begun { // its set-up was not in the round
			g.run.began = g.run.clock.Now()
		}
	case drive.Begun:
		h.begun, h.plan = true, g.plans[n.Session]
		g.run.use(h.plan.codec)
	case drive.Dropped, drive.Unbegun:
		if h.tries++; h.tries == mostTries && !h.begun {
			h.lost = n.Err // and the round is given up
		}
	}
}

// work returns how long the server works for what it has decided.
func (h *hub) work(was, is drive.Status, _ drive.Prepared) (took time.Duration, _ error) {
	n := h.group.run.most(len(h.group.active)) // of a round
	if f := was.Next; f.Number > 0 && f.Stage < drive.Preparing {
		still := is.Next.Number == f.Number
		if still && is.Next.Stage >= drive.Preparing || !still && is.Session == f.Number {
			took += h.group.run.serverWork(stepMembers, h.group.parties, len(h.group.active))
		}
	}
	if was.Session == was.Next.Number || was.Session != is.Session || was.Stage == is.Stage {
		return took, nil
	}
	step := ""
	switch {
	case is.Stage == drive.Signing:
		step = stepSurvivors
	case is.Stage == drive.Revealing:
		step = stepReveal
	case was.Stage == drive.Revealing, was.Stage == drive.Submitting && !h.group.run.Recovers():
		step = "sum"
	}
	return took + h.group.run.serverWork(step, h.group.parties, n), nil
}

// pump sends the parties what is new for them.
func (h *hub) pump() {
	if !h.tell || h.busy {
		return
	}
	h.tell = false
	for i, p := range h.group.parties {
		if h.owner < 0 || h.owner == i {
			h.send(i, p)
		}
	}
}

// send sends a party what is new for it.
func (h *hub) send(i int, p *party) {
	h.lines[i].pump(func(item drive.Item) (int, func()) {
		message := slices.Concat(item.Shared, item.Own)
		plan, setUp := h.group.setUp(item.Session, message)
		switch {
		case h.owner >= 0:
		case setUp:
			h.group.carried(plan, len(message))
		default:
			p.got += len(message)
		}
		return len(message), func() {
			if setUp {
				h.group.arrived(plan)
			}
			p.take(item, message)
		}
	})
}

// setUp returns the plan of a session, and whether a message is of its set-up.
func (g *group) setUp(session uint64, message []byte) (*plan, bool) {
	p := g.plans[session]
	h, _, err := wire.ParseHeader(message)
	return p, err != nil || h.Type.SetUp() || h.Type == wire.TypeUpload && !p.formed
}

// receive takes a message of a party.
func (h *hub) receive(l letter, setUp bool) {
	if h.closed {
		return
	}
	if !setUp && h.owner != l.from {
		h.group.run.received += len(l.message)
	}
	h.read(l)
	h.proceed()
}

// read reads a message, or keeps it until it is due.
func (h *hub) read(l letter) {
	err := h.server.Receive(h.group.run.now(), drive.Peer{Index: l.from}, bytes.NewReader(l.message))
	is := h.server.Status()
	coming := l.session == is.Next.Number || l.session > max(is.Session, is.Next.Number)
	// What is refused for another reason came too late.
	if errors.Is(err, protocol.ErrPhase) || errors.Is(err, protocol.ErrSession) && coming {
		h.early = append(h.early, l)
	}
}
