package job

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/accounting"
)

// This file settles studies: jobs that continue each other within one budget, which the first of
// them declares with a plan, that is the theorem by which lines of different jobs add up.

// Study returns the budget of the study to which the job belongs: what its first job declared; nil
// if it belongs to none.
func (s *Settled) Study() *accounting.Budget { return s.study }

// StudyPlan returns how the lines of its jobs add up.
func (s *Settled) StudyPlan() accounting.Plan { return s.plan }

// goesOn returns an error unless the job declares the study that it continues.
func (x *settling) goesOn(b *Before) error {
	p := &x.Privacy
	if b.Study == nil {
		return nil
	}
	of := b.Study.Target()
	switch {
	case p.Study != of.Epsilon:
		return x.Mistake("privacy.study",
			fmt.Sprintf("write %v, as it was, or declare a federation that continues none", of.Epsilon),
			"the study's budget was %v, and here it is %v", of.Epsilon, p.Study)
	case p.Delta != of.Delta:
		return x.Mistake("privacy.delta", fmt.Sprintf("write %v", of.Delta), "the study has epsilon %v "+
			"at delta %v, and this job states its own at %v", of.Epsilon, of.Delta, p.Delta)
	case p.StudyPlan != "" && p.StudyPlan != b.Plan.String():
		return x.Mistake("privacy.study_plan", "leave it out", "the study's plan is %v, which its first "+
			"job declared, and here it is %s", b.Plan, p.StudyPlan)
	}
	return nil
}

// study settles the study to which the job belongs, once its noise is settled.
func (x *settling) study() error {
	p, b := &x.Privacy, x.out.before
	if p.Study == 0 {
		return nil
	}
	round := x.out.Round()
	statement := round.Statement
	switch {
	case b != nil && b.Study != nil:
		x.out.study, x.out.plan = b.Study, b.Plan
		var differ *accounting.StatementError
		if err := statement.Implies(b.Study.Statement()); errors.As(err, &differ) {
			return x.Mistake("privacy.study", "declare a job that continues none", "the study's epsilon is "+
				"%s, and this job's is %s", differ.Other, differ.One)
		}
		return x.fits(round)
	case b != nil: // a budget that is declared late
		statement = statement.Assuming(accounting.AssumesAhead)
	}
	budget, err := accounting.NewBudget(statement, p.Study, p.Delta)
	if err != nil {
		return x.MistakeOf(err)
	}
	x.out.study = &budget
	switch {
	case p.StudyPlan != "":
		if err := x.out.plan.UnmarshalText([]byte(p.StudyPlan)); err != nil {
			return x.Mistake("privacy.study_plan", "", "%v", err)
		}
	case !coins(round) && round.Family != accounting.FamilyDiscreteLaplace:
		x.out.plan = accounting.GaussianPlan
	default:
		x.out.plan = accounting.EqualPlan
	}
	return x.fits(round)
}

// coins reports whether a secret coin decides what is in a round.
func coins(r accounting.Round) bool { return r.SecretRate > 0 && r.SecretRate < 1 }

// fits returns an error unless by the plan all that the job may spend, with what any party of the
// roster has spent, is within the study.
func (x *settling) fits(round accounting.Round) error {
	if x.out.plan == accounting.GaussianPlan &&
		(coins(round) || round.Family == accounting.FamilyDiscreteLaplace) {
		return x.Mistake("privacy.study_plan", "declare a job without, or one that continues none",
			"the study's plan is gaussian, and of secret coins and discrete Laplace noise chosen later "+
				"nothing is proved")
	}
	for _, before := range x.spendings() {
		if err := before.Add(accounting.Line{Round: round, Count: x.charges()}); err != nil {
			return x.MistakeOf(err)
		}
		err := before.Within(*x.out.study, x.out.plan)
		var over *accounting.OverBudget
		switch {
		case errors.Is(err, accounting.ErrPlan):
			return x.Mistake("privacy.study_plan", "declare the same noise as before, by "+
				"privacy.multiplier and all else that it depends on, or a job that continues none",
				"the study's plan is %v, and a round of this job does not fit it: %v", x.out.plan, err)
		case errors.As(err, &over):
			return x.Mistake("privacy.epsilon", "write less", "by the study's plan, %v, this job with "+
				"those before may go too far: %v", x.out.plan, over)
		case err != nil:
			return x.MistakeOf(err)
		}
	}
	return nil
}

// spendings lists what parties of the roster have spent before, each once, and nothing.
func (x *settling) spendings() []accounting.Spending {
	out := []accounting.Spending{{}}
	ledger := x.out.budget.Before
	if ledger == nil {
		return out
	}
	for _, name := range ledger.Clients() {
		one, found := ledger.Spending(name), false
		for _, o := range out {
			found = found || one.Contains(o) && o.Contains(one)
		}
		if !found {
			out = append(out, one)
		}
	}
	return out
}
