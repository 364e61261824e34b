package job

import (
	"regexp"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
)

// Bounds of fields that other code needs too.
const (
	MaxRounds  = 1_000_000
	MaxParties = 1_000_000
	MaxLength  = 1 << 27 // numbers of a vector
	maxRows    = 10_000_000
	// defaultBits is the width of a coordinate of a sum with noise, if a job does not set it.
	defaultBits = 32
	queryBits   = 48 // of a job with queries, whose vectors are short
	maxBins     = 1 << 16
	maxList     = 1000        // columns or queries
	maxTime     = 1000 * 3600 // seconds, of a step and of what happens in a world
)

// Presets that depend on the rule of the server, on the data, or on other fields.
const (
	staleRounds  = 10
	serverRate   = 1.0
	adaptiveRate = 0.01
)

// defaultMembers is how many members a committee has that nothing names.
const defaultMembers = 13

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$`)

func atMost(n int) func(string) bool {
	return func(s string) bool { return len([]rune(s)) <= n && printable(s) }
}

var someText = func(s string) bool { return s != "" && atMost(200)(s) }

// theJob is the table of a job's own fields. Each is here and nowhere else.
var theJob = tableOf(
	text("name", func(j *Job) *string { return &j.Name },
		"Names the job, once per roster.").
		form("1 to 60 letters, digits, dots, dashes and underscores", namePattern.MatchString).required(),
	text("about", func(j *Job) *string { return &j.About },
		"Tells parties what they consent to.").form("up to 500 characters", atMost(500)),
	whole("rounds", func(j *Job) *int { return &j.Rounds }, between(1, MaxRounds),
		"Counts the steps of the model; each takes one private sum or two.").
		means("required; 1 with queries").flag("rounds", "N"),
	seed("seed", func(j *Job) *uint64 { return &j.Seed },
		"Seeds the first model and the batches.").or(uint64(0)).flag("seed", "N"),

	whole("parties.count", func(j *Job) *int { return &j.Parties.Count }, between(2, MaxParties),
		"Counts the parties: party-1, party-2 and so on, unless a roster or groups name them.").
		means("the roster's, or the groups'").flag("clients", "N"),
	many("parties.group", func(j *Job) *[]Group { return &j.Parties.Group }, theGroup),
	text("parties.roster", func(j *Job) *string { return &j.Parties.Roster },
		"Names the file that lists the parties and their keys; a simulation needs none.").
		form("a file, relative to the job's", someText).of(Content),
	wholes("parties.weights", func(j *Job) *[]int { return &j.Parties.Weights },
		"Lists how often each party's vector counts in a sum, in the roster's order; all know the "+
			"weights, and sum.max_weight caps them.").within(between(1, keyexchange.MaxWeight)).
		means("none: all count alike").
		lacks(Timed, "in virtual time parties count alike"),
	number("parties.drop_out", func(j *Job) *float64 { return &j.Parties.DropOut }, share,
		"Bounds the share of a round's parties that may be missing from its sum.").
		unit("share of the parties").or(0.0).flag("drop-out", "F"),
	whole("parties.colluders", func(j *Job) *int { return &j.Parties.Colluders }, from(0),
		"Bounds how many parties may pool what they know with the server.").
		says("0 to parties.count − 2").unit("parties").or(0).flag("colluders", "N"),
	whole("parties.per_round", func(j *Job) *int { return &j.Parties.PerRound }, from(0),
		"Counts the parties of a round, drawn by a public rule.").
		says("0, or 2 to parties.count").unit("parties").means("0: all").flag("per-round", "N").
		lacks(Crowd, "all parties of a crowd are in each round"),
	whole("parties.participations", func(j *Job) *int { return &j.Parties.Participations }, from(0),
		"Bounds how many rounds a party submits in, by its own ledger, no matter who draws them.").
		says("0, or 1 to rounds").unit("rounds").means("0: all").flag("participations", "K"),
	whole("parties.rows", func(j *Job) *int { return &j.Parties.Rows }, between(1, maxRows),
		"Bounds how many rows of a party queries count; if it has more, the first ones count. With the "+
			"record unit all count, and this is the most that an absent party may have.").
		unit("rows").means("1; with the record unit privacy.records"),
	number("parties.hidden", func(j *Job) *float64 { return &j.Parties.Hidden }, between(0, 1),
		"Has each party toss a secret coin and take part with this probability; otherwise it sends "+
			"zeros with its share of the noise.").
		unit("probability").means("0: all take part").flag("hidden", "Q").
		lacks(Timed, "nobody tosses a coin in virtual time"),

	word("sum.protocol", func(j *Job) *string { return &j.Sum.Protocol }, "pairwise oneshot",
		"Names the protocol of the sums.").or("pairwise").flag("protocol", "NAME"),
	word("sum.adversary", func(j *Job) *string { return &j.Sum.Adversary },
		"cheating semi-malicious curious",
		"Says what kind of server a sum withstands.").or("cheating").flag("adversary", "NAME"),
	truth("sum.recovery", func(j *Job) *bool { return &j.Sum.Recovery },
		"Lets sums recover from drop-outs even if parties.drop_out is 0.").flag("recovery", ""),
	truth("sum.classical", func(j *Job) *bool { return &j.Sum.Classical },
		"Leaves ML-KEM out of key exchange.").flag("classical", ""),
	truth("sum.sparse", func(j *Job) *bool { return &j.Sum.Sparse },
		"Has each party share keys with only some neighbours.").flag("sparse", ""),
	whole("sum.degree", func(j *Job) *int { return &j.Sum.Degree }, from(2),
		"Counts the neighbours of a party.").says("2 to parties.count − 1").unit("parties").
		means("with sum.sparse the fewest for failure probabilities of 2^−40 and 2^−30"),
	text("sum.committee", func(j *Job) *string { return &j.Sum.Committee },
		"Names the file that lists the committee's members and their keys.").
		form("a file, relative to the job's", someText).of(Content),
	whole("sum.members", func(j *Job) *int { return &j.Sum.Members }, between(4, 255),
		"Counts the members of the committee of one-message sums.").unit("members").or(defaultMembers).
		flag("members", "N"),
	whole("sum.faults", func(j *Job) *int { return &j.Sum.Faults }, from(1),
		"Counts the members that may lie or stay silent.").says("1 to a third of the others").
		unit("members").means("a sixth of them").flag("faults", "N"),
	whole("sum.colluders", func(j *Job) *int { return &j.Sum.Colluders }, from(1),
		"Counts the members that may pool what they know with the server; those that lie or stay silent "+
			"are among them.").says("sum.faults to sum.members − 2·sum.faults − 1").unit("members").
		means("sum.faults"),
	whole("sum.disputes", func(j *Job) *int { return &j.Sum.Disputes }, from(1),
		"Counts the parties whose messages a member of the committee may refuse alone before the round "+
			"goes on without it.").says("1 to parties.count").unit("parties").
		means("a tenth of parties.count, divided by sum.faults").
		lacks(Sums, "what members dispute is simulated in virtual time"),
	truth("sum.covered", func(j *Job) *bool { return &j.Sum.Covered },
		"Covers submissions until the committee agrees on who is in the sum.").flag("covered", ""),
	truth("sum.bounded", func(j *Job) *bool { return &j.Sum.Bounded },
		"Has each party prove that what it adds, with its noise, is no longer than honest vectors; a "+
			"party that cannot is refused, with evidence. job check prints the factor.").
		flag("bounded", ""),
	whole("sum.groups", func(j *Job) *int { return &j.Sum.Groups }, between(0, 1024),
		"Deals the parties to this many groups in each round, and takes the median of the groups' "+
			"means, so that a party that cheats spoils one group; have four for each party that may.").
		says("0, or 2 to 1,024").unit("groups").means("0: one sum of all").
		lacks(Timed, "in virtual time all parties are in one sum"),
	whole("sum.buffer", func(j *Job) *int { return &j.Sum.Buffer }, from(0),
		"Has a round take this many submissions, while slower parties continue training.").
		says("0, or 2 to parties.count").unit("parties").means("0: all that arrive").
		flag("buffer", "K").
		lacks(Sums, "without links all parties are equally fast"),
	whole("sum.stale", func(j *Job) *int { return &j.Sum.Stale }, between(1, 1<<20),
		"Bounds how many rounds earlier the work that is submitted may have begun.").unit("rounds").
		means("10 with sum.buffer"),
	whole("sum.max_weight", func(j *Job) *int { return &j.Sum.MaxWeight }, from(0),
		"Weights means by rows; a party with more rows counts as having this many, and with "+
			"parties.weights one with a larger weight.").unit("rows").
		means("0: equal weights").flag("max-weight", "N").
		lacks(Crowd, "means of a crowd have equal weights").
		lacks(Programs, "the parties' own programs do not say how many rows an update is made of"),
	number("sum.range", func(j *Job) *float64 { return &j.Sum.Range }, positive,
		"Bounds a coordinate of a sum without noise.").or(64.0).flag("range", "X"),
	whole("sum.fraction_bits", func(j *Job) *int { return &j.Sum.FractionBits }, between(1, 40),
		"Counts the fractional bits of a coordinate without noise.").unit("bits").or(20).
		flag("fraction-bits", "N"),

	word("privacy.unit", func(j *Job) *string { return &j.Privacy.Unit }, "party record",
		"Says whom epsilon protects: a party with all its data, or each record of a party.").
		or("party").flag("unit", "NAME").
		lacks(Timed, "parties in virtual time send updates, not sums over records"),
	text("privacy.group", func(j *Job) *string { return &j.Privacy.Group },
		"Names whose records are protected together, such as patient: each row says whose it is.").
		form("1 to 60 letters, digits, dots, dashes and underscores", namePattern.MatchString).
		means("none: each record by itself").flag("group", "NAME"),
	whole("privacy.records", func(j *Job) *int { return &j.Privacy.Records }, between(1, 1<<30),
		"Counts the records of all parties, or with privacy.group the groups, as far as that is public.").
		unit("records").means("in a simulation as in the data").flag("records", "N"),
	word("privacy.noise", func(j *Job) *string { return &j.Privacy.Noise },
		"none key discrete-gaussian discrete-laplace skellam",
		"Names the law of the noise. With key one-message sums have only the little that hides keys, "+
			"which protects nobody's data, and no epsilon.").or("none").flag("noise", "NAME").
		lacksOnly(Timed, "key", "in virtual time sums without epsilon are exact"),
	word("privacy.noise_by", func(j *Job) *string { return &j.Privacy.NoiseBy }, "parties committee",
		"Says who adds the noise: each party a share, or each member of the committee of one-message "+
			"sums; epsilon then rests on the honest members. With sum.bounded a party then hides no cheat "+
			"in noise of its own.").
		means("committee with sum.bounded, else parties").flag("noise-by", "WHO"),
	number("privacy.epsilon", func(j *Job) *float64 { return &j.Privacy.Epsilon }, positive,
		"Bounds how much privacy of each unit all rounds together spend, against the server.").
		means("none: privacy.multiplier sets the noise").flag("epsilon", "E"),
	text("privacy.before", func(j *Job) *string { return &j.Privacy.Before },
		"Names the file that records what the parties spent earlier, which counts.").
		form("a file, relative to the job's", someText).of(Content).
		lacks(Sums, "nothing was spent before a simulation").
		lacks(Timed, "nothing was spent before a simulation"),
	number("privacy.study", func(j *Job) *float64 { return &j.Privacy.Study }, positive,
		"Bounds the epsilon of this job and all that continue it, over the life of a roster.").
		means("none: each job has its own budget"),
	word("privacy.study_plan", func(j *Job) *string { return &j.Privacy.StudyPlan },
		"gaussian equal", "Says how the rounds of a study's jobs add up, and so which job fits: "+
			"gaussian, any without secret coins and discrete Laplace noise; equal, rounds as in the first.").
		means("gaussian, or equal with such coins or noise"),
	number("privacy.multiplier", func(j *Job) *float64 { return &j.Privacy.Multiplier }, positive,
		"Sets the standard deviation of a sum's noise, divided by the L2 sensitivity.").
		means("the least that stays within privacy.epsilon").flag("noise-multiplier", "Z"),
	number("privacy.delta", func(j *Job) *float64 { return &j.Privacy.Delta }, inside,
		"Lets epsilon fail with this probability.").unit("probability").or(1e-5).flag("delta", "D"),
	number("privacy.clip", func(j *Job) *float64 { return &j.Privacy.Clip }, positive,
		"Clips what a unit adds to this L2 norm.").unit("of the vector").
		means("none; required with noise; 1 with queries").flag("clip", "C"),
	number("privacy.clip_quantile", func(j *Job) *float64 { return &j.Privacy.ClipQuantile }, share,
		"Has the clip follow this quantile of the norms.").means("0: a fixed clip").
		flag("clip-quantile", "Q").
		lacks(Crowd, "clips of a crowd are fixed").
		lacks(Programs, "the parties' own programs do not vote").
		lacks(Machines, "only a simulation has a clip that follows a quantile"),
	number("privacy.clip_rate", func(j *Job) *float64 { return &j.Privacy.ClipRate }, positive,
		"Sets how fast the clip follows.").or(0.2),
	span("privacy.submit_after", func(j *Job) *time.Duration { return &j.Privacy.SubmitAfter },
		limits{hi: maxTime, above: true},
		"Has all parties submit this long after a round's model arrives, zeros if they have nothing.").
		means("at once; required with parties.hidden").flag("submit-after", "TIME"),
	whole("privacy.factorise", func(j *Job) *int { return &j.Privacy.Factorise }, from(0),
		"Correlates the noise of this many rounds: a party trains in one of them, and submits a part of "+
			"the result in each.").
		says("0, or 2 to rounds").unit("rounds").means("0: independent noise").flag("factorise", "B").
		lacks(Timed, "in virtual time all train in each round"),
	number("privacy.sign_share", func(j *Job) *float64 { return &j.Privacy.SignShare }, inside,
		"Gives the signs of a mask this share of the budget.").unit("share").or(0.5),
	whole("privacy.bits", func(j *Job) *int { return &j.Privacy.Bits }, between(8, 64),
		"Sets the width of a coordinate of a sum with noise.").unit("bits").
		means("32; with oneshot as many as its keys or bounds need; with queries 48").
		flag("bits", "B"),

	text("model.name", func(j *Job) *string { return &j.Model.Name },
		"Names a model that the job trains itself.").
		form("logistic, softmax, scattering, mlp:N,…, lenet, lenet-norm", knownModel).
		means("none: the parties' programs bring vectors").flag("model", "NAME"),
	whole("model.features", func(j *Job) *int { return &j.Model.Features }, between(1, 1<<22),
		"Counts the numbers in a row.").means("in a simulation as in the data"),
	whole("model.classes", func(j *Job) *int { return &j.Model.Classes }, between(2, 1<<16),
		"Counts the classes of rows.").means("in a simulation as in the data"),
	whole("model.length", func(j *Job) *int { return &j.Model.Length }, between(1, MaxLength),
		"Counts the numbers in a bare vector.").means("the model's, or the queries'"),
	many("model.tensor", func(j *Job) *[]Tensor { return &j.Model.Tensor }, theTensor),
	text("model.file", func(j *Job) *string { return &j.Model.File },
		"Names the file that holds the first model, in safetensors or npz format.").
		form("a file, relative to the job's", someText).of(Content).
		lacks(Sums, "simulated models begin from the seed").
		lacks(Timed, "simulated models begin from the seed"),
	word("model.init", func(j *Job) *string { return &j.Model.Init }, "zeros uniform",
		"Says how the tensors are initialised.").or("zeros"),
	word("model.dtype", func(j *Job) *string { return &j.Model.DType }, "float32 float64",
		"Sets the type that the model is sent in.").means("float64 with model.name, else float32").
		lacksOnly(Sums, "float32", "simulated models have float64").
		lacksOnly(Timed, "float32", "simulated models have float64"),
	texts("model.personal", func(j *Job) *[]string { return &j.Model.Personal },
		"Keeps at each party the tensors whose names match these patterns.").means("none"),

	whole("training.epochs", func(j *Job) *int { return &j.Training.Epochs }, between(1, 1e6),
		"Counts the passes over a party's rows in a round.").unit("passes").
		means("1, unless there are steps").flag("epochs", "N"),
	whole("training.steps", func(j *Job) *int { return &j.Training.Steps }, between(1, 1e6),
		"Counts gradient steps, instead of passes.").means("none").flag("steps", "N"),
	whole("training.batch", func(j *Job) *int { return &j.Training.Batch }, from(0),
		"Counts the rows of a step; with the record unit, those that a round expects from all parties.").
		unit("rows").means("0: all").flag("batch", "N"),
	number("training.rate", func(j *Job) *float64 { return &j.Training.Rate }, positive,
		"Sets the learning rate of the parties.").or(0.1).flag("rate", "X"),
	number("training.momentum", func(j *Job) *float64 { return &j.Training.Momentum }, share,
		"Sets the momentum of local steps.").or(0.0).flag("momentum", "X"),
	number("training.weight_decay", func(j *Job) *float64 { return &j.Training.WeightDecay }, from(0),
		"Sets the weight decay of local steps.").or(0.0).flag("weight-decay", "X"),
	number("training.lambda", func(j *Job) *float64 { return &j.Training.Lambda }, from(0),
		"Sets the strength of L2 regularisation.").or(0.0).flag("lambda", "X"),
	word("training.rule", func(j *Job) *string { return &j.Training.Rule },
		"fedavg fedprox scaffold fedga", "Names the rule of the parties.").or("fedavg").
		lacksOnly(Timed, "fedga", "a round in virtual time is one sum, and fedga takes two").
		lacksOnly(Crowd, "scaffold", "a crowd sums no control variates"),
	number("training.mu", func(j *Job) *float64 { return &j.Training.Mu }, positive,
		"Sets the pull of fedprox towards the round's model.").or(0.1).flag("mu", "X"),
	number("training.beta", func(j *Job) *float64 { return &j.Training.Beta }, positive,
		"Sets the displacement of fedga.").or(0.1).flag("beta", "X"),
	word("training.variates", func(j *Job) *string { return &j.Training.Variates },
		"steps gradient fresh",
		"Says what scaffold's control variates are made from: steps is option II, gradient option I.").
		or("steps").
		lacksOnly(Timed, "fresh", "a round in virtual time is one sum, and fresh variates take two"),
	word("training.mask", func(j *Job) *string { return &j.Training.Mask }, "none soft hard",
		"Masks coordinates on which parties disagree.").or("none").flag("mask", "NAME").
		lacks(Crowd, "a crowd sums no signs").
		lacks(Programs, "the parties' own programs send no signs"),
	number("training.mask_threshold", func(j *Job) *float64 { return &j.Training.MaskThreshold },
		limits{hi: 1, above: true}, "Sets the least agreement at which a coordinate counts in full.").
		or(0.4).flag("mask-threshold", "T"),
	word("training.submit", func(j *Job) *string { return &j.Training.Submit }, "updates weights",
		"Says what parties submit.").or("updates"),
	truth("training.restart", func(j *Job) *bool { return &j.Training.Restart },
		"Has parties train from the first model in each round.").
		lacks(Sums, "fresh models are simulated in virtual time"),
	whole("training.standardise", func(j *Job) *int { return &j.Training.Standardise }, from(0),
		"Has this many first rounds sum the moments of scattering features, which later rounds are "+
			"standardised by.").unit("rounds").or(0),

	word("server.rule", func(j *Job) *string { return &j.Server.Rule },
		"fedavg fedavgm fedadagrad fedadam fedyogi", "Names the rule that makes the next model from a "+
			"mean.").or("fedavg"),
	number("server.rate", func(j *Job) *float64 { return &j.Server.Rate }, positive,
		"Sets the learning rate of the server.").means("1; 0.01 with adaptive rules").
		flag("server-rate", "X"),
	number("server.beta1", func(j *Job) *float64 { return &j.Server.Beta1 }, share,
		"Sets the decay of the first moment, or the momentum.").or(0.0),
	number("server.beta2", func(j *Job) *float64 { return &j.Server.Beta2 }, inside,
		"Sets the decay of the second moment.").or(0.99),
	number("server.tau", func(j *Job) *float64 { return &j.Server.Tau }, positive,
		"Sets the adaptivity: larger is closer to plain averaging.").or(1e-3),
	truth("server.tau_inside", func(j *Job) *bool { return &j.Server.TauInside },
		"Adds tau inside the square root, not outside."),
	number("server.average", func(j *Job) *float64 { return &j.Server.Average }, share,
		"Makes the last model the mean of the models of this share of the rounds, the last ones.").
		unit("share of the rounds").means("0: the last one").flag("server-average", "F"),

	number("metrics.share", func(j *Job) *float64 { return &j.Metrics.Share }, share,
		"Gives loss and accuracy this share of the clip, to be summed with the updates.").unit("share").
		means("0: none are summed"),

	many("column", func(j *Job) *[]Column { return &j.Column }, theColumn).few(),
	many("query", func(j *Job) *[]Query { return &j.Query }, theQuery).few(),

	instant("time.start", func(j *Job) *time.Time { return &j.Time.Start },
		"Sets when the first round begins.").means("at once").of(Schedule),
	span("time.pace", func(j *Job) *time.Duration { return &j.Time.Pace }, between(0, maxTime),
		"Sets the least time from the beginning of one round to that of the next.").means("0s").
		of(Schedule),
	span("time.step_time", func(j *Job) *time.Duration { return &j.Time.StepTime },
		limits{hi: maxTime, above: true},
		"Sets how long a step waits for connected parties, at least twice as long as the slowest takes; "+
			"the first round, once enough parties are connected, waits as long for the others.").
		or(30*time.Second).of(Schedule),
	whole("time.begin_with", func(j *Job) *int { return &j.Time.BeginWith }, from(0),
		"Counts the parties that have to be connected before the first round begins, however long that "+
			"takes; it then waits for no others.").
		says("0, or the fewest of a sum to parties.count").unit("parties").
		means("0: as many as a sum takes").of(Schedule),
)

var theGroup = tableOf(
	text("name", func(g *Group) *string { return &g.Name },
		"Names the parties of a group: clinic-1, clinic-2 and so on, or clinic if it is one.").
		form("1 to 60 letters, digits, dots, dashes and underscores", namePattern.MatchString).required(),
	whole("count", func(g *Group) *int { return &g.Count }, between(1, MaxParties),
		"Counts them.").unit("parties").or(1),
)

var theTensor = tableOf(
	text("name", func(t *Tensor) *string { return &t.Name }, "Names a tensor.").
		form("1 to 200 characters", someText).required(),
	wholes("shape", func(t *Tensor) *[]int { return &t.Shape }, "Lists its dimensions.").
		within(between(1, MaxLength)).required(),
)
