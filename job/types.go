package job

import "time"

// Job is a declared job. A zero value of a field means its default. Its JSON and TOML names are
// those of [Fields].
type Job struct {
	// Names the job, once per roster. Values: 1 to 60 letters, digits, dots, dashes and underscores.
	// Required.
	Name string
	// Tells parties what they consent to. Values: up to 500 characters.
	About string
	// Counts the steps of the model, each of one private sum or two. Range: 1 to 1,000,000. Default:
	// required; 1 with queries.
	Rounds int
	// Draws the first model and the batches. Range: 0 to 2^63−1. Default: 0.
	Seed    uint64
	Parties Parties
	Sum     Sum
	Privacy Privacy
	Model   Model

	Training Training
	Server   Server
	Metrics  Metrics
	Column   []Column
	Query    []Query
	Time     Time
	World    World

	read    *source // nil: it was not read from a file
	counted int     // Parties.Count, if only a roster says it; 0: the job does
}

// Parties says who takes part.
type Parties struct {
	// Counts the parties: party-1, party-2 and so on, unless a roster or groups name them. Range: 2
	// to 1,000,000. Default: the roster's, or the groups'.
	Count int
	Group []Group
	// Names the file of the parties and their keys, which a simulation does without. Values: a file,
	// as seen from the job's.
	Roster string
	// Bounds the part of a round's parties that may be missing from its sum. Range: 0 to below 1
	// (share of the parties). Default: 0.0.
	DropOut float64
	// Bounds the parties that pool what they know with the server. Range: 0 to parties.count − 2
	// (parties). Default: 0.
	Colluders int
	// Counts the parties of a round, drawn by a public rule. Range: 0, or 2 to parties.count
	// (parties). Default: 0: all.
	PerRound int
	// Bounds the rounds that a party submits in, by its own ledger, whoever draws them. Range: 0, or
	// 1 to rounds (rounds). Default: 0: all.
	Participations int
	// Bounds the rows of a party that queries count; of more it takes the first. With the record unit
	// all count, and it says how many a party that is away may have. Range: 1 to 10,000,000 (rows).
	// Default: 1; with the record unit privacy.records.
	Rows int
	// Has each party take part by its own secret coin with this probability, and else send zeros with
	// its share of the noise. Range: 0 to 1 (probability). Default: 0: all take part.
	Hidden float64
}

// Group names parties that are alike.
type Group struct {
	// Names the parties of a group: clinic-1, clinic-2 and so on, or clinic if it is one. Values: 1
	// to 60 letters, digits, dots, dashes and underscores. Required.
	Name string
	// Counts them. Range: 1 to 1,000,000 (parties). Default: 1.
	Count int
}

// Sum says how sums are taken.
type Sum struct {
	// Takes the sums. Values: pairwise, oneshot. Default: "pairwise".
	Protocol string
	// Names the server that a sum withstands. Values: cheating, semi-malicious, curious. Default:
	// "cheating".
	Adversary string
	// Has sums recover also where parties.drop_out is 0. Default: false.
	Recovery bool
	// Leaves ML-KEM out of key exchange. Default: false.
	Classical bool
	// Has each party share keys with some neighbours only. Default: false.
	Sparse bool
	// Counts those neighbours. Range: 2 to parties.count − 1 (parties). Default: with sum.sparse the
	// least for failures of 2^−40 and 2^−30.
	Degree int
	// Names the file of the committee's members and their keys. Values: a file, as seen from the
	// job's.
	Committee string
	// Counts the committee of one-message sums. Range: 4 to 255 (members). Default: 13.
	Members int
	// Counts the members that may lie or be silent. Range: 1 to a third of the others (members).
	// Default: a fourth of the others.
	Faults int
	// Covers submissions until the committee agrees on who is in the sum. Default: false.
	Covered bool
	// Has each party prove that what it adds is no longer than the clip, up to a factor of 3.05; who
	// cannot is refused, with evidence. Default: false.
	Bounded bool
	// Has a round take this many submissions, while parties that are slower train on. Range: 0, or 2
	// to parties.count (parties). Default: 0: all that come.
	Buffer int
	// Bounds how many rounds before what is submitted may have been begun. Range: 1 to 1,048,576
	// (rounds). Default: 10 with sum.buffer.
	Stale int
	// Weighs means by rows; a party with more counts with this many. Range: 0 or more (rows).
	// Default: 0: equal weights.
	MaxWeight int
	// Bounds a coordinate of a sum without noise. Range: above 0. Default: 64.0.
	Range float64
	// Counts the binary places of a coordinate without noise. Range: 1 to 40 (bits). Default: 20.
	FractionBits int
}

// Privacy says which noise is in sums, and what it may spend of a party's privacy.
type Privacy struct {
	// Names whom epsilon protects: a party with all it has, or each record of a party. Values: party,
	// record. Default: "party".
	Unit string
	// Names whose records are protected together, such as patient: each row says whose it is. Values:
	// 1 to 60 letters, digits, dots, dashes and underscores. Default: none: each record by itself.
	Group string
	// Counts the records of all parties, or whose they are, as far as that is public. Range: 1 to
	// 1,073,741,824 (records). Default: in a simulation the data's.
	Records int
	// Names the law of the noise. Values: none, discrete-gaussian, discrete-laplace, skellam.
	// Default: "none".
	Noise string
	// Names who adds the noise: each party a share, or each member of the committee of one-message
	// sums, and epsilon then rests on the honest members. Values: parties, committee. Default:
	// "parties".
	NoiseBy string
	// Bounds what all rounds spend of the privacy of each unit, against the server. Range: above 0.
	// Default: none: privacy.multiplier sets the noise.
	Epsilon float64
	// Sets the standard deviation of a sum's noise over the L2 sensitivity. Range: above 0. Default:
	// the least that keeps privacy.epsilon.
	Multiplier float64
	// Names the file of what the parties have spent before, which counts. Values: a file, as seen
	// from the job's.
	Before string
	// Bounds epsilon of this job and of all that go on from it, over the life of a roster. Range:
	// above 0. Default: none: each has a budget of its own.
	Study float64
	// Lets epsilon fail with this probability. Range: above 0, below 1 (probability). Default: 1e-05.
	Delta float64
	// Clips what a unit adds, in L2 norm. Range: above 0 (of the vector). Default: none; required
	// with noise; 1 with queries.
	Clip float64
	// Has the clip follow this quantile of the norms. Range: 0 to below 1. Default: 0: a fixed clip.
	ClipQuantile float64
	// Sets how fast the clip follows. Range: above 0. Default: 0.2.
	ClipRate float64
	// Gives the signs of a mask this part of the budget. Range: above 0, below 1 (share). Default:
	// 0.5.
	SignShare float64
	// Has all parties submit so long after a round's model came, with zeros where there is nothing.
	// Range: above 0s, to 1000h. Default: at once; required with parties.hidden.
	SubmitAfter time.Duration
	// Correlates the noise of this many rounds: a party trains once in them, and submits parts of
	// what it made in each. Range: 0, or 2 to rounds (rounds). Default: 0: independent noise.
	Factorise int
	// Sets the width of a coordinate of a sum with noise. Range: 8 to 64 (bits). Default: 32; with
	// oneshot as its keys need; with queries 48.
	Bits int
}

// Model says what is summed: the weights of a model, or a bare vector.
type Model struct {
	// Names a model that the job trains itself. Values: logistic, softmax, mlp:N,…, lenet,
	// lenet-norm. Default: none: the parties' programs bring vectors.
	Name string
	// Counts the numbers of a row. Range: 1 to 4,194,304. Default: in a simulation the data's.
	Features int
	// Counts the classes of rows. Range: 2 to 65,536. Default: in a simulation the data's.
	Classes int
	// Counts the numbers of a bare vector. Range: 1 to 134,217,728. Default: the model's, or the
	// queries'.
	Length int
	Tensor []Tensor
	// Names the file of the first model, safetensors or npz. Values: a file, as seen from the job's.
	File string
	// Begins the tensors. Values: zeros, uniform. Default: "zeros".
	Init string
	// Sets the type that the model is sent in. Values: float32, float64. Default: float64 with
	// model.name, else float32.
	DType string
	// Keeps tensors whose names match these patterns with each party. Values: 1 to 200 characters
	// each. Default: none.
	Personal []string
}

// Tensor is a part of a model.
type Tensor struct {
	// Names a tensor. Values: 1 to 200 characters. Required.
	Name string
	// Sizes it, a dimension each. Range: 1 to 134,217,728. Required.
	Shape []int
}

// Training says what a party does in a round.
type Training struct {
	// Counts the passes over a party's rows in a round. Range: 1 to 1,000,000 (passes). Default: 1,
	// unless there are steps.
	Epochs int
	// Counts gradient steps, in place of passes. Range: 1 to 1,000,000. Default: none.
	Steps int
	// Counts the rows of a step; with the record unit those that a round expects of all parties.
	// Range: 0 or more (rows). Default: 0: all.
	Batch int
	// Sets the learning rate of the parties. Range: above 0. Default: 0.1.
	Rate float64
	// Sets the momentum of local steps. Range: 0 to below 1. Default: 0.0.
	Momentum float64
	// Sets the weight decay of local steps. Range: 0 or more. Default: 0.0.
	WeightDecay float64
	// Sets the strength of L2 regularisation. Range: 0 or more. Default: 0.0.
	Lambda float64
	// Names the rule of the parties. Values: fedavg, fedprox, scaffold, fedga. Default: "fedavg".
	Rule string
	// Sets the pull of fedprox towards the round's model. Range: above 0. Default: 0.1.
	Mu float64
	// Sets the displacement of fedga. Range: above 0. Default: 0.1.
	Beta float64
	// Says what scaffold's control variates are made of: steps is option II, gradient option I.
	// Values: steps, gradient, fresh. Default: "steps".
	Variates string
	// Masks coordinates on which parties disagree. Values: none, soft, hard. Default: "none".
	Mask string
	// Sets the agreement from which on a coordinate counts in full. Range: above 0, to 1. Default:
	// 0.4.
	MaskThreshold float64
	// Says what parties submit. Values: updates, weights. Default: "updates".
	Submit string
	// Has parties train from the first model in each round. Default: false.
	Restart bool
}

// Server says how a mean makes the next model.
type Server struct {
	// Makes the next model of a mean. Values: fedavg, fedavgm, fedadagrad, fedadam, fedyogi. Default:
	// "fedavg".
	Rule string
	// Sets the learning rate of the server. Range: above 0. Default: 1; 0.01 with adaptive rules.
	Rate float64
	// Sets the decay of the first moment, or the momentum. Range: 0 to below 1. Default: 0.0.
	Beta1 float64
	// Sets the decay of the second moment. Range: above 0, below 1. Default: 0.99.
	Beta2 float64
	// Sets the adaptivity: larger is closer to plain averaging. Range: above 0. Default: 0.001.
	Tau float64
	// Adds tau under the root, not behind it. Default: false.
	TauInside bool
	// Makes the last model the mean of those of so large a part of the rounds, the last ones. Range:
	// 0 to below 1 (share of the rounds). Default: 0: the last one.
	Average float64
}

// Metrics has loss and accuracy summed with the updates.
type Metrics struct {
	// Gives loss and accuracy this part of the clip, to be summed with the updates. Range: 0 to below
	// 1 (share). Default: 0: none are summed.
	Share float64
}

// Time says when rounds are held. It may change while a job runs.
type Time struct {
	// Begins the first round. Range: RFC 3339. Default: at once.
	Start time.Time
	// Sets the least time from one round's beginning to the next. Range: 0s to 1000h. Default: 0s.
	Pace time.Duration
	// Waits this long in a step for parties that are there; once enough are, a job of one round also
	// waits this long for parties that are not there yet. Range: above 0s, to 1000h. Default: "30s".
	StepTime time.Duration
}
