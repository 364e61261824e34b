// Package host has the loop around package drive that programs in real time share: it calls Tick
// when that is due, has decisions saved before anything follows from them, has the next model made
// next to the loop, and gives each connection what is pending for its peer. A carrier adds how
// bytes travel, and a [Record] where they are kept.
//
// A [Leader] leads a job. Everything that happens to the job goes through [Leader.Do],
// [Leader.With] or [Leader.Decide], and everything that a peer is sent comes out of
// [Leader.Pending], for a connection, or [Leader.Poll], for a peer that connects for every question
// anew. All take the leader's lock, which is held while a state is saved. What is sent therefore
// follows from a state that is durable.
//
// A [Player] takes part in a job: a party, or a member of the committee. It saves what drive has
// decided, then sends, and has the party's [Program] work next to the loop, so that messages are
// taken meanwhile and what comes too late is told to end.
// Its carrier has a connection, or asks for each item; its state is kept by a [PartVault], or by
// another [Keeper].
package host
