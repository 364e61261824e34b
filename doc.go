// Package hushsum runs private sums between processes: a [Coordinator] and any number of
// [Participant] values go through the rounds of a [job.Job]; in each round all of them learn the
// mean of the parties' vectors and nothing else about any party, with noise that keeps every party
// within a declared budget.
//
// # A job
//
// Write the job down ([job.Parse] reads its file), give all sides the same, and [job.Job.Settle]
// it with the roster of the parties' Ed25519 identities, which must reach them over a channel that
// the coordinator does not control. A party supplies one function: model in, vector out. So does
// the coordinator: mean in, model out. The example in examples/averaging is a whole job between
// processes. A job that names a model trains it by the rules that it declares, and package training
// has both functions: see this package's example called training.
//
// If parties can send only one message, or there are very many of them, the job's sum.protocol is
// oneshot: a committee, each member of which runs a [Member], helps the coordinator to take the
// sums.
//
// # What is promised
//
// The sums keep the promise of package protocol, or oneshot, against the server and the colluders
// that the job names, and what they reveal keeps that of package privacy, which package job
// applies: ε counts the noise of MinSurvivors − Colluders honest parties in every sum. The job is a
// part of every session: two sides whose clipping or noise differ refuse each other and name the
// field.
//
// # What must be saved, and when
//
// A party saves before it sends: it may then be killed at any moment; loaded again, it sends the
// same bytes. The coordinator saves only its decisions, before they are sent: who is in a session,
// who takes part in a round and with which broadcast, who is in its sum, which signatures certify
// that, and the new model. What parties sent after the last decision may be lost with its process:
// each of them resends its last message, the same bytes, when it reconnects, and the coordinator's
// state machine takes each message once. Every party's last message either answers the last
// decision or is an earlier one, and then the party is sent the decision again, which is kept with
// the state. So whatever is lost is sent again, and no decision is made twice. A [Store] must
// return the newest state: an older one undoes the erasure of keys, and a missing one forgets what
// was spent; a [Counter] detects both. A store has one owner at a time. If a state is lost for
// good, say so with [Lost]; do not delete anything.
//
// # Long models
//
// Models go to parties in pieces, and submissions from them: no process holds either as
// bytes. A submission is masked in place, and the coordinator reads it into the sum from a file
// that has no name. Long data is kept next to the state: see [Store]. A Participant[float32] and a
// Coordinator[float32] hold models in half the memory, whatever the others do: links, stores and
// digests use float64. With a million weights or more they run Go's garbage collector several times
// a round, when vectors are no longer needed. Programs with their own loop can use EncodeTo and
// DecodeTo of package job, and SubmitVector, ReadMessage, SumVector and SaveParts of package
// protocol.
//
// Unlike the packages below except link, this one uses real time; sums, noise and keys do not
// depend on it. Links and stores are those of packages link and store, which programs of other
// kinds use without this one; their names stand here too.
package hushsum
