package simulate

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/simulation"
)

// warn reports on standard error what the sums will cost if that is much, and what bodes ill.
func (s *run) warn(ctx context.Context, std cli.Streams) error {
	if s.timed {
		return nil
	}
	if err := s.tellEstimate(std); err != nil {
		return err
	}
	if err := s.tellSignal(ctx, std); err != nil {
		return err
	}
	s.tellRecords(std)
	return nil
}

// tellSignal warns before a run whose noise is larger than the values that it should hide.
func (s *run) tellSignal(ctx context.Context, std cli.Streams) error {
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
func (s *run) tellRecords(std cli.Streams) {
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
