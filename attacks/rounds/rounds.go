// Package rounds attacks jobs, which are rounds one after another: what a coordinator, a party or
// a stranger can do that no message of one session shows. A spoiler comes again with new keys, a
// coordinator asks a round a second time, parties lie about how far the job is or keep it waiting,
// who is present tells about rows, messages tell about coins, and strangers take all connections.
//
// The target with the defences is package drive with parties and a coordinator as programs run
// them, in virtual time, and the listener of package link, on this machine. The target without
// one is the same, less that defence: a coordinator that forgets after each round what parties have
// done, one that is told nothing or believes too few, a party that does not remember its
// submissions, follows its coordinator without a bound or tells that it has no vector, a listener
// that keeps every connection.
package rounds

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/attacks"
)

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{
		attack("SpoilerAgain", "one client",
			"spoils a round, and returns with new keys after each",
			"a party's faults are remembered for the job, by its identity", runSpoilerAgain),
		attack("RoundAgain", "cheating coordinator",
			"asks a round again without one party, or rounds after the last",
			"the guard of each party", runRoundAgain),
		attack("NumbersTold", "colluding clients, or cheating coordinator",
			"report numbers and rounds that do not exist, so that the job or its numbers run out",
			"more than c parties must report it, and two in the case of rounds; bounded "+
				"jumps", runNumbersTold),
		attack("Silence", "one client",
			"is connected, and silent at one step of every session or round",
			"patience with a party that made others wait is short, and returns slowly", runSilence),
		attack("SetBack", "operator's mistake",
			"has a coordinator continue from an old copy of its state, in rounds that were held",
			"parties report the last round that they know of", runSetBack),
		attack("Presence", "curious coordinator",
			"sees who is in a sum, where that follows from a party's rows and the sum has noise",
			"with noise nobody leaves by convergence, and a party without a vector submits zeros",
			runPresence),
		attack("Coins", "curious coordinator",
			"guesses in which rounds a party's secret coin let it take part, from its messages or from "+
				"the sums",
			"all submit at one instant, zeros if the coin or the vector is missing, with a coin for each "+
				"submission",
			runCoins),
		attack("Strangers", "anyone",
			"holds as many connections as a listener accepts, and stays silent",
			"connections that have not said hello make room for others", runStrangers),
	}
}

// runner collects the rows of an attack.
type runner struct {
	o    attacks.Options
	ctx  context.Context
	rows []attacks.Row
}

// measured adds a row of exact counts, each out of the given number.
func (r *runner) measured(name, metric string, of int, undefended, defended count) {
	r.rows = append(r.rows, attacks.Row{
		Case:       name,
		Metric:     metric,
		Undefended: undefended.measure(of),
		Defended:   defended.measure(of),
	})
}

// count is a value and the range that it must be in.
type count struct{ value, min, max float64 }

// unmeasured is for values that one of the targets does not have.
var unmeasured = count{min: 1}

func (c count) measure(of int) attacks.Measure {
	if c.min > c.max {
		return attacks.Measure{}
	}
	return attacks.Exactly(c.value, of, 0).Within(c.min, c.max)
}

// exactly is a count that must be another.
func exactly(value int, want float64) count { return count{float64(value), want, want} }

func attack(name, adversary, about, defence string, run func(*runner) error) attacks.Attack {
	return attacks.Attack{Name: name, Adversary: adversary, About: about, Defence: defence,
		Run: func(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
			r := &runner{o: o, ctx: ctx}
			if err := run(r); err != nil {
				return nil, fmt.Errorf("rounds: %s: %w", name, err)
			}
			return &attacks.Report{Rows: r.rows}, nil
		}}
}
