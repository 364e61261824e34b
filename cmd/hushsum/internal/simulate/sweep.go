package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/kept"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation"
)

// trialOutcome records the result of one run of a sweep, as it is kept.
type trialOutcome struct {
	Accuracy float64  `json:"accuracy"`
	MCC      float64  `json:"mcc"`
	Alone    float64  `json:"alone"`   // mean over parties; 0: of none
	Seconds  *float64 `json:"seconds"` // of all rounds, virtual; nil: the job has no time
	Took     float64  `json:"took"`    // seconds that the simulation took; with Busy those of a core
	Busy     bool     `json:"busy"`    // it works on all cores
	Error    string   `json:"error,omitempty"`
	// Certified is the largest; nil: none is, and nothing protects.
	Certified *accounting.Claim `json:"certified"`
}

// trial is one run of a sweep.
type trial struct {
	job     *job.Job
	key     string
	outcome *trialOutcome // nil: it has not run
}

// sweepRun is one combination, with a trial for each seed.
type sweepRun struct {
	texts   []string  // by axis
	values  []float64 // by axis
	trials  []*trial
	outcome *combined // nil until all trials have run
}

// sweepVersion changes when the same job gives another result.
const sweepVersion = "7"

// digest identifies a job, with its world and the flags that complete it, on the rows of virtual
// time.
func (v *jobFlags) digest(j *job.Job) (string, error) {
	text, err := j.MarshalText()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "hushsum sweep %s\n%s\n%v %v %v\n", sweepVersion, text, v.file == "", v.byRows,
		v.survivors)
	if inTime(j) {
		rows, err := v.loaded(j)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, rows.Train.Len(), rows.Train.Features, rows.Test.Len())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// combine makes all combinations, the last axis fastest.
func (v *jobFlags) combine(j *job.Job, axes []sweepAxis) ([]*sweepRun, error) {
	runs := []*sweepRun{{}}
	for _, a := range axes {
		var next []*sweepRun
		for _, r := range runs {
			for i, x := range a.values {
				next = append(next, &sweepRun{texts: append(slices.Clone(r.texts), a.texts[i]),
					values: append(slices.Clone(r.values), x)})
			}
		}
		runs = next
	}
	for _, r := range runs {
		of := j.Clone()
		for k, a := range axes {
			if err := setKey(of, a.name, r.texts[k]); err != nil {
				return nil, err
			}
		}
		if inTime(of) {
			if err := simulation.Validate(of); err != nil {
				return nil, &cli.Problem{Cause: fmt.Sprintf("--sweep %s: %s", combination(axes, r), v.why(err)),
					Err: err}
			}
		}
		for k := range max(1, v.seeds) {
			t := &trial{job: of.Clone()}
			t.job.Seed += uint64(k)
			if of.World.Seed != 0 {
				t.job.World.Seed += uint64(k)
			}
			var err error
			if t.key, err = v.digest(t.job); err != nil {
				return nil, err
			}
			r.trials = append(r.trials, t)
		}
	}
	return runs, nil
}

// runSweep runs all combinations, several at a time, and continues from kept outcomes.
func (v *jobFlags) runSweep(
	ctx context.Context, flags *flag.FlagSet, j *job.Job, std cli.Streams,
) int {
	axes, err := v.axes(j)
	if err != nil {
		return cli.WrongUsage(flags, err, std)
	}
	if v.print {
		return printJob(j, std)
	}
	runs, err := v.combine(j, axes)
	if err != nil {
		return v.refused(flags, err, std)
	}
	if v.out != "" {
		if err := results.MakeFolder(v.out); err != nil {
			return cli.Failed("simulate", err, std)
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
	err = v.sweepAll(ctx, runs, store, std)
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		return cli.Failed("simulate", err, std)
	}
	for _, r := range runs {
		r.combine()
	}
	done := slices.DeleteFunc(slices.Clone(runs), func(r *sweepRun) bool { return r.outcome == nil })
	if len(done) > 0 || !interrupted {
		v.showSweep(axes, done, std)
	}
	some := failures(done) < len(done)
	if v.out != "" && some {
		if err := v.reportSweep(j, axes, done, !interrupted, std); err != nil {
			return cli.Failed("simulate", results.FolderProblem(err), std)
		}
	}
	switch {
	case interrupted:
		return v.sweepInterrupted(len(done), len(runs), std)
	case !some:
		p := &cli.Problem{Cause: "--sweep: no combination gave a result"}
		if v.sweep == "" {
			p.Cause = "--seeds: no seed gave a result"
		}
		if len(done) > 0 {
			p.Advice = "The first one: " + done[0].outcome.Error + "."
		}
		return cli.Failed("simulate", p, std)
	}
	return cli.ExitOK
}

// keptFile returns the file in which the outcomes of a sweep are kept.
func (v *jobFlags) keptFile() string {
	if v.keep == "" && v.out != "" {
		return filepath.Join(v.out, "sweep.kept")
	}
	return v.keep
}

// sweepInterrupted prints how far a sweep came, and how to continue it.
func (v *jobFlags) sweepInterrupted(done, of int, std cli.Streams) int {
	advice := "Give --keep FILE or --out DIR to be able to resume from what was done."
	if path := v.keptFile(); path != "" {
		advice = "The same command resumes from what was done: it is in " + path + "."
	}
	cause := fmt.Sprintf("interrupted after %d of %s", done, show.Plural(of, "combination"))
	cli.Complain(std.Err, "hushsum simulate", &cli.Problem{Cause: cause, Advice: advice})
	return cli.ExitInterrupted
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
func (v *jobFlags) sweepAll(
	ctx context.Context, runs []*sweepRun, store *kept.File, std cli.Streams,
) error {
	var todo, all []*trial
	for _, r := range runs {
		all = append(all, r.trials...)
	}
	for _, r := range all {
		if store != nil {
			if text, ok := store.Load(r.key); ok {
				r.outcome = &trialOutcome{}
				if err := json.Unmarshal(text, r.outcome); err != nil {
					return err
				}
				continue
			}
		}
		todo = append(todo, r)
	}
	if done := len(all) - len(todo); done > 0 {
		fmt.Fprintf(std.Err, "hushsum simulate: %d of %d are kept from an earlier run\n", done, len(all))
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, finished, begin, last := 0, 0, time.Now(), time.Now()
	workers := min(len(todo), runtime.GOMAXPROCS(0))
	if slices.ContainsFunc(todo, func(t *trial) bool { return busyJob(t.job) }) {
		workers = 1
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
				outcome, err := v.sweepOne(ctx, todo[k].job, workers == 1)
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

// busyJob reports whether a run of a job uses all cores.
func busyJob(j *job.Job) bool {
	return !inTime(j) || j.Oneshot() ||
		j.World.Fidelity != "" && j.World.Fidelity != simulation.Messages
}

// sweepOne runs one trial, alone in this process or not. A failure of a job or its training is an
// outcome too.
func (v *jobFlags) sweepOne(ctx context.Context, j *job.Job, alone bool) (*trialOutcome, error) {
	out := &trialOutcome{Busy: busyJob(j)}
	now := time.Now
	if out.Busy && alone {
		now = processorTime
	}
	r, err := v.ready(ctx, j)
	var result *simulation.Result
	if err == nil {
		result, err = r.play(ctx, watch{now: now})
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return &trialOutcome{Error: v.why(err)}, nil
	}
	last := result.Final()
	if last == nil {
		return &trialOutcome{Error: "no round was held"}, nil
	}
	out.Accuracy, out.MCC, out.Took = last.Accuracy(), last.Test.MCC(), result.Took.Seconds()
	if inTime(j) {
		seconds := 0.0
		for _, r := range result.Rounds {
			seconds += r.Took.Seconds()
		}
		out.Seconds = &seconds
	}
	if a := aloneMean(last); !math.IsNaN(a) {
		out.Alone = a
	}
	out.Certified, err = result.Certified()
	return out, err
}
