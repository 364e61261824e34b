// Package collusion attacks noise that parties make for one another: n−1 of n parties pool
// all that they know, and subtract what it explains of the noise on the input of the one
// that is left.
//
// Most of it is about Protocol 1 of the thesis ("A Practical Approach to Federated Learning",
// chapter 2), in which every party sends every other party two candidates for a noise term, and the
// receiver's secret bit decides which candidate it adds. Collusion has every way to pool and to
// guess, on plain numbers; CollusionOblivious the same on package oblivious, with what its parties
// hold and send; CollusionAdult the thesis's own experiment. CollusionFaults shows what is wrong
// with the published form besides, and CollusionLaw what the noise that is left is worth in ε and
// δ. What holds against all of them are noise shares with slack for n−1 colluders (package noise),
// and oblivious transfer of the terms. JointPooling has the same colluders pool their bits in
// oblivious.Joint, where these explain nothing.
package collusion

import "github.com/hushsum/hushsum/attacks"

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{
		collusionTable, collusionFaults, collusionLaw, collusionOblivious, collusionAdult,
		jointPooling,
	}
}

// tableParties is n of the thesis's table and of its experiment.
const tableParties = 100

// The parts of a run that have random numbers of their own.
const (
	partTable          = 0 // and the number of a form's first case more
	partSum            = 1
	partCalibration    = 2
	partReuse          = 3
	partLaw            = 4
	partEqualNoise     = 5
	partNonOblivious   = 100
	partGammaShare     = 101
	partSlack          = 200
	partPublished      = 301
	partPublishedEqual = 302 // by Parallel
	partTransfer       = 302 // by Rand
	partTransferEqual  = 303
	partServer         = 304
	partTranscript     = 305
	partJoint          = 306
	partJointChosen    = 307
	partJointBits      = 308
	partTraining       = 400 // and the number of the training more
	partAdultLaplace   = 402
	partAdultViews     = 403
	partAdultOrder     = 499
)
