package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// shown is a run that is about to begin, as presenters show it.
type shown struct {
	described
	data      string // a line about the data
	options   simulation.Options
	layout    masking.Layout
	recovery  *protocol.Recovery // with defaults filled in; nil without
	mechanism *privacy.Mechanism // nil without noise
	alone     []show.Score       // of each party's own model; nil if these are not trained
}

// described holds the facts about a run that are printed and are not in its options.
type described struct {
	averaging         bool // of a census, as federated averaging was first described
	set, model, split string
	rule, mask, noise string
	protocol          string
	lambda            float64
	byRows            bool
	caution           string // of its delta; empty: none
}

// perRound returns how many parties are in a round.
func (s *shown) perRound() int {
	if s.options.PerRound == 0 {
		return len(s.options.Parties)
	}
	return s.options.PerRound
}

// budget returns what no party spends more than, nil without noise or a budget.
func (s *shown) budget() *accounting.Budget {
	if s.mechanism == nil || s.options.Budget.Epsilon == 0 {
		return nil
	}
	b, err := s.options.Budget.About(s.mechanism.Statement())
	if err != nil {
		panic("simulate: " + err.Error()) // of options that were checked
	}
	return &b
}

// judge returns how good a model is: with averaging, whose labels are 0 and 1, by the formulas for
// two classes.
func (s *shown) judge(m *learning.Matrix) show.Score {
	if !s.averaging {
		return m
	}
	return learning.Confusion{TP: m.At(1, 1), FP: m.At(0, 1), TN: m.At(0, 0), FN: m.At(1, 0)}
}

// presenter shows a run as it goes on.
type presenter interface {
	begin()
	progress(round, done, of int)
	round(r simulation.RoundResult)
	end(r *simulation.Result, took time.Duration)
}

// runOptions runs options, and shows the run.
func runOptions(
	ctx context.Context, d described, about string, options simulation.Options, asJSON bool,
	start time.Time, std cli.Streams,
) int {
	run, err := newShown(d, about, options)
	if err != nil {
		return cli.Failed("simulate", err, std)
	}

	var view presenter = &table{Screen: show.Screen{Std: std}, shown: run}
	if asJSON {
		view = &jsonLines{std: std, shown: run}
	}
	if err := run.tellEstimate(std); err != nil {
		return cli.Failed("simulate", err, std)
	}
	if err := run.tellSignal(ctx, std); err != nil {
		return cli.Failed("simulate", err, std)
	}
	run.tellRecords(std)
	view.begin()
	options.Now = time.Now
	alive := show.NewHeartbeat(std, asJSON, "hushsum simulate")
	options.Progress = func(round, done, of int) {
		view.progress(round, done, of)
		where := "key exchange"
		if round > 0 {
			where = fmt.Sprintf("round %d of %d", round, options.Rounds)
		}
		alive.Beat("%s, %s of %s", where, show.Grouped(done), show.Plural(of, "party"))
	}
	result, err := simulation.Run(ctx, options, view.round)
	if err != nil {
		var stopped *simulation.RoundError
		if !errors.As(err, &stopped) {
			return cli.Failed("simulate", err, std)
		}
		result = stopped.Done
	}
	if err == nil {
		err = run.trainAlone(ctx)
	}
	view.end(result, time.Since(start))
	return run.ended(ctx, err, result, std)
}

// mostAlone is the most parties of whom each also trains alone.
const mostAlone = 100

// trainAlone has each party train on its own rows, unless there are many or nothing is compared.
func (s *shown) trainAlone(ctx context.Context) error {
	if !s.options.Beside || len(s.options.Parties) > mostAlone {
		return nil
	}
	found, err := simulation.Alone(ctx, s.options)
	for i := range found {
		s.alone = append(s.alone, s.judge(&found[i]))
	}
	return err
}

// tellSignal warns before a run whose noise is larger than the values that it should hide.
func (s *shown) tellSignal(ctx context.Context, std cli.Streams) error {
	if s.mechanism == nil {
		return nil
	}
	signal, err := s.options.Signal(ctx)
	if err != nil || signal.Noise <= signal.Update {
		return err
	}
	of := "in the mean of a round"
	advice := "Raise --epsilon or --clients, or have noise hide each record, with --unit record."
	if s.options.Factorise > 0 {
		of = "in the mean of a round, as independent noise"
		advice = "Raise --epsilon or --clients, or have noise hide each record, with --unit record " +
			"instead of --factorise."
	}
	if s.options.Records != nil {
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
func (s *shown) tellRecords(std cli.Streams) {
	if s.options.Records == nil {
		return
	}
	have, said := 0, s.options.Records.Coins.Count
	for _, rows := range s.options.Parties {
		have += s.options.Records.Alone(rows).Coins.Count
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

// newShown computes the facts about a run that are shown before it begins.
func newShown(d described, data string, o simulation.Options) (s *shown, err error) {
	s = &shown{described: d, data: data, options: o}
	if s.recovery, err = o.EffectiveRecovery(); err != nil {
		return nil, err
	}
	if o.Noise != nil {
		release, err := o.Release()
		if err != nil {
			return nil, err
		}
		if s.mechanism, err = release.Mechanism(); err != nil {
			return nil, err
		}
		s.layout, err = s.mechanism.Layout()
		return s, err
	}
	s.layout, err = o.Layout()
	return s, err
}

// ended returns the exit code of a run; err ended it early.
func (s *shown) ended(
	ctx context.Context, err error, r *simulation.Result, std cli.Streams,
) int {
	rounds := len(r.Rounds)
	switch {
	case err == nil && r.Lost() < rounds:
		return cli.ExitOK
	case err == nil && rounds == 0:
		return cli.Failed("simulate", &cli.Problem{
			Cause:  "there is no sum: the privacy budget does not allow one round",
			Advice: "Raise --epsilon or --noise-multiplier.",
		}, std)
	case err == nil:
		return cli.Failed("simulate", &cli.Problem{
			Cause: "there is no sum: every round was lost", Advice: "Lower --drop.",
		}, std)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		cli.Complain(std.Err, "hushsum simulate", &cli.Problem{
			Cause: fmt.Sprintf("interrupted after %s of %s", show.Grouped(rounds),
				show.Plural(s.options.Rounds, "round")),
		})
		return cli.ExitInterrupted
	case errors.Is(err, aggregation.ErrSaturated) && !s.averaging:
		err = &cli.Problem{
			Cause: cli.Where(err) + "a coordinate of the update is larger than --range, as it is when " +
				"training diverges",
			Advice: "Lower --rate, or raise --range.",
			Err:    err,
		}
	}
	return cli.Failed("simulate", err, std)
}
