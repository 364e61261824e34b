package jobtest

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
)

// Party is one party's program: its process, store and connection.
type Party struct {
	world  *World
	index  int
	drive  drive.Part // nil: the process has ended
	life   int
	link   int // number of the connection as it knows; 0: there is none
	remote int // likewise, as the server knows
	links  int
	hello  drive.Hello
	had    map[string]bool // items that were sent on this connection
	last   map[bool]drive.Time
	cast   cast

	// The store.
	state      []byte
	submission []byte
	kept       [32]byte // digest of the submission that the state names
	spent      uint64   // what the operator knows, for a party that has lost its state
	least      uint64

	vectors map[uint64][][]uint64 // by round of the job
	seen    seenOfParty

	// Silent makes the party take messages and answer none, of the kinds that it reports true for.
	Silent func(kind wire.Type) bool
	// NoVector has the program say that it has nothing for a round.
	NoVector func(round uint64) bool
	// Least and Told, if set, turn what the party should say when it connects into what it says.
	Least, Told func(honest uint64) uint64
	// Rewrite changes what it sends; nil: nothing.
	Rewrite func(h wire.Header, message []byte) []byte
	// Die, if set, is asked at each place where the process may die.
	Die func(place string) bool
}

// Start starts the process, which connects.
func (p *Party) Start() {
	w := p.world
	if p.drive != nil {
		return
	}
	var err error
	if p.state == nil {
		p.drive, err = drive.NewPart(p.config())
	} else {
		p.drive, err = drive.LoadPart(p.config(), &w.key, p.state)
	}
	if err != nil {
		w.Fatal("party %d does not load: %v", p.index, err)
	}
	p.life++
	if !p.dies("at load") {
		p.Connect()
	}
}

func (p *Party) peer() drive.Peer { return drive.Peer{Index: p.index} }

func (p *Party) config() drive.PartSettings {
	w := p.world
	return drive.PartSettings{
		Limits:   w.limits,
		Session:  w.session,
		Label:    w.config.Label,
		Identity: identities()[p.index],
		Random:   w.random,
		Spent:    p.spent,
		Least:    p.least,
	}
}

// Kill ends the process.
func (p *Party) Kill() {
	if p.drive == nil {
		return
	}
	p.world.Note("%s party %d is killed", p.world.clock(), p.index)
	p.drive.Erase()
	p.drive, p.life = nil, p.life+1
	p.Cut()
}

// dies kills the process if it is to die here.
func (p *Party) dies(place string) bool {
	if p.Die == nil || !p.Die(place) {
		return false
	}
	p.world.Note("party %d dies %s", p.index, place)
	p.Kill()
	return true
}

// Lose ends the process and loses its state; the operator knows how far it was.
func (p *Party) Lose() {
	p.Kill()
	if p.state != nil {
		found, err := drive.LoadPart(p.config(), &p.world.key, p.state)
		if err != nil {
			p.world.Fatal("party %d does not load: %v", p.index, err)
		}
		hello := found.Hello()
		p.spent, p.least = found.Guard().Last(), hello.Least
		found.Erase()
	}
	p.world.Note("party %d loses its state", p.index)
	p.state, p.submission = nil, nil
}

// Connect connects to the server, if that is there.
func (p *Party) Connect() {
	w := p.world
	if p.drive == nil || p.link != 0 {
		return
	}
	s := w.Server
	if s.drive == nil || s.cut { // try again
		p.after(w.redial(), p.Connect)
		return
	}
	p.links++
	p.link, p.remote = p.links, p.links
	p.had, p.last = make(map[string]bool), make(map[bool]drive.Time)
	p.hello = p.drive.Hello()
	if p.Least != nil {
		p.hello.Least = p.Least(p.hello.Least)
	}
	if p.Told != nil {
		p.hello.Told = p.Told(p.hello.Told)
	}
	w.Note("%s party %d connects", w.clock(), p.index)
	link := p.link
	s.drive.Connected(s.Now(), p.peer(), p.hello)
	s.proceed()
	p.pump()
	if p.drive != nil && p.link == link {
		p.drive.Connected()
		p.proceed()
	}
}

// redial returns how long a party waits between two tries.
func (w *World) redial() drive.Time {
	if w.options.Redial == 0 {
		return drive.Second / 2
	}
	return w.options.Redial
}

// Cut ends the connection, and lets both ends know of it.
func (p *Party) Cut() {
	p.link = 0
	p.leave()
}

// leave has the server see the connection end.
func (p *Party) leave() {
	if p.remote == 0 {
		return
	}
	p.remote = 0
	if s := p.world.Server; s.drive != nil {
		s.drive.Gone(s.Now(), p.peer())
		s.proceed()
	}
}

// cutHere ends the connection, and the server learns it after a while only.
func (p *Party) cutHere(late drive.Time) {
	link := p.remote
	p.link = 0
	p.world.After(late, func() {
		if p.remote == link {
			p.leave()
		}
	})
}

// cutThere lets the server see the connection end, and the party learn it after a while only,
// when it dials again.
func (p *Party) cutThere(late drive.Time) {
	link := p.link
	p.leave()
	p.after(late, func() {
		if p.link == link {
			p.link = 0
			p.Connect()
		}
	})
}

// cut ends the connection as the server's death does: the party dials again.
func (p *Party) cut() {
	p.remote = 0
	if p.link == 0 {
		return
	}
	p.link = 0
	p.after(p.world.redial(), p.Connect)
}

// after does something later in the life of this process.
func (p *Party) after(wait drive.Time, do func()) {
	life := p.life
	p.world.After(wait, func() {
		if p.life == life && p.drive != nil {
			do()
		}
	})
}

// carry has something done at the other end of the connection, in the order of sending.
func (p *Party) carry(up bool, do func()) {
	w, link := p.world, p.link
	if !up {
		link = p.remote
	}
	wait := drive.Time(0)
	if w.options.Delay != nil {
		wait = w.options.Delay(p.index)
	}
	at := w.now + wait
	if !w.options.Disorder {
		at = max(at, p.last[up])
		p.last[up] = at
	}
	w.seen.flying++
	arrive := func() {
		w.seen.flying--
		switch {
		case w.Server.drive == nil, !up && (p.drive == nil || p.link != link):
			return
		case up && p.remote != link && (w.options.Late == nil || !w.options.Late()):
			return
		case up && w.options.Away > 0:
			w.Server.drive.Heard(w.Server.Now(), p.peer())
		}
		do()
	}
	w.After(at-w.now, arrive)
	if w.options.Double != nil && w.options.Double() {
		w.seen.flying++
		w.After(at-w.now, arrive)
	}
}

// pump sends the party what is new for it.
func (p *Party) pump() {
	s := p.world.Server
	if p.remote == 0 || s.drive == nil {
		return
	}
	for item := range s.drive.Pending(p.peer()) {
		if p.had[item.Name] {
			continue
		}
		p.had[item.Name] = true
		item.Own, item.Shared = bytes.Clone(item.Message()), nil
		p.checkItem(item)
		if s.Forge != nil && item.Kind == drive.Carry {
			item.Own = s.Forge(p.index, item.Own)
		}
		c := cast{item.Round, s.drive.Status().Fresh, s.model}
		p.carry(false, func() { p.take(item, c) })
	}
}

// take takes an item of the server's. What a round begins with is believed once the message that
// begins it is.
func (p *Party) take(item drive.Item, c cast) {
	p.seen.taken++
	if err := p.drive.Receive(item); err != nil {
		p.world.Fatal("party %d: %v", p.index, err)
	}
	p.proceedWith(c)
}

// proceed does what the party has decided, as a carrier does.
func (p *Party) proceed() { p.proceedWith(cast{}) }

func (p *Party) proceedWith(c cast) {
	w := p.world
	for p.drive != nil {
		r, decided := p.drive.Ready()
		if !decided {
			return
		}
		for _, report := range r.Reports {
			if report.Err != nil {
				w.Note("party %d: %v", p.index, report.Err)
			}
		}
		if r.Save {
			if p.dies("before it saves") {
				return
			}
			if !p.keep() || p.dies("after it saves") {
				return
			}
		}
		out := p.drive.Advance()
		life := p.life
		for _, m := range out.Send {
			p.send(m)
		}
		for _, away := range out.Away {
			if p.link == 0 {
				break
			}
			p.carry(true, func() {
				w.Server.drive.Said(w.Server.Now(), p.peer(), drive.Said{Absent: away.Number})
				w.Server.proceed()
			})
		}
		if out.Ask != nil {
			if out.Ask.Round != 0 && out.Ask.Round == c.round {
				p.cast = c
			}
			p.work(*out.Ask)
		}
		if p.life == life && p.dies("after it sends") {
			return
		}
	}
}

// keep saves the state, after the submission that it names, and reports whether the process is
// still alive.
func (p *Party) keep() bool {
	w := p.world
	kept := p.kept
	saved, err := p.drive.Save(&w.key)
	if err != nil {
		w.Fatal("%v", err)
	}
	for _, o := range saved.Objects {
		var b bytes.Buffer
		if _, err := o.Body.WriteTo(&b); err != nil {
			w.Fatal("%v", err)
		}
		p.submission = b.Bytes()
		kept = sha256.Sum256(p.submission)
		h, _, _ := wire.ParseHeader(p.submission)
		p.seen.rounds[message{h.Session, h.Round, h.Type}] = p.seen.made
		if p.dies("between submission and state") {
			return false
		}
	}
	p.state, p.kept = saved.State, kept
	return true
}

// send carries a message to the server.
func (p *Party) send(m drive.Message) {
	w := p.world
	message := m.Bytes
	if message == nil {
		message = p.submission
		if sha256.Sum256(message) != p.kept {
			return // the process died between saving it and saving the state that names it
		}
	}
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		w.Fatal("party %d sends %v", p.index, err)
	}
	if p.link == 0 || p.Silent != nil && p.Silent(h.Type) {
		return
	}
	p.checkSent(h, message)
	if p.Rewrite != nil {
		message = p.Rewrite(h, bytes.Clone(message))
	}
	p.carry(true, func() {
		s := w.Server
		if err := s.drive.Receive(s.Now(), p.peer(), bytes.NewReader(message)); err != nil {
			w.Note("party %d is refused: %v", p.index, err)
		}
		w.trace(message)
		s.proceed()
	})
}

// work has the program answer a question.
func (p *Party) work(ask drive.Ask) {
	w, c := p.world, p.cast
	p.seen.asked++
	wait := drive.Time(0)
	if w.options.Work != nil {
		wait = w.options.Work(p.index)
	}
	w.seen.flying++
	w.After(wait, func() { w.seen.flying-- })
	p.after(wait, func() {
		var none error
		if p.NoVector != nil && p.NoVector(c.round) {
			none = errors.New("no data")
		}
		if none != nil && p.index%2 == 0 {
			p.drive.Absent(ask.ID, c.round, none)
			p.proceed()
			return
		}
		err := p.drive.Answer(drive.Answer{ID: ask.ID, Round: c.round, Broadcast: c.digest(),
			Fill: func(v *masking.Vector) error {
				if none != nil {
					return none
				}
				return p.fill(v, c.round)
			}})
		if err != nil {
			w.Fatal("party %d: %v", p.index, err)
		}
		p.proceed()
	})
}

// fill writes the party's vector of a round. Training does not give the same twice.
func (p *Party) fill(v *masking.Vector, round uint64) error {
	var values [][]uint64
	if vector := p.world.options.Vector; vector != nil {
		values = vector(p.index, round)
	} else {
		for _, segment := range v.Layout() {
			one := make([]uint64, segment.Length)
			for k := range one {
				one[k] = uint64(k*31+p.index*1009+int(round)*77+p.life*411) & ringMask(segment)
			}
			values = append(values, one)
		}
	}
	p.vectors[round], p.seen.made = values, round
	return v.Set(values...)
}

// ringMask has the bits of a coordinate.
func ringMask(s masking.Segment) uint64 { return ^uint64(0) >> (64 - s.Bits) }
