// Package drive decides what happens next in a job: who is in a session and in a round, when a step
// need not wait any longer, when a party answers, what it answers, and what it counts. Programs,
// services and simulations of hushsum share it: they carry messages, keep states and run training,
// and drive says when.
//
// A [Server] leads a job. It forms sessions among the parties that are here, holds the rounds,
// remembers who has spoilt one or kept one waiting, and learns from what parties do how long a step
// waits. Decisions are given out in two steps: [Server.Ready] says what has to be durable, and
// only once [Server.Advance] is called does [Server.Pending] hand out what follows from it, so
// that nothing leaves which a crash could take back.
//
// A [Party] guards itself. It believes nobody about its budget: not the coordinator, not another
// party, not an earlier state of its own. Its [Guard] counts every submission before the
// submission leaves, refuses a round that was answered or that would take the party over what
// its plan allows, and refuses session numbers that would use the numbers up. What was counted
// is part of the state, and nothing leaves before the state that counted it is durable:
// [Party.Advance] alone hands out what may be sent, and it is called once the state is saved.
//
// Where parties send one message a round, a [Committee] leads the job in place of a Server, a
// [Member] is one of the committee, and a [Sender] takes a Party's place. A Committee has as many
// parties upload at a time as there is room for, so that each sends once. A party or a member that
// is silent costs a round StepTime at most, and is waited for less from then on. A party whose
// cover does not open is named, and left out of later rounds; anything else that garbles a sum
// costs that round (SPEC-ONESHOT.md §10.7). TestCommitteeWorlds and the tests next to it play these
// lies. With a buffer a round takes only a given number of submissions, the first to arrive, and
// slower parties offer what they made of an earlier broadcast in a later round; each is charged for
// what it has sent, and MinSurvivors alone says how many a sum has at least.
//
// The package has no goroutine, clock, socket or file, and no randomness but what it is given: the
// same events at the same times give the same decisions. Nothing in it is safe for concurrent use.
package drive
