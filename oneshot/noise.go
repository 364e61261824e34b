package oneshot

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
)

// chooseFlight moves submissions that wait into the batch that goes to the members: first the
// members' noise, if they deal it, then parties.
func (s *Server) chooseFlight() error {
	c, r := s.config, s.open
	var first, rest []*submitted
	noise := c.CommitteeNoise && r.number == 0
	for _, sub := range r.waiting {
		if (sub.party >= c.n) == noise {
			first = append(first, sub)
		} else {
			rest = append(rest, sub)
		}
	}
	switch {
	case noise && len(first) < c.noises():
		return fmt.Errorf("%w: %d members have dealt noise, want %d", ErrTooFew, len(first), c.noises())
	case len(first) == 0:
		return fmt.Errorf("%w: no submission waits", ErrPhase)
	}
	if noise {
		s.doubtSilent()
	}
	r.flight, r.waiting = first, rest
	return nil
}

// settleNoise decides whose noise is in: C − Faults members at least, none of whom disputes
// another's, nor is convicted by a complaint. There are as many, since honest members do not
// dispute one another. Members that dispute noise that is in have no further part in the round.
func (s *Server) settleNoise(in wire.Set) error {
	c, r := s.config, s.open
	g := newQuarrels(c.c)
	dealt := wire.NewSet(c.c)
	for i, sub := range r.flight {
		d := sub.party - c.n
		if r.claimed(sub.party) {
			continue
		}
		dealt.Add(d)
		for k := range r.members.All() {
			if r.disputes[k].Has(i) {
				g.add(k, d)
			}
		}
	}
	var out wire.Set
	found := false
	for _, doubting := range []bool{true, false} { // a doubt costs no round
		out = wire.NewSet(c.c)
		for k := range c.c {
			if !dealt.Has(k) || doubting && s.doubted(k) {
				out.Add(k) // if it dealt none it is one of the Faults: its word costs nobody else
			}
		}
		g.tries = maxTries
		spare := c.c - out.Len() - c.noises()
		if found = spare >= 0 && g.withdraw(out, spare); found {
			break
		}
	}
	if !found {
		return fmt.Errorf("%w: more than %d members deal bad noise or dispute what is good", ErrTooFew,
			c.Faults)
	}
	for i, sub := range r.flight {
		d := sub.party - c.n
		if out.Has(d) {
			continue
		}
		in.Add(i)
		r.add(c, sub)
		for k := range r.members.All() {
			if r.disputes[k].Has(i) {
				r.excluded.Add(k)
			}
		}
	}
	return nil
}

// maxTries bounds the search, which takes 1.62^Faults steps at most: enough for 28 Faults whatever
// they do. With more a round may be lost to quarrels that are laid out to be hard.
const maxTries = 1 << 20

// quarrels says who of the members disputes whose noise.
type quarrels struct {
	by, against []wire.Set // by member
	tries       int
}

func newQuarrels(members int) *quarrels {
	g := &quarrels{tries: maxTries}
	for range members {
		g.by = append(g.by, wire.NewSet(members))
		g.against = append(g.against, wire.NewSet(members))
	}
	return g
}

func (g *quarrels) add(by, against int) {
	g.by[by].Add(against)
	g.against[against].Add(by)
}

// with returns those not out who quarrel with a member, and how many of them dispute its noise.
func (g *quarrels) with(k int, out wire.Set) (others []int, disputed int) {
	for j := range g.by {
		against := g.against[k].Has(j)
		if !out.Has(j) && (against || g.by[k].Has(j)) {
			others = append(others, j)
			if against {
				disputed++
			}
		}
	}
	return others, disputed
}

// withdraw adds at most the given number of members to out so that no two of the others quarrel.
// Of members with equally many quarrels it takes one that is disputed: the round then loses no
// member.
func (g *quarrels) withdraw(out wire.Set, most int) bool {
	g.tries--
	worst, degree, accusers := -1, 0, 0
	var quarrel []int
	for k := range g.by {
		if out.Has(k) {
			continue
		}
		others, disputed := g.with(k, out)
		if n := len(others); n > degree || n > 0 && n == degree && disputed > accusers {
			worst, degree, accusers, quarrel = k, n, disputed, others
		}
	}
	if worst < 0 {
		return true
	}
	if most <= 0 || g.tries < 0 {
		return false
	}
	out.Add(worst)
	if g.withdraw(out, most-1) {
		return true
	}
	out.Remove(worst)
	switch {
	case len(quarrel) > most, slices.Contains(quarrel, worst): // it disputes itself
		return false
	case degree == 1:
		return false // all that is left is pairs, of which either is as good
	}
	for _, j := range quarrel {
		out.Add(j)
	}
	if g.withdraw(out, most-len(quarrel)) {
		return true
	}
	for _, j := range quarrel {
		out.Remove(j)
	}
	return false
}
