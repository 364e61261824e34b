// Package noise samples integers whose law is proved, for differential privacy.
//
// A [Law] is one of the discrete laws that private sums use: discrete Laplace, discrete Gaussian,
// Skellam, Poisson, Pólya (negative binomial of real shape) and differences of Pólya variables,
// with rational parameters. Two types sample a law, both from an io.Reader and with integers
// alone:
//
//   - [Table]: cumulative tables, built once with certified arithmetic. Every sample
//     takes the same work, a slice is filled at some nanoseconds per
//     element, and the law sampled is within [Table.Distance] ≤ 2^-100 of the
//     stated one, a bound computed from the table itself. N samples add
//     (1+e^ε)·N·Distance to δ.
//   - [Exact]: statistical distance zero, for claims with δ = 0 and as the reference
//     (Canonne, Kamath, Steinke 2020, Algorithms 1 to 3; inversion with certified
//     bounds for the other laws).
//
// [Shares] divides a law among parties, m of whom must suffice (m = MinSurvivors − c
// with c colluders): which law each samples, and what any number of shares
// adds up to.
//
// There is no float sampler here: none may protect a release, and no part of the
// package uses a float to decide a sample.
//
// # Constant time
//
// [Sampler.Fill] executes the same instructions and touches the same memory for all values drawn:
// all thresholds are read in order for every word, which is compared with all of them or, on
// amd64, with those that registers are permuted to; selections are arithmetic on masks, and
// addresses depend on positions only. The law and the length of the slice are public and do show
// in its time; so does a failure of the source. [Exact] and [Source] take longer for larger
// values, measurably: for discrete Laplace noise of σ = 10 the correlation of time and absolute
// value is about 0.5. Use them where nobody who must not learn the noise can time them.
//
// # Randomness
//
// A nil reader means Expand(nil): AES-256 in counter mode, rekeyed from crypto/rand every 32 KiB.
// The claims of Distance and "exact" are then computational, as they are with any generator. Pass
// crypto/rand.Reader itself to rely on the system's generator alone. A reader of fixed bytes
// makes the samples reproducible, for tests: secret noise must never come from math/rand. A
// source that fails or ends early gives [ErrRandom] and a cleared slice. A source that delivers
// bad bytes without an error cannot be told from a good one. Bytes drawn are erased after use, as
// far as Go allows.
package noise
