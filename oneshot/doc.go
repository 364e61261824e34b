// Package oneshot is a private sum in which each party sends only one message, however many parties
// there are. A committee of a few dozen members helps the server to remove the key from the sum,
// and the noise that hides the keys is the noise that protects the sum.
//
// Use it for phones and for very many parties, which appear once and vanish. Package protocol, in
// which each party stays for four messages, needs no committee, rests on fewer assumptions and
// gives exact sums at no extra cost.
//
// # A round
//
//	server → members   Invite        make a key for the round
//	member → server    Key           a fresh HPKE key, signed
//	server → all       Opening       the members' keys, digest of the broadcast
//	member → server    Candidates    what it may deal as noise, where members deal it under a bound
//	server → members   Coin          which of them each deals
//	party  → server    Submission    the one message: y = a·s + e + v, and shares of s in boxes
//	server → member    Batch         boxes of some parties, with what they signed
//	member → server    Disputes      the boxes that are bad
//	server → members   Settled       who of the batch is in the sum
//	server → members   Closing       that is all
//	member → server    Signed        a signature on who is in
//	server → members   Certificate   enough of those
//	member → server    Part          its sum of shares
//
// v is a party's input, e its share of the noise, s a short key of its own, and a public and fresh
// for each round (Ring-LWE). The server adds the y; the members' parts give the server the sum of
// the s and nothing else, and so the sum of e + v. SPEC-ONESHOT.md at the module's root has the
// protocol byte by byte and the security argument.
//
// [Party], [Member] and [Server] are deterministic state machines, apart from what
// HPKE draws: bytes in, bytes out, without goroutines, clocks or sockets. The caller
// carries the messages and decides when it has waited long enough.
//
// # What it promises
//
// A server that cheats, with up to [Terms.Faults] members and [Terms.Colluders] parties
// that pool all they know, learns at most one sum a round, over at least
// MinSurvivors − Colluders honest inputs, and nothing else,
//
//   - with [Terms.Covered], if Hint-RLWE is hard (Kim, Lee, Seo, Song 2023), which
//     follows from Ring-LWE, and AES is an ideal cipher;
//   - without, if it picks who is in the sum independently of the submissions, as
//     accidents and the order of arrival do; or, if it looks at them first,
//     if Hint-RLWE is hard with sets chosen adaptively. That is a new assumption. No
//     attack on it is known.
//
// The noise also protects against such a server, within the limits of its computing power: with the
// ε of MinSurvivors − Colluders shares, and a δ that grows by the server's chance to distinguish
// the keys from random.
//
// With [Terms.CommitteeNoise] members deal the noise, and the ε is that of C − 2·Faults members
// of a committee of C, no matter which parties collude. With [Terms.Norm] the server draws that
// noise from candidates, by [Server.Coin]: a member that chooses its own is named, but once in 16
// times.
//
// Sums are right whatever Faults members send. A party can spoil a sum, by a submission that does
// not fit the key that it deals or by values beyond the range, and without a bound nobody can tell
// which party did. With [Terms.Norm] parties prove that their submission is a vector within the
// bound, under the key that they deal: a party that cheats is named, with [Evidence] that convinces
// others, and the sum of the other parties comes out. The transport must authenticate the members
// to the server, or strangers can answer in their place and spoil rounds.
//
// # Crashes
//
// [Party.Save], [Member.Save] and [Server.Save] work after every step. Save, then send; after a
// crash load, and send Output again. Keep the newest state only: an older state would answer a
// round twice.
//
// # Constant time
//
// Operations of parties and members on secrets take time that depends on the configuration alone.
// The server rebuilds secrets that it is meant to learn, in variable time.
package oneshot
