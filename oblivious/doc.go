// Package oblivious adds noise to a private sum that its bearers do not know: each
// noise term is made by one party and chosen by another, so that the first does not
// know which of its two candidates is in the sum, and the second does not know what
// it chose.
//
// It is an option on top of package protocol, which it leaves as it is. Per segment
// and round the parties exchange messages (a [Transfer] each); each gets a
// correction, a vector that it adds to its input with [Add] before it submits. The
// sum then is that of the inputs and of the noise. For most uses it is not the best
// choice: shares of noise with slack for c colluders (noise.Shares) protect as much
// with less noise in the sum, take no messages, and survive drop-outs.
//
// # Published, never for protection
//
// [Published] is Protocol 1 of the thesis, faithfully; it exists to be attacked, and must never
// protect anything. Party i offers each party j two masked candidates s_ij + (γ−γ̄)^b, γ and γ̄
// from Gamma(1/n, λ) or, discrete, Pólya variables of shape 1/n; the server permutes and
// randomises them; j adds one of the two by a secret bit, and i subtracts its s_ij. Its faults,
// kept on purpose, are:
//
//   - n terms of each of n parties add up to n Laplace variables: the released sum
//     carries n times the noise variance of the protocol that it is compared with.
//   - "Permutes and randomises": the server can only add one number to both
//     candidates, since two could not be taken off without knowing the bit. So the
//     receiver (and the server) learn the candidates' difference γ^0 − γ^1. With it,
//     n − 1 colluders that pool bits and masks are left with a variance of
//     2λ² on the remaining party's sum at any n: no more than one Laplace
//     variable of its own would leave, with no finite pure ε.
//   - The zero-sum additive form of the appendix for misbehaving parties gives the
//     identical masked input; it garbles their output and detects nothing.
//   - The published calibration of λ has 1/n in a scale whose noise is added to the
//     sum, so that the pure ε is n times the claim; it takes a client's own number
//     of records where the smallest is required, and the L2 sensitivity of a vector
//     for each coordinate and round, per record and not per client. Here λ is the
//     caller's, and [Published.Claim] gives no ε.
//   - Candidates drawn once can be used for many rounds ([Published.Choose]), which
//     averages the noise away.
//   - A party that drops out makes the sum useless, and nothing is authenticated.
//
// Decided, where the text contradicts itself: no party offers to itself, its own
// noise term is explicit; one modulus, since with two the masks do not cancel; a
// Published serves one round.
//
// # Transfer
//
// [Transfer] has each term chosen by a 1-out-of-2 oblivious transfer: the sender
// does not learn the choice and the receiver learns nothing of the other candidate,
// nor, because of the mask s_ij, of the one it chose.
//
//	set-up       i ↔ j    Setup    128 base transfers each way (Masny, Rindal 2019), over
//	                               ristretto255
//	round ℓ      j → i    Choice   choice bits, extended (Ishai, Kilian, Nissim, Petrank
//	                               2003), with a check
//	             i → j    Offer    s_ij + term^0 + pad^0, s_ij + term^1 + pad^1
//	correction of j       own term − Σ_i s_ji + Σ_i (s_ij + term chosen)
//
// Terms, masks and choices are fresh per round and coordinate; seeds and message
// keys are replaced by hashes of themselves after each round. Messages go through
// anyone's hands: they are sealed (XChaCha20-Poly1305) under keys that follow from a
// secret of each pair, which the caller brings (see the example). The base
// transfers and the extension say in their files why they were chosen; in short,
// simplest OT (Chou, Orlandi 2015) is not known to be secure as a base for an
// extension, and the consistency check of (Keller, Orsini, Scholl 2015) is made on
// columns, as (Roy 2022) analyses it.
//
// It promises the following against n − 1 colluding parties and the server, which may send
// anything: of the remaining party's input they learn what its sum with one Laplace variable of
// scale λ says: pure ε = Δ₁/λ ([Transfer.Claim]). Its n own terms (one added, one in the hands of
// each peer) are independent, of shape 1/n each, and known to nobody else, so they add up to
// exactly that variable; which candidate a peer chooses makes no difference to the law. That the
// choice is unknown is never counted: a malicious sender can make its two candidates equal.
// Protection from fewer colluders is at least as good.
//
// The limits:
//
//   - The sum has n Laplace variables in it, where slack noise for n − 1 colluders
//     has as many and for fewer has fewer.
//   - Every party of the round must submit. If one that took part in the
//     exchange drops out, its masks stay in the sum, which is then uniform and
//     useless to all who do not know that party's correction. A colluder knows its
//     own, so every round in which a party submitted has spent its ε, complete or
//     not. Use protocol.Config without Recovery, or with MinSurvivors at n, and
//     begin another round.
//   - Seeds are ratcheted, the extension's secret Δ is not: a thief of a sender's
//     state, together with a peer that kept its own seeds of an earlier round, reads
//     both candidates that were offered to that peer then, which is the leak of
//     Published. A new session ends what an old state can tell.
//   - All of this holds against bounded adversaries, in the random-oracle model:
//     SHA-256 is taken for correlation-robust, and the check of choices costs
//     (columns)/2^128 for every hash that a cheater computes. The claim does not
//     rest on Diffie–Hellman, under which only the choices are hidden.
//   - A misbehaving party can garble the sum, as in every private sum, and add any
//     noise of its own.
//   - A peer caught with inconsistent choices ends the session ([ErrCheck]).
//   - One segment of a submission per session; integers of the ring. λ is in units
//     of the ring.
//
// # Coins
//
// With Config.Coins the terms are coins that sender and receiver toss together, for
// scalar statistics; [Coins] has the binomial accounting, which counts only coins
// that colluders do not know, and composes over the coordinates of a vector.
//
// # Joint
//
// [Joint] adds binomial noise of one party's variance that no n − 1 parties know, even if they
// cheat: a key of all n, coins that each party in turn flips or not under the encryption, proofs
// of all that is sent, and one decryption, of the sum. It is for small vectors;
// docs/joint-noise.md has the protocol and the argument. It needs neither transfers nor package
// protocol.
//
// # Constant time
//
// Base transfers, extension, masks and choices, and what a [Joint] makes, take time that depends on
// public sizes only. Noise under [Exact] takes longer for larger values; see [Table]. Erasing is
// best effort: Go and the libraries may have copied a secret elsewhere.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package oblivious
