package virtual

import (
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

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/chart"
	"github.com/hushsum/hushsum/internal/kept"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/scenario"
)

// sweepOutcome records the result of one combination, as it is kept.
type sweepOutcome struct {
	Accuracy float64 `json:"accuracy"`
	MCC      float64 `json:"mcc"`
	Alone    float64 `json:"alone"`   // mean over parties; 0: of none
	Seconds  float64 `json:"seconds"` // of all rounds, virtual
	Took     float64 `json:"took"`    // seconds that the simulation took; for a crowd's those of a core
	Error    string  `json:"error,omitempty"`
	// Certified is the largest; nil: none is, and nothing protects.
	Certified *accounting.Claim `json:"certified"`
}

// sweepRun is one combination.
type sweepRun struct {
	texts   []string  // by axis
	values  []float64 // by axis
	job     *job.Job
	key     string
	outcome *sweepOutcome
}

// sweepVersion changes when the same job gives another result.
const sweepVersion = "5"

// digest identifies a job, with its world, on given rows.
func digest(j *job.Job, rows scenario.Rows) (string, error) {
	text, err := j.MarshalText()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "hushsum sweep %s\n%s\n%d %d %d\n", sweepVersion, text, rows.Train.Len(),
		rows.Train.Features, rows.Test.Len())
	return hex.EncodeToString(h.Sum(nil)), nil
}

// combine makes all combinations, the last axis fastest.
func combine(j *job.Job, axes []sweepAxis, rows scenario.Rows) ([]*sweepRun, error) {
	runs := []*sweepRun{{}}
	for _, a := range axes {
		var next []*sweepRun
		for _, r := range runs {
			for i, v := range a.values {
				next = append(next, &sweepRun{texts: append(slices.Clone(r.texts), a.texts[i]),
					values: append(slices.Clone(r.values), v)})
			}
		}
		runs = next
	}
	for _, r := range runs {
		r.job = j.Clone()
		for k, a := range axes {
			if err := setKey(r.job, a.name, r.texts[k]); err != nil {
				return nil, err
			}
		}
		var err error
		if r.key, err = digest(r.job, rows); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// runSweep runs all combinations, several at a time, and continues from kept outcomes.
func (v *Run) runSweep(
	ctx context.Context, flags *flag.FlagSet, j *job.Job, rows scenario.Rows, std cli.Streams,
) int {
	axes, err := parseSweep(j, v.Sweep)
	if err != nil {
		return cli.WrongUsage(flags, err, std)
	}
	runs, err := combine(j, axes, rows)
	if err != nil {
		return cli.Failed("simulate", err, std)
	}
	for _, r := range runs {
		if err := scenario.Validate(r.job); err != nil {
			fmt.Fprintf(std.Err, "hushsum simulate: --sweep %s: %s\n", combination(axes, r), why(err))
			return cli.ExitUsage
		}
	}
	var store *kept.File
	if path := v.keptFile(); path != "" {
		if store, err = kept.Open(path); err != nil {
			return cli.Failed("simulate", &cli.Problem{Cause: fmt.Sprintf("--keep: %v", err),
				Advice: "Name a file that an earlier run wrote, or a new one.", Err: err}, std)
		}
		defer store.Close()
	}
	err = sweepAll(ctx, runs, rows, store, std)
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		return cli.Failed("simulate", err, std)
	}
	done := slices.DeleteFunc(slices.Clone(runs), func(r *sweepRun) bool { return r.outcome == nil })
	if len(done) > 0 || !interrupted {
		v.showSweep(axes, done, std)
	}
	some := failures(done) < len(done)
	if v.Out != "" && some {
		if err := v.reportSweep(j, axes, done, !interrupted, std); err != nil {
			return cli.Failed("simulate", results.FolderProblem(err), std)
		}
	}
	switch {
	case interrupted:
		return v.sweepInterrupted(len(done), len(runs), std)
	case !some:
		p := &cli.Problem{Cause: "--sweep: no combination gave a result"}
		return cli.Failed("simulate", p, std)
	}
	return cli.ExitOK
}

// sweepInterrupted prints how far a sweep came, and how to continue it.
func (v *Run) sweepInterrupted(done, of int, std cli.Streams) int {
	advice := "Give --keep FILE or --out DIR to be able to resume from what was done."
	if path := v.keptFile(); path != "" {
		advice = "The same command resumes from what was done: it is in " + path + "."
	}
	cause := fmt.Sprintf("interrupted after %d of %s", done, show.Plural(of, "combination"))
	cli.Complain(std.Err, "hushsum simulate", &cli.Problem{Cause: cause, Advice: advice})
	return cli.ExitInterrupted
}

// why states what is wrong with a combination, and what to do.
func why(err error) string {
	var e *job.ConfigError
	if !errors.As(err, &e) {
		return cli.Plain(err)
	}
	own := *e
	own.File, own.Line = "", 0
	return strings.TrimPrefix(own.Error(), "job: ")
}

// combination writes the values of a combination.
func combination(axes []sweepAxis, r *sweepRun) string {
	var parts []string
	for k, a := range axes {
		parts = append(parts, a.name+"="+r.texts[k])
	}
	return strings.Join(parts, " ")
}

// sweepAll runs the combinations that are not kept yet, and reports how long the rest will take.
func sweepAll(
	ctx context.Context, runs []*sweepRun, rows scenario.Rows, store *kept.File, std cli.Streams,
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
		fmt.Fprintf(std.Err, "hushsum simulate: %d of %d are kept from an earlier run\n", done, len(runs))
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, finished, begin, last := 0, 0, time.Now(), time.Now()
	workers := min(len(todo), runtime.GOMAXPROCS(0))
	if len(todo) > 0 && isCrowd(todo[0].job) {
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
				outcome, err := sweepOne(ctx, todo[k].job, rows)
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
						fmt.Fprintf(std.Err, "hushsum simulate: %d of %d done, some %v left\n", finished,
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

// isCrowd reports whether a simulation works on all cores.
func isCrowd(j *job.Job) bool { return j.World.Fidelity == "crowd" || j.Oneshot() }

// sweepOne runs one combination. A failure of a job or its training is an outcome too.
func sweepOne(
	ctx context.Context, j *job.Job, rows scenario.Rows,
) (*sweepOutcome, error) {
	now := time.Now
	if isCrowd(j) {
		now = processorTime // nothing else runs in this process
	}
	result, err := scenario.Run(ctx, j, rows, scenario.Hooks{Now: now})
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
	if out.Certified, err = worst(result); err != nil {
		return nil, err
	}
	if len(result.Rounds) == 0 {
		out = &sweepOutcome{Error: "no round was held"}
	}
	return out, nil
}

// orNone returns a number, or nil for 0, which stands for none.
func orNone(x float64) any {
	if x == 0 {
		return nil
	}
	return x
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

func (v *Run) showSweep(axes []sweepAxis, runs []*sweepRun, std cli.Streams) {
	if v.JSON {
		encoder := json.NewEncoder(std.Out)
		for _, r := range runs {
			line := map[string]any{"accuracy": r.outcome.Accuracy, "mcc": r.outcome.MCC,
				"alone": orNone(r.outcome.Alone), "seconds": r.outcome.Seconds,
				"certified": r.outcome.Certified, "digest": r.key}
			if r.outcome.Error != "" {
				line = map[string]any{"error": r.outcome.Error, "digest": r.key}
			}
			for k, a := range axes {
				line[a.name] = a.shown(r, k)
			}
			if err := encoder.Encode(line); err != nil {
				return
			}
		}
		return
	}
	lead := 0
	for _, a := range axes {
		fmt.Fprintf(std.Out, "%*s ", a.width(), a.name)
		lead += a.width() + 1
	}
	fmt.Fprintf(std.Out, "%9s %8s %8s %12s %10s\n", "accuracy", "MCC", "alone", "seconds", "certified")
	for _, r := range runs {
		for k, a := range axes {
			fmt.Fprintf(std.Out, "%*s ", a.width(), r.texts[k])
		}
		o := r.outcome
		if o.Error != "" {
			lines := cli.Wrap(o.Error, max(20, cli.Width-lead))
			fmt.Fprintln(std.Out, strings.Join(lines, "\n"+strings.Repeat(" ", lead)))
			continue
		}
		alone := "-"
		if o.Alone > 0 {
			alone = fmt.Sprintf("%.4f", o.Alone)
		}
		fmt.Fprintf(std.Out, "%9.4f %8.4f %8s %12.3f %10s\n", o.Accuracy, o.MCC, alone, o.Seconds,
			most(o.Certified))
	}
	for _, words := range about(runs) {
		fmt.Fprintf(std.Out, "\n%s\n", strings.Join(cli.Wrap("Certified "+words+".", cli.Width), "\n"))
	}
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
		lines[name] = append(lines[name], chart.Point{X: r.values[0], Y: 100 * r.outcome.Accuracy})
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
func (v *Run) reportSweep(
	j *job.Job, axes []sweepAxis, runs []*sweepRun, complete bool, std cli.Streams,
) error {
	name := v.Base + "-sweep"
	records := [][]string{nil}
	for _, a := range axes {
		records[0] = append(records[0], a.name)
	}
	records[0] = append(records[0], "accuracy", "mcc", "alone", "seconds", "took", "certified",
		"error")
	for _, r := range runs {
		row := slices.Clone(r.texts)
		for _, x := range append([]float64{}, r.outcome.Accuracy, r.outcome.MCC, r.outcome.Alone,
			r.outcome.Seconds, r.outcome.Took) {
			row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
		}
		certified := ""
		if c := r.outcome.Certified; c != nil {
			certified = c.String()
		}
		records = append(records, append(row, certified, r.outcome.Error))
	}
	m := results.Manifest{Command: "simulate " + filepath.Base(v.File) + " --sweep",
		Complete: complete}
	if !complete {
		m.Ended = "interrupted"
	}
	paths, err := results.Publish(v.Out, name, m, func(stage string) error {
		if err := results.WriteCSV(filepath.Join(stage, name+".csv"), records); err != nil {
			return err
		}
		figure := filepath.Join(stage, name+".svg")
		if err := drawTradeOff(figure, j.Name, axes, runs); err != nil {
			return err
		}
		figures := []string{figure}
		cost := filepath.Join(stage, name+"-cost.svg")
		if drawn, err := drawGrowth(cost, j.Name, axes, runs); err != nil {
			return err
		} else if drawn {
			figures = append(figures, cost)
		}
		return writeSweepPage(filepath.Join(stage, name+".html"), figures, j, axes, runs)
	})
	if err == nil && len(paths) > 0 && !v.JSON {
		fmt.Fprintf(std.Out, "%d files in %s\n", len(paths), filepath.Dir(paths[0]))
	}
	return err
}
