package job

import "strings"

// FieldGroup is a set of fields that have one mark.
type FieldGroup struct {
	Name   string   `json:"name"` // or the reason
	Fields []string `json:"fields"`
}

// theFree has the fields that may be set next to any theorem, by the reason, but for those of
// worlds, which are in no digest. Each is named, so that a new field is refused with noise until
// somebody has looked at it.
var theFree = []FieldGroup{
	{"public, and the same whatever rows parties have", strings.Fields(`name about seed rounds
		model.features model.classes model.length model.tensor[].name model.tensor[].shape model.file
		model.init model.dtype column[].name column[].unit query[].name`)},
	{"what a party does before its vector is clipped", strings.Fields(`training.epochs training.steps
		training.rate training.momentum training.weight_decay training.lambda training.mu training.beta
		training.restart training.standardise`)},
	{"made of sums", strings.Fields(`server.rule server.rate server.beta1 server.beta2 server.tau
		server.tau_inside server.average training.mask_threshold query[].at query[].top`)},
	{"when rounds are held, and how long a step waits", strings.Fields(`time.start time.pace
		time.step_time time.begin_with`)},
}

// theGroups have the fields that theorems admit together. A new field is in none.
var theGroups = []FieldGroup{
	{"people", strings.Fields(`parties.count parties.group[].name parties.group[].count parties.roster
		parties.drop_out parties.colluders sum.adversary sum.recovery sum.classical`)},
	{"graph", strings.Fields("sum.sparse sum.degree")},
	{"committee", strings.Fields(`sum.protocol sum.committee sum.members sum.faults sum.colluders sum.disputes
		sum.covered sum.bounded privacy.noise_by parties.weights`)},
	{"buffer", strings.Fields("sum.buffer sum.stale")},
	{"budget", strings.Fields(`privacy.epsilon privacy.multiplier privacy.delta privacy.before
		privacy.study privacy.study_plan privacy.clip privacy.bits`)},
	{"work", strings.Fields("model.name training.batch")},
	{"vector", strings.Fields("sum.max_weight metrics.share model.personal")},
	{"signs", strings.Fields("training.mask privacy.sign_share")},
	{"votes", strings.Fields("privacy.clip_quantile privacy.clip_rate")},
	{"unit", strings.Fields("privacy.unit privacy.group privacy.records")},
	{"rows", strings.Fields(`parties.rows column[].type column[].range column[].outside
		column[].categories column[].longest column[].blank column[].missing query[].kind query[].column
		query[].by query[].on query[].event query[].where query[].bins query[].by_bins query[].share`)},
}

// Lists of groups and fields that several theorems admit.
const (
	draws  = " parties.per_round "
	seldom = " parties.participations "
	coin   = " parties.hidden "
	band   = " privacy.factorise "
	timed  = " privacy.submit_after "
	anyLaw = " privacy.noise "
	rules  = " training.rule=fedavg,fedprox "

	besideNoise = " people budget work vector signs votes unit rows " + rules + timed + seldom + coin +
		band
	besidePairwise   = besideNoise + anyLaw
	besideOneMessage = " people committee buffer budget work vector rows " + rules + seldom +
		" privacy.noise=discrete-gaussian "
	besideRecords = " people graph budget work unit rows " + anyLaw + timed + seldom
	besideAll     = " people budget work " + rules + anyLaw
	besideLane    = besideAll + " graph vector " + timed + draws + seldom + coin
	anyField      = besidePairwise + draws + " graph committee buffer "
)
