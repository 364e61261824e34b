package jobtest

import (
	"bytes"
	"errors"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
)

// Party is one party's program: its process, store and connection.
type Party struct {
	world *World
	index int
	drive *drive.Party // nil: the process has ended
	life  int
	link  int // number of the connection; 0: there is none
	links int
	had   map[string]bool // items that were sent on this connection
	last  map[bool]drive.Time
	ask   *drive.Ask
	cast  cast

	state      []byte
	submission []byte
	spent      uint64

	vectors map[uint64][]uint64 // by round of the job
	Kept    bool                // of the last submission
	// Silent has the party take messages and answer none, of the kinds that it reports true for.
	Silent func(kind wire.Type) bool
	// NoVector has the program say that it has nothing for a round.
	NoVector func(round uint64) bool
	// Least, if not 0, is what the party says when it connects.
	Least uint64
	// Told, if not 0, likewise.
	Told uint64
	// Rewrite changes what it sends; nil: nothing.
	Rewrite func(h wire.Header, message []byte) []byte
}

// cast is what a round begins with.
type cast struct {
	round uint64
	fresh [32]byte
}

// Start starts the process, which connects.
func (p *Party) Start() {
	w := p.world
	config := drive.PartyConfig{
		Limits:   drive.Limits{Rounds: w.options.Rounds},
		Session:  w.session,
		Label:    w.config.Label,
		Identity: identities()[p.index],
		Random:   w.random,
		Spent:    p.spent,
	}
	var err error
	if p.state == nil {
		p.drive, err = drive.NewParty(config)
	} else {
		p.drive, err = drive.LoadParty(config, &w.key, p.state)
	}
	if err != nil {
		w.Fatal("party %d does not load: %v", p.index, err)
	}
	if p.vectors == nil {
		p.vectors = make(map[uint64][]uint64)
	}
	p.life++
	p.Connect()
}

// Kill ends the process.
func (p *Party) Kill() {
	if p.drive == nil {
		return
	}
	p.world.Note("party %d is killed", p.index)
	p.Cut()
	p.drive.Erase()
	p.drive, p.ask, p.life = nil, nil, p.life+1
}

// Lose ends the process and loses its state; the operator knows how far it was.
func (p *Party) Lose() {
	if p.drive != nil {
		guard := p.drive.Guard()
		p.spent = guard.Last()
	}
	p.Kill()
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
	if s.drive == nil { // try again
		p.after(drive.Second, p.Connect)
		return
	}
	p.links++
	p.link, p.had, p.last = p.links, make(map[string]bool), make(map[bool]drive.Time)
	guard := p.drive.Guard()
	hello := drive.Hello{Sessions: p.drive.Sessions(), Least: p.drive.Least(), Told: guard.Last()}
	if p.Least > 0 {
		hello.Least = p.Least
	}
	if p.Told > 0 {
		hello.Told = p.Told
	}
	w.Note("%8.3f party %d connects", float64(w.now)/float64(drive.Second), p.index)
	s.drive.Connected(w.now, p.index, hello)
	s.proceed()
	p.pump()
	if p.drive != nil && p.link != 0 {
		p.drive.Connected()
		p.proceed()
	}
}

// Cut ends the connection, and has the server hear of it.
func (p *Party) Cut() {
	if p.link == 0 {
		return
	}
	p.link = 0
	if s := p.world.Server; s.drive != nil {
		s.drive.Gone(p.world.now, p.index)
		s.proceed()
	}
}

// cut ends the connection as the server's death does: the party dials again.
func (p *Party) cut() {
	if p.link == 0 {
		return
	}
	p.link = 0
	p.after(drive.Second/2, p.Connect)
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
	wait := drive.Time(0)
	if w.options.Delay != nil {
		wait = w.options.Delay(p.index)
	}
	at := max(w.now+wait, p.last[up])
	p.last[up] = at
	w.After(at-w.now, func() {
		if p.link == link && link != 0 && w.Server.drive != nil {
			do()
		}
	})
}

// pump sends the party what is new for it.
func (p *Party) pump() {
	s := p.world.Server
	if p.link == 0 || s.drive == nil {
		return
	}
	for item := range s.drive.Pending(p.index) {
		if p.had[item.Name] {
			continue
		}
		p.had[item.Name] = true
		item.Shared = append(bytes.Clone(item.Shared), item.Own...)
		c := cast{item.Round, s.drive.Status().Fresh}
		p.carry(false, func() { p.take(item, c) })
	}
}

// take takes an item of the server's.
func (p *Party) take(item drive.Item, c cast) {
	if p.drive == nil {
		return
	}
	var err error
	switch item.Kind {
	case drive.Join:
		err = p.drive.Join(item.Session)
	case drive.Carry:
		if item.Round > 0 {
			p.cast = c
		}
		err = p.drive.Receive(item.Shared, item.Round)
	}
	if err != nil {
		p.world.Fatal("party %d: %v", p.index, err)
	}
	p.proceed()
}

// proceed does what the party has decided, as a carrier does.
func (p *Party) proceed() {
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
		if r.Submission != nil {
			var b bytes.Buffer
			if _, err := r.Submission.WriteTo(&b); err != nil {
				w.Fatal("%v", err)
			}
			p.submission = b.Bytes()
		}
		if r.Save {
			state, err := p.drive.State(&w.key)
			if err != nil {
				w.Fatal("%v", err)
			}
			p.state = state
		}
		out := p.drive.Advance()
		for _, m := range out.Send {
			p.send(m)
		}
		for _, away := range out.Away {
			p.carry(true, func() {
				w.Server.drive.Absent(w.now, p.index, away.Number)
				w.Server.proceed()
			})
		}
		if out.Ask != nil {
			p.work(*out.Ask)
		}
	}
}

// send carries a message to the server.
func (p *Party) send(m drive.Message) {
	w := p.world
	message := m.Bytes
	if message == nil {
		message = p.submission
	}
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		w.Fatal("party %d sends %v", p.index, err)
	}
	if p.link == 0 || p.Silent != nil && p.Silent(h.Type) {
		return
	}
	if p.Rewrite != nil {
		message = p.Rewrite(h, bytes.Clone(message))
	}
	p.carry(true, func() {
		if err := w.Server.drive.ReadMessage(w.now, p.index, bytes.NewReader(message)); err != nil {
			w.Note("party %d is refused: %v", p.index, err)
		}
		w.Server.proceed()
	})
}

// work has the program answer a question.
func (p *Party) work(ask drive.Ask) {
	w, c := p.world, p.cast
	p.ask = &ask
	wait := drive.Time(0)
	if w.options.Work != nil {
		wait = w.options.Work(p.index)
	}
	p.after(wait, func() {
		if p.NoVector != nil && p.NoVector(c.round) {
			p.drive.Absent(ask.ID, c.round, errors.New("no data"))
			p.proceed()
			return
		}
		digest, _ := w.cast(c.round, c.fresh)
		err := p.drive.Answer(drive.Answer{ID: ask.ID, Round: c.round, Broadcast: digest,
			Fill: func(v *masking.Vector) error { return p.fill(v, c.round) }})
		if err != nil {
			w.Fatal("party %d: %v", p.index, err)
		}
		p.proceed()
	})
}

// fill writes the party's vector of a round.
func (p *Party) fill(v *masking.Vector, round uint64) error {
	values := make([]uint64, v.Layout()[0].Length)
	for k := range values {
		values[k] = uint64(k*31+p.index*1009+int(round)*77) & 0xffff
	}
	p.vectors[round] = values
	return v.Set(values)
}
