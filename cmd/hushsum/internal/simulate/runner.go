package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation/scenario"
)

// runner is a job that is ready to run: in virtual time ([timed]), or sum after sum ([summed]).
// What is printed, written and swept is the same for both.
type runner interface {
	declared() *job.Job
	testRows() *learning.Dataset
	// warn reports on standard error what a user should know before the run.
	warn(ctx context.Context, std cli.Streams) error
	// play runs the job. Its result is of the rounds until then if it fails, nil before the first.
	play(ctx context.Context, w watch) (*scenario.Result, error)
	head(g *grid) // prints what stands above the rounds
	foot(g *grid) // prints what stands below
	last() []any  // returns the objects of --json that follow those of the rounds
	// busy reports whether one run uses all cores.
	busy() bool
}

// watch holds what is told of a run.
type watch struct {
	now      func() time.Time
	round    func(held) // nil: nobody looks
	progress func(round, done, of int)
}

// held is a round as it is shown: as rows of a table, and as objects of --json.
type held struct {
	rows    []line
	below   []string // lines of text
	objects []any
}

// inTime reports whether a job is simulated in virtual time.
func inTime(j *job.Job) bool { return scenario.Needs(j) || j.World.Data.Set == kddRows }

// ready makes a runner of a job. It completes the job from its rows where flags leave that to them.
func (v *jobFlags) ready(ctx context.Context, j *job.Job) (runner, error) {
	if inTime(j) {
		return v.readyTimed(j)
	}
	return v.readySummed(ctx, j)
}

// runOne runs a job, shows it and writes what --out asks for.
func (v *jobFlags) runOne(ctx context.Context, r runner, std cli.Streams) int {
	if v.out != "" {
		if err := results.MakeFolder(v.out); err != nil {
			return cli.Failed("simulate", err, std)
		}
	}
	if err := r.warn(ctx, std); err != nil {
		return cli.Failed("simulate", err, std)
	}
	_, timed := r.(*timed)
	alive := show.NewHeartbeat(std, v.json || timed, "hushsum simulate")
	g := &grid{Screen: show.Screen{Std: std}}
	if !v.json {
		r.head(g)
	}
	rounds := r.declared().Rounds
	result, err := r.play(ctx, watch{
		now: time.Now,
		round: func(h held) {
			g.Wipe()
			v.tell(g, h)
		},
		progress: func(round, done, of int) {
			if !v.json && !timed {
				g.Progress(round, done, of, "")
			}
			where := "key exchange"
			if round > 0 {
				where = fmt.Sprintf("round %d of %d", round, rounds)
			}
			if !timed || done%64 == 0 {
				alive.Beat("%s, %s of %s", where, show.Grouped(done), show.Plural(of, "party"))
			}
		},
	})
	switch {
	case result == nil:
	case v.json:
		for _, o := range r.last() {
			show.JSON(std, o)
		}
	default:
		g.Wipe()
		r.foot(g)
	}
	if v.out != "" && result != nil && len(result.Rounds) > 0 {
		if err := v.report(r, result, err == nil, std); err != nil {
			return cli.Failed("simulate", err, std)
		}
	}
	return v.ended(ctx, err, result, std)
}

// tell prints a round.
func (v *jobFlags) tell(g *grid, h held) {
	if v.json {
		for _, o := range h.objects {
			show.JSON(g.Std, o)
		}
		return
	}
	for _, l := range h.rows {
		g.row(l)
	}
	for _, text := range h.below {
		g.Printf("%s\n", text)
	}
}

// ended returns the exit code of a run; err ended it early.
func (v *jobFlags) ended(
	ctx context.Context, err error, r *scenario.Result, std cli.Streams,
) int {
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		rounds, of := 0, 0
		if r != nil {
			rounds, of = len(r.Rounds), r.Job.Rounds
		}
		p := &cli.Problem{Cause: "interrupted"}
		if of > 0 {
			p.Cause = fmt.Sprintf("interrupted after %s of %s", show.Grouped(rounds),
				show.Plural(of, "round"))
		}
		cli.Complain(std.Err, "hushsum simulate", p)
		return cli.ExitInterrupted
	case errors.Is(err, aggregation.ErrSaturated) && r != nil && !averages(r.Job):
		err = &cli.Problem{
			Cause: cli.Where(err) + "a coordinate of the update is larger than --range, as it is when " +
				"training diverges",
			Advice: "Lower --rate, or raise --range.",
			Err:    err,
		}
	case err != nil:
	case len(r.Rounds) == 0 && !inTime(r.Job):
		err = &cli.Problem{
			Cause:  "there is no sum: the privacy budget does not allow one round",
			Advice: "Raise --epsilon or --noise-multiplier.",
		}
	case r.Lost() == len(r.Rounds):
		p := &cli.Problem{Cause: "there is no sum: every round was lost"}
		if !inTime(r.Job) {
			p.Advice = "Lower --drop."
		}
		err = p
	default:
		return cli.ExitOK
	}
	return jobs.Failed("simulate", err, std)
}
