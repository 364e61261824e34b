package drive_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// node is a job at one time: whatever may happen next leads to another. Nodes share what has not
// changed between them.
type node struct {
	now    drive.Time
	server *drive.Server // nil: its process has ended
	saved  []byte
	image  saying // the shape of what is saved
	apply  *drive.Apply
	peers  []peer

	faults int  // that may still happen
	timed  bool // one was that time went by
	lost   int
	sums   int
}

// saying is a shape: in common, and for each party.
type saying struct {
	common string
	each   []string
}

// peer is a party's process, store and connection.
type peer struct {
	drive      drive.Part // nil: its process has ended
	new        bool       // it may come at any time, and has not yet
	life       int
	state      []byte
	image      string // the shape of the state
	submission []byte
	kept       [32]byte
	link       bool
	had        []string // items that were sent on this connection
	up         []letter
	down       []letter
	ask        *drive.Ask
	cast       casting
	vector     uint64 // of the last submission
}

// letter is something on its way.
type letter struct {
	bytes []byte
	item  drive.Item // for a party
	cast  casting
	away  uint64 // the round that a party is absent from; 0: the letter is a message
	set   byte   // the parties that it names
}

type casting struct {
	round uint64
	fresh [32]byte
}

// explorer explores jobs whose parties come in sessions.
type explorer struct {
	search[node]
	key    keyexchange.SealKey
	config drive.Settings
	party  func(i int) drive.PartSettings
	late   bool
}

// Whatever happens in whatever order, with as many faults as are said: no sum is wrong, no round
// is lost unless time goes by while messages are under way, and every job ends.
func TestExhaustive(t *testing.T) {
	always := func() bool { return true }
	for _, c := range []struct {
		rounds        uint64
		faults, comes int
		late          bool // a fault may be that time goes by
		form          func() bool
	}{
		{1, 0, 1, false, always},
		{1, 1, 0, false, suite.Long},
		{1, 1, 0, true, suite.Long},
		{1, 1, 1, true, suite.Longest},
		{2, 1, 0, true, suite.Longest},
		{1, 2, 0, false, suite.Longest},
		{1, 2, 1, true, suite.Longest},
	} {
		if !c.form() {
			continue
		}
		name := fmt.Sprintf("rounds=%d/faults=%d/newcomers=%d/late=%v", c.rounds, c.faults, c.comes,
			c.late)
		t.Run(name, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			e := newExplorer(t, c.rounds)
			e.late = c.late
			e.visit(e.root(c.faults, c.comes))
			e.report()
		})
	}
}

func newExplorer(t *testing.T, rounds uint64) *explorer {
	server, party := jobtest.Configs(t, jobtest.Options{Parties: 3, Survivors: 2, Rounds: rounds,
		ComeBack: drive.Second}, rand.NewChaCha8([32]byte{1}))
	server.Broadcast = func(round uint64, fresh [32]byte) ([32]byte, error) {
		return casting{round, fresh}.digest(), nil
	}
	e := &explorer{config: server, party: party}
	e.search = newSearch[node](t, e)
	return e
}

func (c casting) digest() [32]byte { return sha256.Sum256(fmt.Append(nil, c.round, c.fresh)) }

// root is the job as it begins, with all parties connected but those that come later.
func (e *explorer) root(faults, later int) *node {
	n := &node{faults: faults, peers: make([]peer, e.config.Session(1).Roster.Len())}
	e.startServer(n)
	for i := range n.peers {
		if i < later {
			n.peers[i].new = true
			continue
		}
		e.startParty(n, i)
	}
	return n
}

// finish checks a job in which nothing happens any more.
func (e *explorer) finish(n *node) {
	if n.server == nil || n.server.Status().Ended == "" {
		e.fail("it stands still: %+v", n.server.Status())
	}
	if n.sums+n.lost != int(e.config.Rounds) {
		e.fail("%d sums, %d lost", n.sums, n.lost)
	}
}

// choices lists what may happen next. Faults come last, so that a failure without one is found
// first.
func (e *explorer) choices(n *node) (out []choice[node]) {
	may := func(name string, do func(n *node)) { out = append(out, choice[node]{name, do}) }
	fault := func(name string, do func(n *node)) {
		if n.faults > 0 {
			may(name, func(n *node) {
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
	waits := true // nothing is under way but those that come when they like
	for i := range n.peers {
		p := &n.peers[i]
		switch {
		case p.new:
			may(fmt.Sprintf("party %d comes for the first time", i), func(n *node) { e.startParty(n, i) })
			continue
		case p.drive == nil:
			may(fmt.Sprintf("party %d starts", i), func(n *node) { e.startParty(n, i) })
			waits = false
			continue
		case !p.link && n.server != nil:
			may(fmt.Sprintf("party %d connects", i), func(n *node) { e.connect(n, i) })
			waits = false
		}
		if len(p.up) > 0 {
			may(fmt.Sprintf("%v from party %d arrives", p.up[0], i), func(n *node) { e.deliverUp(n, i) })
		}
		if len(p.down) > 0 {
			may(fmt.Sprintf("%v for party %d arrives", p.down[0], i),
				func(n *node) { e.deliverDown(n, i) })
		}
		if p.ask != nil {
			may(fmt.Sprintf("party %d has trained", i), func(n *node) { e.answer(n, i) })
		}
		waits = waits && len(p.up) == 0 && len(p.down) == 0 && p.ask == nil
	}
	wake := drive.Never
	if n.server != nil {
		wake = n.server.Wake()
	}
	idle := waits && n.server != nil && n.apply == nil
	if idle && wake < drive.Never {
		may("time goes by", func(n *node) { e.tick(n, wake) })
	} else if e.late && wake < drive.Never && wake > n.now {
		fault("FAULT time goes by", func(n *node) {
			n.timed = true
			e.tick(n, wake)
		})
	}
	if n.server != nil {
		fault("FAULT the server dies", e.killServer)
	}
	for i := range n.peers {
		if p := &n.peers[i]; p.drive != nil {
			fault(fmt.Sprintf("FAULT party %d dies", i), func(n *node) { e.killParty(n, i) })
			if p.link {
				fault(fmt.Sprintf("FAULT party %d is cut off", i), func(n *node) { e.cut(n, i) })
			}
		}
	}
	return out
}

// String says what a letter is.
func (l letter) String() string {
	if l.away > 0 {
		return fmt.Sprintf("absence in round %d", l.away)
	}
	if l.item.Kind == drive.Join {
		return "join " + l.item.Name
	}
	h, _, _ := wire.ParseHeader(l.bytes)
	return fmt.Sprintf("message %d of round %d", h.Type, h.Round)
}

// named is the set of parties that a message names, which is all that tells two of one name
// apart.
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

func (e *explorer) clone(n *node) *node {
	next := *n
	next.peers = slices.Clone(n.peers)
	return &next
}

// check: no round is lost unless time went by while messages were under way.
func (e *explorer) check(n *node) {
	if n.lost > 0 && !n.timed {
		e.fail("a round is lost")
	}
}

// shape is one in which it does not matter which party is which.
func (e *explorer) shape(n *node) shape {
	each := make([]string, len(n.peers))
	common := fmt.Sprintln(n.faults, n.timed, n.lost, n.sums, n.apply != nil, n.image.common)
	if n.server != nil {
		c, parties := n.server.Shape()
		common += c
		copy(each, parties)
	}
	// Sets that messages name, by the messages' names.
	sets := make(map[string]byte)
	for i := range n.peers {
		p := &n.peers[i]
		if len(n.image.each) > 0 {
			each[i] += "saved " + n.image.each[i]
		}
		each[i] += fmt.Sprintln(p.new, p.drive != nil, p.link, p.had, p.ask, p.cast.round, p.image,
			sha256.Sum256(p.submission) == p.kept)
		if p.drive != nil {
			each[i] += drive.Shape(p.drive)
		}
		for _, l := range slices.Concat(p.up, []letter{{}}, p.down) {
			name := "|"
			if l.bytes != nil || l.away > 0 || l.item.Kind != 0 {
				name = fmt.Sprint(l, l.item.Session, l.item.Round)
			}
			each[i] += name
			if l.set != 0 {
				sets[name] = l.set
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		common += name
		for i := range each {
			each[i] += fmt.Sprint("\n", name, sets[name]>>i&1)
		}
	}
	slices.Sort(each)
	return shapeOf(common, each)
}

// acts has the server do something, as a copy of what it was.
func (e *explorer) acts(n *node, do func(s *drive.Server)) {
	var err error
	n.server, err = n.server.Clone(&e.key)
	e.must(err)
	do(n.server)
	e.proceed(n)
}

// proceed is a server's carrier.
func (e *explorer) proceed(n *node) {
	s := n.server
	for {
		e.must(s.Tick(n.now))
		r, decided := s.Ready()
		if !decided {
			return
		}
		for _, notice := range r.Notices {
			switch notice.Kind {
			case drive.Lost:
				n.lost++
			case drive.Summed:
				n.sums++
			}
		}
		if r.Save {
			var err error
			n.saved, err = drive.StateOf(s, &e.key)
			e.must(err)
			n.image.common, n.image.each = s.SavedShape()
		}
		out := s.Advance(n.now)
		if out.Apply != nil {
			e.exact(n, out.Apply)
			n.apply = out.Apply
		}
		if out.Tell {
			for i := range n.peers {
				e.pump(n, i)
			}
		}
	}
}

// exact fails unless a sum is.
func (e *explorer) exact(n *node, a *drive.Apply) {
	want := uint64(0)
	for _, i := range a.Parties {
		want += n.peers[i].vector
	}
	if got := a.Sum.Values()[0][0]; got != want&0xffff || len(a.Parties) < e.config.Survivors {
		e.fail("the sum of %v is %d, want %d", a.Parties, got, want)
	}
}

func (e *explorer) pump(n *node, i int) {
	p := &n.peers[i]
	if !p.link {
		return
	}
	for item := range n.server.Pending(aParty(i)) {
		if slices.Contains(p.had, item.Name) {
			continue
		}
		p.had = append(slices.Clip(p.had), item.Name)
		b := append(bytes.Clone(item.Shared), item.Own...)
		item.Shared, item.Own = nil, nil
		p.down = append(slices.Clip(p.down), letter{
			bytes: b,
			item:  item,
			cast:  casting{item.Round, n.server.Status().Fresh},
			set:   named(b),
		})
	}
}

func (e *explorer) startServer(n *node) {
	var s drive.Lead
	var err error
	if n.saved == nil {
		s, err = drive.NewLead(e.config, n.now)
	} else {
		s, err = drive.LoadLead(e.config, &e.key, n.now, n.saved)
	}
	e.must(err)
	n.server = s.(*drive.Server)
	e.proceed(n)
}

func (e *explorer) killServer(n *node) {
	n.server, n.apply = nil, nil
	for i := range n.peers {
		n.peers[i].unlink()
	}
}

func (p *peer) unlink() { p.link, p.had, p.up, p.down = false, nil, nil, nil }

func (e *explorer) tick(n *node, wake drive.Time) {
	n.now = wake
	e.acts(n, func(*drive.Server) {})
}

func (e *explorer) applied(n *node) {
	a := n.apply
	n.apply = nil
	e.acts(n, func(s *drive.Server) { s.Applied(n.now, a.Round, nil) })
}

func (e *explorer) startParty(n *node, i int) {
	p := &n.peers[i]
	var err error
	if p.state == nil {
		p.drive, err = drive.NewPart(e.party(i))
	} else {
		p.drive, err = drive.LoadPart(e.party(i), &e.key, p.state)
	}
	e.must(err)
	p.new, p.life = false, p.life+1
	if n.server != nil {
		e.connect(n, i)
	}
}

func (e *explorer) killParty(n *node, i int) {
	p := &n.peers[i]
	p.drive, p.ask = nil, nil
	if p.link {
		e.cut(n, i)
	}
}

func (e *explorer) cut(n *node, i int) {
	n.peers[i].unlink()
	if n.server != nil {
		e.acts(n, func(s *drive.Server) { s.Gone(n.now, aParty(i)) })
	}
}

func (e *explorer) connect(n *node, i int) {
	p := &n.peers[i]
	p.link, p.had = true, nil
	hello := p.drive.Hello()
	e.acts(n, func(s *drive.Server) { s.Connected(n.now, aParty(i), hello) })
	e.pump(n, i)
	e.actsAs(n, i, casting{}, func(p drive.Part) error {
		p.Connected()
		return nil
	})
}

func (e *explorer) deliverUp(n *node, i int) {
	p := &n.peers[i]
	l := p.up[0]
	p.up = p.up[1:]
	e.acts(n, func(s *drive.Server) {
		if l.away > 0 {
			s.Said(n.now, aParty(i), drive.Said{Absent: l.away})
			return
		}
		// What it refuses changes nothing.
		_ = s.Receive(n.now, aParty(i), bytes.NewReader(l.bytes))
	})
}

func (e *explorer) deliverDown(n *node, i int) {
	p := &n.peers[i]
	l := p.down[0]
	p.down = p.down[1:]
	e.actsAs(n, i, l.cast, func(p drive.Part) error {
		item := l.item
		item.Shared, item.Own = nil, l.bytes
		return p.Receive(item)
	})
}

func (e *explorer) answer(n *node, i int) {
	p := &n.peers[i]
	ask, c := p.ask, p.cast
	p.ask = nil
	value := uint64(1 + i*100 + p.life*7 + int(c.round)*1000)
	e.actsAs(n, i, casting{}, func(party drive.Part) error {
		return party.Answer(drive.Answer{ID: ask.ID, Round: c.round, Broadcast: c.digest(),
			Fill: func(v *masking.Vector) error {
				values := make([]uint64, v.Layout()[0].Length)
				values[0] = value
				n.peers[i].vector = value
				return v.Set(values)
			}})
	})
}

// actsAs has a party do something, as a copy of what it was, and is its carrier.
func (e *explorer) actsAs(n *node, i int, c casting, do func(p drive.Part) error) {
	p := &n.peers[i]
	var err error
	p.drive, err = drive.Clone(p.drive, &e.key)
	e.must(err)
	e.must(do(p.drive))
	for {
		r, decided := p.drive.Ready()
		if !decided {
			return
		}
		if r.Save {
			saved, err := p.drive.Save(&e.key)
			e.must(err)
			for _, o := range saved.Objects {
				var b bytes.Buffer
				_, err := o.Body.WriteTo(&b)
				e.must(err)
				p.submission = b.Bytes()
				p.kept = sha256.Sum256(p.submission)
			}
			p.state, p.image = saved.State, drive.Shape(p.drive)
		}
		out := p.drive.Advance()
		for _, m := range out.Send {
			b := m.Bytes
			if b == nil {
				b = p.submission
			}
			if p.link {
				p.up = append(slices.Clip(p.up), letter{bytes: b, set: named(b)})
			}
		}
		for _, away := range out.Away {
			if p.link {
				p.up = append(slices.Clip(p.up), letter{away: away.Number})
			}
		}
		if out.Ask != nil {
			if out.Ask.Round != 0 && out.Ask.Round == c.round {
				p.cast = c
			}
			p.ask = out.Ask
		}
	}
}
