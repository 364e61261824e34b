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
	"github.com/hushsum/hushsum/simulation/clock"
)

// hub is a server, or the server's part that a party takes for itself: it carries in virtual
// time what package drive decides. Rounds follow each other as the scenario has them: the job
// is paused from when a round has begun until the scenario's next, and a sum is applied when
// everybody has the model that it makes.
type hub struct {
	group  *group
	place  string
	owner  int // in the group, −1 for a server
	server drive.Lead

	busy   bool // with what was decided
	closed bool
	tell   bool // somebody has come, and may have to be told something
	wake   *clock.Event
	had    [][]string      // by party: items that are pending for it, and were sent
	down   []time.Duration // by party: when the last that was sent arrives
	early  []letter        // that are not due yet, where parties are told by several hubs

	// Of the round.
	begun bool
	plan  *plan
	apply *drive.Apply
	lost  error
	done  time.Duration // when it had the sum
	tries int           // to begin
}

// letter is a message to a hub.
type letter struct {
	from    int
	session uint64
	message []byte
}

// Rounds follow each other as the scenario has them.
var (
	untilNext = drive.Order{Do: drive.Pause, Why: "until the scenario's next round"}
	toNext    = drive.Order{Do: drive.Resume, Why: "the scenario's next round"}
)

// mostTries is how often sessions and rounds may fail to begin before a round is given up.
const mostTries = 5

// newHub makes a hub, of a job in which nobody is yet and whose first round begins with the given
// number of parties.
func (g *group) newHub(place string, owner, begin int) (h *hub, err error) {
	r, n, survivors := g.run, len(g.parties), 2 // other sessions say how many they take
	if r.Recovers() && r.Threshold(n) == 0 {
		survivors = max(2, g.next.codec.settled.MinSurvivors())
	}
	h = &hub{group: g, place: place, owner: owner, had: make([][]string, n),
		down: make([]time.Duration, n)}
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

// close has nothing happen any more.
func (h *hub) close() {
	h.group.run.clock.Cancel(h.wake)
	h.closed = true
}

// over reports whether this hub has a sum of the round, or will have none.
func (h *hub) over() bool { return h.apply != nil || h.lost != nil }

// next has the job go on to the scenario's next round.
func (h *hub) next() {
	h.begun, h.apply, h.lost, h.done, h.tries = false, nil, nil, 0, 0
	if h.server.Status().Paused {
		h.server.Order(h.group.run.now(), toNext)
	}
}

// proceed does what is due, as a carrier does. What a decision takes the server to work is
// between the decision and what follows from it.
func (h *hub) proceed() {
	r := h.group.run
	for !h.busy && !h.closed && r.failure == nil {
		was := h.server.Status()
		if err := h.server.Tick(r.now()); err != nil {
			r.fail(err)
			return
		}
		ready, decided := h.server.Ready()
		if !decided {
			h.pump()
			h.sleep()
			return
		}
		if took := h.work(was, h.server.Status()); took > 0 {
			h.busy = true
			r.clock.After(took, func() {
				h.busy = false
				if !h.closed {
					h.advance(ready.Notices)
					h.proceed()
				}
			})
			return
		}
		h.advance(ready.Notices)
	}
}

// advance lets go what was decided.
func (h *hub) advance(notices []drive.Notice) {
	r := h.group.run
	open := !h.begun && !h.over()
	orders := h.server.Advance(r.now())
	for _, n := range notices {
		h.notice(n)
	}
	h.tell = h.tell || orders.Tell
	h.pump() // before the pause, which nothing leaves in
	if open && (h.begun || h.over()) {
		h.server.Order(r.now(), untilNext)
	}
	if orders.Apply != nil {
		h.apply, h.done = orders.Apply, r.clock.Now()
	}
	early := h.early
	h.early = nil
	for _, l := range early {
		h.read(l)
	}
	if h.over() {
		r.hubDone()
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
	case drive.Lost:
		h.lost, h.done = n.Err, g.run.clock.Now()
	case drive.Short:
		g.run.course.note("%v", n.Err)
	case drive.Dropped, drive.Unbegun:
		if h.tries++; h.tries == mostTries && !h.begun {
			h.lost = n.Err // and the round is given up
		}
	}
}

// answer tells the server that the round's sum is applied, or why it is not.
func (h *hub) answer(err error) {
	if h.apply != nil {
		h.server.Applied(h.group.run.now(), h.apply.Round, err)
	}
}

// sleep has something happen when it is due.
func (h *hub) sleep() {
	r := h.group.run
	r.clock.Cancel(h.wake)
	h.wake = nil
	if wake := h.server.Wake(); wake != drive.Never {
		h.wake = r.clock.After(max(time.Duration(wake-r.now()), 1), h.proceed)
	}
}

// work returns how long the server works for what it has decided.
func (h *hub) work(was, is drive.Status) (took time.Duration) {
	n := h.group.run.most(len(h.group.active)) // of a round
	if f := was.Next; f.Number > 0 && f.Stage < drive.Preparing {
		still := is.Next.Number == f.Number
		if still && is.Next.Stage >= drive.Preparing || !still && is.Session == f.Number {
			took += h.group.run.serverWork(stepMembers, h.group.parties, len(h.group.active))
		}
	}
	if was.Session == was.Next.Number || was.Session != is.Session || was.Stage == is.Stage {
		return took
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
	return took + h.group.run.serverWork(step, h.group.parties, n)
}

// pump sends the parties what is new for them.
func (h *hub) pump() {
	if !h.tell || h.busy {
		return
	}
	h.tell = false
	for i, p := range h.group.parties {
		if p.up && (h.owner < 0 || h.owner == i) {
			h.send(i, p)
		}
	}
}

func (h *hub) send(i int, p *party) {
	var pending []string
	for item := range h.server.Pending(drive.Peer{Index: i}) {
		if item.Kind == drive.Last {
			return
		}
		pending = append(pending, item.Name)
		if slices.Contains(h.had[i], item.Name) {
			continue
		}
		message := slices.Concat(item.Shared, item.Own)
		r, took := h.group.run, time.Duration(0)
		plan, setUp := h.group.setUp(item.Session, message)
		if h.owner < 0 {
			took = r.transit(h.place, p.Place, len(message))
			if setUp {
				h.group.carried(plan, len(message))
			} else {
				p.got += len(message)
			}
		}
		h.down[i] = max(r.clock.Now()+took, h.down[i])
		line := p.line
		r.at(h.down[i], func() {
			if !p.up || p.line != line {
				return
			}
			if setUp {
				h.group.arrived(plan)
			}
			p.take(item, message)
		})
	}
	h.had[i] = pending
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
