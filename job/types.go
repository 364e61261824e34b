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
	// Counts the steps of the model; each takes one private sum or two. Range: 1 to 1,000,000.
	// Default: required; 1 with queries.
	Rounds int
	// Seeds the first model and the batches. Range: 0 to 2^63−1. Default: 0.
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
	// Names the file that lists the parties and their keys; a simulation needs none. Values: a file,
	// relative to the job's.
	Roster string
	// Lists how often each party's vector counts in a sum, in the roster's order; all know the
	// weights, and sum.max_weight caps them. Range: 1 to 65,536. Default: none: all count alike.
	Weights []int
	// Bounds the share of a round's parties that may be missing from its sum. Range: 0 to below 1
	// (share of the parties). Default: 0.0.
	DropOut float64
	// Bounds how many parties may pool what they know with the server. Range: 0 to parties.count − 2
	// (parties). Default: 0.
	Colluders int
	// Counts the parties of a round, drawn by a public rule. Range: 0, or 2 to parties.count
	// (parties). Default: 0: all.
	PerRound int
	// Bounds how many rounds a party submits in, by its own ledger, no matter who draws them. Range:
	// 0, or 1 to rounds (rounds). Default: 0: all.
	Participations int
	// Bounds how many rows of a party queries count; if it has more, the first ones count. With the
	// record unit all count, and this is the most that an absent party may have. Range: 1 to
	// 10,000,000 (rows). Default: 1; with the record unit privacy.records.
	Rows int
	// Has each party toss a secret coin and take part with this probability; otherwise it sends zeros
	// with its share of the noise. Range: 0 to 1 (probability). Default: 0: all take part.
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
	// Names the protocol of the sums. Values: pairwise, oneshot. Default: "pairwise".
	Protocol string
	// Says what kind of server a sum withstands. Values: cheating, semi-malicious, curious. Default:
	// "cheating".
	Adversary string
	// Lets sums recover from drop-outs even if parties.drop_out is 0. Default: false.
	Recovery bool
	// Leaves ML-KEM out of key exchange. Default: false.
	Classical bool
	// Has each party share keys with only some neighbours. Default: false.
	Sparse bool
	// Counts the neighbours of a party. Range: 2 to parties.count − 1 (parties). Default: with
	// sum.sparse the fewest for failure probabilities of 2^−40 and 2^−30.
	Degree int
	// Names the file that lists the committee's members and their keys. Values: a file, relative to
	// the job's.
	Committee string
	// Counts the members of the committee of one-message sums. Range: 4 to 255 (members). Default:
	// 13.
	Members int
	// Counts the members that may lie or stay silent. Range: 1 to a third of the others (members).
	// Default: a sixth of them.
	Faults int
	// Counts the members that may pool what they know with the server; those that lie or stay silent
	// are among them. Range: sum.faults to sum.members − 2·sum.faults − 1 (members). Default:
	// sum.faults.
	Colluders int
	// Counts the parties whose messages a member of the committee may refuse alone before the round
	// goes on without it. Range: 1 to parties.count (parties). Default: a tenth of parties.count,
	// divided by sum.faults.
	Disputes int
	// Covers submissions until the committee agrees on who is in the sum. Default: false.
	Covered bool
	// Has each party prove that what it adds, with its noise, is no longer than honest vectors; a
	// party that cannot is refused, with evidence. job check prints the factor. Default: false.
	Bounded bool
	// Deals the parties to this many groups in each round, and takes the median of the groups' means,
	// so that a party that cheats spoils one group; have four for each party that may. Range: 0, or 2
	// to 1,024 (groups). Default: 0: one sum of all.
	Groups int
	// Has a round take this many submissions, while slower parties continue training. Range: 0, or 2
	// to parties.count (parties). Default: 0: all that arrive.
	Buffer int
	// Bounds how many rounds earlier the work that is submitted may have begun. Range: 1 to 1,048,576
	// (rounds). Default: 10 with sum.buffer.
	Stale int
	// Weights means by rows; a party with more rows counts as having this many, and with
	// parties.weights one with a larger weight. Range: 0 or more (rows). Default: 0: equal weights.
	MaxWeight int
	// Bounds a coordinate of a sum without noise. Range: above 0. Default: 64.0.
	Range float64
	// Counts the fractional bits of a coordinate without noise. Range: 1 to 40 (bits). Default: 20.
	FractionBits int
}

// Privacy says what noise sums contain, and how much of a party's privacy may be spent.
type Privacy struct {
	// Says whom epsilon protects: a party with all its data, or each record of a party. Values:
	// party, record. Default: "party".
	Unit string
	// Names whose records are protected together, such as patient: each row says whose it is. Values:
	// 1 to 60 letters, digits, dots, dashes and underscores. Default: none: each record by itself.
	Group string
	// Counts the records of all parties, or with privacy.group the groups, as far as that is public.
	// Range: 1 to 1,073,741,824 (records). Default: in a simulation as in the data.
	Records int
	// Names the law of the noise. With key one-message sums have only the little that hides keys,
	// which protects nobody's data, and no epsilon. Values: none, key, discrete-gaussian,
	// discrete-laplace, skellam. Default: "none".
	Noise string
	// Says who adds the noise: each party a share, or each member of the committee of one-message
	// sums; epsilon then rests on the honest members. With sum.bounded a party then hides no cheat in
	// noise of its own. Values: parties, committee. Default: committee with sum.bounded, else
	// parties.
	NoiseBy string
	// Bounds how much privacy of each unit all rounds together spend, against the server. Range:
	// above 0. Default: none: privacy.multiplier sets the noise.
	Epsilon float64
	// Sets the standard deviation of a sum's noise, divided by the L2 sensitivity. Range: above 0.
	// Default: the least that stays within privacy.epsilon.
	Multiplier float64
	// Names the file that records what the parties spent earlier, which counts. Values: a file,
	// relative to the job's.
	Before string
	// Bounds the epsilon of this job and all that continue it, over the life of a roster. Range:
	// above 0. Default: none: each job has its own budget.
	Study float64
	// Says how the rounds of a study's jobs add up, and so which job fits: gaussian, any without
	// secret coins and discrete Laplace noise; equal, rounds as in the first. Values: gaussian,
	// equal. Default: gaussian, or equal with such coins or noise.
	StudyPlan string
	// Lets epsilon fail with this probability. Range: above 0, below 1 (probability). Default: 1e-05.
	Delta float64
	// Clips what a unit adds to this L2 norm. Range: above 0 (of the vector). Default: none; required
	// with noise; 1 with queries.
	Clip float64
	// Has the clip follow this quantile of the norms. Range: 0 to below 1. Default: 0: a fixed clip.
	ClipQuantile float64
	// Sets how fast the clip follows. Range: above 0. Default: 0.2.
	ClipRate float64
	// Gives the signs of a mask this share of the budget. Range: above 0, below 1 (share). Default:
	// 0.5.
	SignShare float64
	// Has all parties submit this long after a round's model arrives, zeros if they have nothing.
	// Range: above 0s, to 1000h. Default: at once; required with parties.hidden.
	SubmitAfter time.Duration
	// Correlates the noise of this many rounds: a party trains in one of them, and submits a part of
	// the result in each. Range: 0, or 2 to rounds (rounds). Default: 0: independent noise.
	Factorise int
	// Sets the width of a coordinate of a sum with noise. Range: 8 to 64 (bits). Default: 32; with
	// oneshot as many as its keys or bounds need; with queries 48.
	Bits int
}

// Model says what is summed: the weights of a model, or a bare vector.
type Model struct {
	// Names a model that the job trains itself. Values: logistic, softmax, scattering, mlp:N,…,
	// lenet, lenet-norm. Default: none: the parties' programs bring vectors.
	Name string
	// Counts the numbers in a row. Range: 1 to 4,194,304. Default: in a simulation as in the data.
	Features int
	// Counts the classes of rows. Range: 2 to 65,536. Default: in a simulation as in the data.
	Classes int
	// Counts the numbers in a bare vector. Range: 1 to 134,217,728. Default: the model's, or the
	// queries'.
	Length int
	Tensor []Tensor
	// Names the file that holds the first model, in safetensors or npz format. Values: a file,
	// relative to the job's.
	File string
	// Says how the tensors are initialised. Values: zeros, uniform. Default: "zeros".
	Init string
	// Sets the type that the model is sent in. Values: float32, float64. Default: float64 with
	// model.name, else float32.
	DType string
	// Keeps at each party the tensors whose names match these patterns. Values: 1 to 200 characters
	// each. Default: none.
	Personal []string
}

// Tensor is a part of a model.
type Tensor struct {
	// Names a tensor. Values: 1 to 200 characters. Required.
	Name string
	// Lists its dimensions. Range: 1 to 134,217,728. Required.
	Shape []int
}

// Training says what a party does in a round.
type Training struct {
	// Counts the passes over a party's rows in a round. Range: 1 to 1,000,000 (passes). Default: 1,
	// unless there are steps.
	Epochs int
	// Counts gradient steps, instead of passes. Range: 1 to 1,000,000. Default: none.
	Steps int
	// Counts the rows of a step; with the record unit, those that a round expects from all parties.
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
	// Says what scaffold's control variates are made from: steps is option II, gradient option I.
	// Values: steps, gradient, fresh. Default: "steps".
	Variates string
	// Masks coordinates on which parties disagree. Values: none, soft, hard. Default: "none".
	Mask string
	// Sets the least agreement at which a coordinate counts in full. Range: above 0, to 1. Default:
	// 0.4.
	MaskThreshold float64
	// Says what parties submit. Values: updates, weights. Default: "updates".
	Submit string
	// Has parties train from the first model in each round. Default: false.
	Restart bool
	// Has this many first rounds sum the moments of scattering features, which later rounds are
	// standardised by. Range: 0 or more (rounds). Default: 0.
	Standardise int
}

// Server says how the next model is made from a mean.
type Server struct {
	// Names the rule that makes the next model from a mean. Values: fedavg, fedavgm, fedadagrad,
	// fedadam, fedyogi. Default: "fedavg".
	Rule string
	// Sets the learning rate of the server. Range: above 0. Default: 1; 0.01 with adaptive rules.
	Rate float64
	// Sets the decay of the first moment, or the momentum. Range: 0 to below 1. Default: 0.0.
	Beta1 float64
	// Sets the decay of the second moment. Range: above 0, below 1. Default: 0.99.
	Beta2 float64
	// Sets the adaptivity: larger is closer to plain averaging. Range: above 0. Default: 0.001.
	Tau float64
	// Adds tau inside the square root, not outside. Default: false.
	TauInside bool
	// Makes the last model the mean of the models of this share of the rounds, the last ones. Range:
	// 0 to below 1 (share of the rounds). Default: 0: the last one.
	Average float64
}

// Metrics declares that loss and accuracy are summed with the updates.
type Metrics struct {
	// Gives loss and accuracy this share of the clip, to be summed with the updates. Range: 0 to
	// below 1 (share). Default: 0: none are summed.
	Share float64
}

// Time says when rounds are held. It may change while a job runs.
type Time struct {
	// Sets when the first round begins. Range: RFC 3339. Default: at once.
	Start time.Time
	// Sets the least time from the beginning of one round to that of the next. Range: 0s to 1000h.
	// Default: 0s.
	Pace time.Duration
	// Sets how long a step waits for connected parties, at least twice as long as the slowest takes;
	// the first round, once enough parties are connected, waits as long for the others. Range: above
	// 0s, to 1000h. Default: "30s".
	StepTime time.Duration
	// Counts the parties that have to be connected before the first round begins, however long that
	// takes; it then waits for no others. Range: 0, or the fewest of a sum to parties.count
	// (parties). Default: 0: as many as a sum takes.
	BeginWith int
}
