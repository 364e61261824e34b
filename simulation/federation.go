package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/job"
)

// maxMachines is the most parties whose protocol machines run in virtual time.
const maxMachines = 1_000

// federation is a job to be simulated in virtual time, with its defaults.
type federation struct {
	*job.Job
	declared *job.Job // without defaults
	seed     uint64   // of rows, losses, delays and drop-outs
	kinds    []*kind
	of       []*kind  // by party
	names    []string // of the parties
	why      string   // the first field for which the job needs virtual time
}

// kind is one party, or several that are alike. Of what a job says of a world it has the defaults.
type kind struct {
	job.WorldParty
	count   int
	epsilon float64 // what it asks for, 0 without noise
	entry   int     // in the job's list of world.party, −1: it is in none
	group   int     // in the job's list of parties.group, −1: there are none
}

// federationOf makes a federation of a valid job.
func federationOf(j *job.Job) *federation {
	w := &federation{Job: j.WithDefaults(), declared: j, why: timedBy(j)}
	if w.seed = w.World.Seed; w.seed == 0 {
		w.seed = w.Seed
	}
	if len(w.World.Servers) == 0 {
		w.World.Servers = []string{"server"}
	}
	if w.World.Reference.Alpha == 0 {
		w.World.Reference.Alpha = w.Training.Lambda
	}
	if len(w.Parties.Group) == 0 {
		w.add(-1, job.Group{Name: "party", Count: w.Size()})
	}
	for i, g := range w.Parties.Group {
		w.add(i, g)
	}
	return w
}

// add adds the parties of a group: those that the world names apart get a kind of their own.
func (w *federation) add(at int, g job.Group) {
	var rest *kind
	for i := range g.Count {
		k := rest
		if entry := w.entry(nameIn(g, i)); entry >= 0 && g.Count > 1 {
			k = w.newKind(nameIn(g, i), at, entry)
		} else if rest == nil {
			rest = w.newKind(g.Name, at, w.entry(g.Name))
			k = rest
		}
		k.count++
		w.of, w.names = append(w.of, k), append(w.names, nameIn(g, i))
	}
}

// most returns how many of n parties a round is held among.
func (w *federation) most(n int) int {
	if k := w.Parties.PerRound; k > 0 {
		return min(n, k)
	}
	return n
}

// submissions returns how often a party submits at most.
func (w *federation) submissions() int { return cmp.Or(w.Parties.Participations, w.Rounds) }

// nameIn names the i-th party of a group.
func nameIn(g job.Group, i int) string {
	if g.Count == 1 {
		return g.Name
	}
	return g.Name + "-" + strconv.Itoa(i+1)
}

// entry finds what the world says of a name, −1: nothing.
func (w *federation) entry(name string) int {
	return slices.IndexFunc(w.World.Party, func(p job.WorldParty) bool { return p.Name == name })
}

func (w *federation) newKind(name string, group, entry int) *kind {
	k := &kind{WorldParty: job.WorldParty{Slow: 1, Joins: 1}, entry: entry, group: group}
	if entry >= 0 {
		k.WorldParty = w.World.Party[entry]
	}
	k.Name = name
	if k.Place == "" {
		k.Place = name
	}
	switch {
	case w.reference():
		if k.epsilon = k.ReferenceEpsilon; k.epsilon == 0 {
			k.epsilon = w.World.Reference.Epsilon
		}
	case w.Noisy():
		k.epsilon = w.Privacy.Epsilon
	}
	k.Crash = withBack(k.Crash)
	w.kinds = append(w.kinds, k)
	return k
}

// withBack returns crashes, each with the round in which it is over.
func withBack(crashes []job.Crash) []job.Crash {
	crashes = slices.Clone(crashes)
	for i := range crashes {
		if c := &crashes[i]; c.Back == 0 {
			c.Back = c.Round + 1
		}
	}
	return crashes
}

// path returns where a field of the kind is declared, or could be.
func (k *kind) path(field string) string {
	switch {
	case k.entry >= 0:
		return fmt.Sprintf("world.party.%d.%s", k.entry, field)
	case k.group >= 0:
		return fmt.Sprintf("parties.group.%d", k.group)
	}
	return "parties.count"
}

// reference reports whether the noise is one that is never for release.
func (w *federation) reference() bool { return w.World.Reference.Law != "" }

// Whatever noise there is.
func (w *federation) anyNoise() bool { return w.Noisy() || w.reference() }

func (w *federation) serverless() bool { return w.World.Topology == serverless }

// serverless is the topology in which each party adds up for itself.
const serverless = "serverless"

// The moments of a crash: before the party gets the server's message of that step, but
// for atSubmit, when it has been told of the round and does not submit.
const (
	atBegin  = "begin"
	atSubmit = "submit"
	atSign   = "sign"
	atReveal = "reveal"
)

// maxTime is the longest work of a round.
const maxTime = 1000 * time.Hour

// Needs reports whether a job says something that only virtual time has: places, mishaps of single
// parties, rows by round, crowds, noise as published.
func Needs(j *job.Job) bool { return timedBy(j) != "" }

// timedBy returns the first field for which a job needs virtual time, empty if none does.
func timedBy(j *job.Job) string {
	if e := j.Lacks(job.Sums, ""); e != nil {
		return e.Path
	}
	return ""
}
