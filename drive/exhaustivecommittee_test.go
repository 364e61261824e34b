package drive_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// meeting is a job with a committee at one time, as node is one whose parties come in sessions.
type meeting struct {
	now     drive.Time
	server  *drive.Committee // nil: its process has ended
	saved   []byte
	objects map[string][]byte
	image   []string // the shape of what is saved: in common, of the parties, of the members
	apply   *drive.Apply
	seats   []chair // of the parties, then of the members

	faults int // that may still happen
	timed  bool
	lost   int
	sums   int
}

// chair is the process, the store and the connection of a party or of a member.
type chair struct {
	part   drive.Part
	new    bool // it may come at any time, and has not yet
	life   int
	state  []byte
	image  string
	link   bool
	had    []string
	up     []note
	down   []note
	ask    *drive.Ask
	cast   casting
	vector int64         // of the last submission
	batch  int           // that this came in
	took   []string      // by a member, since its last key
	kept   []string      // of that, what is saved
	lies   []string      // of a member, which the server has
	sent   [75]*[32]byte // what must not leave twice with other bytes, by type
}

// note is something on its way.
type note struct {
	bytes []byte
	item  drive.Item // for a party or a member
	cast  casting
	offer uint64
	lie   bool
}

func (l note) String() string {
	if l.bytes == nil && l.item.Kind != drive.Upload {
		return fmt.Sprintf("offer for round %d", l.offer)
	}
	lie := ""
	if l.lie {
		lie = ", a lie"
	}
	h, _, _ := wire.ParseHeader(l.bytes)
	return fmt.Sprintf("message %d %s%s", h.Type, l.item.Name, lie)
}

// councils explores jobs with a committee.
type councils struct {
	search[meeting]
	key     keyexchange.SealKey
	config  drive.Settings
	member  func(k int) drive.PartSettings
	party   func(i int) drive.PartSettings
	parties int
	objects map[string][]byte // of the job that something happens to
	late    bool              // a fault may be that time goes by
}

// As TestExhaustive, of a job with a committee of four, in which a fault may be a lie too: 128,000
// jobs with one of them, some minutes.
func TestExhaustiveCommittee(t *testing.T) {
	always := func() bool { return true }
	for _, c := range []struct {
		batch, faults int
		new           []int // who comes when they like: parties from 0 on, members from 4
		late          bool
		form          func() bool
	}{
		{0, 0, nil, false, always},
		{2, 0, nil, false, always},
		{0, 0, []int{0, 4}, false, always},
		{0, 1, nil, false, suite.Long},
		{0, 1, nil, true, suite.Longest},
		{2, 1, nil, true, suite.Longest},
		{0, 1, []int{0, 4}, true, suite.Longest},
	} {
		if !c.form() {
			continue
		}
		name := fmt.Sprintf("batch=%d/faults=%d/newcomers=%d/late=%v", c.batch, c.faults, len(c.new),
			c.late)
		t.Run(name, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			e := newCouncils(t, c.batch)
			e.late = c.late
			n := &meeting{faults: c.faults, seats: make([]chair, 2*e.parties)}
			e.startServer(n)
			for i := range n.seats {
				if n.seats[i].new = slices.Contains(c.new, i); !n.seats[i].new {
					e.start(n, i)
				}
			}
			e.visit(n)
			e.report()
		})
	}
}

func newCouncils(t *testing.T, batch int) *councils {
	e := &councils{parties: 4}
	e.search = newSearch[meeting](t, e)
	e.config, e.member, e.party = jobtest.CouncilConfigs(t, jobtest.CouncilOptions{
		Parties: e.parties, Members: 4, Survivors: 2, Faults: 1, Rounds: 1, Batch: batch,
		ComeBack: drive.Second}, rand.NewChaCha8([32]byte{1}))
	e.config.Stored = e.stored
	e.config.Broadcast = func(round uint64, fresh [32]byte) ([32]byte, error) {
		return casting{round, fresh}.digest(), nil
	}
	return e
}

func (e *councils) name(i int) string {
	if i < e.parties {
		return fmt.Sprint("party ", i)
	}
	return fmt.Sprint("member ", i-e.parties)
}

func (p *chair) alive() bool { return p.part != nil }

func (e *councils) clone(n *meeting) *meeting {
	next := *n
	next.seats = slices.Clone(n.seats)
	return &next
}

func (e *councils) check(n *meeting) {
	if n.lost > 0 && !n.timed {
		e.fail("a round is lost")
	}
}

func (e *councils) finish(n *meeting) {
	if n.server == nil || n.server.Status().Ended == "" {
		e.fail("it stands still: %+v", n.server.Status())
	}
	if n.sums+n.lost != int(e.config.Rounds) {
		e.fail("%d sums, %d lost", n.sums, n.lost)
	}
}

func (e *councils) choices(n *meeting) (out []choice[meeting]) {
	may := func(name string, do func(n *meeting)) { out = append(out, choice[meeting]{name, do}) }
	fault := func(name string, do func(n *meeting)) {
		if n.faults > 0 {
			may("FAULT "+name, func(n *meeting) {
				n.faults--
				do(n)
			})
		}
	}
	if n.server != nil && n.server.Status().Ended != "" {
		return nil // the rest is a farewell
	}
	if n.server == nil {
		may("the server starts", e.startServer)
	}
	if n.apply != nil {
		may("the sum is applied", e.applied)
	}
	if i := e.alone(n); i >= 0 {
		before := len(out)
		if p := &n.seats[i]; len(p.down) > 0 {
			may(fmt.Sprintf("%v for %s arrives", p.down[0], e.name(i)),
				func(n *meeting) { e.deliverDown(n, i) })
		}
		if n.seats[i].ask != nil {
			may(e.name(i)+" has trained", func(n *meeting) { e.answer(n, i) })
		}
		if len(out) == before {
			may(fmt.Sprintf("%v from %s arrives", n.seats[i].up[0], e.name(i)),
				func(n *meeting) { e.deliverUp(n, i) })
		}
		return out
	}
	waits := true // nothing is under way but those that come when they like
	for i := range n.seats {
		p, name := &n.seats[i], e.name(i)
		switch {
		case p.new:
			may(name+" comes for the first time", func(n *meeting) { e.start(n, i) })
			continue
		case !p.alive():
			may(name+" starts", func(n *meeting) { e.start(n, i) })
			waits = false
			continue
		case !p.link && n.server != nil:
			may(name+" connects", func(n *meeting) { e.connect(n, i) })
			waits = false
		}
		if len(p.up) > 0 {
			may(fmt.Sprintf("%v from %s arrives", p.up[0], name), func(n *meeting) { e.deliverUp(n, i) })
		}
		if p.ask != nil {
			may(name+" has trained", func(n *meeting) { e.answer(n, i) })
		}
		if len(p.down) > 0 {
			may(fmt.Sprintf("%v for %s arrives", p.down[0], name),
				func(n *meeting) { e.deliverDown(n, i) })
		}
		waits = waits && len(p.up) == 0 && len(p.down) == 0 && p.ask == nil
	}
	wake := drive.Never
	if n.server != nil {
		wake = n.server.Wake()
		e.sleeps(n)
	}
	if waits && n.server != nil && n.apply == nil && wake < drive.Never {
		may("time goes by", func(n *meeting) { e.tick(n, wake) })
	} else if e.late && wake < drive.Never && wake > n.now {
		fault("time goes by", func(n *meeting) {
			n.timed = true
			e.tick(n, wake)
		})
	}
	if n.server != nil {
		fault("the server dies", e.killServer)
	}
	for i := range n.seats {
		p, name := &n.seats[i], e.name(i)
		if !p.alive() {
			continue
		}
		fault(name+" dies", func(n *meeting) { e.kill(n, i) })
		if p.link {
			fault(name+" is cut off", func(n *meeting) { e.cut(n, i) })
		}
		if len(p.up) > 0 {
			fault(fmt.Sprintf("%s keeps %v", name, p.up[0]), func(n *meeting) {
				n.seats[i].up = n.seats[i].up[1:]
			})
		}
		if len(p.up) > 0 && p.up[0].bytes != nil {
			fault(fmt.Sprintf("%s lies in %v", name, p.up[0]), func(n *meeting) { e.lie(n, i) })
		}
	}
	return out
}

// alone returns somebody to whom something happens that may come before all else, −1 if there is
// nobody: something arrives, the vector is made, or what was said arrives and changes nothing.
// Where no fault may happen any more, it comes to the same when others do something first: the
// server hears of it only by what is sent then, and what it sends meanwhile comes later.
func (e *councils) alone(n *meeting) int {
	first := -1
	if n.faults > 0 {
		return first
	}
	_, each := e.shapes(n)
	for i := range n.seats {
		p := &n.seats[i]
		free := len(p.down) > 0 || p.ask != nil || len(p.up) > 0 && n.server.Moot(i)
		if free && (first < 0 || each[i] < each[first]) {
			first = i
		}
	}
	return first
}

// shape is one in which it does not matter which party is which, nor which member.
func (e *councils) shape(n *meeting) shape {
	common, each := e.shapes(n)
	slices.Sort(each[:e.parties])
	slices.Sort(each[e.parties:])
	return shapeOf(common, each)
}

// shapes returns the shape of what all have in common, and of each.
func (e *councils) shapes(n *meeting) (string, []string) {
	each := make([]string, len(n.seats))
	common := fmt.Sprintln(n.faults, n.timed, n.lost, n.sums, n.apply != nil, n.server != nil)
	batches := 0
	if n.server != nil {
		c, parties, members := n.server.Shape()
		common += c
		copy(each, parties)
		copy(each[len(parties):], members)
		batches = n.server.Batches()
	}
	if len(n.image) > 0 {
		common += "saved " + n.image[0]
	}
	for i := range n.seats {
		p := &n.seats[i]
		if len(n.image) > 0 {
			each[i] += "saved " + n.image[1+i]
		}
		if i < e.parties && n.server != nil && n.server.Has(i) && p.batch > batches {
			each[i] += "waits for a batch\n"
		}
		each[i] += fmt.Sprintln(p.new, p.alive(), p.link, p.had, p.ask, p.cast.round, p.image, p.took,
			p.kept, p.lies)
		if p.alive() {
			each[i] += drive.Shape(p.part)
		}
		each[i] += fmt.Sprint(p.up, "|", p.down)
	}
	return common, each
}
