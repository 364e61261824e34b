// Package cost predicts what a session of package protocol takes of real parties and of
// their server: bytes on the wire, time of one core and memory, from how many parties
// there are, how many neighbours each has and how long a submission is. So a million
// parties can be looked at on paper.
//
// Bytes are exact, by the formats of SPEC.md. Times are counts of single operations, such
// as a Diffie-Hellman or a coordinate of a mask, times [Units], which [Measure] measures on
// the machine at hand. docs/cost.md has the formulas and how well they predict.
package cost
