package hushsum

import (
	"errors"
	"slices"
	"time"

	"github.com/hushsum/hushsum/protocol"
)

// This file has how a coordinator sets sessions up, and gathers parties for a round.

// form sets up the next session, if there is a reason for one.
func (c *coordinator) form() error {
	s := c.forming
	if s == nil {
		if !c.wanted() {
			return nil
		}
		c.number = c.next()
		server, err := protocol.NewServer(c.Plan.Config(c.number))
		if err != nil {
			return err
		}
		c.forming = &session{number: c.number, server: server}
		if err := c.enter(c.forming, stageAnnounce, nil); err != nil {
			return err
		}
		c.report(Event{Kind: Joining, Session: c.number})
		for i := range c.parties {
			c.send(i, joinFrame(c.number))
		}
		return nil
	}
	switch s.stage {
	case stageAnnounce:
		if !c.announced(s) {
			return nil
		}
		envelopes, err := s.server.Keys()
		if errors.Is(err, protocol.ErrTooFew) {
			return nil // some may still come
		} else if err != nil {
			return err
		}
		next := stageEncapsulate
		if s.server.Enrolled() != nil {
			next = stageMaterial
		}
		return c.enter(s, next, envelopes)
	case stageEncapsulate:
		if !c.over(s) {
			return nil
		}
		envelopes, err := s.server.Members()
		if errors.Is(err, protocol.ErrTooFew) {
			c.forming = nil // and then another, with a number of its own
			return c.save()
		} else if err != nil {
			return err
		}
		return c.enter(s, stageMaterial, envelopes)
	case stageMaterial:
		if !c.over(s) {
			return nil
		}
		c.report(Event{Kind: Formed, Session: s.number, Parties: s.server.Enrolled()})
		s.stage, s.since = stageReady, time.Now()
		return c.save()
	}
	return nil
}

// numberJump is how far above the last number the coordinator goes at once on the parties' word.
const numberJump = 1 << 20

// next returns the number of the next session: above its own last one, and where it has forgotten
// that as high as more parties say than may lie.
func (c *coordinator) next() uint64 {
	var least []uint64
	for _, from := range c.parties {
		least = append(least, from.least)
	}
	slices.Sort(least)
	believed := uint64(0)
	if n := len(least) - 1 - c.Plan.plan.Colluders; n >= 0 {
		believed = least[n]
	}
	return min(max(c.number+1, min(believed, c.number+numberJump)), protocol.MaxNumber)
}

// wanted reports whether a session should be set up: there is none, or somebody is there
// who is not in it.
func (c *coordinator) wanted() bool {
	if len(c.parties) < c.Plan.survivors {
		return false
	}
	if c.present == nil {
		return true
	}
	enrolled := c.present.server.Enrolled()
	for i := range c.parties {
		in := slices.Contains(enrolled, i) && c.holds(i, c.present)
		if !in && c.round >= c.shunned[i].until {
			return true
		}
	}
	return false
}

// announced reports whether a session need not wait for more announcements.
func (c *coordinator) announced(s *session) bool {
	missing := s.server.Missing()
	for i := range c.parties {
		if slices.Contains(missing, i) {
			return time.Since(s.since) > c.StepTime
		}
	}
	return len(missing) == 0 || time.Since(s.since) > c.grace
}

// prepare gathers those who are there for the next round, or ends the job.
func (c *coordinator) prepare() error {
	if c.round == uint64(c.Plan.plan.Rounds) {
		return c.end()
	}
	s := c.present
	var there []int
	for _, i := range s.server.Enrolled() {
		if c.holds(i, s) && !slices.Contains(s.server.Excluded(), i) {
			there = append(there, i)
		}
	}
	if len(there) < c.Plan.survivors {
		return nil
	}
	// If the material of just these is in, the round can begin; else it is made anew,
	// for the round among them.
	missing := s.server.Missing()
	ready := !slices.ContainsFunc(there, func(i int) bool {
		return slices.Contains(missing, i) || !slices.Contains(s.server.Holders(), i)
	})
	if ready {
		return c.beginRound()
	}
	envelopes, err := s.server.Gather(there)
	if err != nil {
		return err
	}
	return c.enter(s, stageMaterial, envelopes)
}

// takeOver makes the session that has formed the present one.
func (c *coordinator) takeOver() {
	c.present, c.forming = c.forming, nil
	enrolled := c.present.server.Enrolled()
	for i := range c.parties {
		if slices.Contains(enrolled, i) {
			delete(c.shunned, i)
			continue
		}
		times := c.shunned[i].times + 1
		c.shunned[i] = shunned{times, c.round + 1<<min(times, 10)}
	}
	c.report(Event{Kind: TookOver, Session: c.present.number, Parties: enrolled})
}
