// Package protocol is the private sum, message by message: n parties learn the
// sum of their vectors, through a server that learns nothing else.
//
// [Client] and [Server] are deterministic state machines: bytes in, bytes out,
// without goroutines, clocks or sockets. The caller carries the messages, over
// any transport, and decides when it has waited long enough. [Local] does so
// within one process.
//
// # The session
//
// This is the secure aggregation of the thesis (its Protocol 1 without the
// noise): one key exchange, then any number of rounds.
//
//	set-up    party  → server   Announce   an X25519 key, signed
//	          server → parties  Keys       all of them
//	round ℓ   server → parties  Begin      ℓ, who takes part, digest of the broadcast
//	          party  → server   Masked     input + masks
//	          server            Sum        the masks cancel
//
// Each pair of parties holds a chain of keys that is reseeded every round
// (package keyexchange) and masks with what it yields (package masking). If a
// party's submission is missing, the sum of the others stays masked: the round
// is lost, with an error that names the party, and the session goes on with the
// next.
//
// # What it promises
//
// Up to n − 2 parties that pool all they know, together with the server, learn
// the sum of the other parties' inputs and nothing else. The server may cheat:
//
//   - it cannot add parties or replace keys, since keys are signed under the
//     identities of a roster that it does not control;
//   - it cannot show different parties different keys, participants or
//     broadcasts: all of them are part of what masks are derived from, so that
//     the masks of parties that were told different things do not cancel;
//   - it cannot have a party mask two inputs alike: a round number is used once,
//     and the keys behind it are erased.
//
// It can always refuse service, and it learns each sum: protecting what a sum
// says is the work of noise. Parties that send false masks can garble a sum,
// and nobody can tell who did. The transport must authenticate parties to the
// server, or strangers can submit in a party's place and garble sums too.
//
// # Constant time
//
// What is done with secrets takes time that depends on the configuration only.
package protocol
