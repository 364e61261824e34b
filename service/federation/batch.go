package federation

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file has how a study asks on: each batch of queries is a federation that goes on from the
// one before it.

// Batch is a job's queries as the next federation of a study.
type Batch struct {
	Files      Files
	Federation *Federation
	// Own bounds what the queries spend by themselves, Before what the party with most has spent, and
	// Total both together, which is the new federation's privacy.epsilon. Study is the budget of the
	// study, 0 without one. All are 0 without noise.
	Own, Before, Total, Study float64
}

// Next makes a batch of a job, whose privacy.epsilon or multiplier is of its queries alone, and of
// the files with which a federation goes on from the last one of a study: roster, committee, what
// was spent before and the study's budget are theirs. It fails with a [job.ConfigError], also if
// the study cannot spend so much.
func Next(asked *job.Job, after Files) (*Batch, error) {
	last, err := job.Parse("", after.Text)
	if err != nil {
		return nil, err
	}
	own := asked.Clone()
	own.World, own.Name = job.World{}, last.Name
	own.Parties.Roster, own.Parties.Count, own.Parties.Group = "roster.txt", 0, nil
	own.Privacy.Before, own.Sum.Committee, own.Sum.Members = "", "", 0
	if own.Oneshot() {
		own.Sum.Committee = "committee.txt"
	} else {
		after.Committee = nil
	}
	if own.Privacy.Study == 0 && own.Noisy() {
		own.Privacy.Study = last.Privacy.Study
	}
	out := &Batch{Study: own.Privacy.Study, Files: Files{Roster: after.Roster,
		Committee: after.Committee}}
	if own.Noisy() && after.Before != nil {
		if err := out.counts(own, after.Before); err != nil {
			return nil, err
		}
		own.Privacy.Before, out.Files.Before = "before.json", after.Before
	}
	if out.Files.Text, err = own.MarshalText(); err != nil {
		return nil, err
	}
	if out.Federation, err = New(out.Files); err != nil {
		return nil, err
	}
	if out.Total == 0 && own.Noisy() {
		spent, err := out.Federation.Settled.Round().Spent(accounting.ServerView, 1,
			out.Federation.Job.Privacy.Delta)
		if err != nil {
			return nil, err
		}
		out.Own, out.Total = spent.Upper, spent.Upper
	}
	return out, nil
}

// counts fixes the noise that the queries have by themselves, and has epsilon count what was spent
// before.
func (b *Batch) counts(own *job.Job, text []byte) error {
	before := new(job.Before)
	if err := before.UnmarshalText(text); err != nil {
		return own.Mistake("privacy.before", "have it written by 'hushsumd federation after'", "%v", err)
	}
	alone := own.Clone()
	alone.Privacy.Study = 0
	settled, err := b.settle(alone)
	if err != nil {
		return err
	}
	if own.Privacy.Multiplier == 0 {
		// Six digits: batches that cost the same are lines of the ledger that are the same.
		m := settled.Mechanism().Vector
		z := m.SumStdDev(m.Shares.MinHonest) / m.Sensitivity.L2
		unit := math.Pow(10, math.Floor(math.Log10(z))-5)
		text := strconv.FormatFloat(math.Ceil(z/unit)*unit, 'g', 6, 64)
		if own.Privacy.Multiplier, err = strconv.ParseFloat(text, 64); err != nil {
			return err
		}
		alone.Privacy.Multiplier = own.Privacy.Multiplier
		if settled, err = b.settle(alone); err != nil {
			return err
		}
	}
	var names []string
	for i := range settled.Roster().Len() {
		names = append(names, settled.Roster().Name(i))
	}
	delta := settled.Job().Privacy.Delta
	ledger, err := accounting.NewLedger(accounting.ServerView,
		accounting.Target{Epsilon: math.MaxFloat64, Delta: delta})
	if err == nil {
		err = ledger.Carry(before.Ledger, names...)
	}
	if err != nil {
		return err
	}
	most := func() (float64, error) {
		most := 0.0
		for _, name := range names {
			spent, err := ledger.Spent(name)
			if err != nil {
				return 0, err
			}
			most = max(most, spent.Upper)
		}
		return most, nil
	}
	if b.Before, err = most(); err != nil {
		return err
	}
	if err := ledger.SpendRound(settled.Round(), names...); errors.Is(err, accounting.ErrBudget) {
		return own.Mistake("privacy.epsilon", "ask less, or with a smaller epsilon",
			"nothing bounds what is spent with these queries, and %.4g before them", b.Before)
	} else if err != nil {
		return err
	}
	if b.Total, err = most(); err != nil {
		return err
	}
	spent, err := settled.Round().Spent(accounting.ServerView, 1, delta)
	if err != nil {
		return err
	}
	b.Own = spent.Upper
	const above = 1 + 1e-9 // so that the last of all digits does not matter
	own.Privacy.Epsilon = b.Total * above
	if b.Study > 0 && own.Privacy.Epsilon > b.Study {
		return own.Mistake("privacy.epsilon", "ask less, or with a smaller epsilon",
			"with these queries, which spend %.4g, the study would have spent %.4g: %.4g are spent, and "+
				"its budget is %v", b.Own, b.Total, b.Before, b.Study)
	}
	return nil
}

// settle works a job out for the lists of the batch.
func (b *Batch) settle(j *job.Job) (*job.Settled, error) {
	var files job.Files
	var err error
	if files.Roster, err = keyexchange.ParseRoster(b.Files.Roster); err != nil {
		return nil, fmt.Errorf("%w: the study's roster: %w", job.ErrConfig, err)
	}
	if b.Files.Committee != nil {
		if files.Committee, err = keyexchange.ParseRoster(b.Files.Committee); err != nil {
			return nil, fmt.Errorf("%w: the study's committee: %w", job.ErrConfig, err)
		}
	}
	return j.Settle(files)
}
