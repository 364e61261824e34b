package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/simulation"
)

// Failed prints why a command did not begin or continue.
func Failed(command string, err error, std Streams) int {
	Complain(std.Err, "hushsum "+command, Explain(err))
	return ExitFailure
}

// Explain restates an error in the terms of the command, with the flag that helps.
func Explain(err error) error {
	var said *Problem
	var config *privacy.ConfigError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said):
		return err
	case errors.Is(err, aggregation.ErrSaturated):
		return &Problem{
			Cause:  Where(err) + "a weight is larger than --range",
			Advice: "Raise --range, or lower --rate or --local-steps.",
			Err:    err,
		}
	case errors.Is(err, learning.ErrDiverged), errors.Is(err, aggregation.ErrNotFinite):
		return &Problem{
			Cause:  Where(err) + "training diverged: the weights grew beyond all bounds",
			Advice: "Lower --rate or --lambda.",
			Err:    err,
		}
	case errors.As(err, &config):
		return &Problem{Cause: config.Reason, Advice: Sentence(config.Advice), Err: err}
	}
	return err
}

// Where says in which round and for which party a run failed.
func Where(err error) string {
	var failed *simulation.RoundError
	if !errors.As(err, &failed) || failed.Party < 0 {
		return ""
	}
	return fmt.Sprintf("round %d, %s: ", failed.Round, cmp.Or(failed.Name,
		fmt.Sprintf("party-%d", failed.Party+1)))
}
