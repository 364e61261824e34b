package drive_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// node is a job at one time: whatever may happen next leads to another. Nodes share what has not
// changed between them.
type node struct {
	now     drive.Time
	lead    drive.Lead // nil: its process has ended
	saved   []byte
	objects map[string][]byte
	image   []string // the shape of what is saved: in common, and of each seat
	apply   *drive.Apply
	seats   []seat // of the parties, then of the members

	faults int  // that may still happen
	timed  bool // one was that time went by
	lost   int
	sums   int
}

// seat is the process, the store and the connection of a party or of a member.
type seat struct {
	part       drive.Part // nil: its process has ended
	new        bool       // it may come at any time, and has not yet
	life       int
	state      []byte
	image      string // the shape of the state
	submission []byte
	link       bool
	had        []string // items that were sent on this connection
	up         []letter
	down       []letter
	ask        *drive.Ask
	cast       casting
	vector     int64    // of the last submission
	batch      int      // that this came in
	took       []string // by a member, since its last key
	kept       []string // of that, what is saved
	lies       []string // of a member, which the server has
	sent       []leaving
}

// leaving is a message that must not leave with other bytes.
type leaving struct {
	header wire.Header
	digest [32]byte
}

// letter is something on its way.
type letter struct {
	bytes []byte
	item  drive.Item // for a party or a member
	cast  casting
	said  drive.Said // in place of a message
	set   byte       // the parties that it names, which is all that tells two of one name apart
	lie   bool
}

// String says what a letter is.
func (l letter) String() string {
	if l.said != (drive.Said{}) {
		return fmt.Sprintf("absence in round %d, offer for round %d", l.said.Absent, l.said.Offer)
	}
	name := fmt.Sprint(l.item.Name, " of round ", l.item.Round)
	if h, _, err := wire.ParseHeader(l.bytes); err == nil {
		name = fmt.Sprintf("message %d of round %d, %s", h.Type, h.Round, name)
	}
	if l.lie {
		name += ", a lie"
	}
	return name
}

// named is the set of parties that a message of a session names.
func named(b []byte) byte {
	h, body, _ := wire.ParseHeader(b)
	switch h.Type {
	case wire.TypeBegin:
		return body[32]
	case wire.TypeInvite, wire.TypeSurvivors, wire.TypeKeys:
		return body[0]
	}
	return 0
}

type casting struct {
	round uint64
	fresh [32]byte
}

func (c casting) digest() [32]byte { return sha256.Sum256(fmt.Append(nil, c.round, c.fresh)) }

// explorer explores a job.
type explorer struct {
	search
	key     keyexchange.SealKey
	config  drive.Settings
	party   func(i int) drive.PartSettings
	member  func(k int) drive.PartSettings // nil: there is no committee
	parties int
	objects map[string][]byte // of the job that something happens to
	late    bool              // a fault may be that time goes by
}

// Whatever happens in whatever order, with as many faults as are said: no sum is wrong, no round
// is lost unless time goes by while messages are under way, and every job ends. A lead decides
// nothing before it wants to be woken, nothing leaves twice with other bytes, and nobody is named
// who has spoilt nothing. With a committee, of four, a fault may be a lie too: 128,000 jobs with
// one of them, some minutes.
func TestExhaustive(t *testing.T) {
	always := func() bool { return true }
	for _, c := range []struct {
		committee bool
		rounds    uint64
		batch     int
		faults    int
		comes     []int // who comes when they like, by seat
		late      bool
		form      func() bool
	}{
		{false, 1, 0, 0, []int{0}, false, always},
		{false, 1, 0, 1, nil, false, suite.Long},
		{false, 1, 0, 1, nil, true, suite.Long},
		{false, 1, 0, 1, []int{0}, true, suite.Longest},
		{false, 2, 0, 1, nil, true, suite.Longest},
		{false, 1, 0, 2, nil, false, suite.Longest},
		{false, 1, 0, 2, []int{0}, true, suite.Longest},
		{true, 1, 0, 0, nil, false, always},
		{true, 1, 2, 0, nil, false, always},
		{true, 1, 0, 0, []int{0, 4}, false, always},
		{true, 1, 0, 1, nil, false, suite.Long},
		{true, 1, 0, 1, nil, true, suite.Longest},
		{true, 1, 2, 1, nil, true, suite.Longest},
		{true, 1, 0, 1, []int{0, 4}, true, suite.Longest},
	} {
		if !c.form() {
			continue
		}
		name := fmt.Sprintf("committee=%v/rounds=%d/batch=%d/faults=%d/newcomers=%d/late=%v", c.committee,
			c.rounds, c.batch, c.faults, len(c.comes), c.late)
		t.Run(name, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			e := &explorer{search: search{T: t, begun: time.Now(), seen: make(map[shape]*visited)},
				parties: 3, late: c.late}
			seats, random := e.parties, rand.NewChaCha8([32]byte{1})
			if c.committee {
				e.parties, seats = 4, 8
				e.config, e.member, e.party = jobtest.CouncilConfigs(t, jobtest.CouncilOptions{
					Parties: e.parties, Members: 4, Survivors: 2, Faults: 1, Rounds: c.rounds,
					Batch: c.batch, ComeBack: drive.Second}, random)
			} else {
				e.config, e.party = jobtest.Configs(t, jobtest.Options{Parties: e.parties, Survivors: 2,
					Rounds: c.rounds, ComeBack: drive.Second}, random)
			}
			e.config.Stored = e.stored
			e.config.Broadcast = func(round uint64, fresh [32]byte) ([32]byte, error) {
				return casting{round, fresh}.digest(), nil
			}
			n := &node{faults: c.faults, seats: make([]seat, seats)}
			e.startLead(n)
			for i := range n.seats {
				if n.seats[i].new = slices.Contains(c.comes, i); !n.seats[i].new {
					e.start(n, i)
				}
			}
			e.visit(n)
			e.report()
		})
	}
}

// check: no round is lost unless time went by while messages were under way.
func (e *explorer) check(n *node) {
	if n.lost > 0 && !n.timed {
		e.fail("a round is lost")
	}
}

// finish checks a job in which nothing happens any more.
func (e *explorer) finish(n *node) {
	if status := n.lead.Status(); status.Ended == "" {
		e.fail("it stands still: %+v", status)
	}
	if n.sums+n.lost != int(e.config.Rounds) {
		e.fail("%d sums, %d lost", n.sums, n.lost)
	}
}

// choices lists what may happen next. Faults come last, so that a failure without one is found
// first.
func (e *explorer) choices(n *node) (out []choice) {
	if n.lead != nil && n.lead.Status().Ended != "" {
		return nil // the rest is a farewell
	}
	may := func(name string, do func(n *node)) { out = append(out, choice{name, do}) }
	if n.lead == nil {
		may("the server starts", e.startLead)
	}
	if n.apply != nil {
		may("the sum is applied", e.applied)
	}
	if i := e.alone(n); i >= 0 {
		if !e.takes(n, i, may) {
			e.says(n, i, may)
		}
		return out
	}
	waits := true // nothing is under way but those that come when they like
	for i := range n.seats {
		p, name := &n.seats[i], e.name(i)
		switch {
		case p.new:
			may(name+" comes for the first time", func(n *node) { e.start(n, i) })
			continue
		case p.part == nil:
			may(name+" starts", func(n *node) { e.start(n, i) })
			waits = false
		case !p.link && n.lead != nil:
			may(name+" connects", func(n *node) { e.connect(n, i) })
			waits = false
		}
		said, took := e.says(n, i, may), e.takes(n, i, may)
		waits = waits && !said && !took
	}
	wake := drive.Never
	if n.lead != nil {
		wake = n.lead.Wake()
		e.sleeps(n)
	}
	idle := waits && n.lead != nil && n.apply == nil && wake < drive.Never
	if idle {
		may("time goes by", func(n *node) { e.tick(n, wake) })
	}
	if n.faults > 0 {
		e.failures(n, e.late && !idle, func(name string, do func(n *node)) {
			may("FAULT "+name, func(n *node) {
				n.faults--
				do(n)
			})
		})
	}
	return out
}

// says adds that what somebody has said arrives, and reports whether there is anything.
func (e *explorer) says(n *node, i int, may func(name string, do func(n *node))) bool {
	up := n.seats[i].up
	if len(up) > 0 {
		may(fmt.Sprintf("%v from %s arrives", up[0], e.name(i)), func(n *node) { e.deliverUp(n, i) })
	}
	return len(up) > 0
}

// takes adds that something arrives for somebody, and that a vector is made.
func (e *explorer) takes(n *node, i int, may func(name string, do func(n *node))) bool {
	p, name := &n.seats[i], e.name(i)
	if p.ask != nil {
		may(name+" has trained", func(n *node) { e.answer(n, i) })
	}
	if len(p.down) > 0 {
		may(fmt.Sprintf("%v for %s arrives", p.down[0], name), func(n *node) { e.deliverDown(n, i) })
	}
	return p.ask != nil || len(p.down) > 0
}

// failures adds the faults that may happen. Messages are kept, and lies told, in jobs with a
// committee alone; in sessions TestWorlds has losses and lies.
func (e *explorer) failures(n *node, late bool, fault func(name string, do func(n *node))) {
	if n.lead != nil {
		if wake := n.lead.Wake(); late && wake < drive.Never && wake > n.now {
			fault("time goes by", func(n *node) {
				n.timed = true
				e.tick(n, wake)
			})
		}
		fault("the server dies", e.killLead)
	}
	for i := range n.seats {
		p, name := &n.seats[i], e.name(i)
		if p.part == nil {
			continue
		}
		fault(name+" dies", func(n *node) { e.kill(n, i) })
		if p.link {
			fault(name+" is cut off", func(n *node) { e.cut(n, i) })
		}
		if e.member == nil || len(p.up) == 0 {
			continue
		}
		fault(fmt.Sprintf("%s keeps %v", name, p.up[0]), func(n *node) { n.seats[i].up = p.up[1:] })
		if p.up[0].bytes != nil {
			fault(fmt.Sprintf("%s lies in %v", name, p.up[0]), func(n *node) { e.lie(n, i) })
		}
	}
}

// alone returns somebody in a job with a committee to whom something happens that may come before
// all else, −1 if there is nobody: something arrives, the vector is made, or what was said arrives
// and changes nothing. Where no fault may happen any more, it comes to the same when others do
// something first: the server hears of it only by what is sent then, and what it sends meanwhile
// comes later.
func (e *explorer) alone(n *node) int {
	first := -1
	if n.faults > 0 || e.member == nil {
		return first
	}
	_, each := e.shapes(n)
	for i := range n.seats {
		p := &n.seats[i]
		free := len(p.down) > 0 || p.ask != nil || len(p.up) > 0 && drive.Moot(n.lead, i)
		if free && (first < 0 || each[i] < each[first]) {
			first = i
		}
	}
	return first
}

// shape is one in which it does not matter which party is which, nor which member.
func (e *explorer) shape(n *node) shape {
	common, each := e.shapes(n)
	slices.Sort(each[:e.parties])
	slices.Sort(each[e.parties:])
	return shapeOf(common, each)
}

// shapes returns the shape of what all have in common, and of each.
func (e *explorer) shapes(n *node) (common string, each []string) {
	each = make([]string, len(n.seats))
	if n.lead != nil {
		common, each = drive.Shape(n.lead)
	}
	common += fmt.Sprintln(n.faults, n.timed, n.lost, n.sums, n.apply != nil, n.lead != nil)
	if len(n.image) > 0 {
		common += "saved " + n.image[0]
	}
	sets := make(map[string]byte) // that messages name, by the messages' names
	for i := range n.seats {
		p := &n.seats[i]
		if len(n.image) > 0 {
			each[i] += "saved " + n.image[1+i]
		}
		if p.batch > 0 && n.lead != nil && drive.Has(n.lead, i) && p.batch > drive.Batches(n.lead) {
			each[i] += "waits for a batch\n"
		}
		each[i] += fmt.Sprintln(p.new, p.part != nil, p.link, p.had, p.ask, p.cast.round, p.image, p.took,
			p.kept, p.lies)
		if p.part != nil {
			each[i] += drive.PartShape(p.part)
		}
		each[i] += fmt.Sprint(p.up, "|", p.down)
		for _, l := range slices.Concat(p.up, p.down) {
			if l.set != 0 {
				sets[l.String()] = l.set
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		common += name
		for i := range each {
			each[i] += fmt.Sprint("\n", name, sets[name]>>i&1)
		}
	}
	return common, each
}
