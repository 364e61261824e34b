package drive_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
)

// This file has the carriers of the jobs with a committee that the exhaustive search visits, and
// the liars in them.

// acts has the server do something, as a copy of what it was.
func (e *councils) acts(n *meeting, do func(s *drive.Committee)) {
	var err error
	n.server, err = n.server.Clone(&e.key)
	e.must(err)
	e.objects = n.objects
	do(n.server)
	e.sleeps(n)
	e.proceed(n)
}

// sleeps fails if a server has something to decide before it wants to be woken.
func (e *councils) sleeps(n *meeting) {
	wake := n.server.Wake()
	if _, decided := n.server.Ready(); decided || wake <= n.now {
		return
	}
	s, err := n.server.Clone(&e.key)
	e.must(err)
	if wake == drive.Never {
		wake = n.now + 3600*drive.Second
	}
	e.must(s.Tick(wake - 1))
	if _, decided := s.Ready(); decided {
		e.fail("it decides something before it wants to be woken, at %d", wake)
	}
}

// proceed is a server's carrier.
func (e *councils) proceed(n *meeting) {
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
			case drive.Spoiler:
				e.fail("party %d is named, and has spoilt nothing", notice.Party)
			}
		}
		if r.Save {
			e.save(n)
		}
		out := s.Advance(n.now)
		if out.Apply != nil {
			e.exact(n, out.Apply)
			n.apply = out.Apply
		}
		if out.Tell {
			for i := range n.seats {
				e.pump(n, i)
			}
		}
	}
}

// read makes a server of what is saved.
func (e *councils) read(n *meeting) *drive.Committee {
	e.objects = n.objects
	s, err := drive.LoadLead(e.config, &e.key, n.now, n.saved)
	e.must(err)
	return s.(*drive.Committee)
}

// stored opens an object of the job that something happens to.
func (e *councils) stored(name string) (io.ReadCloser, error) {
	b, found := e.objects[name]
	if !found {
		return nil, fmt.Errorf("no %s", name)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (e *councils) save(n *meeting) {
	saved, err := n.server.Save(&e.key)
	e.must(err)
	n.saved = saved.State
	objects := make(map[string][]byte)
	for _, name := range saved.Needed {
		if b, found := n.objects[name]; found {
			objects[name] = b
		}
	}
	for _, o := range saved.Objects {
		var b bytes.Buffer
		_, err := o.Body.WriteTo(&b)
		e.must(err)
		objects[o.Name] = b.Bytes()
	}
	n.objects = objects
	common, parties, members := e.read(n).Shape()
	n.image = slices.Concat([]string{common}, parties, members)
	for i := range n.seats {
		n.image[1+i] += fmt.Sprintln(n.seats[i].lies)
	}
}

// exact fails unless a sum is.
func (e *councils) exact(n *meeting, a *drive.Apply) {
	want := int64(0)
	for _, i := range a.Parties {
		want += n.seats[i].vector
	}
	if a.Values[0] != want || len(a.Parties) < e.config.Sums.MinSurvivors {
		e.fail("the sum of %v is %d, want %d", a.Parties, a.Values[0], want)
	}
}

func (e *councils) pump(n *meeting, i int) {
	p := &n.seats[i]
	if !p.link {
		return
	}
	pending := n.server.Pending(aParty(i))
	if i >= e.parties {
		pending = n.server.Pending(aMember(i - e.parties))
	}
	for item := range pending {
		if slices.Contains(p.had, item.Name) {
			continue
		}
		p.had = append(slices.Clip(p.had), item.Name)
		b := item.Own
		item.Own = nil
		p.down = append(slices.Clip(p.down), note{bytes: b, item: item,
			cast: casting{item.Round, n.server.Status().Fresh}})
	}
}

func (e *councils) startServer(n *meeting) {
	if n.saved == nil {
		s, err := drive.NewLead(e.config, n.now)
		e.must(err)
		n.server = s.(*drive.Committee)
	} else {
		n.server = e.read(n)
	}
	e.proceed(n)
}

func (e *councils) killServer(n *meeting) {
	n.server, n.apply = nil, nil
	for i := range n.seats {
		n.seats[i].unlink()
	}
}

func (p *chair) unlink() { p.link, p.had, p.up, p.down = false, nil, nil, nil }

func (e *councils) tick(n *meeting, wake drive.Time) {
	n.now = wake
	e.acts(n, func(*drive.Committee) {})
}

func (e *councils) applied(n *meeting) {
	a := n.apply
	n.apply = nil
	e.acts(n, func(s *drive.Committee) { s.Applied(n.now, a.Round, nil) })
}

func (e *councils) settings(i int) drive.PartSettings {
	if i < e.parties {
		return e.party(i)
	}
	return e.member(i - e.parties)
}

func (e *councils) start(n *meeting, i int) {
	p := &n.seats[i]
	var err error
	if p.state == nil {
		p.part, err = drive.NewPart(e.settings(i))
	} else {
		p.part, err = drive.LoadPart(e.settings(i), &e.key, p.state)
	}
	e.must(err)
	p.new, p.life, p.took = false, p.life+1, p.kept
	if n.server != nil {
		e.connect(n, i)
	}
}

func (e *councils) kill(n *meeting, i int) {
	p := &n.seats[i]
	p.part, p.ask, p.cast = nil, nil, casting{}
	if p.link {
		e.cut(n, i)
	}
}

func (e *councils) cut(n *meeting, i int) {
	n.seats[i].unlink()
	if n.server == nil {
		return
	}
	e.acts(n, func(s *drive.Committee) {
		if i < e.parties {
			s.Gone(n.now, aParty(i))
		} else {
			s.Gone(n.now, aMember(i-e.parties))
		}
	})
}

func (e *councils) connect(n *meeting, i int) {
	p := &n.seats[i]
	p.link, p.had = true, nil
	e.acts(n, func(s *drive.Committee) {
		if i < e.parties {
			s.Connected(n.now, aParty(i), p.part.Hello())
		} else {
			s.Connected(n.now, aMember(i-e.parties), p.part.Hello())
		}
	})
	e.pump(n, i)
	e.actsAs(n, i, "", func(p drive.Part) { p.Connected() })
}

// lie has a party or a member say something else than what it is about to.
func (e *councils) lie(n *meeting, i int) {
	p := &n.seats[i]
	l := p.up[0]
	l.bytes, l.lie = bytes.Clone(l.bytes), true
	h, body, _ := wire.ParseHeader(l.bytes)
	at := len(l.bytes) - len(body)
	switch h.Type {
	case 69: // it disputes everybody
		for at += 4; at < len(l.bytes); at++ {
			l.bytes[at] = byte(1)<<min(e.parties, 8) - 1
		}
	default: // a part stays one, and a key or a signature does not
		l.bytes[at+1] ^= 1
	}
	p.up = append([]note{l}, p.up[1:]...)
}

func (e *councils) deliverUp(n *meeting, i int) {
	p := &n.seats[i]
	l := p.up[0]
	p.up = p.up[1:]
	e.acts(n, func(s *drive.Committee) {
		switch {
		case l.offer > 0:
			s.Said(n.now, aParty(i), drive.Said{Offer: l.offer})
		case i < e.parties:
			if s.Receive(n.now, aParty(i), bytes.NewBuffer(l.bytes)) == nil {
				p.batch = s.Batches() + 1
			}
		default:
			member := aMember(i - e.parties)
			if s.Receive(n.now, member, bytes.NewBuffer(l.bytes)) == nil && l.lie {
				p.lies = append(slices.Clip(p.lies), l.String())
			}
		}
	})
}

func (e *councils) deliverDown(n *meeting, i int) {
	p := &n.seats[i]
	l := p.down[0]
	p.down = p.down[1:]
	if i < e.parties && l.item.Kind == drive.Carry {
		p.cast = l.cast
	}
	item := l.item
	item.Shared, item.Own = nil, l.bytes
	e.actsAs(n, i, item.Name, func(p drive.Part) { e.must(p.Receive(item)) })
}

func (e *councils) answer(n *meeting, i int) {
	p := &n.seats[i]
	ask := p.ask
	p.ask = nil
	value := int64(1 + i*10 + p.life)
	values := make([]int64, e.config.Sums.Length)
	values[0] = value
	e.actsAs(n, i, "", func(s drive.Part) {
		was := s.Hello().Told
		e.must(s.Answer(valued(ask.ID, p.cast.digest(), values)))
		if s.Hello().Told > was {
			p.vector = value
		}
	})
}

// say puts something on its way to the server.
func (e *councils) say(p *chair, l note) {
	if l.bytes != nil {
		h, _, _ := wire.ParseHeader(l.bytes)
		if digest := sha256.Sum256(l.bytes); h.Type == 67 || h.Type == 72 || h.Type == 74 {
			if was := p.sent[h.Type]; was != nil && *was != digest {
				e.fail("message %d leaves with other bytes", h.Type)
			}
			p.sent[h.Type] = &digest
		}
	}
	if p.link {
		p.up = append(slices.Clip(p.up), l)
	}
}

// actsAs has a party or a member do something, with an item, as a copy of what it was, and is its
// carrier.
func (e *councils) actsAs(n *meeting, i int, item string, do func(p drive.Part)) {
	p := &n.seats[i]
	var err error
	p.part, err = drive.Clone(p.part, &e.key)
	e.must(err)
	do(p.part)
	for {
		r, decided := p.part.Ready()
		if !decided {
			return
		}
		if r.Save {
			if i >= e.parties {
				if strings.HasSuffix(item, "invite") {
					p.took = nil
				}
				p.took = append(slices.Clip(p.took), item)
				p.kept = p.took
			}
			saved, err := p.part.Save(&e.key)
			e.must(err)
			p.state, p.image = saved.State, drive.Shape(p.part)
		}
		out := p.part.Advance()
		if out.Offer != 0 {
			e.say(p, note{offer: out.Offer})
		}
		for _, m := range out.Send {
			e.say(p, note{bytes: m.Bytes})
		}
		if out.Ask != nil {
			p.ask = out.Ask
		}
		if len(out.Away) > 0 {
			e.fail("party %d is absent", i)
		}
	}
}
