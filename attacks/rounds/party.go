package rounds

import (
	"bytes"
	"crypto"
	"errors"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
)

// party is a party's program and its link.
type party struct {
	world    *world
	index    int
	identity crypto.Signer
	machine  drive.Part // nil: it has not been here yet, or has lost its keys
	had      map[string]bool
	away     bool // it does not connect

	limit  uint64     // rounds that it has agreed to
	vector [][]uint64 // of every round: training gives the same from the same model

	// silent is the type of messages that it does not send, 0 for none, and change changes those
	// that it does.
	silent wire.Type
	change func(h wire.Header, message []byte) []byte
	// The party says least and told when it connects, if they are not 0.
	least, told uint64

	unfit bool // its rows make no vector
	// program answers the program's questions; nil: at once, with vector.
	program func(p *party, ask drive.Ask, a drive.Answer) error
	// seen has what the coordinator sees of it; nil: nobody looks.
	seen func(at drive.Time, message []byte)

	submitted []uint64 // rounds
	declined  int      // by the guard
}

func (p *party) peer() drive.Peer { return drive.Peer{Index: p.index} }

// connect connects, with the keys that the party has.
func (p *party) connect() error {
	w := p.world
	if p.away {
		return nil
	}
	if p.machine == nil {
		if err := p.begin(0, 0); err != nil {
			return err
		}
	}
	hello := p.machine.Hello()
	hello.Least, hello.Told = max(p.least, hello.Least), max(p.told, hello.Told)
	if w.deaf {
		hello.Told = 0
	}
	p.had = make(map[string]bool)
	w.server.Gone(w.now, p.peer())
	w.server.Connected(w.now, p.peer(), hello)
	p.machine.Connected()
	return p.proceed([32]byte{})
}

// begin makes the party without keys, which has submitted in rounds up to spent and made keys for
// numbers below least.
func (p *party) begin(spent, least uint64) (err error) {
	var blank func(round uint64, v *masking.Vector) error
	if !p.world.tells {
		blank = zeros
	}
	if own := p.world.blank; own != nil {
		blank = func(_ uint64, v *masking.Vector) error { return own(p, v) }
	}
	p.machine, err = drive.NewPart(drive.PartSettings{
		After:    p.world.after,
		Luck:     p.world.luck,
		Blank:    blank,
		Limits:   drive.Limits{Rounds: p.limit},
		Session:  p.world.session,
		Label:    label,
		Identity: p.identity,
		Spent:    spent,
		Least:    least,
	})
	return err
}

// renew makes the party come again with new keys. One that forgets no longer knows in which rounds
// it has submitted.
func (p *party) renew(forgets bool) error {
	spent, least := p.machine.Guard().Last(), p.machine.Hello().Least
	p.machine.Erase()
	if forgets {
		spent = 0
	}
	if err := p.begin(spent, least); err != nil {
		return err
	}
	return p.connect()
}

// pump has the party take what is new for it, and reports whether anything was.
func (p *party) pump() (moved bool, err error) {
	s := p.world.server
	if p.away || p.machine == nil {
		return false, nil
	}
	var items []drive.Item
	for item := range s.Pending(p.peer()) {
		if !p.had[item.Name] {
			p.had[item.Name] = true
			items = append(items, item)
		}
	}
	for _, item := range items {
		if err = p.machine.Receive(item); err == nil {
			err = p.proceed(s.Status().Fresh)
		}
		if err != nil {
			return false, err
		}
	}
	return len(items) > 0, nil
}

// proceed does what the party has decided. Rounds begin with fresh.
func (p *party) proceed(fresh [32]byte) error {
	w := p.world
	for {
		ready, decided := p.machine.Ready()
		if !decided {
			return nil
		}
		for _, report := range ready.Reports {
			switch report.Kind {
			case drive.Declined:
				p.declined++
			case drive.Submitted:
				p.submitted = append(p.submitted, report.Round)
			}
		}
		out := p.machine.Advance()
		for _, m := range out.Send {
			if err := p.send(m); err != nil {
				return err
			}
		}
		for _, round := range out.Away {
			if p.seen != nil {
				p.seen(w.now, nil)
			}
			w.server.Said(w.now, p.peer(), drive.Said{Absent: round.Number})
		}
		if out.Ask == nil || out.Ask.Round == 0 {
			continue
		}
		answer := drive.Answer{
			ID:        out.Ask.ID,
			Round:     out.Ask.Round,
			Broadcast: broadcast(out.Ask.Round, fresh),
			Fill:      func(v *masking.Vector) error { return v.Set(p.vector...) },
		}
		if p.unfit {
			answer.Err = errUnfit
		}
		answers := p.machine.Answer
		if p.program != nil {
			answers = func(a drive.Answer) error { return p.program(p, *out.Ask, a) }
		}
		if err := answers(answer); err != nil {
			return err
		}
	}
}

var errUnfit = errors.New("the rows make no vector")

// zeros writes what a party without a vector submits. Its noise is no part of these worlds.
func zeros(_ uint64, v *masking.Vector) error {
	v.Erase()
	return nil
}

// send sends a message to the coordinator, which may refuse it.
func (p *party) send(m drive.Message) error {
	message := m.Bytes
	if message == nil {
		made := p.machine.Object(drive.SubmissionName)
		if made == nil {
			return nil // it has sent it
		}
		var b bytes.Buffer
		if _, err := made.WriteTo(&b); err != nil {
			return err
		}
		message = b.Bytes()
	}
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	if h.Type == p.silent {
		return nil
	}
	if p.change != nil {
		message = p.change(h, message)
	}
	w := p.world
	if p.seen != nil {
		p.seen(w.now, message)
	}
	// What is refused changes nothing.
	_ = w.server.Receive(w.now, p.peer(), bytes.NewReader(message))
	return nil
}
