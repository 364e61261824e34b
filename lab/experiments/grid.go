package experiments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation"
)

// arm is a row of a table that is being made, or what comes before rows.
type arm struct {
	labels    []string
	published map[string]float64
	elsewhere map[string]map[string]float64
	steps     int  // that it counts for in progress, in each seed
	seeds     int  // that it is run with, the first ones; 0: all
	hidden    bool // no row of the table; its lines are in figures all the same
	run       func(ctx context.Context, seed uint64, step func()) (outcome, error)
	// done, if not nil, is given each outcome, also one that was kept from a run before.
	done func(seed uint64, o outcome)
}

// outcome holds what one seed of an arm has led to.
type outcome struct {
	values []float64 // one for each measure
	lines  []line    // for figures of the table, in their order; an empty one for none
}

type line struct{ x, y []float64 }

// Store keeps outcomes, so that a run that was ended early can go on. Keys are digests
// of what was run.
type Store interface {
	Load(key string) (outcome []byte, ok bool)
	Save(key string, outcome []byte) error
}

// keptOutcome is an outcome as it is kept: nil stands for NaN.
type keptOutcome struct {
	Values []*float64
	Lines  []struct{ X, Y []*float64 }
}

func (o outcome) MarshalJSON() ([]byte, error) {
	numbers := func(v []float64) []*float64 {
		out := make([]*float64, len(v))
		for i, x := range v {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				out[i] = &x
			}
		}
		return out
	}
	k := keptOutcome{Values: numbers(o.values)}
	for _, l := range o.lines {
		k.Lines = append(k.Lines, struct{ X, Y []*float64 }{numbers(l.x), numbers(l.y)})
	}
	return json.Marshal(k)
}

func (o *outcome) UnmarshalJSON(text []byte) error {
	var k keptOutcome
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	numbers := func(v []*float64) (out []float64) {
		for _, x := range v {
			if x == nil {
				out = append(out, math.NaN())
			} else {
				out = append(out, *x)
			}
		}
		return out
	}
	*o = outcome{values: numbers(k.Values)}
	for _, l := range k.Lines {
		o.lines = append(o.lines, line{numbers(l.X), numbers(l.Y)})
	}
	return nil
}

// key is the digest of an arm and seed under the table's settings.
func (t *Table) key(a arm, seed int) string {
	text := fmt.Sprintf("%q %q %q %v %d %d", t.Title, t.Settings, a.labels, a.hidden, a.steps, seed)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:32]
}

// fill runs all arms, seed after seed, so that those that are complete can be
// compared if the run ends early. What o.Store has is not run again.
func (t *Table) fill(ctx context.Context, o Options, arms []arm) error {
	applies := func(a arm, seed int) bool { return a.seeds == 0 || seed <= a.seeds }
	of, done := 0, 0
	rows := make([]int, len(arms))
	for k, a := range arms {
		for seed := 1; seed <= o.Seeds; seed++ {
			if applies(a, seed) {
				of += a.steps
			}
		}
		if rows[k] = -1; !a.hidden {
			rows[k] = len(t.Rows)
			t.Rows = append(t.Rows,
				Row{Labels: a.labels, Published: a.published, Elsewhere: a.elsewhere,
					Values: make([][]float64, o.Seeds)})
		}
	}
	step := func() {
		if done++; o.Progress != nil {
			o.Progress(min(done, of), of)
		}
	}
	if o.Progress != nil {
		o.Progress(0, of)
	}
	for seed := 1; seed <= o.Seeds; seed++ {
		for k, a := range arms {
			if !applies(a, seed) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			before := done
			out, err := t.outcome(ctx, o, a, seed, step)
			if err != nil {
				return err
			}
			if out.values == nil { // of rows that are kept this one is not
				continue
			}
			// A budget may end a training early, and what was kept takes no steps.
			if done = before + a.steps; o.Progress != nil {
				o.Progress(done, of)
			}
			if a.done != nil {
				a.done(uint64(seed), out)
			}
			for f, l := range out.lines {
				t.Figures[f].add(strings.Join(a.labels, ", "), l.x, l.y)
			}
			if rows[k] >= 0 {
				t.Seeds = seed
				t.Rows[rows[k]].Values[seed-1] = out.values
			}
		}
	}
	t.Complete = true
	return nil
}

// outcome runs an arm with a seed, or takes what was kept of that.
func (t *Table) outcome(
	ctx context.Context, o Options, a arm, seed int, step func(),
) (out outcome, err error) {
	switch {
	case o.kept != nil && a.hidden:
		return outcome{values: make([]float64, len(t.Measures))}, nil
	case o.kept != nil:
		return outcome{values: o.kept(a.labels, seed)}, nil
	}
	key := t.key(a, seed)
	if o.Store != nil {
		if text, ok := o.Store.Load(key); ok && json.Unmarshal(text, &out) == nil {
			return out, nil
		}
	}
	if out, err = a.run(ctx, uint64(seed), step); err != nil || o.Store == nil {
		return out, err
	}
	text, err := json.Marshal(out)
	if err != nil {
		return out, err
	}
	return out, o.Store.Save(key, text)
}

// setting is a training: a job, in the clear unless it says otherwise, and its rows.
type setting struct {
	job.Job
	rows dealt
	// world, if not nil, sets what no job declares.
	world func(w *simulation.World)
	// multiplier is that of the noise, once the training has run.
	multiplier float64
}

// run runs the training, and tells report of each round.
func (x *setting) run(
	ctx context.Context, report func(simulation.RoundResult),
) (*simulation.Result, error) {
	j := x.Job
	j.Name, j.Parties.Count, j.World.SkipClear = "experiment", len(x.rows.parties), true
	j.World.Fidelity = cmp.Or(j.World.Fidelity, simulation.Clear)
	settled, w, err := simulation.Settle(&j,
		simulation.Rows{Parties: x.rows.parties, Test: x.rows.test})
	if err != nil {
		return nil, err
	}
	x.multiplier = settled.Multiplier()
	if x.world != nil {
		x.world(&w)
	}
	return simulation.Run(ctx, settled, w, report)
}

// train runs a training and counts its rounds.
func train(ctx context.Context, x *setting, step func()) (*simulation.Result, error) {
	return x.run(ctx, func(simulation.RoundResult) { step() })
}

// accuracy and mcc are those of the last model, NaN if no round was run.
func accuracy(t *simulation.Result) float64 {
	if m := t.Final(); m != nil {
		return m.Test.Accuracy()
	}
	return math.NaN()
}

func mcc(t *simulation.Result) float64 {
	if m := t.Final(); m != nil {
		return m.Test.MCC()
	}
	return math.NaN()
}

// learned is the accuracy after those rounds on which the model was judged.
func learned(t *simulation.Result) line {
	var l line
	for _, r := range t.Rounds {
		if r.Test != nil {
			l.x = append(l.x, float64(r.Round))
			l.y = append(l.y, r.Test.Accuracy())
		}
	}
	return l
}

// meanOver is the mean accuracy after the last n of the first upTo judged rounds, and
// the mean of the n before those, NaN where there are not as many.
func (l line) meanOver(upTo, n int) (last, before float64) {
	mean := func(v []float64) float64 {
		if len(v) < n {
			return math.NaN()
		}
		sum := 0.0
		for _, x := range v[len(v)-n:] {
			sum += x / float64(n)
		}
		return sum
	}
	upTo = min(upTo, len(l.y))
	return mean(l.y[:upTo]), mean(l.y[:max(0, upTo-n)])
}

// inFigure is the lines of an outcome that has one, in that figure.
func inFigure(figure int, l line) []line { return append(make([]line, figure), l) }

// The measures that most tables have.
var (
	accuracyMeasure = Measure{Name: "accuracy", Percent: true, Digits: 2}
	mccMeasure      = Measure{Name: "MCC", Digits: 4}
	riseMeasure     = Measure{Name: "rise", Percent: true, Digits: 2}
)

func learningFigure(name, title string) Figure {
	return Figure{Name: name, Title: title, X: "round", Y: "test accuracy, %", Percent: true}
}
