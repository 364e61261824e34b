// Package shamir splits a secret among n holders so that any t of them can
// rebuild it and t−1 of them learn nothing about it (Shamir 1979, "How to
// share a secret"), over the scalar field of edwards25519, the integers modulo
// the prime ℓ = 2^252 + 27742317777372353535851937790883648493.
//
// The secret is the constant term of a polynomial of degree below t whose
// other coefficients are uniform; the share of the holder with index x is the
// polynomial's value at x. Indices are chosen by the caller: 32-bit, not zero,
// distinct.
//
// # What is here
//
//   - [Split] and [Combine] share one field element; [GenerateSecret] draws one.
//   - [Combiner] rebuilds many secrets that have the same holders: it computes
//     the Lagrange coefficients once. [Combiner.CorrectVarTime] also corrects
//     wrong shares and names who sent them.
//   - [SplitPacked] and [CombinePackedVarTime] share many secrets at a time, several
//     to a polynomial, and correct wrong shares among those of the sums.
//
// # Adversary
//
// Up to t−1 holders who pool their shares learn nothing, whatever their
// computing power. Plain shares are not authenticated: a holder may hand in a
// wrong share, and a dealer may deal shares of no single polynomial. Wrong
// shares are noticed when more than t are at hand, corrected when there are
// enough, and noticed in any case when the caller holds a commitment to the
// secret. Shares must travel sealed; this package does not seal them.
//
// # Constant time
//
// Split, SplitPacked and GenerateSecret take a time that depends on the threshold and the indices,
// which are public, and not on the secret, the coefficients or the shares. The same holds for
// [Combiner.Combine], and for [Combine] as long as all inputs are valid and the shares agree with
// each other.
//
// [Combiner.CorrectVarTime] and [CombinePackedVarTime] are variable time in the shares, and so is
// Combine once shares disagree: the party that combines them knows the secret by then, but should
// not let strangers measure how long it takes.
//
// Secret intermediate values are erased when spent, as far as Go allows: the
// compiler may have left copies on the stack.
package shamir
