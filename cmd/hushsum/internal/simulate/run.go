package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/datasets"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training/rows"
)

// run is a job that is ready to run, in virtual time or without time.
type run struct {
	described
	job       *job.Job // with its defaults
	timed     bool     // time is virtual
	start     time.Time
	data      string // a line about the data
	judged    string // which rows judge models
	settled   *job.Settled
	world     simulation.World
	layout    masking.Layout
	recovery  *protocol.Recovery // with defaults filled in; nil without
	mechanism *privacy.Mechanism // nil without noise
	alone     []show.Score       // of each party's own model; nil if these are not trained
	columns   []column

	result *simulation.Result // once it has run
	took   time.Duration
}

// described holds the facts about a run that are printed and are not in its options.
type described struct {
	averaging         bool // of a census, as federated averaging was first described
	set, model, split string
	rule, mask        string
	lambda            float64
	byRows            bool
	caution           string // of its delta; empty: none
}

// kddRows is the data set that only virtual time supports.
const kddRows = datasets.KDD

// inTime reports whether a job is simulated in virtual time.
func inTime(j *job.Job) bool { return simulation.Needs(j) || j.World.Data.Set == kddRows }

// ready makes a job ready to run, which it completes from its rows where flags leave that to them.
// With --print it is only checked.
func (v *jobFlags) ready(ctx context.Context, j *job.Job) (*run, error) {
	s := &run{start: time.Now(), timed: inTime(j)}
	deal := v.dealt
	if s.timed {
		deal = v.loadedFor
	}
	found, err := deal(j, s)
	if err != nil || v.print {
		return nil, err
	}
	settle := func() (err error) {
		s.settled, s.world, err = simulation.Settle(j, found)
		return err
	}
	if calibrates := j.Noisy() && j.Privacy.Multiplier == 0; calibrates {
		err = cli.Interruptible(ctx, settle)
	} else {
		err = settle()
	}
	if err != nil {
		return nil, err
	}
	s.job = j.WithDefaults()
	return s, s.describe()
}

// dealt returns the rows of a job without time, which are dealt once.
func (v *jobFlags) dealt(j *job.Job, s *run) (found simulation.Rows, err error) {
	d := &datasets.Dealing{World: rows.Of(j), Named: v.namedSet()}
	train, test, about, err := d.Read()
	if err != nil {
		return found, &unread{err}
	}
	if found.Parties, found.Test, err = d.DealOut(train, test); err != nil {
		return found, err
	}
	s.data, s.judged = about, d.Judged()
	if err := v.fill(j, found.Parties); err != nil {
		return found, err
	}
	return found, j.Validate()
}

// loadedFor returns the rows of a job in virtual time, which are dealt as it runs unless the job
// has a split.
func (v *jobFlags) loadedFor(j *job.Job, s *run) (found simulation.Rows, err error) {
	if v.byRows {
		return found, &cli.Problem{Cause: "--by-rows: in virtual time rows are dealt as the job runs",
			Advice: "Write --max-weight, the most rows that count."}
	}
	if err := v.fillSums(j, j.Size()); err != nil {
		return found, err
	}
	if err := simulation.Validate(j); err != nil || v.print {
		return found, err
	}
	if found, err = v.loaded(j); err != nil {
		return found, err
	}
	d := &datasets.Dealing{World: rows.Of(j), Named: v.namedSet()}
	s.data, s.judged = j.WithDefaults().World.Data.Set, d.Judged()
	if j.World.Data.Split != "" {
		found.Parties, found.Test, err = d.DealOut(found.Train, found.Test)
	}
	return found, err
}

// loaded returns the rows of a job in virtual time. All combinations of a sweep that name the same
// data divide it alike, whatever their seeds.
func (v *jobFlags) loaded(j *job.Job) (simulation.Rows, error) {
	key := fmt.Sprint(j.World.Data.Set, j.World.Data.Most, j.World.Data.Test)
	if found, ok := v.rows[key]; ok {
		return found, nil
	}
	like := j.Clone()
	like.Seed, like.World.Seed = v.base.Seed, v.base.World.Seed
	found, err := datasets.LoadRows(like)
	if err == nil {
		v.rows[key] = found
	}
	return found, err
}

// namedSet returns what names the data in a file, empty if a flag does.
func (v *jobFlags) namedSet() string {
	if v.file != "" && !v.given["data"] {
		return "world.data.set"
	}
	return ""
}

// watch holds what is told of a run.
type watch struct {
	now      func() time.Time
	round    func(r *simulation.RoundResult) // nil: nobody looks
	progress func(round, done, of int)
}

// play runs the job, and without time then has each party train alone. Its result is of the rounds
// until then if it fails, nil before the first.
func (s *run) play(ctx context.Context, w watch) (_ *simulation.Result, err error) {
	world := s.world
	world.Now, world.Progress = w.now, w.progress
	begun := w.now()
	var report func(simulation.RoundResult)
	if w.round != nil {
		report = func(r simulation.RoundResult) { w.round(&r) }
	}
	if s.result, err = simulation.Run(ctx, s.settled, world, report); s.result == nil {
		return nil, err
	}
	if err == nil {
		err = s.trainAlone(ctx)
	}
	s.took, s.result.Took = time.Since(s.start), w.now().Sub(begun)
	return s.result, err
}

// trainAlone has each party train on its own rows, unless there are many, nothing is compared, or
// each has done so in virtual time.
func (s *run) trainAlone(ctx context.Context) error {
	n := len(s.result.Rounds)
	if n == 0 || s.timed || s.job.World.SkipClear ||
		len(s.world.Parties) > simulation.MostCompared {
		return nil
	}
	found, err := simulation.Alone(ctx, s.settled, s.world)
	if err != nil {
		return err
	}
	each := s.result.Seen(n - 1)
	for i := range found {
		s.alone = append(s.alone, s.judge(&found[i]))
		each[i].Alone = s.alone[i].Accuracy()
	}
	s.result.Rounds[n-1].Each = each
	return nil
}

// runOne runs a job, shows it and writes what --out asks for.
func (v *jobFlags) runOne(ctx context.Context, r *run, std cli.Streams) int {
	if v.out != "" {
		if err := results.MakeFolder(v.out); err != nil {
			return cli.Failed("simulate", err, std)
		}
	}
	if err := r.warn(ctx, std); err != nil {
		return cli.Failed("simulate", err, std)
	}
	alive := show.NewHeartbeat(std, v.json || r.timed, "hushsum simulate")
	g := &grid{Screen: show.Screen{Std: std}}
	if !v.json {
		r.head(g)
	}
	result, err := r.play(ctx, watch{
		now: time.Now,
		round: func(one *simulation.RoundResult) {
			if v.json {
				for _, o := range r.objects(one) {
					show.JSON(std, o)
				}
				return
			}
			g.Wipe()
			r.round(g, one)
		},
		progress: func(round, done, of int) {
			if !v.json && !r.timed {
				g.Progress(round, done, of, "")
			}
			where := "key exchange"
			if round > 0 {
				where = fmt.Sprintf("round %d of %d", round, r.job.Rounds)
			}
			if !r.timed || done%64 == 0 {
				alive.Beat("%s, %s of %s", where, show.Grouped(done), show.Plural(of, "party"))
			}
		},
	})
	switch {
	case result == nil:
	case v.json:
		show.JSON(std, r.last())
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

// ended returns the exit code of a run; err ended it early.
func (v *jobFlags) ended(
	ctx context.Context, err error, r *simulation.Result, std cli.Streams,
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

// perRound returns how many parties are in a round.
func (s *run) perRound() int { return cmp.Or(s.job.Parties.PerRound, len(s.world.Parties)) }

// byMessage reports whether sums are simulated with all their messages.
func (s *run) byMessage() bool { return s.job.World.Fidelity == simulation.Messages }

// dropOuts returns how many parties drop out of each round, or how many messages it loses.
func (s *run) dropOuts() int { return s.job.DropOuts(len(s.world.Parties)) }

// judge returns how good a model is: with averaging, whose labels are 0 and 1, by the formulas for
// two classes.
func (s *run) judge(m *learning.Matrix) show.Score {
	if !s.averaging {
		return m
	}
	return learning.Confusion{TP: m.At(1, 1), FP: m.At(0, 1), TN: m.At(0, 0), FN: m.At(1, 0)}
}

// describe computes the facts about a run that are shown before it begins.
func (s *run) describe() (err error) {
	s.described, s.mechanism, s.layout = describeJob(s.job), s.settled.Mechanism(), s.settled.Layout()
	switch {
	case !s.job.Recovers():
	case s.byMessage() && !s.job.Oneshot() && !s.timed:
		config := s.settled.Config(0)
		config.MinMembers = s.perRound()
		s.recovery, err = config.EffectiveRecovery()
	default:
		s.recovery = &protocol.Recovery{MinSurvivors: s.settled.MinSurvivors()}
	}
	return err
}

// describeJob describes a job with its defaults.
func describeJob(j *job.Job) described {
	d := described{set: j.World.Data.Set, model: j.Model.Name,
		split: cmp.Or(j.World.Data.Split, "iid"), rule: j.Training.Rule, mask: j.Training.Mask,
		lambda:  j.Training.Lambda,
		caution: j.LargeDelta()}
	if d.split == rows.Shuffled {
		d.averaging, d.split = averages(j), "iid"
	}
	d.byRows = j.Sum.MaxWeight > 0
	switch rule := j.Server.Rule; {
	case rule == "fedavg":
	case d.rule == "fedavg":
		d.rule = rule
	default:
		d.rule += "+" + rule
	}
	return d
}

// averages reports whether a job is federated averaging of a census, as it was first described.
func averages(j *job.Job) bool {
	return j.World.Data.Split == rows.Shuffled && j.Model.Name == "logistic" && !j.PerRecord()
}
