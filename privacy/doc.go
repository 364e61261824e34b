// Package privacy turns a promise of differential privacy into noise for the release of sums of
// many parties' vectors: it does not depend on what the vectors mean.
//
// A [Release] declares the sums of a run: how many parties there are and how many may be missing or
// collude, how long their vectors are and which norm bounds them, the family and the amount of the
// noise. [Release.Calibrate] finds how much noise a [Budget] of (ε, δ) takes. [Release.Mechanism]
// works out the rest: the encoding into a ring, the sensitivity after rounding, the law of each
// party's share of the noise, and what a round spends. Parties then call [Mechanism.Encode], and
// the holder of the sum of their submissions calls [Mechanism.Decode]; package protocol takes that
// sum under masks.
//
// # Units
//
// The same noise can be stated by many numbers. Here it is stated by its multiplier, the standard
// deviation in a sum over the sensitivity Δ₂, which has no unit, and kept as noise.Shares: laws,
// not numbers. Methods that return a standard deviation say its unit, integers of the ring or the
// units of the vectors, and take the number of shares that are summed.
//
// # What is promised
//
// Every party adds a share of the noise, and the shares of MinSurvivors − Colluders parties
// suffice: however few parties are in a sum, and whatever colluders take out of it again, that many
// shares are left, and no others are counted. A party's vector is clipped, and rounded such that
// its norm stays within the sensitivity stated. The neighbouring relation, and who learns what, are
// those of accounting.Round. Shares and roundings come from the random source that is handed in,
// nil being crypto/rand; the distance of the sampler's tables from their laws is charged to δ.
//
// The submission of a party hides nothing, since its noise is only a share. Others may see only the
// sum of all submissions, and none of the submissions themselves.
package privacy
