// Package hushsum runs private sums between processes: a [Coordinator] and many a
// [Participant] go through the rounds of a [job.Job], and in each all learn the mean of the
// parties' vectors and nothing else about any of them, with noise that keeps every party
// within a declared budget.
//
// # A job
//
// Write the job down ([job.Parse] reads its file), give all sides the same, and [job.Job.Settle]
// it with the roster of the parties' Ed25519 identities, which must reach them by a channel that
// the coordinator does not control. A party's own part is one function: model in, vector out. The
// coordinator's is one too: mean in, model out. The example in examples/averaging is a whole job
// between processes. A job that names a model trains it by rules that it declares, and package
// training has both functions: see the example of this package that is called training.
//
// Where parties can send only one message, or are very many, the job's sum.protocol is oneshot: a
// committee, each of whom runs a [Member], helps the coordinator to take the sums.
//
// # What is promised
//
// The sums have the promise of package protocol, or oneshot, against the server and the colluders
// that the job names, and what they say has that of package privacy: ε counts the noise of
// MinSurvivors − Colluders honest parties in every sum. The job is a part of every session: two
// sides whose clipping or noise differ refuse each other and say in which field.
//
// # What must be saved, and when
//
// A party saves before it sends: it may then be killed at any moment, is loaded again,
// and sends the same bytes once more. The coordinator saves its decisions only, before
// they are sent: who is in a session, who takes part in a round and with which
// broadcast, who is in its sum, which signatures certify that, and the new model. What
// parties sent after the last decision may be lost with its process, since each of them
// sends its last message again when it connects again, the same bytes, and the
// coordinator's state machine takes each message once: after the last decision every
// party's last message is one that answers it, or an earlier one, and then the
// party is sent the decision again, which is kept with it. So whatever is lost is sent
// again, and no decision is made twice. One thing is asked of a [Store]: a state that is older
// than the newest undoes the erasure of keys, and a missing one forgets what was spent; a
// [Counter] finds both. A store has one owner at a time. If a state is lost for good, say so
// with LeastNumber and Spent of [Participant]: nothing is to be deleted.
//
// # Long models
//
// Models go to parties in pieces, and submissions from them: no process holds either as
// bytes. A submission is masked in the one vector that it is in, and read by the
// coordinator from a file that has no name, into the sum. What is long is kept next to the
// state: see [Store]. A party with Work32 and a coordinator with Apply32 or Model32 hold models as
// float32, in half the memory, whatever the others do: links, stores and digests have float64.
// From a million weights on they run Go's collector several times a round, when vectors are
// spent. Programs with their own loop have EncodeTo and DecodeTo of package job, for float32 too,
// and SubmitVector, ReadMessage, SumVector and SaveParts of package protocol.
//
// Times are real ones here, unlike in the packages below, and nothing else is: sums,
// noise and keys do not depend on them.
package hushsum
