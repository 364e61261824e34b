package falsify

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/protocol"
)

// F1: a job counts and charges what its fields say in words, and its sessions let the server have
// nothing else.
func TestCounts(t *testing.T) {
	over(t, 1, func(x *tried) (bool, error) {
		s := x.settled
		if s.Mechanism() == nil {
			return false, nil
		}
		j, n := s.Job(), s.Roster().Len()
		round := s.Round()
		want := referenceOf(j, n, j.Sum.Members)
		if err := want.state(x); err != nil {
			return true, err
		}
		limits, err := s.Limits(nil)
		if err != nil {
			return true, err
		}
		return true, errors.Join(
			same("submissions", s.Submissions(), submissionsOf(x)),
			same("rounds of the guard", int(limits.Rounds), want.sums),
			same("submissions of the guard", int(limits.Submissions), submissionsOf(x)),
			same("rate", rateOf(round), want.rate),
			same("statement", round.Statement, want.statement),
			same("what is said before it is settled", said(j.Explain(), s), said(s.Explain(), s)),
			same("charges", s.Charges(s.Submissions()), want.charges),
			counted(x, want, round),
			withinBudget(x, want),
			connected(x),
		)
	})
}

// said takes the sentences about an ε. Before a job is settled they cannot name its committee.
func said(lines []string, s *job.Settled) (of string) {
	for _, line := range lines {
		if strings.Contains(line, "psilon") && !strings.HasPrefix(line, "It continues federation ") {
			of += line + "\n"
		}
	}
	if c := s.Oneshot(); c != nil {
		list := c.Committee.Digest()
		of = strings.ReplaceAll(of, fmt.Sprintf("committee %x…", list[:2]), "the committee")
	}
	return of
}

// submissionsOf is how often a party submits: each part of a band is a submission.
func submissionsOf(x *tried) int {
	j := x.settled.Job()
	want := referenceOf(j, x.settled.Roster().Len(), j.Sum.Members)
	if j.Privacy.Factorise > 0 {
		return want.sums
	}
	return want.charges
}

func rateOf(r accounting.Round) float64 {
	if r.SecretRate == 0 {
		return 1
	}
	return r.SecretRate
}

// counted compares the shares that ε rests on with those of the words, and with what sessions let
// a server have.
func counted(x *tried, want reference, round accounting.Round) error {
	s := x.settled
	j := s.Job()
	dealt := j.Privacy.NoiseBy == "committee"
	if round.Shares > want.honest {
		// Rounds among few have thresholds by their size, which may allow fewer to be missing.
		if dealt || j.Parties.PerRound == 0 || s.Config(1).Recovery == nil ||
			s.Config(1).Recovery.Threshold > 0 {
			return same("honest shares", round.Shares, want.honest)
		}
	}
	if dealt {
		c := s.Oneshot()
		figures, err := c.Parameters()
		return errors.Join(err, same("honest shares", round.Shares, want.honest),
			same("members", c.Committee.Len()-c.Faults-figures.InLeague, want.honest))
	}
	least := 0
	if c := s.Oneshot(); c != nil {
		least = c.MinSurvivors - c.Colluders
	} else {
		c := s.Config(1)
		least = releasable(c, j.Parties.PerRound) - j.Parties.Colluders
		if j.Sum.Sparse && c.Recovery.Adversary != protocol.CuriousServer {
			least = min(least, c.Recovery.Threshold-c.Colluders+1) // SPEC.md §13.7
		}
	}
	if round.Shares > least {
		return fmt.Errorf("%d honest shares are counted, and a server may have a sum of %d", round.Shares,
			least)
	}
	if least < 2 {
		return fmt.Errorf("a server may have a sum of %d honest parties", least)
	}
	return nil
}

// withinBudget sees that all that a party is charged for keeps the budget, by the accountant: what
// the accountant says is F6's.
func withinBudget(x *tried, want reference) error {
	p := &x.settled.Job().Privacy
	if p.Epsilon == 0 || p.Multiplier > 0 {
		return nil
	}
	spent, err := x.settled.Round().Spent(accounting.ServerView, want.charges, p.Delta)
	if most := spent.Bare().Upper; err == nil && most > p.Epsilon*(1+1e-9) {
		err = fmt.Errorf("%d charges spend %v, and it may spend %v", want.charges, most, p.Epsilon)
	}
	return err
}
