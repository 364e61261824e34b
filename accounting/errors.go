package accounting

import (
	"errors"

	"github.com/hushsum/hushsum/internal/fault"
)

// Errors returned by this package. Test for them with errors.Is.
var (
	// ErrConfig reports an argument outside its documented range.
	ErrConfig = errors.New("accounting: parameter out of range")
	// ErrUnsupported reports a combination for which no bound is implemented.
	ErrUnsupported = errors.New("accounting: no bound for this mechanism")
	// ErrTooLarge reports a law with more points than can be tabulated, or more
	// different laws than can be composed; use the RDP bounds.
	ErrTooLarge = errors.New("accounting: too large to tabulate, use RDP")
	// ErrUnreachable reports a target that no parameter value in range meets.
	ErrUnreachable = errors.New("accounting: target cannot be reached")
	// ErrBudget reports a round that would overspend; it was not recorded.
	ErrBudget = errors.New("accounting: round would exceed the privacy budget")
	// ErrStatement reports two ε that are about different things: see [StatementError].
	ErrStatement = errors.New("accounting: these are epsilons of different statements")
	// ErrPlan reports lines that a [Plan] does not cover.
	ErrPlan = errors.New("accounting: the lines are outside their plan")
	// ErrLedger reports saved ledger bytes that do not describe a ledger.
	ErrLedger = errors.New("accounting: malformed ledger")
)

func planError(format string, args ...any) error {
	return fault.New(ErrPlan, "", format, args...)
}

func configError(format string, args ...any) error {
	return fault.New(ErrConfig, "", format, args...)
}
