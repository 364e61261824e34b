// Package simulation runs federated training of many parties on one machine,
// through the real private sum: every message is made, encoded, masked, carried
// and parsed as between machines, without the network in between.
//
// [Run] trains any model by any of the papers' rules, over one kind of [Sum]: in the clear, through
// the private sum, or through its encoding and noise without the messages. The same training may
// also run in the clear, from the same seeds and data (Options.Beside): the difference shows what
// privacy cost the model. The cost for the parties and the server is measured, in bytes and in
// time.
//
// [Personal] trains models that differ from party to party: each keeps parameters of
// its own and a mask of the weights that it does not prune.
//
// Package scenario, in this folder, simulates whole federations as a file declares them, with
// latencies and parties that come and go.
//
// # What is simulated
//
// One server and n parties, each each with its own rows. In every round the server broadcasts the
// model; each party trains from it on its rows, encodes the outcome (packages aggregation and
// privacy), masks it and submits (package protocol); the server gets the sum over all parties and
// makes the next model from it, as its rule says. The first model is the model's own Init.
//
// With Options.Recovery parties may drop out: Options.Drop says how many do, of every round, at
// random moments. The sum, and the training in the clear, is then over the parties that submitted;
// a party that dropped out is invited back for the next round. A round with too few parties left is
// lost, and training goes on with the old model. In sums that are not Private that part of the
// messages is lost, and Options.LostRounds whole rounds.
//
// With Options.Noise the sum is one of clipped updates to which every party adds its share of
// noise, enough for differential privacy even if colluders take their shares out again: see package
// privacy, and [Options.Release] for what a run asks of it. The training in the clear is then over
// clipped updates too, so that the difference shows what rounding and noise cost. Without noise
// sums are of fixed-point numbers, exactly.
//
// Keys, noise and draws that must be secret come from crypto/rand, everything else from Seed: apart
// from noise, two runs with the same options give the same models, however many cores there are. No
// time passes in the simulation itself; durations are measured with a clock that the caller hands
// in, while as many parties work at once as there are cores.
//
// All keys of all parties are in one process: a simulation protects nobody's
// data. It is for measuring.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package simulation
