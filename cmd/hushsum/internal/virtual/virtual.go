// Package virtual simulates jobs, and sweeps of jobs, in virtual time, and reports them as tables,
// JSON, figures and a page.
package virtual

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/datasets"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/scenario"
)

// Run says which results of a simulation in virtual time are printed and written.
type Run struct {
	File, Base string // of the job; its name without folder and extension
	Out        string // folder of tables, figures and a page; empty: none
	Sweep      string // in the form of --sweep; empty: the job as it is
	Keep       string // file of the outcomes of a sweep; empty: the folder's
	JSON       bool
}

// Simulate simulates a job, or a sweep of jobs, and returns the exit code.
func (v *Run) Simulate(
	ctx context.Context, flags *flag.FlagSet, j *job.Job, std cli.Streams,
) int {
	if v.Sweep == "" { // its combinations are checked one by one
		if err := scenario.Validate(j); err != nil {
			return jobs.Failed("simulate", err, std)
		}
	}
	if v.Out != "" {
		if err := results.MakeFolder(v.Out); err != nil {
			return cli.Failed("simulate", err, std)
		}
	}
	rows, err := datasets.LoadRows(j)
	if err != nil {
		return jobs.Failed("simulate", err, std)
	}
	if v.Sweep != "" {
		return v.runSweep(ctx, flags, j, rows, std)
	}
	return v.runOne(ctx, j, rows, std)
}

// runOne simulates the job as it is.
func (v *Run) runOne(
	ctx context.Context, j *job.Job, rows scenario.Rows, std cli.Streams,
) int {
	alive := show.NewHeartbeat(std, true, "hushsum simulate")
	var view presenter = &table{std: std}
	if v.JSON {
		view = &lines{std: std}
	}
	view.begin(j, rows)
	result, err := scenario.Run(ctx, j, rows, scenario.Hooks{
		Round: view.round,
		Now:   time.Now,
		Progress: func(round, done, of int) {
			where := "key exchange"
			if round > 0 {
				where = fmt.Sprintf("round %d of %d", round, j.Rounds)
			}
			if done%64 == 0 {
				alive.Beat("%s, %s of %s", where, show.Grouped(done), show.Plural(of, "party"))
			}
		},
	})
	if result != nil {
		view.end(result)
	}
	if v.Out != "" && result != nil && len(result.Rounds) > 0 {
		if outErr := v.report(rows, result, err == nil, std); outErr != nil {
			return cli.Failed("simulate", outErr, std)
		}
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return cli.Interrupted("simulate", std)
	case err != nil:
		return jobs.Failed("simulate", err, std)
	case len(result.Rounds) == 0 || result.Lost() == len(result.Rounds):
		return cli.Failed("simulate", &cli.Problem{Cause: "there is no sum: every round was lost"}, std)
	}
	return cli.ExitOK
}

// presenter shows a run as it goes on.
type presenter interface {
	begin(j *job.Job, rows scenario.Rows)
	round(r scenario.RoundResult)
	end(r *scenario.Result)
}

// keptFile returns the file in which the outcomes of a sweep are kept.
func (v *Run) keptFile() string {
	if v.Keep == "" && v.Out != "" {
		return filepath.Join(v.Out, "sweep.kept")
	}
	return v.Keep
}
