// Package scenario simulates a whole federation as it is declared: what accuracy, privacy
// and time a collaboration would give, before anybody commits to one. It has what the
// thesis's simulator PrivacyFL has (its chapter 5), in forms that are sound.
//
// A [job.Job] with its world says who has which rows where, and [Run] has them train and sum,
// round by round. Messages take virtual time (package clock); those of a private sum are made,
// carried and parsed by the machines of package protocol, and thousands of parties are a
// crowd (package crowd). The time that parties and servers work is given in the job,
// or what package cost says that they would need in places of their own.
//
// How parties train, and what follows from a sum, is package training's, as in a simulation without
// time. Sums, noise and their encoding are the settled job's: for each session the job is settled
// for the parties that are there, of the roster.
//
// Package drive decides what happens next in a private sum, as in a deployment: each server
// leads a job among all parties that it ever has, a session forms among those that are in the
// scenario so far, and another is set up during the rounds for parties that join
// later. A session promises parties.drop_out of those that were in the scenario when it formed, by
// one number that its machines keep, and the noise of its sums is calibrated to that number.
//
// Where a round is of some of the parties, one server draws them; where these submit a number of
// times at most, those who have done so least often. They are charged for that number, by their own
// count, and the job ends when too few have a submission left.
//
// Where parties send one message a round, the lead is one of such sums, and the members of its
// committee are in the scenario too, with places, crashes and lies of their own. Every message of
// up to a hundred thousand parties is made, carried and opened; nobody stands for anybody.
//
// The same job and data give the same times and models, to the bit. For that the
// noise is drawn from the world's seed too, which anybody can guess: a simulated
// model protects nobody, and must not be released. Keys are real ones.
//
// # In sound forms
//
//   - A party that subtracts its own noise does so in the copy that it keeps. That copy is
//     post-processing by that party alone, and no other party's protection changes.
//   - A party that leaves by convergence shows by it that its model is near the federated
//     one, and no noise hides who is present. With noise nobody may leave so; with a law of
//     the papers nothing is certified then.
//   - Without a server each party takes the server's part for itself, of the same masked
//     submissions, on one certified list of who is in the sum. All see the sum. They begin
//     a new session together, between rounds, when somebody joins or leaves.
//   - Of several servers each takes the private sum of its own parties and shows it to the
//     others. The noise of its own parties alone is counted.
//   - The staircase and continuous laws are for comparison only. The ε that their formula
//     claims stands next to the one that is certified for discrete Laplace noise of the
//     same width, for the whole vector and all rounds. Its width is that of all honest
//     noise in the sum, of which a party with rows of its own adds but a part.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package scenario
