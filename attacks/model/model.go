// Package model attacks what is learnt: updates of models, sums of them, and the models
// that come out.
//
// The adversaries are a curious server that sees one party's update without masks
// (GradientInversion), a server that cheats by putting a layer of its own in front of the
// model (Imprint; Fowl 2022, "Robbing the Fed"), and an outsider who has a released model
// and wants to know whether a row was in its training (Membership; the regression of
// "Gradient Masked Averaging for Federated Learning", and LiRA of Carlini 2022).
//
// [Shadows] and [Judge] are over plain data, to be turned on other models.
package model

import "github.com/hushsum/hushsum/attacks"

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{gradientInversion, imprint, membership}
}

// The parts of a run that have random numbers of their own.
const (
	partInversionMasks  = 70
	partImprint         = 71
	partMembershipOpen  = 72
	partMembershipNoisy = 73
	partInversionRows   = 74
	partMembershipSplit = 75
)
