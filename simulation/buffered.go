package simulation

import (
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file holds the rounds that take a given number of submissions, the first to arrive: parties
// train while rounds come and go, and submit what they made of an earlier model in the round that
// has room for it. A party hears of rounds once it has trained, and fetches the model of the one
// that it begins with.

// buffered reports whether rounds are such.
func (c *committee) buffered() bool { return c.run.Sum.Buffer > 0 }

// askBuffered has a party train on the model of now, or submit what it made.
func (c *committee) askBuffered(p *party, ask *drive.Ask) {
	if ask.ID.Made > 0 {
		c.submitMade(p, ask)
		return
	}
	s, r := &p.sender, c.run
	if s.working {
		return
	}
	work, rows, err := r.trained(p)
	if err != nil {
		r.fail(err)
		return
	}
	s.made, s.working, s.asked = &work.Message, true, ask.Round
	size := 8 * len(r.first)
	p.got += size
	p.busy = max(p.busy, r.clock.Now()+r.transit(c.place, p.Place, size))
	took, given := r.given(p)
	if !given {
		took = r.training(rows)
	}
	c.works(p, took)
	number := s.number
	r.at(p.busy, func() {
		s.working = false
		if r.failure == nil && s.number != number {
			c.revive(p)
			return
		}
		machine := c.machineOf(p)
		machine.Finished(ask.ID)
		if s.heard != nil {
			item := *s.heard
			s.heard = nil
			if err := machine.Receive(item); err != nil {
				r.fail(err)
				return
			}
		}
		c.follow(p)
	})
}

// revive makes a party's machine anew, which has died with what it was making, and has it hear of
// the open round again.
func (c *committee) revive(p *party) {
	s, key := &p.sender, new(keyexchange.SealKey)
	s.made, s.heard = nil, nil
	if s.machine == nil {
		return
	}
	saved, err := s.machine.Save(key)
	if err == nil {
		s.machine, err = drive.LoadPart(c.configOf(p), key, saved.State)
	}
	if err != nil {
		c.run.fail(err)
		return
	}
	s.had, c.fresh = nil, append(c.fresh, p)
	c.pump()
}

// submitMade submits what a party made, weighed by how many rounds before that was begun.
func (c *committee) submitMade(p *party, ask *drive.Ask) {
	s, r := &p.sender, c.run
	rounds := ask.Round - ask.ID.Made
	cast := c.casts[ask.Round]
	values, err := c.codec.encode(p, s.made.Weighed(rounds), cast, r.source("rounding", p.index))
	if err != nil {
		r.fail(r.failed(p, err))
		return
	}
	var took time.Duration
	if _, given := r.given(p); !given {
		took = c.figures.PartyTime
	}
	c.works(p, took)
	machine := s.machine
	r.at(p.busy, func() {
		if s.machine != machine || r.failure != nil {
			return
		}
		s.stale = int(rounds)
		if err := machine.Answer(answerOf(ask.ID, cast, values)); err != nil {
			r.fail(err)
			return
		}
		c.follow(p)
	})
}
