// Package masking hides vectors in a ring so that only their sums survive.
//
// A [Layout] lists the segments of a submission; a [Vector] holds one element
// of Z_{2^b} per coordinate, with b chosen per segment, 1 ≤ b ≤ 64. Masks are
// AES-128-CTR keystream, expanded from a 28-byte [Seed] and added on the way:
// every coordinate has its own mask. Two parties that hold one seed add and
// subtract the same mask ([Vector.MaskPair]), so that the masks of all pairs
// cancel in the sum (Bonawitz 2017 §4; the thesis's Protocol 1).
//
// A coordinate takes b bits on the wire and 64/⌊64/b⌋ in memory: 25,000,000 of 32 bits are 100 MB
// in both. Long vectors go through memory once: [Vector.Store] and [Vector.Load] access parts of
// one, [Vector.WriteTo] writes it piece by piece, and an [Intake] reads it piece by piece.
//
// What it promises: a vector to which the mask of a uniform, secret and never reused seed was added
// is indistinguishable from a uniform one, as far as AES-128 is a pseudorandom permutation. The
// package does not prevent a seed from being used twice: its caller must, as package protocol does.
//
// On amd64 the keystream is made in registers and added in the same pass, by the widest AES
// instructions that the processor has: of 512 bits ("avx512"), 256 ("avx2") or 128 ("aesni").
// Elsewhere the standard library makes it ("portable"). The variable HUSHSUM_CPU, with one of
// these names except the first, rules out the faster ones, for tests and benchmarks. [Masks]
// applies many masks at a time.
//
// # Constant time
//
// Adding, masking, packing and sharing take time that depends on the layout
// only, on machines with AES instructions. Parsing is the same for all inputs
// that it accepts.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package masking
