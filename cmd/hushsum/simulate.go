package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/aggregation"
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
}

// described holds what is told of a run and is not in its options.
type described struct {
	averaging         bool // of a census, as federated averaging was first described
	set, model, split string
	rule, mask, noise string
	protocol          string
	lambda            float64
	byRows            bool
}

// perRound is how many parties are in a round.
func (s *shown) perRound() int {
	if s.options.PerRound == 0 {
		return len(s.options.Parties)
	}
	return s.options.PerRound
}

// judge says how good a model is: of averaging, whose labels are 0 and 1, by the
// formulas for two classes.
func (s *shown) judge(m *learning.Matrix) score {
	if !s.averaging {
		return m
	}
	return learning.Confusion{TP: m.At(1, 1), FP: m.At(0, 1), TN: m.At(0, 0), FN: m.At(1, 0)}
}

// presenter shows a run as it goes on.
type presenter interface {
	begin()
	progress(round, done, of int)
	round(r simulation.Round)
	end(r *simulation.Result, took time.Duration)
}

// runOptions runs options, and shows the run.
func runOptions(
	ctx context.Context, d described, about string, options simulation.Options, asJSON bool,
	start time.Time, std streams,
) int {
	run, err := newShown(d, about, options)
	if err != nil {
		return failed(err, std)
	}

	var show presenter = &table{screen: screen{std: std}, shown: run}
	if asJSON {
		show = &jsonLines{std: std, shown: run}
	}
	if err := run.tellEstimate(std); err != nil {
		return failed(err, std)
	}
	show.begin()
	options.Now = time.Now
	alive := newHeartbeat(std, asJSON, "hushsum simulate")
	options.Progress = func(round, done, of int) {
		show.progress(round, done, of)
		where := "key exchange"
		if round > 0 {
			where = fmt.Sprintf("round %d of %d", round, options.Rounds)
		}
		alive.beat("%s, %s of %s", where, grouped(done), plural(of, "party"))
	}
	result, err := simulation.Run(ctx, options, show.round)
	if err != nil {
		var stopped *simulation.RoundError
		if !errors.As(err, &stopped) {
			return failed(err, std)
		}
		result = stopped.Done
	}
	show.end(result, time.Since(start))
	return run.ended(ctx, err, result, std)
}

// newShown works out what of a run is shown before it begins.
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

// ended returns the exit code of a run; err is what ended it early.
func (s *shown) ended(
	ctx context.Context, err error, r *simulation.Result, std streams,
) int {
	rounds := len(r.Rounds)
	switch {
	case err == nil && r.Lost() < rounds:
		return exitOK
	case err == nil && rounds == 0:
		return failed(&problem{cause: "there is no sum: the privacy budget does not allow a round",
			advice: "Raise --epsilon or --noise-multiplier."}, std)
	case err == nil:
		return failed(&problem{cause: "there is no sum: every round was lost", advice: "Lower --drop."},
			std)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		complain(std.err, "hushsum simulate", &problem{
			cause: fmt.Sprintf("interrupted after %s of %s", grouped(rounds),
				plural(s.options.Rounds, "round")),
		})
		return exitInterrupted
	case errors.Is(err, aggregation.ErrSaturated) && !s.averaging:
		err = &problem{
			cause: where(err) + "a coordinate of the update is larger than --range, as it is when " +
				"training diverges",
			advice: "Lower --rate, or raise --range.",
			err:    err,
		}
	}
	return failed(err, std)
}

// failed says why a run did not begin or go on.
func failed(err error, std streams) int {
	complain(std.err, "hushsum simulate", explain(err))
	return exitFailure
}

// explain says in the words of the command what is wrong and which flag helps.
func explain(err error) error {
	var said *problem
	var option *simulation.ConfigError
	var config *privacy.ConfigError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said):
		return err
	case errors.Is(err, aggregation.ErrSaturated):
		return &problem{
			cause:  where(err) + "a weight is larger than --range",
			advice: "Raise --range, or lower --rate or --local-steps.",
			err:    err,
		}
	case errors.Is(err, learning.ErrDiverged), errors.Is(err, aggregation.ErrNotFinite):
		return &problem{
			cause:  where(err) + "training diverged: the weights grew beyond all bounds",
			advice: "Lower --rate or --lambda.",
			err:    err,
		}
	case errors.As(err, &option):
		return &problem{cause: option.Reason, advice: sentence(option.Advice), err: err}
	case errors.As(err, &config):
		return &problem{cause: config.Reason, advice: sentence(config.Advice), err: err}
	}
	return err
}

// where says in which round and with which party a run failed.
func where(err error) string {
	var failed *simulation.RoundError
	if !errors.As(err, &failed) || failed.Party < 0 {
		return ""
	}
	return fmt.Sprintf("round %d, party-%d: ", failed.Round, failed.Party+1)
}
