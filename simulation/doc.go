// Package simulation runs federated training of many parties on one machine,
// through the real private sum: every message is made, encoded, masked, carried
// and parsed as between machines, without the network in between.
//
// [Run] runs a job that [Settle] has settled for parties with rows. world.fidelity says how much of
// its sums is simulated: all [Messages], their encoding and noise alone ([Ring]), or nothing
// ([Clear]). The same training also runs in the clear, from the same seeds and data, unless
// world.skip_clear says otherwise: the difference shows what privacy cost the model. The cost for
// the parties and the server is measured, in bytes and in time.
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
// All keys of all parties are in one process: a simulation protects nobody's
// data. It is for measuring.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package simulation
