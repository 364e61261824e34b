package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/hushsum/hushsum/simulation/scenario"
)

// sweepKey is a number of a scenario that can be swept.
type sweepKey struct {
	name  string
	whole bool
	set   func(s *scenario.Scenario, v float64)
}

var sweepable = []sweepKey{
	{"clip", false, func(s *scenario.Scenario, v float64) { s.Privacy.Clip = v }},
	{"colluders", true, func(s *scenario.Scenario, v float64) { s.Privacy.Colluders = int(v) }},
	{"degree", true, func(s *scenario.Scenario, v float64) { s.Sum.Degree = int(v) }},
	{"drop", false, func(s *scenario.Scenario, v float64) { s.Sum.Drop = v }},
	{"epsilon", false, setEpsilon},
	{"parties", true, func(s *scenario.Scenario, v float64) { setParties(s, int(v)) }},
	{"rate", false, func(s *scenario.Scenario, v float64) { s.Training.Rate = v }},
	{"rounds", true, func(s *scenario.Scenario, v float64) { s.Rounds = int(v) }},
	{"rows", true, setRows},
	{"seed", true, func(s *scenario.Scenario, v float64) { s.Seed = uint64(v) }},
	{"steps", true, func(s *scenario.Scenario, v float64) { s.Training.Steps = int(v) }},
	{"tolerance", false, func(s *scenario.Scenario, v float64) { s.Leaving.Tolerance = v }},
}

func sweepKeys() (names []string) {
	for _, k := range sweepable {
		names = append(names, k.name)
	}
	return names
}

func setEpsilon(s *scenario.Scenario, v float64) {
	s.Privacy.Epsilon = v
	for k := range s.Parties {
		s.Parties[k].Epsilon = 0
	}
	if !s.Privacy.Noisy() {
		s.Privacy.Noise = "discrete-gaussian"
	}
}

func setRows(s *scenario.Scenario, v float64) {
	s.Data.Rows = int(v)
	for k := range s.Parties {
		s.Parties[k].Rows = 0
	}
}

// setParties spreads so many over the parties that are declared, in proportion to how many
// there are of each: what is left over goes to those that are furthest from their part.
func setParties(s *scenario.Scenario, n int) {
	all, left := int64(s.Size()), n
	rest := make([]int64, len(s.Parties))
	order := make([]int, len(s.Parties))
	for k := range s.Parties {
		part := int64(n) * int64(max(1, s.Parties[k].Count))
		s.Parties[k].Count, rest[k], order[k] = int(part/all), part%all, k
		left -= s.Parties[k].Count
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, k := range order[:left] {
		s.Parties[k].Count++
	}
	s.Parties = slices.DeleteFunc(s.Parties, func(p scenario.Party) bool { return p.Count == 0 })
}

// sweepAxis is one key with its values.
type sweepAxis struct {
	sweepKey
	values []float64
}

// mostCombinations is how many runs a sweep may be.
const mostCombinations = 10_000

// parseSweep reads "epsilon=0.1,1,8 parties=3,10,50".
func parseSweep(text string) (axes []sweepAxis, err error) {
	all := 1
	for _, part := range strings.Fields(text) {
		name, list, ok := strings.Cut(part, "=")
		at := slices.IndexFunc(sweepable, func(k sweepKey) bool { return k.name == name })
		switch {
		case !ok || list == "":
			return nil, &problem{cause: fmt.Sprintf("--sweep: %q has no values", part),
				advice: `Write it as in "epsilon=0.1,1,8 parties=3,10,50".`}
		case at < 0:
			return nil, &problem{cause: fmt.Sprintf("--sweep: there is no %q", name),
				advice: didYouMean(name, sweepKeys(), "%s", "Use "+strings.Join(sweepKeys(), ", ")+".")}
		case slices.ContainsFunc(axes, func(a sweepAxis) bool { return a.name == name }):
			return nil, &problem{cause: fmt.Sprintf("--sweep: %s is there twice", name)}
		}
		axis := sweepAxis{sweepKey: sweepable[at]}
		for _, word := range strings.Split(list, ",") {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 ||
				axis.whole && (v != math.Trunc(v) || v > 1e9) {
				return nil, &problem{cause: fmt.Sprintf("--sweep: %q is no value of %s", word, name)}
			}
			axis.values = append(axis.values, v)
		}
		if all *= len(axis.values); all > mostCombinations {
			return nil, &problem{cause: "--sweep: more than ten thousand combinations",
				advice: "Give fewer values."}
		}
		axes = append(axes, axis)
	}
	if len(axes) == 0 {
		return nil, &problem{cause: "--sweep: there is nothing to sweep",
			advice: `Write it as in "epsilon=0.1,1,8 parties=3,10,50".`}
	}
	return axes, nil
}

// sweepOutcome is what came of one combination, as it is kept.
type sweepOutcome struct {
	Accuracy  float64 `json:"accuracy"`
	MCC       float64 `json:"mcc"`
	Alone     float64 `json:"alone"`     // mean over parties; 0: of nobody
	Seconds   float64 `json:"seconds"`   // of all rounds, virtual
	Certified float64 `json:"certified"` // the largest; 0: nothing is, and nothing protects
	Took      float64 `json:"took"`      // seconds that the simulation took, a crowd's of a core
	Error     string  `json:"error,omitempty"`
}

// sweepRun is one combination.
type sweepRun struct {
	values   []float64 // by axis
	scenario scenario.Scenario
	key      string
	outcome  *sweepOutcome
}

// sweepVersion changes when the same scenario comes to something else.
const sweepVersion = "3"

// digest names a scenario on some rows.
func digest(s scenario.Scenario, rows scenario.Rows) (string, error) {
	text, err := json.Marshal(s.WithDefaults())
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "hushsum sweep %s\n%s\n%d %d %d\n", sweepVersion, text, rows.Train.Len(),
		rows.Train.Features, rows.Test.Len())
	return hex.EncodeToString(h.Sum(nil)), nil
}

// combine makes all combinations, the last axis fastest.
func combine(s scenario.Scenario, axes []sweepAxis, rows scenario.Rows) ([]*sweepRun, error) {
	runs := []*sweepRun{{}}
	for _, a := range axes {
		var next []*sweepRun
		for _, r := range runs {
			for _, v := range a.values {
				next = append(next, &sweepRun{values: append(slices.Clone(r.values), v)})
			}
		}
		runs = next
	}
	for _, r := range runs {
		own := s
		own.Parties = slices.Clone(s.Parties)
		for k, a := range axes {
			a.set(&own, r.values[k])
		}
		r.scenario = own
		var err error
		if r.key, err = digest(own, rows); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// runSweep runs all combinations, several at a time, and goes on from what is kept.
func (v *scenarioFlags) runSweep(
	ctx context.Context, flags *flag.FlagSet, file *scenarioFile, rows scenario.Rows, std streams,
) int {
	axes, err := parseSweep(v.sweep)
	if err != nil {
		return wrongUsage(flags, err, std)
	}
	runs, err := combine(file.Scenario, axes, rows)
	if err != nil {
		return failed(err, std)
	}
	for _, r := range runs {
		if err := r.scenario.Validate(); err != nil {
			fmt.Fprintf(std.err, "hushsum simulate: --sweep %s: %s\n", combination(axes, r), why(err))
			return exitUsage
		}
	}
	var store *kept
	if path := v.keptFile(); path != "" {
		if store, err = openKept(path); err != nil {
			return failed(err, std)
		}
		defer store.close()
	}
	if err := sweepAll(ctx, runs, rows, store, std); err != nil {
		if ctx.Err() != nil {
			advice := "Give --keep FILE or --out DIR to go on from what was done."
			if store != nil {
				advice = "The same command goes on from what was done: it is in " + v.keptFile() + "."
			}
			complain(std.err, "hushsum simulate", &problem{cause: "interrupted", advice: advice})
			return exitInterrupted
		}
		return failed(err, std)
	}
	v.showSweep(axes, runs, std)
	if failures(runs) == len(runs) {
		return failed(&problem{cause: "--sweep: no combination came to an outcome"}, std)
	}
	if v.out != "" {
		if err := v.reportSweep(file, axes, runs, std); err != nil {
			return failed(outProblem(err), std)
		}
	}
	return exitOK
}

// why says what is wrong with a combination, and what to do.
func why(err error) string {
	var e *scenario.FieldError
	if !errors.As(err, &e) {
		return plain(err)
	}
	if e.Advice == "" {
		return e.Path + ": " + e.Reason
	}
	return e.Path + ": " + e.Reason + "; " + e.Advice
}

// combination writes the values of a combination.
func combination(axes []sweepAxis, r *sweepRun) string {
	var parts []string
	for k, a := range axes {
		parts = append(parts, fmt.Sprintf("%s=%v", a.name, r.values[k]))
	}
	return strings.Join(parts, " ")
}

// sweepAll runs what is not kept yet, and tells how long the rest will take.
func sweepAll(
	ctx context.Context, runs []*sweepRun, rows scenario.Rows, store *kept, std streams,
) error {
	var todo []*sweepRun
	for _, r := range runs {
		if store != nil {
			if text, ok := store.Load(r.key); ok {
				r.outcome = &sweepOutcome{}
				if err := json.Unmarshal(text, r.outcome); err != nil {
					return err
				}
				continue
			}
		}
		todo = append(todo, r)
	}
	if done := len(runs) - len(todo); done > 0 {
		fmt.Fprintf(std.err, "hushsum simulate: %d of %d are kept from before\n", done, len(runs))
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, finished, begin, last := 0, 0, time.Now(), time.Now()
	workers := min(len(todo), runtime.GOMAXPROCS(0))
	if len(todo) > 0 && isCrowd(todo[0].scenario) {
		workers = 1 // a crowd works on all cores
	}
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				k := next
				next++
				mu.Unlock()
				if k >= len(todo) || ctx.Err() != nil {
					return
				}
				outcome, err := sweepOne(ctx, todo[k].scenario, rows)
				mu.Lock()
				if err == nil && store != nil {
					var text []byte
					if text, err = json.Marshal(outcome); err == nil {
						err = store.Save(todo[k].key, text)
					}
				}
				if err != nil {
					stop(err)
				} else {
					todo[k].outcome = outcome
					finished++
					if now := time.Now(); now.Sub(last) > time.Second || finished == len(todo) {
						last = now
						left := now.Sub(begin) / time.Duration(finished) * time.Duration(len(todo)-finished)
						fmt.Fprintf(std.err, "hushsum simulate: %d of %d done, some %v left\n", finished,
							len(todo), left.Round(time.Second))
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return nil
}

func isCrowd(s scenario.Scenario) bool { return s.Sum.Kind == scenario.Crowd }

// sweepOne runs one combination. What a scenario or its training fails with is an
// outcome too.
func sweepOne(
	ctx context.Context, s scenario.Scenario, rows scenario.Rows,
) (*sweepOutcome, error) {
	now := time.Now
	if isCrowd(s) {
		now = processorTime // nothing else runs in this process
	}
	result, err := scenario.Run(ctx, s, rows, scenario.Hooks{Now: now})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return &sweepOutcome{Error: why(err)}, nil
	}
	last := result.Final()
	out := &sweepOutcome{Accuracy: last.Accuracy, MCC: last.MCC, Took: result.Took.Seconds()}
	for _, r := range result.Rounds {
		out.Seconds += r.Took.Seconds()
	}
	if a := aloneMean(&last); !math.IsNaN(a) {
		out.Alone = a
	}
	if e := worst(result); !math.IsInf(e, 0) { // which JSON cannot say
		out.Certified = e
	}
	if len(result.Rounds) == 0 {
		out = &sweepOutcome{Error: "no round was held"}
	}
	return out, nil
}

// orNone is a number, nil for 0, which says that there is none.
func orNone(x float64) any {
	if x == 0 {
		return nil
	}
	return x
}

// failures counts the combinations that came to nothing.
func failures(runs []*sweepRun) (n int) {
	for _, r := range runs {
		if r.outcome.Error != "" {
			n++
		}
	}
	return n
}

func (v *scenarioFlags) showSweep(axes []sweepAxis, runs []*sweepRun, std streams) {
	if v.json {
		encoder := json.NewEncoder(std.out)
		for _, r := range runs {
			line := map[string]any{"accuracy": r.outcome.Accuracy, "mcc": r.outcome.MCC,
				"alone": orNone(r.outcome.Alone), "seconds": r.outcome.Seconds,
				"certified": orNone(r.outcome.Certified), "digest": r.key}
			if r.outcome.Error != "" {
				line = map[string]any{"error": r.outcome.Error, "digest": r.key}
			}
			for k, a := range axes {
				line[a.name] = r.values[k]
			}
			if err := encoder.Encode(line); err != nil {
				return
			}
		}
		return
	}
	for _, a := range axes {
		fmt.Fprintf(std.out, "%10s ", a.name)
	}
	fmt.Fprintf(std.out, "%9s %8s %8s %12s %10s\n", "accuracy", "MCC", "alone", "seconds", "certified")
	for _, r := range runs {
		for k := range axes {
			fmt.Fprintf(std.out, "%10v ", r.values[k])
		}
		o := r.outcome
		if o.Error != "" {
			lead := strings.Repeat(" ", 11*len(axes))
			lines := wrap(o.Error, max(20, width-len(lead)))
			fmt.Fprintln(std.out, strings.Join(lines, "\n"+lead))
			continue
		}
		alone := "-"
		if o.Alone > 0 {
			alone = fmt.Sprintf("%.4f", o.Alone)
		}
		fmt.Fprintf(std.out, "%9.4f %8.4f %8s %12.3f %10s\n", o.Accuracy, o.MCC, alone, o.Seconds,
			epsilonText(o.Certified))
	}
}

// drawTradeOff draws accuracy against the first axis, a line for each combination of the
// others.
func drawTradeOff(path, title string, axes []sweepAxis, runs []*sweepRun) error {
	lines := map[string]plotter.XYs{}
	var names []string
	for _, r := range runs {
		if r.outcome.Error != "" {
			continue
		}
		name := combination(axes[1:], &sweepRun{values: r.values[1:]})
		if _, ok := lines[name]; !ok {
			names = append(names, name)
		}
		lines[name] = append(lines[name], plotter.XY{X: r.values[0], Y: 100 * r.outcome.Accuracy})
	}
	c := newChart(title, axes[0].name, "accuracy, %", len(names))
	c.Add(plotter.NewGrid())
	values := axes[0].values
	if low := slices.Min(values); low > 0 && slices.Max(values) >= 10*low {
		logarithmic(&c.X)
	}
	for _, name := range names {
		if err := c.addTrace(name, lines[name]); err != nil {
			return err
		}
	}
	return c.save(path)
}

// addTrace adds points with a line through them.
func (c *chart) addTrace(name string, points plotter.XYs) error {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	_, line.LineStyle, dots.GlyphStyle = c.style()
	c.Add(line, dots)
	c.key(name, line, dots)
	return nil
}

// reportSweep writes the trade-off as a table, a figure and a page.
func (v *scenarioFlags) reportSweep(
	file *scenarioFile, axes []sweepAxis, runs []*sweepRun, std streams,
) error {
	name := file.base() + "-sweep"
	records := [][]string{nil}
	for _, a := range axes {
		records[0] = append(records[0], a.name)
	}
	records[0] = append(records[0], "accuracy", "mcc", "alone", "seconds", "certified", "took",
		"error")
	for _, r := range runs {
		var row []string
		for _, x := range append(slices.Clone(r.values), r.outcome.Accuracy, r.outcome.MCC,
			r.outcome.Alone, r.outcome.Seconds, r.outcome.Certified, r.outcome.Took) {
			row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
		}
		records = append(records, append(row, r.outcome.Error))
	}
	m := manifest{Command: "simulate --scenario --sweep", Complete: true}
	paths, err := publish(v.out, name, m, func(stage string) error {
		if err := writeCSV(filepath.Join(stage, name+".csv"), records); err != nil {
			return err
		}
		figure := filepath.Join(stage, name+".svg")
		if err := drawTradeOff(figure, file.Name, axes, runs); err != nil {
			return err
		}
		figures := []string{figure}
		cost := filepath.Join(stage, name+"-cost.svg")
		if drawn, err := drawGrowth(cost, file.Name, axes, runs); err != nil {
			return err
		} else if drawn {
			figures = append(figures, cost)
		}
		return writeSweepPage(filepath.Join(stage, name+".html"), figures, file, axes, runs)
	})
	if err == nil && len(paths) > 0 && !v.json {
		fmt.Fprintf(std.out, "%d files in %s\n", len(paths), v.out)
	}
	return err
}
