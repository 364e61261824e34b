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
	"github.com/hushsum/hushsum/masking"
)

// This file has the carriers of the jobs that the exhaustive search visits, and the liars in them.

func (e *explorer) peer(i int) drive.Peer {
	if i < e.parties {
		return aParty(i)
	}
	return aMember(i - e.parties)
}

func (e *explorer) name(i int) string {
	if i < e.parties {
		return fmt.Sprint("party ", i)
	}
	return fmt.Sprint("member ", i-e.parties)
}

// acts has the server do something, as a copy of what it was.
func (e *explorer) acts(n *node, do func(s drive.Lead)) {
	var err error
	n.lead, err = drive.Clone(n.lead, &e.key)
	e.must(err)
	e.objects = n.objects
	do(n.lead)
	e.sleeps(n)
	e.proceed(n)
}

// sleeps fails if a server has something to decide before it wants to be woken.
func (e *explorer) sleeps(n *node) {
	wake := n.lead.Wake()
	if _, decided := n.lead.Ready(); decided || wake <= n.now {
		return
	}
	s, err := drive.Clone(n.lead, &e.key)
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
func (e *explorer) proceed(n *node) {
	for {
		e.must(n.lead.Tick(n.now))
		r, decided := n.lead.Ready()
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
		out := n.lead.Advance(n.now)
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
func (e *explorer) read(n *node) drive.Lead {
	e.objects = n.objects
	s, err := drive.LoadLead(e.config, &e.key, n.now, n.saved)
	e.must(err)
	return s
}

// stored opens an object of the job that something happens to.
func (e *explorer) stored(name string) (io.ReadCloser, error) {
	b, found := e.objects[name]
	if !found {
		return nil, fmt.Errorf("no %s", name)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (e *explorer) save(n *node) {
	saved, err := n.lead.Save(&e.key)
	e.must(err)
	n.saved = saved.State
	objects := make(map[string][]byte)
	for _, name := range saved.Needed {
		if b, found := n.objects[name]; found {
			objects[name] = b
		}
	}
	for _, o := range saved.Objects {
		objects[o.Name] = e.written(o)
	}
	n.objects = objects
	common, each := drive.Shape(e.read(n))
	for i := range each {
		each[i] += fmt.Sprintln(n.seats[i].lies)
	}
	n.image = append([]string{common}, each...)
}

func (e *explorer) written(o drive.Object) []byte {
	var b bytes.Buffer
	_, err := o.Body.WriteTo(&b)
	e.must(err)
	return b.Bytes()
}

// exact fails unless a sum is.
func (e *explorer) exact(n *node, a *drive.Apply) {
	want, least := int64(0), e.config.Survivors
	for _, i := range a.Parties {
		want += n.seats[i].vector
	}
	var got int64
	if e.member == nil {
		got, want = int64(a.Sum.Values()[0][0]), want&0xffff
	} else {
		got, least = a.Values[0], e.config.Sums.Least()
	}
	if got != want || len(a.Parties) < least {
		e.fail("the sum of %v is %d, want %d", a.Parties, got, want)
	}
}

func (e *explorer) pump(n *node, i int) {
	p := &n.seats[i]
	if !p.link {
		return
	}
	for item := range n.lead.Pending(e.peer(i)) {
		if slices.Contains(p.had, item.Name) {
			continue
		}
		p.had = append(slices.Clip(p.had), item.Name)
		b := bytes.Clone(item.Message())
		item.Shared, item.Own = nil, nil
		p.down = append(slices.Clip(p.down), letter{bytes: b, item: item, set: named(b),
			cast: casting{item.Round, n.lead.Status().Fresh}})
	}
}

func (e *explorer) startLead(n *node) {
	if n.saved == nil {
		var err error
		n.lead, err = drive.NewLead(e.config, n.now)
		e.must(err)
	} else {
		n.lead = e.read(n)
	}
	e.proceed(n)
}

func (e *explorer) killLead(n *node) {
	n.lead, n.apply = nil, nil
	for i := range n.seats {
		n.seats[i].unlink()
	}
}

func (p *seat) unlink() { p.link, p.had, p.up, p.down = false, nil, nil, nil }

func (e *explorer) tick(n *node, wake drive.Time) {
	n.now = wake
	e.acts(n, func(drive.Lead) {})
}

func (e *explorer) applied(n *node) {
	a := n.apply
	n.apply = nil
	e.acts(n, func(s drive.Lead) { s.Applied(n.now, a.Round, nil) })
}

func (e *explorer) start(n *node, i int) {
	p := &n.seats[i]
	var settings drive.PartSettings
	if i < e.parties {
		settings = e.party(i)
	} else {
		settings = e.member(i - e.parties)
	}
	var err error
	if p.state == nil {
		p.part, err = drive.NewPart(settings)
	} else {
		p.part, err = drive.LoadPart(settings, &e.key, p.state)
	}
	e.must(err)
	p.new, p.life, p.took = false, p.life+1, p.kept
	if n.lead != nil {
		e.connect(n, i)
	}
}

func (e *explorer) kill(n *node, i int) {
	p := &n.seats[i]
	p.part, p.ask = nil, nil
	if p.link {
		e.cut(n, i)
	}
}

func (e *explorer) cut(n *node, i int) {
	n.seats[i].unlink()
	if n.lead != nil {
		e.acts(n, func(s drive.Lead) { s.Gone(n.now, e.peer(i)) })
	}
}

func (e *explorer) connect(n *node, i int) {
	p := &n.seats[i]
	p.link, p.had = true, nil
	e.acts(n, func(s drive.Lead) { s.Connected(n.now, e.peer(i), p.part.Hello()) })
	e.pump(n, i)
	e.actsAs(n, i, letter{}, func(p drive.Part) error {
		p.Connected()
		return nil
	})
}

// lie has a party or a member say something else than what it is about to.
func (e *explorer) lie(n *node, i int) {
	p := &n.seats[i]
	l := p.up[0]
	l.bytes, l.lie = bytes.Clone(l.bytes), true
	h, body, _ := wire.ParseHeader(l.bytes)
	at := len(l.bytes) - len(body)
	switch h.Type {
	case disputesType: // it disputes everybody
		for at += 4; at < len(l.bytes); at++ {
			l.bytes[at] = byte(1)<<min(e.parties, 8) - 1
		}
	default: // a part stays one, and a key or a signature does not
		l.bytes[at+1] ^= 1
	}
	p.up = append([]letter{l}, p.up[1:]...)
}

// deliverUp has what was said arrive. What the server refuses changes nothing.
func (e *explorer) deliverUp(n *node, i int) {
	p := &n.seats[i]
	l := p.up[0]
	p.up = p.up[1:]
	e.acts(n, func(s drive.Lead) {
		if l.said != (drive.Said{}) {
			s.Said(n.now, e.peer(i), l.said)
			return
		}
		switch err := s.Receive(n.now, e.peer(i), bytes.NewBuffer(l.bytes)); {
		case err != nil || e.member == nil:
		case i < e.parties:
			p.batch = drive.Batches(s) + 1
		case l.lie:
			p.lies = append(slices.Clip(p.lies), l.String())
		}
	})
}

func (e *explorer) deliverDown(n *node, i int) {
	p := &n.seats[i]
	l := p.down[0]
	p.down = p.down[1:]
	l.item.Own = l.bytes
	e.actsAs(n, i, l, func(p drive.Part) error { return p.Receive(l.item) })
}

func (e *explorer) answer(n *node, i int) {
	p := &n.seats[i]
	ask, c := p.ask, p.cast
	p.ask = nil
	value := int64(1 + i + 4*p.life + 20*int(c.round))
	a := valued(ask.ID, c.digest(), []int64{value, 0, 0})
	fill := a.Fill
	a.Round, a.Fill = c.round, func(v *masking.Vector) error {
		p.vector = value
		return fill(v)
	}
	e.actsAs(n, i, letter{}, func(s drive.Part) error { return s.Answer(a) })
}

// actsAs has a party or a member do something, with a letter, as a copy of what it was, and is its
// carrier.
func (e *explorer) actsAs(n *node, i int, l letter, do func(p drive.Part) error) {
	p := &n.seats[i]
	var err error
	p.part, err = drive.Clone(p.part, &e.key)
	e.must(err)
	e.must(do(p.part))
	for {
		r, decided := p.part.Ready()
		if !decided {
			return
		}
		if r.Save {
			if i >= e.parties {
				if strings.HasSuffix(l.item.Name, "invite") {
					p.took = nil
				}
				p.took = append(slices.Clip(p.took), l.item.Name)
				p.kept = p.took
			}
			saved, err := p.part.Save(&e.key)
			e.must(err)
			for _, o := range saved.Objects {
				p.submission = e.written(o)
			}
			p.state, p.image = saved.State, drive.PartShape(p.part)
		}
		out := p.part.Advance()
		for _, m := range out.Send {
			b := m.Bytes
			if b == nil {
				b = p.submission
			}
			e.say(p, letter{bytes: b, set: named(b)})
		}
		for _, away := range out.Away {
			if e.member != nil {
				e.fail("party %d is absent", i)
			}
			e.say(p, letter{said: drive.Said{Absent: away.Number}})
		}
		if out.Offer != 0 {
			e.say(p, letter{said: drive.Said{Offer: out.Offer}})
		}
		if out.Ask != nil {
			if out.Ask.Round != 0 && out.Ask.Round == l.cast.round {
				p.cast = l.cast
			}
			p.ask = out.Ask
		}
	}
}

// say puts something on its way to the server. Members alone may make some messages anew.
func (e *explorer) say(p *seat, l letter) {
	h, _, err := wire.ParseHeader(l.bytes)
	if err == nil && (e.member == nil || h.Type == submissionType || h.Type == 72 || h.Type == 74) {
		left := leaving{h, sha256.Sum256(l.bytes)}
		for _, was := range p.sent {
			if was.header == h && was != left {
				e.fail("message %d of round %d leaves with other bytes", h.Type, h.Round)
			}
		}
		if !slices.Contains(p.sent, left) {
			p.sent = append(slices.Clip(p.sent), left)
		}
	}
	if p.link {
		p.up = append(slices.Clip(p.up), l)
	}
}
