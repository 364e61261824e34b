// Package attacks attacks private sums, to show what the defences are worth.
//
// Every [Attack] of [Catalogue] is run twice: against a target that lacks the
// defence, where it has to succeed as theory says, and against the real code,
// where it has to fail within its stated confidence. A [Row] holds both
// measurements with the range that each must be in, and [Row.Verdict] follows
// from them alone. An attack that fails where it should succeed shows nothing
// about the defence, and is reported as such.
//
// # Who should use it
//
// Whoever wants to know what stands between an adversary and an input: run
// go test -v -run Attack ./attacks, or hushsum attack. The attacks are also
// ordinary functions over views and transcripts, to be turned on other systems.
//
// # What it does not show
//
// A failed attack proves nothing but that this attack failed. The proofs are in
// the papers that the protocol cites; the attacks show that the implementation
// has the checks that the proofs need, and that no printed ε is beaten.
//
// Randomness here is seeded, so that a run can be repeated. None of it protects
// anything.
package attacks
