package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/chart"
	"github.com/hushsum/hushsum/job"
)

// figure is a mean over seeds with the standard deviation of a single run.
type figure struct{ Mean, SD float64 }

// newFigure returns the mean and the standard deviation of some values; of one it is 0.
func newFigure(values []float64) (f figure) {
	for _, x := range values {
		f.Mean += x / float64(len(values))
	}
	for _, x := range values {
		f.SD += (x - f.Mean) * (x - f.Mean) / float64(max(1, len(values)-1))
	}
	f.SD = math.Sqrt(f.SD)
	return f
}

// percent writes a share, with its spread if there is one.
func (f figure) percent() string {
	if f.SD == 0 {
		return percentText(f.Mean)
	}
	return fmt.Sprintf("%.1f ± %.1f %%", 100*f.Mean, 100*f.SD)
}

// combined is the outcome of a combination, over its seeds.
type combined struct {
	Accuracy, MCC, Alone, Took figure
	Seconds                    *figure // nil: the job has no time
	Busy                       bool
	Error                      string
	Certified                  *accounting.Claim // the largest; nil: none is
}

// combine works out the outcome of a combination all of whose trials have run.
func (r *sweepRun) combine() {
	c := &combined{}
	var accuracy, mcc, alone, took, seconds []float64
	for _, t := range r.trials {
		o := t.outcome
		if o == nil {
			return
		}
		if o.Error != "" && c.Error == "" {
			if c.Error = o.Error; len(r.trials) > 1 {
				c.Error = fmt.Sprintf("seed %d: %s", t.job.Seed, o.Error)
			}
		}
		accuracy, mcc = append(accuracy, o.Accuracy), append(mcc, o.MCC)
		alone, took = append(alone, o.Alone), append(took, o.Took)
		if o.Seconds != nil {
			seconds = append(seconds, *o.Seconds)
		}
		c.Busy = o.Busy
		switch {
		case c.Certified == nil:
			c.Certified = o.Certified
		case o.Certified != nil:
			if most, err := c.Certified.Or(*o.Certified); err == nil {
				c.Certified = &most
			}
		}
	}
	c.Accuracy, c.MCC, c.Alone = newFigure(accuracy), newFigure(mcc), newFigure(alone)
	c.Took = newFigure(took)
	if len(seconds) == len(r.trials) {
		all := newFigure(seconds)
		c.Seconds = &all
	}
	r.outcome = c
}

// time writes how long all rounds took in virtual time.
func (c *combined) time(format string) string {
	if c.Seconds == nil {
		return "-"
	}
	return fmt.Sprintf(format, c.Seconds.Mean)
}

// failures counts the combinations without a result.
func failures(runs []*sweepRun) (n int) {
	for _, r := range runs {
		if r.outcome.Error != "" {
			n++
		}
	}
	return n
}

// object returns what --json prints of a combination.
func (v *jobFlags) object(axes []sweepAxis, r *sweepRun) map[string]any {
	o := r.outcome
	var keys []string
	for _, t := range r.trials {
		keys = append(keys, t.key)
	}
	object := map[string]any{"digest": keys[0]}
	if v.seeds > 0 {
		object = map[string]any{"digests": keys, "seeds": len(keys)}
	}
	for k, a := range axes {
		object[a.name] = a.shown(r, k)
	}
	if o.Error != "" {
		object["error"] = o.Error
		return object
	}
	add := func(name string, f *figure) {
		if object[name] = nil; f == nil {
			return
		}
		object[name] = f.Mean
		if v.seeds > 0 {
			object[name+"_sd"] = f.SD
		}
	}
	add("accuracy", &o.Accuracy)
	add("mcc", &o.MCC)
	add("seconds", o.Seconds)
	alone := &o.Alone
	if alone.Mean == 0 {
		alone = nil
	}
	add("alone", alone)
	object["certified"] = o.Certified
	return object
}

// showSweep prints all combinations.
func (v *jobFlags) showSweep(axes []sweepAxis, runs []*sweepRun, std cli.Streams) {
	if v.json {
		encoder := json.NewEncoder(std.Out)
		for _, r := range runs {
			if err := encoder.Encode(v.object(axes, r)); err != nil {
				return
			}
		}
		return
	}
	g := &grid{Screen: show.Screen{Std: std}}
	var heading line
	add := func(name string, width int) {
		heading.cells, g.widths = append(heading.cells, name), append(g.widths, width)
	}
	for _, a := range axes {
		add(a.name, a.width())
	}
	seconds := 12
	if add("accuracy", 9); v.seeds > 0 { // files have the spread of the others too
		add("±", 7)
		seconds = 10
	}
	add("MCC", 8)
	add("alone", 8)
	add("seconds", seconds)
	add("certified", 10)
	g.row(heading)
	for _, r := range runs {
		g.row(v.row(r))
	}
	for _, words := range about(runs) {
		g.Sentence("Certified %s.", words)
	}
	if v.seeds > 0 {
		g.Sentence("Means over %s; ± is the standard deviation of the accuracy of one.",
			show.Plural(v.seeds, "seed"))
	}
}

// row returns the row of a combination.
func (v *jobFlags) row(r *sweepRun) line {
	l, o := line{cells: slices.Clone(r.texts)}, r.outcome
	if o.Error != "" {
		l.text = o.Error
		return l
	}
	add := func(x float64) { l.cells = append(l.cells, fmt.Sprintf("%.4f", x)) }
	if add(o.Accuracy.Mean); v.seeds > 0 {
		add(o.Accuracy.SD)
	}
	if add(o.MCC.Mean); o.Alone.Mean > 0 {
		add(o.Alone.Mean)
	} else {
		l.cells = append(l.cells, "-")
	}
	l.cells = append(l.cells, o.time("%.3f"), most(o.Certified))
	return l
}

// about says what certified figures are about: mostly the same.
func about(runs []*sweepRun) (all []string) {
	for _, r := range runs {
		if c := r.outcome.Certified; c != nil && !slices.Contains(all, c.About()) {
			all = append(all, c.About())
		}
	}
	return all
}

// drawTradeOff draws accuracy against the first axis, a line for each combination of the
// others.
func drawTradeOff(path, title string, axes []sweepAxis, runs []*sweepRun) error {
	lines := map[string][]chart.Point{}
	var names []string
	for _, r := range runs {
		if r.outcome.Error != "" {
			continue
		}
		name := combination(axes[1:], &sweepRun{texts: r.texts[1:]})
		if _, ok := lines[name]; !ok {
			names = append(names, name)
		}
		lines[name] = append(lines[name], chart.Point{X: r.values[0], Y: 100 * r.outcome.Accuracy.Mean})
	}
	values := axes[0].values
	low := slices.Min(values)
	c := chart.Figure{Title: title, X: axes[0].name, Y: "accuracy, %", Grid: true,
		LogX: low > 0 && slices.Max(values) >= 10*low}
	for _, name := range names {
		c.Series = append(c.Series, chart.Trace(name, lines[name]))
	}
	return c.Save(path)
}

// reportSweep writes the trade-off as a table, a figure and a page; complete tells whether runs are
// all combinations.
func (v *jobFlags) reportSweep(
	j *job.Job, axes []sweepAxis, runs []*sweepRun, complete bool, std cli.Streams,
) error {
	name := v.name() + "-sweep"
	records := [][]string{nil}
	for _, a := range axes {
		records[0] = append(records[0], a.name)
	}
	numbers := []string{"accuracy", "mcc", "alone", "seconds", "took"}
	for _, name := range numbers {
		if records[0] = append(records[0], name); v.seeds > 0 {
			records[0] = append(records[0], name+"_sd")
		}
	}
	records[0] = append(records[0], "certified", "error")
	for _, r := range runs {
		row := slices.Clone(r.texts)
		o := r.outcome
		for _, f := range []*figure{&o.Accuracy, &o.MCC, &o.Alone, o.Seconds, &o.Took} {
			if f == nil {
				f = &figure{}
			}
			row = append(row, strconv.FormatFloat(f.Mean, 'g', -1, 64))
			if v.seeds > 0 {
				row = append(row, strconv.FormatFloat(f.SD, 'g', -1, 64))
			}
		}
		certified := ""
		if c := o.Certified; c != nil {
			certified = c.String()
		}
		records = append(records, append(row, certified, o.Error))
	}
	m := results.Manifest{Command: v.command() + " --sweep",
		Complete: complete}
	if !complete {
		m.Ended = "interrupted"
	}
	paths, err := results.Publish(v.out, name, m, func(stage string) error {
		if err := results.WriteCSV(filepath.Join(stage, name+".csv"), records); err != nil {
			return err
		}
		var figures []string
		if len(axes) > 0 {
			path := filepath.Join(stage, name+".svg")
			if err := drawTradeOff(path, j.Name, axes, runs); err != nil {
				return err
			}
			figures = append(figures, path)
		}
		cost := filepath.Join(stage, name+"-cost.svg")
		if drawn, err := drawGrowth(cost, j.Name, axes, runs); err != nil {
			return err
		} else if drawn {
			figures = append(figures, cost)
		}
		return writeSweepPage(filepath.Join(stage, name+".html"), figures, j, axes, runs)
	})
	if err == nil && len(paths) > 0 && !v.json {
		fmt.Fprintf(std.Out, "%d files in %s\n", len(paths), filepath.Dir(paths[0]))
	}
	return err
}
