package simulation

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// shown tells what others see of a run: who is in which round, with how many bytes, and what is
// spent. Times are those of this machine, and left out.
func shown(r *Result) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Layout, r.Server, r.Public, r.Stopped, r.Setup.BytesUp, r.Setup.BytesDown)
	for _, one := range r.Rounds {
		fmt.Fprintln(&b, one.Round, one.Parties, one.Included, one.Dropped, one.Lost, one.Exchanges,
			one.Cost.BytesUp, one.Cost.BytesDown, one.Server, one.Public)
	}
	return b.String()
}

// Runs with noise that differ in one party's rows have all rounds, with the same parties and
// messages as long, also where training diverges on those rows. Nothing stops early, and nobody is
// chosen.
func TestEventsOfRows(t *testing.T) {
	for _, sum := range []string{Messages, Ring} {
		run := func(change func(d *learning.Dataset)) *Result {
			o := noisy(t, job.Privacy{Noise: "discrete-gaussian", Multiplier: 1, Clip: 1, Bits: 24})
			o.World.Fidelity, o.World.SkipClear = sum, true
			own := *o.rows[2]
			own.X, own.Labels = slices.Clone(own.X), slices.Clone(own.Labels)
			change(&own)
			o.rows = slices.Clone(o.rows)
			o.rows[2] = &own
			return train(t, o)
		}
		want := run(func(*learning.Dataset) {})
		for name, change := range map[string]func(d *learning.Dataset){
			"zeros":     func(d *learning.Dataset) { clear(d.X) },
			"one class": func(d *learning.Dataset) { clear(d.Labels) },
			"overflow": func(d *learning.Dataset) {
				for i := range d.X {
					d.X[i] = math.Copysign(1.7e308, d.X[i])
				}
			},
		} {
			if got := run(change); shown(got) != shown(want) {
				t.Errorf("%v, %s: others see\n%swant\n%s", sum, name, shown(got), shown(want))
			}
		}
		if len(want.Rounds) != 3 || want.Rounds[2].Parties != 5 {
			t.Errorf("%v: %s", sum, shown(want))
		}
	}
}
