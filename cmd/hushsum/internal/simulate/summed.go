package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/datasets"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/simulation/scenario"
	"github.com/hushsum/hushsum/training/rows"
)

// summed is a job that runs one sum after the other.
type summed struct {
	described
	job       *job.Job // with its defaults
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

// readySummed makes a runner of sums, by any rules of training, on rows that are dealt once.
func (v *jobFlags) readySummed(ctx context.Context, j *job.Job) (runner, error) {
	start, d := time.Now(), &datasets.Dealing{World: rows.Of(j), Named: v.namedSet()}
	train, test, about, err := d.Read()
	if err != nil {
		return nil, &unread{err}
	}
	parties, test, err := d.DealOut(train, test)
	if err != nil {
		return nil, err
	}
	if err := v.fill(j, parties); err != nil {
		return nil, err
	}
	if err := j.Validate(); err != nil || v.print {
		return nil, err
	}
	s := &summed{job: j.WithDefaults(), start: start, data: about, judged: d.Judged()}
	settle := func() (err error) {
		s.settled, s.world, err = simulation.Settle(j, parties, test)
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
	return s, s.describe()
}

// namedSet returns what names the data in a file, empty if a flag does.
func (v *jobFlags) namedSet() string {
	if v.file != "" && !v.given["data"] {
		return "world.data.set"
	}
	return ""
}

func (s *summed) declared() *job.Job          { return s.job }
func (s *summed) testRows() *learning.Dataset { return s.world.Test }
func (s *summed) busy() bool                  { return true }

// warn reports what the sums will cost if that is much, and what bodes ill.
func (s *summed) warn(ctx context.Context, std cli.Streams) error {
	if err := s.tellEstimate(std); err != nil {
		return err
	}
	if err := s.tellSignal(ctx, std); err != nil {
		return err
	}
	s.tellRecords(std)
	return nil
}

// play runs the sums, and then has each party train alone.
func (s *summed) play(ctx context.Context, w watch) (*scenario.Result, error) {
	world := s.world
	world.Now, world.Progress = w.now, w.progress
	begun := w.now()
	var report func(simulation.RoundResult)
	if w.round != nil {
		report = func(r simulation.RoundResult) { w.round(s.held(&r)) }
	}
	var err error
	if s.result, err = simulation.Run(ctx, s.settled, world, report); err != nil {
		var stopped *simulation.RoundError
		if !errors.As(err, &stopped) {
			return nil, err
		}
		s.result = stopped.Done
	} else {
		err = s.trainAlone(ctx)
	}
	s.took = time.Since(s.start)
	return s.outcome(w.now().Sub(begun)), err
}

// held returns a round as it is shown.
func (s *summed) held(r *simulation.RoundResult) held {
	h := held{rows: make([]line, 1), objects: []any{s.newRound(r)}}
	for i := range s.columns {
		h.rows[0].cells = append(h.rows[0].cells, s.columns[i].value(r))
	}
	return h
}

// outcome returns what pages and sweeps show of a run that took some time here.
func (s *summed) outcome(took time.Duration) *scenario.Result {
	out := &scenario.Result{Job: s.job, Weights: s.settled.Length(),
		Parties: len(s.world.Parties), Took: took}
	accuracy, mcc := 0.0, 0.0
	for i := range s.result.Rounds {
		r := &s.result.Rounds[i]
		if r.Test != nil { // else the model of the last round that was judged counts
			score := s.judge(r.Test)
			accuracy, mcc = score.Accuracy(), score.MCC()
		}
		round := scenario.RoundResult{Number: r.Round, Included: r.Parties, Accuracy: accuracy, MCC: mcc}
		if r.Lost != nil {
			round.Lost = cli.Plain(r.Lost)
		}
		for k := range s.world.Parties {
			p := scenario.PartyRound{Party: fmt.Sprintf("party-%d", k+1), Received: true,
				Accuracy: accuracy, MCC: mcc, Work: r.Cost.Train + r.Cost.Client,
				Sent: int(r.Cost.BytesUp), Got: int(r.Cost.BytesDown)}
			p.Place = p.Party
			round.Parties = append(round.Parties, p)
		}
		for _, k := range r.Included {
			round.Parties[k].Included = true
		}
		out.Rounds = append(out.Rounds, round)
	}
	if n := len(out.Rounds); n > 0 {
		for k, a := range s.alone {
			out.Rounds[n-1].Parties[k].Alone = a.Accuracy()
		}
	}
	if s.mechanism != nil && len(out.Rounds) > 0 {
		out.Privacy = []scenario.Promise{{Party: "each " + s.job.Privacy.Unit,
			Asked: s.job.Privacy.Epsilon, Certified: s.result.Server,
			Honest: s.mechanism.Vector.Shares.MinHonest}}
	}
	if s.caution != "" {
		out.Notes = append(out.Notes, s.caution)
	}
	return out
}

// perRound returns how many parties are in a round.
func (s *summed) perRound() int { return cmp.Or(s.job.Parties.PerRound, len(s.world.Parties)) }

// byMessage reports whether sums are simulated with all their messages.
func (s *summed) byMessage() bool { return s.job.World.Fidelity == simulation.Messages }

// dropOuts returns how many parties drop out of each round, or how many messages it loses.
func (s *summed) dropOuts() int { return s.job.DropOuts(len(s.world.Parties)) }

// judge returns how good a model is: with averaging, whose labels are 0 and 1, by the formulas for
// two classes.
func (s *summed) judge(m *learning.Matrix) show.Score {
	if !s.averaging {
		return m
	}
	return learning.Confusion{TP: m.At(1, 1), FP: m.At(0, 1), TN: m.At(0, 0), FN: m.At(1, 0)}
}

// mostAlone is the most parties of whom each also trains alone.
const mostAlone = 100

// trainAlone has each party train on its own rows, unless there are many or nothing is compared.
func (s *summed) trainAlone(ctx context.Context) error {
	if s.job.World.SkipClear || len(s.world.Parties) > mostAlone {
		return nil
	}
	found, err := simulation.Alone(ctx, s.settled, s.world)
	for i := range found {
		s.alone = append(s.alone, s.judge(&found[i]))
	}
	return err
}

// tellSignal warns before a run whose noise is larger than the values that it should hide.
func (s *summed) tellSignal(ctx context.Context, std cli.Streams) error {
	if s.mechanism == nil {
		return nil
	}
	signal, err := simulation.SignalOf(ctx, s.settled, s.world)
	if err != nil || signal.Noise <= signal.Update {
		return err
	}
	of := "in the mean of a round"
	advice := "Raise --epsilon or --clients, or have noise hide each record, with --unit record."
	if s.job.Privacy.Factorise > 0 {
		of = "in the mean of a round, as independent noise"
		advice = "Raise --epsilon or --clients, or have noise hide each record, with --unit record " +
			"instead of --factorise."
	}
	if s.world.Training.Records != nil {
		advice = "Raise --epsilon or --batch, have more rows, or use a smaller model."
	}
	cli.Complain(std.Err, "hushsum simulate", &cli.Problem{
		Cause: fmt.Sprintf("there will be more noise than signal: its L2 norm is %.3g %s, against %.3g "+
			"for a first update, which is at most the clip of "+
			"%v", signal.Noise, of, signal.Update, signal.Clip),
		Advice: advice,
	})
	return nil
}

// tellRecords warns before a run in which the parties have other numbers of records than the job
// says: sums are divided by what the job expects.
func (s *summed) tellRecords(std cli.Streams) {
	if s.world.Training.Records == nil {
		return
	}
	have, said := 0, s.world.Training.Records.Coins.Count
	for _, rows := range s.world.Parties {
		have += s.world.Training.Records.Alone(rows).Coins.Count
	}
	if 10*max(have, said) <= 11*min(have, said) {
		return
	}
	cli.Complain(std.Err, "hushsum simulate", &cli.Problem{
		Cause: fmt.Sprintf("privacy.records is %s, and the parties here have %s: steps are %.2g times "+
			"as long as with that many", show.Grouped(said), show.Plural(have, "record"),
			float64(have)/float64(said)),
		Advice: "Set world.data.rows to what a party has, or privacy.records to what all have.",
	})
}

// describe computes the facts about a run that are shown before it begins.
func (s *summed) describe() (err error) {
	s.described, s.mechanism, s.layout = describeJob(s.job), s.settled.Mechanism(), s.settled.Layout()
	switch {
	case !s.job.Recovers():
	case s.byMessage() && !s.job.Oneshot():
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
	d.byRows = j.MaxRows() > 0
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
