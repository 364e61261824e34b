package experiments

import (
	"context"
	"math"
	"strings"

	"github.com/hushsum/hushsum/simulation"
)

// arm is a row of a table that is being made.
type arm struct {
	labels    []string
	published map[string]float64
	steps     int // that it counts for in progress, in each seed
	seeds     int // that it is run with, the first ones; 0: all
	run       func(ctx context.Context, seed uint64, step func()) (outcome, error)
}

// outcome is what one seed of an arm has led to.
type outcome struct {
	values []float64 // one for each measure
	lines  []line    // for figures of the table, in their order; an empty one for none
}

type line struct{ x, y []float64 }

// fill runs all arms, seed after seed, so that those that are complete can be
// compared if the run ends early.
func (t *Table) fill(ctx context.Context, o Options, arms []arm) error {
	applies := func(a arm, seed int) bool { return a.seeds == 0 || seed <= a.seeds }
	of, done := 0, 0
	for _, a := range arms {
		for seed := 1; seed <= o.Seeds; seed++ {
			if applies(a, seed) {
				of += a.steps
			}
		}
		t.Rows = append(t.Rows, Row{Labels: a.labels, Published: a.published, Values: make([][]float64, o.Seeds)})
	}
	step := func() {
		if done++; o.Progress != nil {
			o.Progress(done, of)
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
			out, err := a.run(ctx, uint64(seed), step)
			if err != nil {
				return err
			}
			done = before + a.steps // a budget may end a training early
			t.Seeds = seed
			t.Rows[k].Values[seed-1] = out.values
			for f, l := range out.lines {
				t.Figures[f].add(strings.Join(a.labels, ", "), l.x, l.y)
			}
		}
	}
	t.Complete = true
	return nil
}

// train runs a training and counts its rounds.
func train(ctx context.Context, x simulation.Training, step func()) (*simulation.Trained, error) {
	return simulation.Train(ctx, x, func(simulation.TrainingRound) { step() })
}

// accuracy and mcc are those of the last model, NaN if no round was run.
func accuracy(t *simulation.Trained) float64 {
	if m := t.Final(); m != nil {
		return m.Accuracy()
	}
	return math.NaN()
}

func mcc(t *simulation.Trained) float64 {
	if m := t.Final(); m != nil {
		return m.MCC()
	}
	return math.NaN()
}

// learned is the accuracy after those rounds on which the model was judged.
func learned(t *simulation.Trained) line {
	var l line
	for _, r := range t.Rounds {
		if r.Test != nil {
			l.x = append(l.x, float64(r.Round))
			l.y = append(l.y, r.Test.Accuracy())
		}
	}
	return l
}

// inFigure is the lines of an outcome that has one, in that figure.
func inFigure(figure int, l line) []line { return append(make([]line, figure), l) }

// The measures that most tables have.
var (
	accuracyMeasure = Measure{Name: "accuracy", Percent: true, Digits: 2}
	mccMeasure      = Measure{Name: "MCC", Digits: 4}
)

func learningFigure(name, title string) Figure {
	return Figure{Name: name, Title: title, X: "round", Y: "test accuracy, %", Percent: true}
}
