// Package simulation runs federated training of many parties on one machine,
// through the real private sum: every message is made, encoded, masked, carried
// and parsed as between machines, without the network in between.
//
// [Run] runs a job that [Settle] has settled for parties with rows. world.fidelity says how much of
// its sums is simulated: all [Messages], their encoding and noise alone ([Ring]), or nothing
// ([Clear]). A job that names places, links, or parties that come and go takes virtual time: see
// below. Without them no time passes. The same training then also runs in the clear, from the same
// seeds and data, unless world.skip_clear says otherwise: the difference shows what privacy cost
// the model. The cost for the parties and the server is measured, in bytes and in time.
//
// [Personal] trains models that differ from party to party: each keeps parameters of
// its own and a mask of the weights that it does not prune.
//
// # Without time
//
// One server and n parties, each with its own rows. In every round the server broadcasts the
// model; each party trains from it on its rows, encodes the outcome (packages aggregation and
// privacy), masks it and submits (package protocol); the server gets the sum over all parties and
// makes the next model from it, as its rule says. The first model is the model's own Init.
//
// world.drop says how many parties drop out of every round, at random moments. The sum, and the
// training in the clear, is then over the parties that submitted; a party that dropped out is
// invited back for the next round. A round with too few parties left is lost, and training goes on
// with the old model. Without messages that part of the submissions is lost, and world.lost_rounds
// whole rounds.
//
// With noise the training in the clear is over clipped updates too, so that the difference shows
// what rounding and noise cost. Without noise sums are of fixed-point numbers, exactly.
//
// Keys, noise and draws that must be secret come from crypto/rand, everything else from seed: apart
// from noise, two runs of the same job give the same models, however many cores there are. No
// time passes in the simulation itself; durations are measured with a clock that the caller hands
// in, while as many parties work at once as there are cores.
//
// # In virtual time
//
// A whole federation is simulated as its job declares it: what accuracy, privacy and time a
// collaboration would give, before anybody commits to one. It has what the thesis's simulator
// PrivacyFL has (its chapter 5), in forms that are sound. Messages take virtual time (package
// clock), and thousands of parties are a [Crowd] (package crowd). The time that parties and servers
// work is given in the job, or what package cost says that they would need in places of their own.
// Sums, noise and their encoding are the settled job's: for each session the job is settled for the
// parties that are there, of the roster.
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
// # No protection
//
// All keys of all parties are in one process: a simulation protects nobody's
// data. It is for measuring.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package simulation
