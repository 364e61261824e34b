// Package privacy turns a promise of differential privacy into noise for the release of sums of
// many parties' vectors: it knows nothing of what the vectors are.
//
// A [Release] declares the sums of a run: how many parties there are and how many may be missing
// or collude, how long their vectors are and what bounds them, the family of the noise and how
// much of it. [Release.Calibrate] finds how much noise a [Budget] of (ε, δ) takes.
// [Release.Mechanism] works out the rest: the encoding into a ring, the sensitivity after
// rounding, the law of each party's share of the noise, and what a round spends. Parties then
// call [Mechanism.Encode], and the holder of the sum of their submissions calls
// [Mechanism.Decode]; package protocol takes that sum under masks.
//
// # Units
//
// The same noise can be stated by many numbers. Here it is stated by its multiplier, the standard
// deviation in a sum over the sensitivity Δ₂, which has no unit, and kept as noise.Shares: laws,
// not numbers. Methods that give a standard deviation have its unit in their name, integers of the
// ring or the units of the vectors, and take the number of shares that it is of.
//
// # What is promised
//
// Every party adds a share of the noise, and those of MinSurvivors − Colluders
// parties suffice: however few are in a sum, and whatever colluders take out of it
// again, that many are left, and no others are counted. A party's vector is clipped,
// and rounded such that its norm stays within the sensitivity stated. The neighbouring
// relation, and who learns what, are those of accounting.Round. Shares and roundings
// come from the random source that is handed in, nil being crypto/rand; what the
// sampler's tables lack of their laws is charged to δ.
//
// The submission of a party hides nothing: its noise is a share. Only the sum of all,
// and nothing that it was made of, may be seen.
package privacy
