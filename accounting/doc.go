// Package accounting computes what a run of private sums has spent: it turns
// noise, sampling and the number of rounds into (ε, δ), with a proof on both
// sides.
//
// # What it is
//
// [Compose] describes a run as mechanisms with counts. [Composition.Epsilon] and
// [Composition.Delta] return a [Bound]: an upper bound that may be printed as a privacy claim, and
// a lower bound from the same run, which shows how much of the upper bound is slack. Both come from
// privacy-loss distributions on a lattice with directed rounding: the upper one by spreading every
// cell onto its two ends so that both hypotheses keep their mass ("connect the dots", Doroshenko et
// al. 2022), the lower one by a contraction of the same law (see lower.go), or, where losses are
// few and far apart, by a coupling with it (see coupling.go). Tails cut off, aliasing and the
// rounding of the Fourier transform are charged to δ; an exponential tilt keeps those charges small
// next to δ itself, down to δ = 1e-15 and beyond.
//
// The package also has Rényi and zero-concentrated accounting, the analytic
// Gaussian mechanism, the classical theorems as named references, calibration
// on the certified upper bound, the two adversary views of a secure-aggregation
// round ([Round]) and a [Ledger] that refuses the round that would overspend.
//
// # Adjacency
//
// A mechanism alone is a pair of laws: the client takes part, or its
// contribution is the zero vector (zero-out adjacency, what a server that
// knows the roster sees). [Sampled] is Poisson sampling under add/remove
// adjacency; both directions are computed and the larger is reported.
// [ReplaceOne] is replace-one adjacency with its doubled sensitivity.
//
// # Who should not use it
//
// One-dimensional losses are exact for scalar releases and for vectors only where the worst case is
// one-dimensional (Gaussian noise in L2, Laplace and discrete Laplace in L1 alone). Vectors under
// discrete Gaussian or Skellam noise, sums of shares too, are dominated by a Gaussian of nearly the
// same variance (docs/privacy-proofs.md): the interval is 1 % wide or less where the noise of a sum
// has a standard deviation of 7 units or more. Vectors under discrete Laplace noise that are
// clipped in L2 have bounds 6 to 9 % apart in most settings: no theorem narrows this gap, and the
// Gaussian is the better law for vectors. [Round] takes the least of its bounds, and names a vector
// that attains the lower one.
//
// Nothing here is secret, so nothing is constant time. The package does no
// input or output, and reads neither clock nor randomness.
package accounting
