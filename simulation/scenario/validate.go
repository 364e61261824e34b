package scenario

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/job"
)

// Validate returns what is wrong with a job by itself, or a [job.ConfigError] for the first thing
// that cannot be simulated in virtual time. Only Run finds whether the data suffice.
func Validate(j *job.Job) error {
	_, err := settle(j)
	return err
}

func settle(j *job.Job) (*world, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	w := newWorld(j)
	for _, check := range []func() error{w.checkScope, w.checkSum, w.checkPrivacy, w.checkParties,
		w.checkPlaces} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// checkScope refuses what a job may declare and virtual time does not have.
func (w *world) checkScope() error {
	without := "leave it out"
	if w.why != "" {
		without += ", or " + w.why
	}
	j := w.Job
	if j.Model.Name == "" {
		return j.Mistake("model", without, "a party that trains in virtual time has a model.name")
	}
	if e := j.Lacks(job.Timed, without); e != nil {
		return e
	}
	if w.World.Fidelity == crowded {
		if e := j.Lacks(job.Crowd, `leave it out, or write world.fidelity = "messages"`); e != nil {
			return e
		}
	}
	for _, c := range []struct {
		is        bool
		path, why string
	}{
		{j.Oneshot() && w.World.Fidelity != messages, "world.fidelity",
			"one-message sums are simulated by message, also those of a hundred thousand parties"},
		{j.Oneshot() && w.serverless(), "world.topology", "a committee has one server"},
		{j.Oneshot() && len(w.World.Servers) > 1, "world.servers", "a committee has one server"},
		{j.Oneshot() && j.Noisy() && j.World.SubtractOwn, "world.subtract_own",
			"the noise of one-message sums is in their masks, and a party's own is not kept"},
		{j.Sum.Buffer > 0 && j.World.Drop > 0, "world.drop",
			"who is in a round that takes the first to submit follows from how fast they are"},
		{j.Sum.Buffer > 0 && j.Training.Submit == "weights", "training.submit",
			"what was made of an earlier model counts for less, which takes updates"},
		{j.Sum.Buffer > 0 && j.World.Tolerance > 0, "world.tolerance",
			"parties are not in the same round"},
		{j.Parties.PerRound > 0 && (w.World.Fidelity != messages || w.serverless() ||
			len(w.World.Servers) > 1), "parties.per_round",
			"in virtual time one server that sums by message draws parties, and else all are in each round"},
		{j.Parties.PerRound > 0 && w.reference(), "world.reference.law",
			"the noise of reference laws is of all parties"},
		{j.World.Drop > 0 && j.World.Fidelity != crowded && !j.Oneshot(), "world.drop",
			"it is for crowds and one-message sums: others drop out by world.party.crash"},
	} {
		if c.is && c.path == w.why {
			without = "leave it out"
		}
		if c.is {
			return j.Mistake(c.path, without, "%s", c.why)
		}
	}
	return nil
}

func (w *world) checkSum() error {
	n := w.Size()
	gone := int(w.World.Drop * float64(n))
	switch {
	case gone > n-w.Parties.Fewest(n):
		return w.Mistake("world.drop", "write at most that, or raise parties.drop_out",
			"of %d parties %d would drop out of each round, and %d may", n, gone, n-w.Parties.Fewest(n))
	case n > job.MaxParties:
		return w.Mistake("parties.count", fmt.Sprintf("write up to %d", job.MaxParties),
			"%d parties are too many", n)
	case w.Oneshot() && n > maxOneshot:
		return w.Mistake("parties.count", fmt.Sprintf("write up to %d", maxOneshot),
			"each of %d parties would make its message", n)
	case w.Parties.PerRound > 0 && !w.Recovers():
		return w.Mistake("parties.per_round", "write sum.recovery = true, or parties.drop_out",
			"without recovery all parties are in each round")
	case w.World.Fidelity == messages && n > MaxPrivate && !w.Oneshot():
		return w.Mistake("parties.count", `write fewer, or world.fidelity = "crowd"`,
			"the machines of %d parties are too many", n)
	}
	return nil
}

func (w *world) checkPrivacy() error {
	world := &w.World
	if w.reference() && !(world.Reference.Alpha > 0) {
		return w.Mistake("world.reference.alpha", "write it, or training.lambda",
			"the sensitivity of the reference laws takes a regularisation above 0")
	}
	for _, k := range w.kinds {
		if w.reference() && k.epsilon == 0 {
			return w.Mistake("world.reference.epsilon", "write a number such as 1.0",
				"%s has no budget", k.Name)
		}
	}
	return nil
}

func (w *world) checkParties() error {
	first := 0 // how many there are from the first round on
	for _, k := range w.kinds {
		if err := w.checkKind(k); err != nil {
			return err
		}
		if k.Joins == 1 {
			first += k.count
		}
	}
	if first < 2 {
		return w.Mistake("world.party", "have at least two join in round 1",
			"a sum takes 2, and there are %d at the beginning", first)
	}
	if w.Oneshot() {
		return w.checkFirst(first)
	}
	roster, err := trialRoster(w.Size())
	if err != nil {
		return err
	}
	for _, n := range w.sizes() {
		if err := w.own(w.Size()).Sessions(job.Files{Roster: roster, Present: n}); err != nil {
			return err
		}
	}
	return nil
}

// checkFirst checks that the parties that are there at first are enough for a one-message sum,
// whose least number counts all that ever join.
func (w *world) checkFirst(first int) error {
	if least := w.Parties.Fewest(w.Size()); first < least {
		return w.Mistake("parties.drop_out", "have more join in round 1, or allow more to drop out",
			"%d parties are there at the beginning, and no fewer than %d make a sum", first, least)
	}
	return nil
}

// sizes are how many parties there are at one time or another, but for those that
// converge.
func (w *world) sizes() (list []int) {
	rounds := map[int]bool{1: true}
	for _, k := range w.kinds {
		rounds[k.Joins], rounds[k.Leaves+1] = true, true
	}
	for round := range rounds {
		n := 0
		for _, k := range w.kinds {
			if k.Joins <= round && (k.Leaves == 0 || k.Leaves >= round) {
				n += k.count
			}
		}
		if n >= 2 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

func (w *world) checkKind(k *kind) error {
	for i, took := range k.Compute {
		if float64(took)*k.Slow > float64(maxTime) {
			return w.Mistake(k.path("slow"), fmt.Sprintf("have it work up to %v", maxTime),
				"%v times %v is longer than can be simulated", k.Slow, k.Compute[i])
		}
	}
	if len(k.Crash) > 0 && w.World.Fidelity != messages {
		return w.Mistake(k.path("crash"), `write world.fidelity = "messages"`,
			"a sum that is %s has no steps", w.World.Fidelity)
	}
	return nil
}

// checkPlaces checks that parties and servers that exchange messages have a link.
func (w *world) checkPlaces() error {
	servers := w.World.Servers
	for _, k := range w.kinds {
		switch {
		case k.Server == "":
		case w.serverless():
			return w.Mistake(k.path("server"), "leave it out", "there are no servers")
		case !slices.Contains(servers, k.Server):
			return w.Mistake(k.path("server"), "write one of world.servers", "there is no server in %q",
				k.Server)
		}
	}
	if len(w.World.Link) == 0 {
		return nil // no latency anywhere
	}
	net, err := w.network()
	if err != nil {
		return w.Mistake("world.link", "", "%v", err)
	}
	linked := func(a, b string) bool {
		_, ok := net.Link(a, b)
		return ok
	}
	add := func(a, b string) string {
		return fmt.Sprintf("add a [[world.link]] between %q and %q", a, b)
	}
	for _, k := range w.kinds {
		if w.serverless() {
			for _, other := range w.kinds {
				if !linked(k.Place, other.Place) {
					return w.Mistake(k.path("place"), add(k.Place, other.Place),
						"without a server parties send to each other, and there is no latency between the two")
				}
			}
			continue
		}
		if !slices.ContainsFunc(servers, func(at string) bool { return linked(k.Place, at) }) {
			return w.Mistake(k.path("place"), add(k.Place, servers[0]), "%q has no latency to a server",
				k.Place)
		}
		if k.Server != "" && !linked(k.Place, k.Server) {
			return w.Mistake(k.path("server"), add(k.Place, k.Server), "%q has no latency to its server",
				k.Place)
		}
	}
	for k := range w.Sum.Members {
		if m := w.memberOf(k); w.Oneshot() && !linked(m.Place, servers[0]) {
			return w.Mistake("world.member", add(m.Place, servers[0]),
				"member-%d is in %q, which has no latency to the server", k+1, m.Place)
		}
	}
	for _, a := range servers {
		for _, b := range servers {
			if !linked(a, b) {
				return w.Mistake("world.servers", add(a, b), "servers tell each other their sums")
			}
		}
	}
	return nil
}
