package drive

// This file has whom the steps of a committee's rounds wait for: members, parties, or both. How
// long is in room.go.

// room returns those whom a peer belongs to.
func (s *committee) room(who Peer) *room {
	if who.Member {
		return &s.members
	}
	return &s.parties
}

func (s *committee) peer(who Peer) *peer { return &s.room(who).peers[who.Index] }

// people returns those whom the stage waits for.
func (s *committee) people() *room {
	if s.stage == Submitting {
		return &s.parties
	}
	return &s.members
}

// mark finds out anew whom the steps wait for.
func (s *committee) mark() {
	s.people().markAll(&s.step, s.now, s.claims())
	if s.asks() {
		s.members.markAll(&s.answers, s.now, council{s, true})
	}
}

func (s *committee) claims() claims {
	if s.stage == Submitting {
		return crowd{s}
	}
	return council{s, false}
}

// Until is a method of [Lead].
func (s *committee) Until() Time {
	latest := s.people().until(&s.step, s.now, s.claims())
	if s.asks() {
		latest = max(latest, s.members.until(&s.answers, s.now, council{s, true}))
	}
	return latest
}

func (s *committee) touch(r *room, i int) {
	if r == &s.parties {
		s.touchParty(i)
	} else {
		s.touchMember(i)
	}
}

func (s *committee) touchParty(party int) {
	if s.stage == Submitting {
		s.step.stuck = false
		s.parties.markOne(&s.step, s.now, crowd{s}, party)
	}
}

func (s *committee) touchMember(member int) {
	if s.asks() {
		s.answers.stuck = false
		s.members.markOne(&s.answers, s.now, council{s, true}, member)
	}
	if s.stage != Submitting {
		s.step.stuck = false
		s.members.markOne(&s.step, s.now, council{s, false}, member)
	}
}

// council is a step that waits for members: the stage's, or next to the parties for noise and for
// their word on a batch.
type council struct {
	*committee
	aside bool
}

func (c council) awaits(member int) bool { return c.stage != Resting && c.server.Awaits(member) }

func (c council) able(int) bool { return true }

func (c council) passed(member int) bool {
	return c.stage > Announcing && c.members.peers[member].passed == c.round
}

func (council) begins(int) Time { return 0 }

func (c council) spare() Time { return c.config.spare(false) }

func (c council) patience(member int) Time {
	stage := c.stage
	if c.flight {
		stage = Preparing // the place of what members take for a batch; for noise it is Submitting
	}
	return c.members.patience(&c.lapses, member, c.round, stage, c.spare())
}

func (c council) stall(member int) {
	c.lapses.stall(member, c.round)
	if c.stage > Announcing {
		c.members.peers[member].passed = c.round
	}
	c.notices = append(c.notices, Notice{Kind: Stall, Round: c.round, Party: member, Member: true})
}

func (council) share() Time { return 8 }

// enough says of noise and of a batch whether the round can go on with those who have answered.
// Other steps that end with too few are stuck until more come, and a round bears more faults the
// more keys it has.
func (c council) enough() (is, soon bool) {
	switch {
	case c.deals():
		is = c.server.NoiseTaken() >= c.sums.Committee.Len()-c.sums.Faults
		return is, is
	case c.aside:
		is = len(c.answers.delays) >= c.figures.Keys
		return is, is
	}
	return true, c.stage != Announcing
}

// admit leaves a party out, or ends that.
func (s *committee) admit(o Order) {
	if out := o.Do == Exclude; s.spoilers.excluded(o.Party) != out {
		s.spoilers.of[o.Party] = fault{Excluded: out}
		s.decided(o.notice(s.round))
		s.touchParty(o.Party)
	}
}

// crowd is the step that waits for parties.
type crowd struct{ *committee }

func (c crowd) awaits(party int) bool {
	return c.server.AwaitsParty(party) && !c.spoilers.excluded(party) &&
		c.parties.peers[party].absent != c.round && !c.done(party)
}

func (crowd) able(int) bool { return true }

func (c crowd) passed(party int) bool { return c.parties.peers[party].passed == c.round }

// begins returns that the step has not begun for a party that waits for room.
func (c crowd) begins(party int) Time {
	o := &c.offers[party]
	switch {
	case !o.made && c.config.Buffer == 0:
		return 0
	case !o.open:
		return Never
	}
	return o.since
}

func (c crowd) spare() Time { return c.config.spare(true) }

func (c crowd) patience(party int) Time {
	return c.parties.patience(&c.spoilers, party, c.round, Submitting, c.spare())
}

func (c crowd) stall(party int) {
	c.spoilers.stall(party, c.round)
	c.parties.peers[party].passed = c.round
	c.offers[party].open = false
	c.notices = append(c.notices, Notice{Kind: Stall, Round: c.round, Party: party})
}

func (crowd) share() Time { return 8 }

func (c crowd) enough() (is, soon bool) {
	is = len(c.step.delays) >= c.sums.Least()
	return is, is
}

// over reports whether the stage's step need not wait any longer.
func (s *committee) over() bool {
	if s.stage == Submitting && s.config.Buffer > 0 {
		return s.full()
	}
	people := s.people()
	over, tell := people.over(&s.step, s.now, s.claims())
	if tell {
		s.tellAwaited(people, &s.step)
	}
	return over
}

func (s *committee) tellAwaited(r *room, w *waiting) {
	s.notices = append(s.notices, Notice{Kind: Awaited, Round: s.round,
		Parties: r.waitedFor(w, s.now), Member: r == &s.members})
}

// still reports whether the given number of parties can yet be in the sum, all batches being
// settled: parties that were here and had their time are no longer waited for, since they may
// never submit.
func (s *committee) still(least int) bool {
	least -= s.server.Settled()
	for i := range s.parties.peers {
		if c := (crowd{s}); c.awaits(i) && !c.passed(i) {
			least--
		}
	}
	return least <= 0
}
