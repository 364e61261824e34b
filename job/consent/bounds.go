package consent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/privacy"
)

// This file holds lines, of a job or of the book, against the epsilon that a policy allows.

// refuse returns an [ErrPolicy] with a reason.
func refuse(format string, a ...any) error {
	return fmt.Errorf("%w: %w", ErrPolicy, fmt.Errorf(format, a...))
}

// ofTime reports whether the policy bounds epsilon by the month or the year.
func (p *Policy) ofTime() bool {
	return p != nil && (p.MaxEpsilonMonth > 0 || p.MaxEpsilonYear > 0)
}

func (p *Policy) delta() float64 { return cmp.Or(p.Delta, privacy.DefaultDelta) }

func (p *Policy) unit() (u accounting.Unit, err error) {
	err = u.UnmarshalText([]byte(cmp.Or(p.Unit, "party")))
	return u, err
}

func (p *Policy) assumptions() (accounting.Assumptions, error) {
	if p.Assumes == nil {
		all := accounting.AssumesSums<<1 - 1
		return all &^ (accounting.AssumesAhead | accounting.AssumesSums), nil
	}
	return accounting.ParseAssumptions(p.Assumes...)
}

func (p *Policy) plan() (plan accounting.Plan, err error) {
	err = plan.UnmarshalText([]byte(cmp.Or(p.Plan, "gaussian")))
	if err == nil && plan != accounting.GaussianPlan && plan != accounting.AddsPlan {
		err = accounting.ErrPlan
	}
	return plan, err
}

// budget is an epsilon that the policy allows. A committee of the lines may be any, if the policy's
// faults are in league.
func (p *Policy) budget(epsilon float64, of accounting.Statement) (b accounting.Budget, err error) {
	t := accounting.Terms{Colluders: accounting.Colluders(p.Colluders),
		Committees: of.Terms().Committees}
	for i := range t.Committees {
		t.Committees[i].InLeague = min(p.Faults, t.Committees[i].Members)
	}
	if t.Unit, err = p.unit(); err != nil {
		return b, err
	}
	if err = t.Server.UnmarshalText([]byte(cmp.Or(p.Adversary, "curious"))); err != nil {
		return b, err
	}
	if t.Assumes, err = p.assumptions(); err != nil {
		return b, err
	}
	s, err := t.Statement()
	if err != nil {
		return b, err
	}
	return accounting.NewBudget(s, epsilon, p.delta())
}

// errUnit: a line is about another unit than the policy's epsilon.
var errUnit = errors.New("consent: rounds of another unit")

// inUnit returns lines as they count for the policy's unit: those of parties twice for a smaller
// one. It fails with errUnit for lines of which nothing is known about that unit.
func (p *Policy) inUnit(lines ...accounting.Line) (accounting.Spending, error) {
	unit, err := p.unit()
	if err != nil {
		return accounting.Spending{}, err
	}
	s, err := accounting.NewSpending(lines...)
	if err != nil || len(lines) == 0 || lines[0].Round.Statement.Unit() == unit {
		return s, err
	}
	if s, err = s.Doubled(unit); err != nil {
		return s, fmt.Errorf("%w: %w", errUnit, err)
	}
	return s, nil
}

// bounded returns nil if a spending is within an epsilon that the policy allows, and otherwise why
// not: over is the beginning of what says so, and field names the bound.
func (p *Policy) bounded(s accounting.Spending, plan accounting.Plan, epsilon float64,
	over, field string,
) error {
	budget, err := p.budget(epsilon, s.Statement())
	if err != nil {
		return err
	}
	err = s.Within(budget, plan)
	var differs *accounting.StatementError
	var more *accounting.OverBudget
	switch {
	case errors.Is(err, accounting.ErrPlan) && field == "max_epsilon":
		return refuse("nothing bounds its epsilon with that of the jobs before, %w, unless all were "+
			"fixed before a sum was seen, which nothing checks: list ahead in assumes", err)
	case errors.Is(err, accounting.ErrPlan) && p.Plan != "adds":
		return refuse(`%w; write plan = "adds" if its figure will do`, err)
	case errors.As(err, &more):
		return refuse("%s epsilon %s at delta %v, %s is %g", over, more.Most(),
			more.Delta, field, epsilon)
	case errors.As(err, &differs):
		return refuse("its epsilon is %s, and %s is %s", differs.One, field, differs.Other)
	case err != nil:
		return refuse("nothing bounds its epsilon: %w", err)
	}
	return nil
}

// checkAssumed fails with [ErrPolicy] if the job's own epsilon assumes what Assumes does not list.
func (p *Policy) checkAssumed(s *job.Settled) error {
	allowed, err := p.assumptions()
	if err != nil || p.Assumes == nil || !s.Job().Noisy() {
		return err
	}
	assumed := s.Statement().Assumes()
	switch study := s.Study(); {
	case s.Before() == nil:
	case study == nil:
		assumed |= accounting.AssumesAhead
	default:
		assumed |= study.Statement().Assumes()
	}
	if more := assumed &^ allowed; more != 0 {
		return refuse("its epsilon assumes %v, and assumes has %s", more,
			cmp.Or(allowed.String(), "nothing"))
	}
	return nil
}

// checkEpsilon holds what a job may spend against MaxEpsilon and MaxEpsilonRound, and its statement
// against the policy's.
func (p *Policy) checkEpsilon(s *job.Settled) error {
	if p.MaxEpsilon == 0 && p.MaxEpsilonRound == 0 {
		return nil
	}
	own := accounting.Line{Round: s.Round(), Count: s.Charges(s.Submissions())}
	unit, err := p.unit()
	if err != nil {
		return err
	}
	who := ""
	if of := own.Round.Statement.Unit(); of != unit {
		who = "for " + strings.TrimSuffix(unit.Words(), " of a party") + " "
	}
	round, err := p.inUnit(accounting.Line{Round: own.Round, Count: 1})
	if errors.Is(err, errUnit) {
		return refuse("its epsilon is for %s, and the policy's for %s; set unit to the one that it is "+
			"about", own.Round.Statement.Unit().Words(), unit.Words())
	} else if err != nil {
		return err
	}
	if p.MaxEpsilonRound > 0 {
		if err := p.bounded(round, accounting.EqualPlan, p.MaxEpsilonRound, who+"a round may spend",
			"max_epsilon_round"); err != nil {
			return err
		}
	}
	if p.MaxEpsilon == 0 {
		return nil
	}
	all, plan, err := p.withBefore(s, own)
	if err != nil {
		return refuse("%w", err)
	}
	return p.bounded(all, plan, p.MaxEpsilon, who+"it may spend", "max_epsilon")
}

// withBefore adds to what a job may spend the most that anybody in its roster has spent in those
// that it continues, line by line.
func (p *Policy) withBefore(s *job.Settled, own accounting.Line,
) (accounting.Spending, accounting.Plan, error) {
	var most accounting.Spending
	if before := s.Before(); before != nil {
		for i := range s.Roster().Len() {
			var err error
			most, err = most.Most(before.Ledger.Spending(s.Roster().Name(i)))
			if err != nil {
				return most, 0, err
			}
		}
	}
	lines := append(most.Lines(), own)
	all, err := p.inUnit(lines...)
	if err != nil || len(lines) == 1 {
		return all, accounting.EqualPlan, err
	}
	allowed, err := p.assumptions()
	if allowed&accounting.AssumesAhead != 0 {
		return all, accounting.FixedPlan, err
	}
	return all, accounting.GaussianPlan, err // a record does not say of which jobs its lines are
}

// checkTimes holds what entries of the book have spent, and may yet, against MaxEpsilonMonth and
// MaxEpsilonYear.
func (p *Policy) checkTimes(entries []Entry, now time.Time) error {
	plan, err := p.plan()
	if err != nil {
		return err
	}
	for _, bound := range []struct {
		span, field string
		most        float64
		of          time.Duration
	}{
		{"month", "max_epsilon_month", p.MaxEpsilonMonth, month},
		{"year", "max_epsilon_year", p.MaxEpsilonYear, year},
	} {
		if bound.most == 0 {
			continue
		}
		all, err := p.spentIn(entries, plan, now.Add(-bound.of), bound.field)
		if err != nil {
			return err
		}
		if err := p.bounded(all, plan, bound.most, "with it this party may spend in a "+bound.span,
			bound.field); err != nil {
			return err
		}
	}
	return nil
}

// spentIn adds up the lines of entries that have not ended before a time. Where epsilons add up a
// job that has ended early counts whole: its epsilon was fixed when it was declared, and to take
// less would be a late choice.
func (p *Policy) spentIn(entries []Entry, plan accounting.Plan, from time.Time, field string,
) (all accounting.Spending, err error) {
	var lines []accounting.Line
	var units []string
	for _, e := range entries {
		if !e.Ended.IsZero() && !e.Ended.After(from) {
			continue
		}
		if e.Clear {
			return all, refuse("%s has no noise, and %s bounds epsilon", e.label(), field)
		}
		counts := e.Left
		if e.Ended.IsZero() || plan == accounting.AddsPlan && !e.Declined {
			counts = slices.Concat(e.Left, e.May)
		}
		for _, l := range counts {
			l.Job = e.ID
			lines = append(lines, l)
		}
	}
	for _, l := range lines {
		unit := strings.TrimSuffix(l.Round.Statement.Unit().Words(), " of a party")
		if !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	for _, l := range lines {
		s, err := p.inUnit(l)
		if errors.Is(err, errUnit) {
			return all, refuse("the book has epsilon of %s; set unit to the one that %s is about",
				strings.Join(units, " and of "), field)
		} else if err != nil {
			return all, err
		}
		for _, x := range s.Lines() {
			if err := all.Add(x); err != nil {
				return all, refuse("%w", err)
			}
		}
	}
	return all, nil
}
