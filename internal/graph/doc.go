// Package graph chooses and builds the communication graph of a
// secure-aggregation session: who shares masks and secret shares with whom, how
// many neighbours each party needs, and how many shares rebuild a secret.
//
// Up to a few hundred parties the complete graph is right, and only
// [DefaultThreshold] and [CheckThreshold] matter. Beyond that, [Parameters] finds
// the smallest degree k and the smallest threshold t for a stated adversary, and
// [NewGraph] lays the parties out as a k-regular Harary graph on a ring shuffled
// by a public seed (Bell, Bonawitz, Gascón, Lepoint, Raykova, "Secure
// Single-Server Aggregation with (Poly)Logarithmic Overhead", 2020; SecAgg+).
//
// # What is claimed, and what is not
//
// The sparse graph is for a curious or a semi-malicious server (one that is
// honest during set-up). The probabilities in [Parameters] are over a uniform
// permutation that is drawn after the adversary has chosen whom to corrupt, and
// they treat the set of parties that drop out as chosen without sight of the
// graph. A server that can try many transcripts and keep the seed that it likes
// best breaks the first assumption: unless the seed comes from outside, add
// [GrindingBits] to σ. A server that decides who drops out after it has seen the
// graph breaks the second; no choice of k here covers it.
//
// A cheating server needs the complete graph, or a committee that certifies one
// global set of survivors; [Parameters] refuses [Cheating] for that reason.
//
// Nothing here is secret, and nothing runs in constant time: graph, seed and
// parameters are known to every party and to the server.
package graph
