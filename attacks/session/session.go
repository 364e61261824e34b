// Package session attacks the messages of the private sum: what a server that cheats, a
// server that is curious, parties that collude, a later thief of states, or anyone at all
// can do with them.
//
// Most attacks are the cheating server's: it shows parties different survivors (SplitView),
// participants (SplitParticipants) or models (ModelInconsistency; Pasquini 2022), holds
// inputs back (LateInput), puts keys or configurations of its own in the place of others'
// (KeySubstitution, ThresholdDowngrade), and makes up parties (Sybil). What the protocol
// does against it is in (Bonawitz 2017) and SPEC.md §13.
//
// The target without a defence is package textbook, a second implementation of the
// specification, less that defence. The target with it is package protocol and, to show
// that the one defence makes the difference, textbook with nothing left out: a row has
// the worse of the two. Colluders are played by textbook, which keeps nothing from the
// server.
package session

import "github.com/hushsum/hushsum/attacks"

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{
		splitView,
		splitParticipants,
		modelInconsistency,
		lateInput,
		maskReuse,
		stolenState,
		keySubstitution,
		thresholdDowngrade,
		sybil,
		chosenMembers,
		oldKeys,
		wrongShares,
		spoilers,
		recordedKeys,
		malformed,
		replay,
		reorder,
		flood,
	}
}

// Adversaries of several attacks.
const (
	cheatingServer = "cheating server"
	anyone         = "anyone"
)
