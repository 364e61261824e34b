// Package drive decides what happens next in a job: when a party answers, what it answers, and
// what it counts. It is the part that programs, services and simulations of hushsum share: they
// carry messages, keep states and run training, and drive says when.
//
// A [Party] guards itself. It believes nobody about its budget: not the coordinator, not another
// party, not an earlier state of its own. Its [Guard] counts every submission before the
// submission leaves, refuses a round that was answered or that would take the party over what
// its plan allows, and refuses session numbers that would use the numbers up. What was counted
// is part of the state, and nothing leaves before the state that counted it is durable:
// [Party.Advance] alone hands out what may be sent, and it is called once the state is saved.
//
// The package has no goroutine, clock, socket or file, and no randomness but what it is given: the
// same events give the same decisions. A Party is not safe for concurrent use.
package drive
