package federation

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/query"
)

// This file continues a study: each batch of queries is a federation that continues the one before
// it.

// Batch is a job's queries as the next federation of a study.
type Batch struct {
	Questions []string // canonical texts of all queries of the job, see [query.Plan.Questions]
	Asked     []int    // places of those that are asked: no answer to them is known
	Files     Files
	// Federation asks the queries; nil: all answers are known.
	Federation *Federation
	// Own bounds what the queries spend on their own, Before what the party that spent most has
	// spent, and Total both together, which is the new federation's privacy.epsilon; nil without
	// noise.
	Own, Before, Total *accounting.Claim
	// Study is the study with these queries, nil without one.
	Study *Study
}

// Next makes a batch from a job, whose privacy.epsilon or multiplier covers all its queries on
// their own, and from the files with which a federation continues the last one of a study: roster,
// committee, what was spent before and the study's budget come from these files. Next leaves out
// queries whose canonical text has a known answer, and the other queries keep the noise that the
// job gives them, so that all together spend less. It fails with a [job.ConfigError], also if the
// study's budget does not suffice.
func Next(asked *job.Job, after Files, known func(question string) bool) (*Batch, error) {
	last, err := job.Parse("", after.Text)
	if err != nil {
		return nil, err
	}
	if !asked.Asks() {
		return nil, asked.Mistake("query", "write [[query]]", "the job asks nothing")
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
	b := &Batch{Files: Files{Roster: after.Roster,
		Committee: after.Committee}}
	alone, err := b.settle(own)
	if err != nil {
		return nil, err
	}
	if err := b.leaveOut(own, alone, known); err != nil || b.Asked == nil {
		return b, err
	}
	var ledger *accounting.Ledger
	if own.Noisy() {
		if ledger, err = b.count(own, alone, after.Before); err != nil {
			return nil, err
		}
	}
	if b.Files.Text, err = own.MarshalText(); err != nil {
		return nil, err
	}
	if b.Federation, err = New(b.Files); err != nil {
		return nil, err
	}
	if b.Study = b.Federation.Study(); b.Study != nil {
		err = b.Study.Spends(ledger)
	}
	return b, err
}

// leaveOut leaves out the queries of a job, settled alone, whose answers are known, and fixes the
// noise of the others.
func (b *Batch) leaveOut(
	own *job.Job, alone *job.Settled, known func(question string) bool,
) error {
	plan, err := query.New(alone)
	if err == nil {
		b.Questions, err = plan.Questions()
	}
	if err != nil {
		return err
	}
	var left []job.Query
	part := 0.0 // of the budget
	for i, question := range b.Questions {
		if known == nil || !known(question) {
			b.Asked = append(b.Asked, i)
			left = append(left, own.Query[i])
			part += alone.Job().Query[i].Share
		}
	}
	if !own.Noisy() || b.Asked == nil {
		own.Query = left
		return nil
	}
	if own.Privacy.Multiplier == 0 {
		m := alone.Mechanism().Vector
		own.Privacy.Multiplier = m.SumStdDev(m.Shares.MinHonest) / m.Sensitivity.L2
	}
	if len(left) < len(own.Query) { // otherwise shares stay as written
		own.Privacy.Multiplier /= math.Sqrt(part)
		for k, i := range b.Asked {
			left[k].Share = alone.Job().Query[i].Share / part
		}
		left[len(left)-1].Share = 0 // the rest
	}
	own.Query = left
	// Six digits: batches that cost the same have identical lines in the ledger.
	z := own.Privacy.Multiplier
	unit := math.Pow(10, math.Floor(math.Log10(z))-5)
	text := strconv.FormatFloat(math.Ceil(z/unit)*unit, 'g', 6, 64)
	own.Privacy.Multiplier, err = strconv.ParseFloat(text, 64)
	return err
}

// count has the epsilon of a job, whose noise is fixed, include what was spent before, and returns
// the ledger of both.
func (b *Batch) count(own *job.Job, alone *job.Settled, text []byte) (*accounting.Ledger, error) {
	delta := alone.Job().Privacy.Delta
	settled, err := b.settle(own)
	if err != nil {
		return nil, err
	}
	about := settled.Statement()
	if text != nil { // the ledger composes lines as if all were fixed ahead
		about = about.Assuming(accounting.AssumesAhead)
	}
	budget, err := accounting.NewBudget(about, math.MaxFloat64, delta)
	if err != nil {
		return nil, err
	}
	ledger, err := accounting.NewLedger(budget)
	if err != nil {
		return nil, err
	}
	roster := settled.Roster()
	var names []string
	for i := range roster.Len() {
		names = append(names, roster.Name(i))
	}
	if text != nil {
		before := new(job.Before)
		if err := before.UnmarshalText(text); err != nil {
			return nil, own.Mistake("privacy.before", "have it written by 'hushsumd federation after'", "%v",
				err)
		}
		if err := ledger.Carry(before.Ledger, names...); err != nil {
			return nil, err
		}
		own.Privacy.Before, b.Files.Before = "before.json", text
	}
	most := func() (*accounting.Claim, error) {
		_, most, err := ledger.Most(names...)
		return &most, err
	}
	if b.Before, err = most(); err != nil {
		return nil, err
	}
	const advice = "ask less, or with a smaller epsilon"
	err = ledger.SpendRound(settled.Round(), names...)
	if errors.Is(err, accounting.ErrBudget) {
		return nil, own.Mistake("privacy.epsilon", advice, "nothing bounds what these queries spend in "+
			"addition to what was spent before them, %v", b.Before)
	}
	if err != nil {
		return nil, err
	}
	if b.Total, err = most(); err != nil {
		return nil, err
	}
	spent, err := settled.Round().Spent(accounting.ServerView, 1, delta)
	if err != nil {
		return nil, err
	}
	b.Own = &spent
	const above = 1 + 1e-9 // so that the last of all digits does not matter
	own.Privacy.Epsilon = b.Total.Bare().Upper * above
	if most := own.Privacy.Study; most > 0 && own.Privacy.Epsilon > most {
		return nil, own.Mistake("privacy.epsilon", advice, "with these queries, which spend %s, the "+
			"study would have spent %s: %s are spent, and its budget is %v", b.Own.Most(), b.Total.Most(),
			b.Before.Most(), most)
	}
	return ledger, nil
}

// settle works out a job for the lists of the batch, whatever the study may spend.
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
	j = j.Clone()
	j.Privacy.Study, j.Privacy.StudyPlan = 0, ""
	return j.Settle(files)
}
