package job

import "time"

// World declares what a simulation needs and a deployment already has: data, places, links,
// mishaps. It is sent to nobody and is in no digest.
type World struct {
	// Seeds rows, losses, delays and drop-outs. Range: 0 to 2^63−1. Default: seed.
	Seed uint64
	// Evaluates the model once in this many rounds. Range: 1 to 1,000,000 (rounds). Default: 1.
	EvaluateEvery int
	// Skips what is compared: the same training in the clear, and those of each party alone. Default:
	// false.
	SkipClear bool
	Data      Data
	// Says how much of a sum is simulated. Values: messages, crowd, ring, clear. Default: "messages".
	Fidelity string
	// Says where sums are added up. Values: server, serverless. Default: "server".
	Topology string
	// Lists the places of the servers; if there are several, each sums its own parties. Values: 1 to
	// 200 characters each. Default: one, at server.
	Servers []string
	// Has this share of the parties drop out of each round. Range: 0 to below 1 (share of the
	// parties). Default: 0.0.
	Drop float64
	// Has this share of the parties cheat: each moves the sum against what it learnt, as far as the
	// sum's range allows for all of them; with sum.bounded their proofs do not hold. Range: 0 to
	// below 1 (share of the parties). Default: 0.0.
	Malicious float64
	// Loses this many rounds, drawn by seed: what parties submit in them is never summed. Range: 0 to
	// 1,000,000 (rounds). Default: 0.
	LostRounds int
	// Lets a party leave once no weight differs from its own by more than this. Range: 0 or more.
	// Default: 0: nobody leaves.
	Tolerance float64
	Reference Reference
	// Has a party subtract its own noise from its copy of the model. Default: false.
	SubtractOwn bool
	Link        []Link
	Party       []WorldParty
	Member      []WorldMember
}

// Data says what rows there are, and which party has them when.
type Data struct {
	// Names the data: a set, or the folder of one. Values: synthetic, adult, digits, mnist,
	// fashion-mnist, kddcup99 or a folder. Default: "synthetic".
	Set string
	// Counts the rows of a party; with draw, those of each round. Range: 1 to 10,000,000 (rows).
	// Default: 200; for images all.
	Rows int
	// Deals all rows of the set, as is always done with images. Default: false.
	All bool
	// Says how the rows are dealt to the parties, once. Values: shuffled, iid, label-skew, one-class,
	// dirichlet-labels, dirichlet-quantity, colour, rotation, label-colour, label-colour-skew,
	// label-rotation, label-rotation-skew, writers. Default: iid.
	Split string
	// Sets the concentration of the Dirichlet splits. Range: above 0. Default: 0.5.
	Concentration float64
	// Says how rows are dealt in each round, instead of a split. Values: fixed, new, growing, anew.
	// Default: by the split.
	Draw string
	// Keeps this share of the rows to evaluate models on, if a set has no test rows. Range: above 0,
	// below 1 (share of the rows). Default: 0.25.
	Test float64
	// Uses this many rows of a set, drawn by seed. Range: 0 or more (rows). Default: 0: all.
	Most int
	// Judges models on the set's own test rows, once all else is chosen: otherwise the last of the
	// training rows, up to 10,000, judge, and train nothing. Default: false.
	Final bool
}

// Reference is noise as a paper defines it, for comparison and never for release.
type Reference struct {
	// Adds noise as a paper defines it, for comparison and never for release. Values: staircase,
	// continuous-laplace, continuous-gaussian. Default: none.
	Law string
	// Sets the epsilon of that noise. Range: above 0. Default: required with a law.
	Epsilon float64
	// Sets the regularisation in its sensitivity. Range: above 0. Default: training.lambda.
	Alpha float64
}

// Link connects two places.
type Link struct {
	// Names the two places. Values: 1 to 200 characters each. Required.
	Between []string
	// Delays each message. Range: 0s to 1000h. Default: "0s".
	Latency time.Duration
	// Delays each message further, by up to this. Range: 0s to 1000h. Default: "0s".
	Jitter time.Duration
	// Loses this share of the messages, which are sent again. Range: 0 to 0.99 (share). Default: 0.0.
	Loss float64
	// Carries this many bytes a second. Range: 0 or more (bytes/s). Default: 0: no limit.
	Bandwidth float64
}

// WorldParty says where a party of a simulation is, or a group, and what happens to it.
type WorldParty struct {
	// Names a party, or a group. Values: a group or a party. Required.
	Name string
	// Says where it is. Values: 1 to 200 characters. Default: its name.
	Place string
	// Says where its server is. Values: one of world.servers. Default: the nearest.
	Server string
	// Counts its rows. Range: 1 to 10,000,000 (rows). Default: world.data.rows.
	Rows int
	// Lists the time of its work in each round; the last counts for all later ones. Range: 0s to
	// 1000h. Default: by the cost model.
	Compute []time.Duration
	// Multiplies the time of its work. Range: above 0, to 1,000,000. Default: 1.0.
	Slow float64
	// Slows it in this share of the rounds only. Range: 0 to 1 (share of the rounds). Default: 0: in
	// all.
	Straggle float64
	// Has it join in this round. Range: 1 to 1,000,000 (round). Default: 1.
	Joins int
	// Has it leave after this round. Range: 0 or more (round). Default: 0: it stays.
	Leaves int
	// Sets its own epsilon of a reference law. Range: above 0. Default: world.reference.epsilon.
	ReferenceEpsilon float64
	Crash            []Crash
}

// WorldMember says where a member of the committee of a simulation is, or all that are not named
// apart, and what happens to it.
type WorldMember struct {
	// Names a member, or all of them: member-1, or member. Values: member, or one such as member-1.
	// Required.
	Name string
	// Says where it is. Values: 1 to 200 characters. Default: with the server.
	Place string
	// Multiplies the time of its work. Range: above 0, to 1,000,000. Default: 1.0.
	Slow float64
	// Has it be present but never answer. Default: false.
	Silent bool
	// Has it lie: it disputes every submission, or reveals a wrong part of the key. Values: disputes,
	// part. Default: it is honest.
	Lies  string
	Crash []Crash
}

// Crash is a drop-out of a simulation.
type Crash struct {
	// Has it drop out of this round. Range: 1 to 1,000,000. Required.
	Round int
	// Says before which of its messages it drops out. Values: begin, submit, sign, reveal. Default:
	// "submit".
	At string
	// Brings it back before this round. Range: 2 to 1,000,001 (round). Default: the next.
	Back int
}
