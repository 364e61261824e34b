// Package audit tests a printed ε: an auditor runs a mechanism, or a whole private round,
// with a canary and without, tells the two apart as well as possible, and what that shows
// about ε must not exceed the claim.
//
// A lower bound comes from many runs (Clopper–Pearson intervals, as in Jagielski, Ullman,
// Oprea 2020; [Scores] and [Counts.Epsilon]) or from many canaries in one run (Steinke,
// Nasr, Jagielski 2023; [OneRun.Epsilon]). Both are over plain data, to be turned on other
// systems. Every audit is run on weakened noise too, where it has to refute the claim.
package audit

import "github.com/hushsum/hushsum/attacks"

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{auditMechanisms, auditPower, auditOneRun, auditRound}
}

// Alpha is the error of each one-sided interval of an audit in the catalogue: its lower
// bound is above the truth with probability 2·Alpha = 1e-6 at most.
const Alpha = 5e-7

// soundClaim stops every attack of the family.
const soundClaim = "the printed ε is an upper bound"

// The parts of a run that have random numbers of their own.
const (
	partMechanisms = 10 // and one more for each mechanism
	partMiddle     = 20 // the same
	partOneRun     = 30 // and the scale more
)
