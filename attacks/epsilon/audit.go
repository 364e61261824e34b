// Package epsilon tests the ε that hushsum prints: an auditor runs a mechanism, or a whole private
// round, with a canary and without, and what package audit shows about ε from that must not exceed
// the claim. Every audit is run on weakened noise too, where it has to refute the claim.
package epsilon

import "github.com/hushsum/hushsum/attacks"

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{auditMechanisms, auditPower, auditOneRun, auditRound}
}

// soundClaim stops every attack of the family.
const soundClaim = "the printed ε is an upper bound"

// The parts of a run that have random numbers of their own.
const (
	partMechanisms = 10 // and one more for each mechanism
	partMiddle     = 20 // the same
	partOneRun     = 30 // and the scale more
)
