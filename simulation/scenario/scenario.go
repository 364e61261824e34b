package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/job"
)

// MaxPrivate is the most parties whose protocol machines run.
const MaxPrivate = 1_000

// world is a job to be simulated, with its defaults.
type world struct {
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

// newWorld makes a world of a valid job.
func newWorld(j *job.Job) *world {
	w := &world{Job: j.WithDefaults(), declared: j, why: timedBy(j)}
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
func (w *world) add(at int, g job.Group) {
	var rest *kind
	for i := range g.Count {
		k := rest
		if entry := w.entry(member(g, i)); entry >= 0 && g.Count > 1 {
			k = w.newKind(member(g, i), at, entry)
		} else if rest == nil {
			rest = w.newKind(g.Name, at, w.entry(g.Name))
			k = rest
		}
		k.count++
		w.of, w.names = append(w.of, k), append(w.names, member(g, i))
	}
}

// most returns how many of n parties a round is held among.
func (w *world) most(n int) int {
	if k := w.Parties.PerRound; k > 0 {
		return min(n, k)
	}
	return n
}

// submissions returns how often a party submits at most.
func (w *world) submissions() int { return cmp.Or(w.Parties.Participations, w.Rounds) }

// member names the i-th party of a group.
func member(g job.Group, i int) string {
	if g.Count == 1 {
		return g.Name
	}
	return g.Name + "-" + strconv.Itoa(i+1)
}

// entry finds what the world says of a name, −1: nothing.
func (w *world) entry(name string) int {
	return slices.IndexFunc(w.World.Party, func(p job.WorldParty) bool { return p.Name == name })
}

func (w *world) newKind(name string, group, entry int) *kind {
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
func (w *world) reference() bool { return w.World.Reference.Law != "" }

// Whatever noise there is.
func (w *world) anyNoise() bool { return w.Noisy() || w.reference() }

func (w *world) serverless() bool { return w.World.Topology == serverless }

// The words of a job that are asked for in several places.
const (
	serverless = "serverless"
	messages   = "messages"
	crowded    = "crowd"
)

// The moments of a crash: before the party gets the server's message of that step, but
// for AtSubmit, when it has been told of the round and does not submit.
const (
	AtBegin  = "begin"
	AtSubmit = "submit"
	AtSign   = "sign"
	AtReveal = "reveal"
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
