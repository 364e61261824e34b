package drive

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/accounting"
)

// Reasons for which a guard refuses a round. A party that meets one has nothing to mend: the
// coordinator has forgotten, been set back, or cheats.
var (
	// ErrRepeated: the party has submitted in this round of the job, or in a later one. Two
	// sums of one round show what changed between them.
	ErrRepeated = errors.New("drive: the round, or a later one, has had this party's submission")
	// ErrSpent: the round would take the party over its budget. It is accounting.ErrBudget too.
	ErrSpent = errors.New("drive: this party's budget is spent")
	// ErrOften: the party has submitted as often as it agreed to.
	ErrOften = errors.New("drive: this party has submitted as often as it agreed to")
	// ErrRound: no round of the job has this number.
	ErrRound = errors.New("drive: there is no such round in the job")
	// ErrLower: the saved state counts fewer rounds than are said to be spent, which count.
	ErrLower = errors.New("drive: the saved state is not the newest")
	// ErrState: this package did not save the given state for this party and job.
	ErrState = errors.New("drive: the saved state cannot be opened")
)

// Limits bound what a party releases: it agreed to them when it accepted a job.
type Limits struct {
	// Rounds is the number of the job's last round, at least 1.
	Rounds uint64
	// Submissions is the most submissions that leave, no matter who picks their rounds; 0: one in
	// each round.
	Submissions uint64
	// Every, above 1, is the number of consecutive rounds that Cost covers, in which a party's
	// submissions are parts of one vector: the party is charged for all of them at its first
	// submission, in whichever of these rounds that is.
	Every uint64
	// Cost says what one submission spends, and Ledger holds the party to its budget, including what
	// it spent in earlier jobs as far as that counts; nil without noise.
	Cost   accounting.Round
	Ledger *accounting.Ledger
	// Account is the party's name in Ledger; empty: "party".
	Account string
}

// submissions returns how many leave at most.
func (l *Limits) submissions() uint64 {
	if l.Submissions == 0 {
		return l.Rounds
	}
	return min(l.Submissions, l.Rounds)
}

// charges returns how often a party is charged for count submissions, in rounds up to last.
func (l *Limits) charges(last, count uint64) uint64 {
	if l.Every < 2 {
		return count
	}
	return bands(last, l.Every)
}

// bands returns how many runs of a given number of rounds begin up to a round.
func bands(round, every uint64) uint64 { return (round + every - 1) / every }

// account is the party's name in its ledger.
func (l *Limits) account() string { return cmp.Or(l.Account, "party") }

// Guard counts what a party releases. Rounds of a job have rising numbers, and each round is
// answered once, so a guard need only remember the last number and a count.
type Guard struct {
	limits Limits
	ledger *accounting.Ledger // nil without noise
	last   uint64             // round of the last submission
	count  uint64             // submissions
}

// NewGuard makes the guard of a party that may have submitted in every round up to spent, 0 for a
// new party. All rounds up to spent count as spent, up to the number that the party has agreed to,
// and none of them is answered again. NewGuard fails with [ErrRound] if the job has fewer rounds
// than spent, or none.
func NewGuard(limits Limits, spent uint64) (*Guard, error) {
	if limits.Rounds == 0 || spent > limits.Rounds {
		return nil, fmt.Errorf("%w: %d rounds are spent of %d", ErrRound, spent, limits.Rounds)
	}
	g := &Guard{limits: limits}
	if limits.Ledger != nil {
		g.ledger = limits.Ledger.Clone()
	}
	if err := g.spend(spent, min(spent, limits.submissions())); err != nil {
		return nil, err
	}
	return g, nil
}

// catchUp counts rounds up to spent as answered, each of those that the guard does not know of with
// a submission, up to the number that the party has agreed to. It returns nil where the guard knows
// of as many, else an [ErrLower] to report.
func (g *Guard) catchUp(spent uint64) (lower, err error) {
	switch known := g.last; {
	case spent > g.limits.Rounds:
		return nil, fmt.Errorf("%w: %d rounds are spent of %d", ErrRound, spent, g.limits.Rounds)
	case spent <= known:
		return nil, nil
	default:
		next, err := NewGuard(g.limits, 0)
		if err != nil {
			return nil, err
		}
		count := min(g.count+spent-known, g.limits.submissions())
		if err := next.spend(spent, count); err != nil {
			return nil, err
		}
		*g = *next
		return fmt.Errorf("%w: the state counts %s, and --spent says %d: rounds up to %d count as spent",
			ErrLower, rounds(known), spent, spent), nil
	}
}

func rounds(n uint64) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// spend counts rounds up to last as answered, count of them with a submission, without asking
// whether there is a budget for them: they are over.
func (g *Guard) spend(last, count uint64) error {
	if charges := g.limits.charges(last, count); g.ledger != nil && charges > 0 {
		err := spendAnyway(g.ledger, g.limits.Cost, int(charges), g.limits.account())
		if err != nil {
			return err
		}
	}
	g.count, g.last = count, last
	return nil
}

// Last returns the number of the last round that had a submission, 0 before the first.
func (g *Guard) Last() uint64 { return g.last }

// Count returns how many submissions have left, or count as if they had.
func (g *Guard) Count() uint64 { return g.count }

// Charges returns how often the submissions have charged the ledger.
func (g *Guard) Charges() uint64 { return g.limits.charges(g.last, g.count) }

// Spent returns what the submissions have spent; nil without noise. It fails with errors of the
// accountant.
func (g *Guard) Spent() (*accounting.Claim, error) {
	if g.ledger == nil {
		return nil, nil
	}
	spent, err := g.ledger.Spent(g.limits.account())
	return &spent, err
}

// Check returns why a round of the job may not have a submission: [ErrRound], [ErrRepeated],
// [ErrOften] or [ErrSpent]; nil if it may.
func (g *Guard) Check(round uint64) error {
	_, err := g.charged(round)
	return err
}

// charged returns the guard as it is once a round has had a submission. It leaves g as it is.
func (g *Guard) charged(round uint64) (*Guard, error) {
	switch {
	case round == 0 || round > g.limits.Rounds:
		return nil, fmt.Errorf("%w: %d of %d", ErrRound, round, g.limits.Rounds)
	case round <= g.last:
		return nil, fmt.Errorf("%w: round %d, and the last was %d", ErrRepeated, round, g.last)
	case g.count >= g.limits.submissions():
		return nil, fmt.Errorf("%w: %d times, and round %d would be one more", ErrOften, g.count, round)
	}
	out := &Guard{limits: g.limits, last: round, count: g.count + 1}
	if g.ledger == nil {
		return out, nil
	}
	out.ledger = g.ledger.Clone()
	more := g.limits.charges(out.last, out.count) - g.limits.charges(g.last, g.count)
	if more == 0 {
		return out, nil
	}
	if err := out.ledger.SpendRounds(g.limits.Cost, int(more), g.limits.account()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpent, err)
	}
	return out, nil
}

// Charge counts a submission in a round of the job, before the submission leaves: a counted
// submission is spent even if it is never sent. It fails as [Guard.Check] does, and then changes
// nothing.
func (g *Guard) Charge(round uint64) error {
	next, err := g.charged(round)
	if err == nil {
		*g = *next
	}
	return err
}

// guardState is the saved form of a guard. The ledger follows from the count.
type guardState struct {
	Last, Count uint64
}

func (g *Guard) state() guardState { return guardState{g.last, g.count} }

// restore makes the guard of a saved state.
func (s guardState) restore(limits Limits) (*Guard, error) {
	return ResumeGuard(limits, s.Last, s.Count)
}

// ResumeGuard restores the guard whose [Guard.Last] and [Guard.Count] were saved. It fails with
// [ErrState] if no guard of these limits can have had them.
func ResumeGuard(limits Limits, last, count uint64) (*Guard, error) {
	if count > last || last > limits.Rounds || last > 0 && count == 0 ||
		count > limits.submissions() {
		return nil, fmt.Errorf("%w: %d submissions up to round %d of %d", ErrState, count, last,
			limits.Rounds)
	}
	g, err := NewGuard(limits, 0)
	if err != nil {
		return nil, err
	}
	if err := g.spend(last, count); err != nil {
		return nil, err
	}
	return g, nil
}
