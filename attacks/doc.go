// Package attacks says what an attack on private sums is, what it reports and how that is
// judged. The attacks themselves are in a package for each family, and
// [github.com/hushsum/hushsum/attacks/catalogue] joins them:
//
//	collusion    n−1 parties pool what they know of the noise
//	session      a cheating server, colluders, thieves and strangers send messages
//	rounds       coordinators, parties and strangers do what no message of one session shows
//	committee    a cheating server, members, parties and thieves against the one-message sum
//	observation  observers of sums, masked values, samples or times compute with them
//	model        updates and models are searched for the rows behind them
//	epsilon      runs with and without a canary are told apart, to test a printed ε
//
// Every [Attack] is run twice: against a target that lacks the defence, where it has to
// succeed as theory says, and against the real code, where it has to fail within its
// stated confidence. A [Row] holds both measurements, each with the range that it must be
// in, and [Row.Verdict] depends on them alone. An attack that fails where it should
// succeed shows nothing about the defence, and is reported as such.
//
// # Who should use it
//
// To see what stands between an adversary and an input, run
// go test -v -run Attack ./attacks, or hushsum attack. Some attacks of the literature are
// also functions over plain data, to be turned on other systems: audits in package audit,
// gradient disaggregation in observation, membership inference in model.
//
// # Adding an attack
//
// An attack is a function of [Options] that returns a [Report]. It stands in a file of its
// family, and the family's Attacks function lists it. Measures come from [Exactly],
// [Near], [Between], [Proportion], [Correlated] and [Uncorrelated], which set interval and
// range together; random numbers come from [Options.Rand] and [Options.Parallel].
//
// # What it does not show
//
// A failed attack proves nothing but that this attack failed. The proofs are in the papers
// that the protocol cites; the attacks show that the implementation has the checks that
// the proofs need, and that no printed ε is beaten.
//
// The random numbers of an attack are seeded, so that a run can be repeated. None of them
// protects anything.
package attacks
