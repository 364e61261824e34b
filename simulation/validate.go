package simulation

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/job"
)

// Validate returns what is wrong with a job by itself, or a [job.ConfigError] for the first thing
// that cannot be simulated. Only [Settle] and [Run] find whether the rows suffice.
func Validate(j *job.Job) error {
	if Needs(j) {
		_, err := newFederation(j)
		return err
	}
	if err := j.Validate(); err != nil {
		return err
	}
	return trains(j)
}

// newFederation checks a job that is to run in virtual time.
func newFederation(j *job.Job) (*federation, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	w := federationOf(j)
	for _, check := range []func() error{w.checkScope, w.checkSize, w.checkParties,
		w.checkPlaces} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// checkScope refuses what a job may declare and virtual time does not have.
func (w *federation) checkScope() error {
	const out = "leave it out"
	if err := trains(w.Job); err != nil {
		return err
	}
	if e := w.Lacks(job.Timed, out); e != nil {
		if w.why != "" && w.why != e.Path {
			e.Advice += ", or " + w.why
		}
		return e
	}
	if w.World.Fidelity == Crowd {
		if e := w.Lacks(job.Crowd, `leave it out, or write world.fidelity = "messages"`); e != nil {
			return e
		}
	}
	return nil
}

// checkSize refuses more parties than can be simulated.
func (w *federation) checkSize() error {
	n := w.Size()
	switch {
	case w.Oneshot() && n > maxOneshot:
		return w.Mistake("parties.count", fmt.Sprintf("write up to %d", maxOneshot),
			"each of %d parties would make its message", n)
	case w.World.Fidelity == Messages && n > maxMachines && !w.Oneshot():
		return w.Mistake("parties.count", `write fewer, or world.fidelity = "crowd"`,
			"the machines of %d parties are too many", n)
	}
	return nil
}

func (w *federation) checkParties() error {
	for _, k := range w.kinds {
		if err := w.checkKind(k); err != nil {
			return err
		}
	}
	first := w.atFirst()
	if first < 2 {
		return w.Mistake("world.party", "have at least two join in round 1",
			"a sum takes 2, and there are %d at the beginning", first)
	}
	if w.Oneshot() {
		return w.checkFirst(first)
	}
	roster, err := job.Nobody(w.Size())
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

// atFirst counts the parties that are there from the first round on.
func (w *federation) atFirst() (n int) {
	for _, k := range w.kinds {
		if k.Joins == 1 {
			n += k.count
		}
	}
	return n
}

// checkFirst checks that the parties that are there at first are enough for a one-message sum,
// whose least number counts all that ever join.
func (w *federation) checkFirst(first int) error {
	if least := w.Parties.Fewest(w.Size()); first < least {
		return w.Mistake("parties.drop_out", "have more join in round 1, or allow more to drop out",
			"%d parties are there at the beginning, and no fewer than %d make a sum", first, least)
	}
	return nil
}

// sizes are how many parties there are at one time or another, but for those that
// converge.
func (w *federation) sizes() (list []int) {
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

func (w *federation) checkKind(k *kind) error {
	for i, took := range k.Compute {
		if float64(took)*k.Slow > float64(maxTime) {
			return w.Mistake(k.path("slow"), fmt.Sprintf("have it work up to %v", maxTime),
				"%v times %v is longer than can be simulated", k.Slow, k.Compute[i])
		}
	}
	if w.reference() && k.epsilon == 0 {
		return w.Mistake("world.reference.epsilon", "write a number such as 1.0",
			"%s has no budget", k.Name)
	}
	return nil
}

// checkPlaces checks that parties and servers that exchange messages have a link.
func (w *federation) checkPlaces() error {
	servers := w.World.Servers
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
