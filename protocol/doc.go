// Package protocol is the private sum, message by message: a server learns the sum of n parties'
// vectors and nothing else. Parties learn the sum only if the server sends it to them, and cannot
// check it.
//
// [Client] and [Server] are deterministic state machines: bytes in, bytes out, without clocks or
// sockets, and without goroutines except while masks are made, and keys and signatures checked,
// on all cores that GOMAXPROCS allows. The caller carries the messages, over any transport, and
// decides when it has waited long enough. [Local] does so within one process. SPEC.md at the
// module's root has the protocol byte by byte and the security argument.
//
// # The session
//
// One key exchange serves any number of rounds. With [Config.Recovery] a round
// survives parties that drop out of it (Bonawitz 2017 §4); without, it is the
// secure aggregation of the thesis (its Protocol 1 without the noise), and a party
// that does not submit costs the round, not the session.
//
//	set-up    party  → server   Announce     X25519 and ML-KEM keys, signed
//	          server → parties  Keys         those of all who announced in time
//	          party  → server   Encapsulate  ML-KEM ciphertexts for higher parties, signed
//	          server → parties  Members      who is in the session, and the ciphertexts
//	          party  → server   Upload *     recovery material for the first round
//	round ℓ   server → parties  Begin        ℓ, who takes part, digest of the broadcast
//	          party  → server   Masked       input + masks (* and material for the next round)
//	          server → parties  Survivors *  whose inputs are in
//	          party  → server   Signed *     a signature on that
//	          server → parties  Certificate * enough of them
//	          party  → server   Reveal *     shares that take the masks off the sum
//	between   server → party    Invite *     upload material: you dropped out
//
// The steps with a star belong to recovery. Each pair of parties holds a chain of keys that is
// reseeded every round (package keyexchange), and masks its inputs with the keys of the round
// (package masking); each party also adds a mask of its own. If a party stays, the others reveal
// shares of its own mask; if the party drops out, shares of the key to its pair masks of this
// round; never both.
//
// A session forms among the parties that appear, from [Config.MinMembers] on. A party that comes
// later, or has lost its state, is in the next session: [ClientSeries] and [ServerSeries] set it up
// during the rounds of the present one. With [Server.Gather] a round is held among any MinMembers
// members that are present, no matter which others are away.
//
// Up to a few hundred parties every party shares secrets with every other; beyond
// that [Parameters] gives the numbers of a sparse graph, for a server that is
// curious or that begins to cheat after set-up only. With [Config.PerRound] a
// public schedule says who takes part when.
//
// # What it promises
//
// Up to c parties that pool all they know, together with the server, learn of each round the sum of
// at least MinSurvivors inputs, their own among them, and nothing else (without recovery: the sum
// of all inputs). c is at most N − 2, N the parties of a round. On a complete graph the server may
// cheat:
//
//   - it cannot add parties or replace keys, since keys are signed under the
//     identities of a roster that it does not control;
//   - it cannot show different parties different participants or broadcasts: they
//     are part of what masks are derived from, shares are sealed for, and
//     signatures are made on;
//   - it cannot have survivors counted as drop-outs by some and not by others:
//     nobody reveals anything before a quorum has signed one list;
//   - it cannot have a party mask two inputs alike: a round number is used once,
//     and the keys behind it are erased.
//
// When the thresholds do not hold, honest parties refuse, with [ErrTooFew], [ErrSurvivors] or
// [ErrCertificate]. The server can always refuse service, and it learns each sum: to protect what a
// sum says, add noise. Parties that submit false masks can garble a sum, and nobody can tell who
// did. The transport must authenticate parties to the server, or strangers can submit in a party's
// place and garble sums too.
//
// An adversary that records a session and breaks X25519 later, with a quantum computer, must
// still break ML-KEM-768, unless [Config.Classical] leaves that out.
//
// # Crashes
//
// [Client.Save] and [Server.Save] work after every step. A party saves, then sends, and sends
// [Client.Output] again whenever it has reconnected. Keep the newest state only: an older state
// would use keys twice.
//
// For a server it suffices to save its decisions: save when a call returns messages or a sum, and
// before you send any of it; the messages that it receives need not be saved. After a crash load
// the state, and give each party that connects, once it has sent its Output, the messages that
// [Server.Pending] returns. The crash loses no round, and nothing is decided twice (SPEC.md §11.3,
// and TestDecisionsSuffice, which kills a server at every moment of a session). [Server.Step] says
// which call is next.
//
// # Long vectors
//
// Vectors too large for a second copy are encoded, masked and summed in place:
// [Client.SubmitVector] gives a message that is written in pieces, [Server.ReadMessage] reads it in
// pieces and changes nothing if it breaks off, [Server.SumVector] returns the sum without a copy,
// and [Server.SaveParts] saves the state without the sum. A broadcast is known by its digest
// ([NewBroadcastHash], [Server.BeginDigest]). With [Server.PendingParts] memory holds only one copy
// of the part that messages to many parties have in common.
//
// # Constant time
//
// Operations of clients on secrets take time that depends only on the configuration and on which
// parties take part. The server rebuilds secrets that it is meant to learn, in variable time.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package protocol
