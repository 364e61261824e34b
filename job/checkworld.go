package job

import (
	"cmp"
	"fmt"
	"math"
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
	c.refuse(c.Oneshot() && !messages, "world.fidelity", `leave it out, or sum.protocol = "oneshot"`,
		"one-message sums are simulated by message")
	c.servers()
	c.drops(messages)
	c.refuse(!messages && (w.Topology == "serverless" || len(w.Servers) > 1), "world.fidelity",
		`write "messages"`, "sums without a server, or with several, are simulated by message")
	c.refuse(w.Topology == "serverless" && len(w.Servers) > 0, "world.servers",
		"leave it out, or world.topology", "serverless sums have no servers")
	c.refuse(w.Fidelity == "clear" && c.Noisy(), "world.fidelity", `write "ring" or "messages"`,
		"noise consists of whole numbers")
	c.refuse(w.Malicious > 0 && !c.Oneshot(), "world.malicious",
		`write sum.protocol = "oneshot", or leave it out`, "a party that cheats in a pairwise sum "+
			"spoils it")
	c.refuse(w.Malicious > 0 && c.Sum.Covered && !c.Sum.Bounded, "world.malicious",
		"leave it out, or sum.covered",
		"cheats in covered sums are not simulated")
	c.refuse(w.Malicious > 0 && !c.Noisy() && !c.ofKeys(), "world.malicious",
		"write privacy.noise, or leave it out",
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
	c.refuse(law && w.Reference.Alpha == 0 && c.Training.Lambda == 0, "world.reference.alpha",
		"write it, or training.lambda",
		"the sensitivity of the reference laws takes a regularisation above 0")
	c.refuse(law && c.Parties.PerRound > 0, "world.reference.law",
		"leave it out, or parties.per_round", "the noise of reference laws is of all parties")
	c.refuse(w.SubtractOwn && !law && !c.Noisy(), "world.subtract_own", "name the noise",
		"there is none to subtract")
	c.refuse(w.SubtractOwn && c.Oneshot() && c.Noisy(), "world.subtract_own", "leave it out",
		"the noise of one-message sums is in their masks, and a party's own is not kept")
	c.refuse(w.SubtractOwn && c.Sum.MaxWeight > 0, "world.subtract_own",
		"leave it out, or sum.max_weight", "a party's part of a weighted mean is not told")
	c.refuse(w.Tolerance > 0 && c.Sum.Buffer > 0, "world.tolerance", "leave it out, or sum.buffer",
		"parties are not in the same round")
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

// servers checks those of a world.
func (c *checker) servers() {
	w := &c.World
	none, several := w.Topology == "serverless", len(w.Servers) > 1
	c.refuse(c.Oneshot() && none, "world.topology", "leave it out", "a committee has one server")
	c.refuse(c.Oneshot() && several, "world.servers", "write one", "a committee has one server")
	c.refuse(c.Parties.PerRound > 0 && (none || several), "parties.per_round", "leave it out",
		"one server draws the parties of a round, and there is not one")
	c.refuse(several && c.Noisy() && c.Sum.MaxWeight > 0, "world.servers", "write one, or leave out "+
		"sum.max_weight", "with noise no server knows how many rows its sum is of")
	for i, p := range w.Party {
		at := fmt.Sprintf("world.party.%d.server", i)
		c.refuse(p.Server != "" && none, at, "leave it out", "there are no servers")
		c.refuse(p.Server != "" && !none && !slices.Contains(w.servers(), p.Server), at,
			"write one of world.servers", "there is no server in %q", p.Server)
	}
}

// servers returns their places.
func (w *World) servers() []string {
	if len(w.Servers) == 0 {
		return []string{"server"}
	}
	return w.Servers
}

// DropOuts returns how many of n parties drop out of each round by world.drop, rounded to the
// nearest whole number. In rings and in the clear it is how many submissions of a round are lost.
func (j *Job) DropOuts(n int) int {
	if f := j.World.Fidelity; f == "ring" || f == "clear" {
		n = j.Parties.most(n)
	}
	return int(math.Round(j.World.Drop * float64(n)))
}

// drops checks who drops out of each round.
func (c *checker) drops(messages bool) {
	w, n := &c.World, c.Size()
	c.refuse(w.Drop > 0 && !c.Oneshot() && !c.Recovers(), "world.drop",
		"write at least as much in parties.drop_out", "without recovery nobody may drop out")
	c.refuse(w.Drop > 0 && c.Sum.Buffer > 0, "world.drop", "leave it out, or sum.buffer",
		"who is in a round that takes the first to submit follows from how fast they are")
	if w.Drop == 0 || n == 0 || messages && !c.Oneshot() {
		return // parties also drop out later, and rounds are lost
	}
	of, least := n, c.Parties.Fewest(n)
	if !messages {
		of = c.Parties.most(n)
	}
	gone := c.DropOuts(n)
	c.refuse(of-gone < least && (c.Recovers() || c.Oneshot()), "world.drop",
		"write less, or more in parties.drop_out",
		"of %d messages of a round %d are lost, and a sum takes at least %d", of, gone, least)
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
		c.refuse(p.Rows > 0 && c.World.Data.Split != "", at+".rows", "leave it out, or world.data.split",
			"the split says how many rows it has")
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
		c.refuse(len(p.Crash) > 0 && (c.World.Fidelity == "ring" || c.World.Fidelity == "clear"),
			at+".crash", `write world.fidelity = "messages"`, "a sum without messages has no steps")
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
