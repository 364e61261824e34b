package drive

import (
	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// This file has submissions that leave at an instant: then nothing but the masked sum depends on
// what a party's program has come to, or on its coin.

// toss tosses the party's coin for a question, and has zeros ready for its instant: to draw their
// noise then would take longer than to send what an answer has left.
func (p *party) toss(c *protocol.Client) error {
	p.discard()
	if p.config.After == 0 {
		return nil
	}
	p.asked.After = p.config.After
	if p.config.Luck > 0 {
		luck, err := entropy.Coin("drive", p.config.Random, p.config.Luck)
		if err != nil {
			return err
		}
		p.asked.Idle = !luck
	}
	v, err := masking.NewVector(p.config.Session(c.Number()).Layout)
	if err == nil {
		err = p.config.Blank(p.asked.Round, v)
	}
	if err == nil {
		p.ready = v
	}
	return err
}

// discard forgets what was to leave.
func (p *party) discard() {
	if p.ready != nil {
		p.ready.Erase()
		p.ready = nil
	}
}

// hold has an answer leave at its instant. A question that does not come to a vector is a [Missed],
// and zeros leave; zeros also leave if the party's coin leaves it out, whatever the program says.
func (p *party) hold(a Answer) error {
	if p.ready == nil || p.asked == nil || p.asked.ID != a.ID || p.asked.Idle {
		return nil
	}
	v, err := masking.NewVector(p.ready.Layout())
	if err != nil {
		return err
	}
	if err := p.try(&a, v); err != nil {
		v.Erase()
		p.report(Missed, a.ID.Session, a.Round, err)
		return nil
	}
	p.discard()
	p.ready = v
	return nil
}

// Instant is described with [Part].
func (p *party) Instant(a Answer) error {
	p.answered(a.ID)
	if !p.waiting(a.ID) || p.ready == nil || p.asked == nil || p.asked.ID != a.ID {
		p.report(Late, a.ID.Session, a.Round, nil)
		return nil
	}
	ready := p.ready
	a.Err = nil
	a.Fill = func(v *masking.Vector) error {
		v.Erase()
		return v.Add(ready)
	}
	defer p.discard()
	return p.submit(a)
}
