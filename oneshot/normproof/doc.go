// Package normproof proves that a party's masked vector is a bounded vector under the key whose
// shares it deals: SPEC-ONESHOT.md §13 specifies it, and says why it holds.
//
// A masked vector is y = a·s + z in R_q, with a public, s the key and z the input with its noise.
// So 256 random sums of the coordinates of z, which bound its norm (Gentry, Halevi, Lyubashevsky
// 2022, "Practical non-interactive publicly verifiable secret sharing with thousands of parties";
// Beullens, Seiler 2023, "LaBRADOR: compact proofs for R1CS from module-SIS"), are linear equations
// in the few numbers of s. The proof commits to these and to the sums (Pedersen 1991), and shows
// that all equations hold: it has some 2,700 witnesses however long y is. Challenges are hashes
// (Fiat, Shamir 1986, "How to prove yourself").
//
// A prover who can compute discrete logarithms on the day can prove what is false. The proof hides
// the witness from everybody, for ever, but for 2^-64.
//
// [Scheme.Prove] takes a time that does not depend on secrets, with one exception: how long it
// searches for four squares tells of the length of 256 random sums, and of nothing else.
package normproof
