package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file has the rules of what is simulated.

func (c *checker) world() {
	w := &c.World
	c.refuse(w.Data.Draw != "" && w.Data.Split != "", "world.data.draw",
		"leave it out, or world.data.split",
		"rows are dealt once or by round")
	c.refuse(w.Data.All && w.Data.Rows > 0, "world.data.all",
		"leave it out, or world.data.rows",
		"either this many rows are dealt to each party, or all rows")
	c.refuse(w.Data.All && w.Data.Draw == "anew", "world.data.all", "write world.data.rows",
		"rows that are drawn anew in each round need a number")
	c.takes(strings.HasPrefix(w.Data.Split, "dirichlet"), "it applies to the Dirichlet splits "+
		"only", "leave it out", "world.data.concentration")
	messages := w.Fidelity == "" || w.Fidelity == "messages"
	c.refuse(!messages && (w.Topology == "serverless" || len(w.Servers) > 1), "world.fidelity",
		`write "messages"`, "sums without a server, or with several, are simulated by message")
	c.refuse(w.Topology == "serverless" && len(w.Servers) > 0, "world.servers",
		"leave it out, or world.topology", "serverless sums have no servers")
	c.refuse(w.Fidelity == "clear" && c.Noisy(), "world.fidelity", `write "ring" or "messages"`,
		"noise consists of whole numbers")
	c.refuse(w.Drop > 0 && !c.Oneshot() && !c.Recovers(), "world.drop",
		"write at least as much in parties.drop_out", "without recovery nobody may drop out")
	c.refuse(w.Fidelity == "crowd" && c.Recovers() && w.Drop > c.Parties.DropOut, "world.drop",
		"write less, or more in parties.drop_out", "%v of a sum may be missing, and %v drop out",
		c.Parties.DropOut, w.Drop)
	c.refuse(w.Malicious > 0 && !c.Oneshot(), "world.malicious",
		`write sum.protocol = "oneshot", or leave it out`, "a party that cheats in a pairwise sum "+
			"spoils it")
	c.refuse(w.Malicious > 0 && c.Sum.Covered && !c.Sum.Bounded, "world.malicious",
		"leave it out, or sum.covered",
		"cheats in covered sums are not simulated")
	c.refuse(w.Malicious > 0 && !c.Noisy(), "world.malicious", "write privacy.noise, or leave it out",
		"without noise there is no clip that a cheat could exceed")
	c.refuse(w.LostRounds > 0 && w.Fidelity != "ring" && w.Fidelity != "clear", "world.lost_rounds",
		`write world.fidelity = "ring"`, "sums simulated by message are lost through what happens to "+
			"parties")
	c.refuse(w.LostRounds > 0 && w.LostRounds >= c.Rounds, "world.lost_rounds",
		within(0, c.Rounds-1),
		"none of the %d rounds would have a sum", c.Rounds)
	law := w.Reference.Law != ""
	c.refuse(law && c.Noisy(), "world.reference.law",
		"leave it out, or privacy.noise",
		"a sum has noise for release or noise as a paper defines it")
	c.takes(law, "there is no reference law", "name world.reference.law, or leave it out",
		"world.reference.alpha")
	c.refuse(!law && w.Reference.Epsilon > 0, "world.reference.epsilon",
		"name world.reference.law, or leave it out", "it has no effect: there is no reference law")
	c.refuse(law && w.Reference.Epsilon == 0 && !slices.ContainsFunc(w.Party,
		func(p WorldParty) bool { return p.ReferenceEpsilon > 0 }), "world.reference.epsilon",
		"write a number such as 1.0",
		"nothing says how much noise there is by world.reference.law")
	c.refuse(w.SubtractOwn && !law && !c.Noisy(), "world.subtract_own", "name the noise",
		"there is none to subtract")
	c.refuse(w.Tolerance > 0 && c.Noisy(), "world.tolerance", "leave it out",
		"a party that leaves would reveal something about its rows")
	linked := map[[2]string]bool{}
	for i, l := range w.Link {
		at := fmt.Sprintf("world.link.%d.between", i)
		if len(l.Between) != 2 {
			c.refuse(true, at, `name two, as in ["Oslo", "server"]`, "a link is between two places")
			continue
		}
		a, b := l.Between[0], l.Between[1]
		c.refuse(linked[[2]string{a, b}], at, "leave one out", "there are two links between %q and %q",
			a, b)
		linked[[2]string{a, b}], linked[[2]string{b, a}] = true, true
	}
}

// groupSize returns how many parties have a group's or a party's name, 0: there is none. groups has
// the size of each group.
func (j *Job) groupSize(groups map[string]int, name string) int {
	if n := groups[name]; n > 0 {
		return n
	}
	stem, number, found := cutLast(name)
	k, err := strconv.Atoi(number)
	if !found || err != nil || k < 1 || strconv.Itoa(k) != number {
		return 0
	}
	if groups[stem] > 1 && k <= groups[stem] {
		return 1
	}
	if len(j.Parties.Group) == 0 && stem == "party" && k <= j.Parties.Count {
		return 1
	}
	return 0
}

func (c *checker) worldParties() {
	seen, groups := map[string]bool{}, map[string]int{}
	for _, g := range c.Parties.Group {
		groups[g.Name] = max(groups[g.Name], 1, g.Count)
	}
	for i, p := range c.World.Party {
		at := fmt.Sprintf("world.party.%d", i)
		c.refuse(seen[p.Name], at+".name", "write them as one", "%q is listed twice", p.Name)
		seen[p.Name] = true
		c.refuse(c.Parties.Roster == "" && c.groupSize(groups, p.Name) == 0, at+".name",
			"name one of parties.group, or a party such as party-1", "there is no party %q", p.Name)
		joins := max(1, p.Joins)
		c.refuse(joins > c.Rounds, at+".joins", within(1, c.Rounds),
			"round %d is never held", joins)
		c.refuse(p.Leaves > 0 && p.Leaves < joins, at+".leaves", fmt.Sprintf("write %d or later", joins),
			"it leaves after round %d, before it joins in round %d", p.Leaves, joins)
		c.refuse(p.Straggle > 0 && (p.Slow == 0 || p.Slow == 1), at+".straggle",
			"write slow, such as 10.0", "nothing says how much it is slowed down")
		c.refuse(p.ReferenceEpsilon > 0 && c.World.Reference.Law == "", at+".reference_epsilon",
			"name world.reference.law, or leave it out", "there is no reference law")
		c.refuse(c.World.Fidelity == "crowd" && (joins > 1 || p.Leaves > 0 || len(p.Crash) > 0), at,
			`write world.fidelity = "messages"`, "all parties of a crowd are always present")
		for k, x := range p.Crash {
			where := fmt.Sprintf("%s.crash.%d", at, k)
			c.refuse(!c.Recovers(), where, "write parties.drop_out", "without recovery nobody may drop out")
			c.refuse(x.Round < joins || x.Round > c.Rounds || p.Leaves > 0 && x.Round > p.Leaves,
				where+".round", "use a round that it takes part in", "it takes no part in round %d", x.Round)
			c.refuse(x.Back != 0 && x.Back <= x.Round, where+".back", "use a later round",
				"it is back before round %d, and drops out of %d", x.Back, x.Round)
		}
	}
}

func (c *checker) worldMembers() {
	seen := map[string]bool{}
	for i, m := range c.World.Member {
		at := fmt.Sprintf("world.member.%d", i)
		c.refuse(!c.Oneshot(), at, `leave it out, or write sum.protocol = "oneshot"`,
			"pairwise sums have no committee")
		c.refuse(seen[m.Name], at+".name", "write them as one", "%q is listed twice", m.Name)
		seen[m.Name] = true
		members := cmp.Or(c.Sum.Members, defaultMembers)
		_, number, _ := cutLast(m.Name)
		if k, err := strconv.Atoi(number); err == nil {
			c.refuse(k > members && c.Sum.Committee == "", at+".name",
				fmt.Sprintf("name one up to member-%d, or write more in sum.members", members),
				"there is no member %q", m.Name)
		}
		for k, x := range m.Crash {
			where := fmt.Sprintf("%s.crash.%d", at, k)
			c.refuse(x.Round > c.Rounds, where+".round", within(1, c.Rounds),
				"round %d is never held", x.Round)
			c.refuse(x.Back != 0 && x.Back <= x.Round, where+".back", "use a later round",
				"it is back before round %d, and drops out of %d", x.Back, x.Round)
		}
	}
}
