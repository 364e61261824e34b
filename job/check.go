package job

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Validate returns, joined, an error for everything that is outside its range, missing, or
// inconsistent with the rest: see [Errors]. Only [Job.Settle] finds whether the declared number of
// parties can have the noise and the sessions.
func (j *Job) Validate() error {
	if r := j.mistakes(); len(r.wrong) > 0 {
		return r.join()
	}
	return nil
}

// mistakes lists what is wrong with a job, at its places in a file if it has one.
func (j *Job) mistakes() *reader {
	r := new(reader)
	r.check(j, &theJob, "")
	c := &checker{Job: j, add: r.add}
	rules := []func(){c.parties, c.sum, c.privacy, c.records, c.queries, c.world, c.worldParties,
		c.worldMembers}
	if !j.Asks() {
		rules = append(rules, c.model, c.training, c.server)
	}
	if c.rounds(); len(r.wrong) > 0 {
		rules = nil // they compare what is inside its range
	}
	for _, rule := range rules {
		rule()
	}
	if rules != nil && j.Noisy() {
		for _, e := range j.refusals(j.runs().derivation(), r.wrong...) {
			r.add(e.Path, e)
		}
	}
	for _, e := range r.wrong {
		e.Named = j.named(e.Path)
	}
	j.read.find(r.wrong...)
	return r
}

// check finds values outside their ranges, and missing ones.
func (r *reader) check(owner any, t *table, at string) {
	for _, e := range t.entries {
		path := join(at, e.path())
		switch {
		case e.list != nil:
			for i := range e.list.len(owner) {
				r.check(e.list.of(owner, i), &e.list.rows, join(path, strconv.Itoa(i)))
			}
		case e.row.Required && e.row.zero(owner):
			r.add(path, &ConfigError{Reason: "it is missing", Advice: e.row.write()})
		default:
			r.add(path, e.row.check(owner))
		}
	}
}

// checker has the rules that are of more than one field.
type checker struct {
	*Job
	add func(path string, e *ConfigError)
}

// refuse adds a mistake if there is one.
func (c *checker) refuse(wrong bool, path, advice, format string, a ...any) {
	if wrong {
		c.add(path, &ConfigError{Reason: fmt.Sprintf(format, a...), Advice: advice})
	}
}

// takes refuses fields that are set and of no use.
func (c *checker) takes(use bool, why, advice string, paths ...string) {
	for _, path := range paths {
		if r := theJob.find(path).row; !use && !r.zero(c.Job) {
			c.refuse(true, path, advice, "it has no effect: %s", why)
		}
	}
}

// Size returns how many parties are declared, 0 if only a roster says so.
func (j *Job) Size() int {
	if j.Parties.Count > 0 {
		return j.Parties.Count
	}
	n := 0
	for _, g := range j.Parties.Group {
		n += max(1, g.Count)
	}
	return n
}

// Names returns the names of as many parties as are declared, for runners that make the roster:
// those of their groups, with a number in groups of several, and else party-1 and on.
func (j *Job) Names() (list []string) {
	for _, g := range j.Parties.Group {
		if g.Count < 2 {
			list = append(list, g.Name)
			continue
		}
		for k := range g.Count {
			list = append(list, fmt.Sprint(g.Name, "-", k+1))
		}
	}
	for i := len(list); i < j.Size(); i++ {
		list = append(list, fmt.Sprint("party-", i+1))
	}
	return list
}

// Noisy reports whether sums have noise, for release.
func (j *Job) Noisy() bool {
	return j.Privacy.Noise != "" && j.Privacy.Noise != "none" && !j.ofKeys()
}

// ofKeys reports whether sums have no noise but what hides the parties' keys, which protects no
// party and no record.
func (j *Job) ofKeys() bool { return j.Privacy.Noise == "key" }

// Oneshot reports whether sums are one-message sums, which a committee takes.
func (j *Job) Oneshot() bool { return j.Sum.Protocol == "oneshot" }

// Recovers reports whether parties may be missing from a sum.
func (j *Job) Recovers() bool { return j.Parties.DropOut > 0 || j.Sum.Recovery }

// Adversary returns the server that sums withstand, as sum.adversary names it: where all parties
// must submit it is one that cheats, whatever the field says (SPEC.md §13.1).
func (j *Job) Adversary() string {
	if !j.Recovers() {
		return "cheating"
	}
	return cmp.Or(j.Sum.Adversary, "cheating")
}

// Fewest returns the fewest parties in a sum of n parties, if sums recover. If PerRound says how
// many parties are drawn for a round, it counts those drawn.
func (p *Parties) Fewest(n int) int {
	n = p.most(n)
	return max(1, n-int(math.Floor(p.DropOut*float64(n)+1e-9)))
}

// most returns how many of n parties a round is held among.
func (p *Parties) most(n int) int {
	if p.PerRound > 0 {
		return min(n, p.PerRound)
	}
	return n
}

// fewest is Fewest of those that a round takes or, with groups, that are in one of them: by chance
// a group may miss twice the share that all do.
func (j *Job) fewest(n int) int {
	if groups := j.Sum.Groups; groups > 0 {
		size := n / groups
		return max(j.Parties.Colluders+2, size-int(math.Ceil(2*j.Parties.DropOut*float64(size)-1e-9)))
	}
	least := j.Parties.Fewest(n)
	if j.Sum.Buffer > 0 {
		least = min(least, j.Sum.Buffer)
	}
	return least
}

// rounds are there, unless queries say how many there are.
func (c *checker) rounds() {
	if c.Rounds == 0 && !c.Asks() {
		c.add("rounds", &ConfigError{Reason: "it is missing", Advice: theJob.find("rounds").row.write()})
	}
}

func (c *checker) parties() {
	p, n := &c.Parties, c.Size()
	c.refuse(n == 0 && p.Roster == "", "parties.count", "write how many, or name parties.roster",
		"nothing says how many parties there are")
	groups := 0
	names := map[string]int{}
	for i, g := range p.Group {
		at := fmt.Sprintf("parties.group.%d", i)
		groups += max(1, g.Count)
		c.refuse(names[g.Name] > 0, at+".name", "use another", "%q is taken", g.Name)
		names[g.Name] = max(1, g.Count)
	}
	for i, g := range p.Group { // those of a group are called name-1, name-2 and so on
		stem, number, _ := cutLast(g.Name)
		k, err := strconv.Atoi(number)
		c.refuse(err == nil && k >= 1 && names[stem] > 1 && k <= names[stem] && g.Count < 2,
			fmt.Sprintf("parties.group.%d.name", i), "use another", "%q is one of the group %q", g.Name,
			stem)
	}
	c.refuse(len(p.Group) > 0 && groups != n, "parties.count", "leave it out, or write that",
		"the groups have %d parties, and it says %d", groups, n)
	c.refuse(n == 1 || groups > MaxParties, "parties.group", "have 2 to 1,000,000 parties",
		"there are %d", max(n, groups))
	c.refuse(n > 0 && p.Colluders > p.most(n)-2, "parties.colluders",
		within(0, max(0, p.most(n)-2)),
		"of the %d parties of a round at least two must be honest, or there is nothing to "+
			"hide", p.most(n))
	c.refuse(p.PerRound == 1 || n > 0 && p.PerRound > n, "parties.per_round",
		within(2, cmp.Or(n, MaxParties), "write 0 for all"), "%d is outside its range", p.PerRound)
	c.takes(c.Noisy(), "without noise a sum shows who is in it", "name privacy.noise, or leave it out",
		"parties.hidden")
	c.participations(n)
	c.bands(n)
	with := c.Time.BeginWith
	c.refuse(n > 0 && with > 0 && (with > n || with < c.fewest(n)), "time.begin_with",
		within(c.fewest(max(n, 1)), n, "write 0 for as many as a sum takes"),
		"of %d parties a sum takes at least %d, and the first round cannot begin with %d", n,
		c.fewest(max(n, 1)), with)
	c.takes(!c.Oneshot(), "a one-message sum takes all parties", "leave it out", "parties.per_round")
	c.takes(!c.Sum.Sparse, "a sparse graph spans all parties", "leave it out", "parties.per_round")
	c.refuse(c.cheating() && p.DropOut >= 0.5 && !c.Oneshot(), "parties.drop_out",
		`write less than 0.5, or sum.adversary = "curious"`,
		"a server that cheats could take two sums of half the parties each")
}

// participations checks how often each of n parties submits.
func (c *checker) participations(n int) {
	p := &c.Parties
	a := cmp.Or(p.PerRound, c.Sum.Buffer)
	if n > 0 {
		a = min(a, n)
	}
	switch k, rounds := p.Participations, c.Rounds*c.Training.sums(); {
	case k == 0 || k == rounds:
	case k > rounds:
		c.refuse(true, "parties.participations", within(1, rounds, "leave it out"),
			"there are %d rounds to submit in", rounds)
	case a == 0:
		c.refuse(true, "parties.participations",
			"write parties.per_round, how many parties take part in a round",
			"all are in each round, and after %d of %d nobody has a submission left", k, rounds)
	case n > 0 && n*k < rounds*a:
		c.refuse(true, "parties.participations", within((rounds*a+n-1)/n, rounds,
			"have fewer rounds or fewer parties a round"),
			"%d rounds of %d parties take %d submissions, and %d parties have %d", rounds, a, rounds*a,
			n, n*k)
	}
}

// cutLast cuts a text at its last dash.
func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func (c *checker) cheating() bool { return c.Sum.Adversary == "" || c.Sum.Adversary == "cheating" }

func (c *checker) sum() {
	s, n := &c.Sum, c.Size()
	c.takes(c.Oneshot(), "pairwise sums have no committee", `leave it out, or write sum.protocol = "oneshot"`,
		"sum.committee", "sum.members", "sum.faults", "sum.colluders", "sum.disputes", "sum.covered",
		"sum.bounded", "sum.buffer", "sum.groups")
	c.bounded()
	c.weights(n)
	c.groups(n)
	c.buffer(n)
	c.refuse(c.Oneshot() && !c.cheating(), "sum.adversary", "leave it out, and see sum.covered",
		"one-message sums assume a server that cheats")
	c.takes(!c.Oneshot(), "one-message sums always recover, and have no graph", "leave it out",
		"sum.recovery", "sum.sparse", "sum.degree")
	c.refuse(s.Faults > (max(defaultMembers, s.Members)-1)/3 && s.Members == 0 ||
		s.Members > 0 && s.Faults > (s.Members-1)/3, "sum.faults", "write at most a third of the others",
		"a committee outvotes fewer than %d faults", s.Faults)
	if members, f := cmp.Or(s.Members, defaultMembers), s.Faults; s.Colluders > 0 {
		f = cmp.Or(f, defaultFaults(members))
		c.refuse((s.Members > 0 || s.Committee == "") && (s.Colluders < f || s.Colluders > members-2*f-1),
			"sum.colluders", within(f, members-2*f-1, "leave it out"),
			"of %d members, of whom %d may be silent, %d in league are too few or too many", members, f,
			s.Colluders)
	}
	c.refuse(n > 0 && s.Disputes > n, "sum.disputes", within(1, n, "leave it out"),
		"there are %d parties", n)
	c.takes(s.Sparse, "all parties share keys", "write sum.sparse = true", "sum.degree")
	c.refuse(s.Sparse && c.cheating(), "sum.sparse",
		`write sum.adversary = "semi-malicious" or "curious"`,
		"a sparse graph does not withstand a cheating server")
	c.refuse(s.Sparse && !c.Recovers(), "sum.sparse", "write sum.recovery = true, or parties.drop_out",
		"a sparse graph needs recovery")
	c.refuse(n > 0 && s.Degree >= n, "sum.degree", within(2, n-1, "leave it out"),
		"each of %d parties has fewer neighbours", n)
	c.refuse(n > 0 && n%2 == 1 && s.Degree%2 == 1, "sum.degree", "use an even number",
		"%d neighbours of each of %d parties do not add up", s.Degree, n)
}

// bounded checks proofs of norms.
func (c *checker) bounded() {
	b := c.Sum.Bounded
	c.refuse(b && !c.Noisy() && !c.ofKeys(), "sum.bounded",
		`write privacy.noise = "discrete-gaussian" or "key", and a clip`,
		"what is proved is that a clipped vector and its noise are short")
}

// weights checks those that are declared.
func (c *checker) weights(n int) {
	w := len(c.Parties.Weights)
	c.takes(c.Sum.Bounded, "without a proof nothing holds a party to its weight",
		"write sum.bounded = true, or sum.max_weight in its place", "parties.weights")
	c.refuse(w > 0 && n > 0 && w != n, "parties.weights", fmt.Sprintf("write %d", n),
		"there are %d weights for %d parties", w, n)
	c.refuse(w > 0 && c.Asks(), "parties.weights", "leave it out", "queries count rows")
}

// groups checks medians of groups.
func (c *checker) groups(n int) {
	s := &c.Sum
	if s.Groups == 0 || !c.Oneshot() {
		return
	}
	least := c.Parties.Colluders + 2
	c.refuse(s.Groups == 1 || n > 0 && n/s.Groups < least, "sum.groups",
		within(2, n/least, "write 0 for one sum of all"),
		"each group has %d parties or more, so that of those that pool what they know at least two are "+
			"left, and there are %d groups of %d parties", least, s.Groups, n)
	c.takes(false, "a median of groups is of vectors alone, of all that submit", "leave it out, or "+
		"sum.groups", "sum.covered", "sum.buffer", "sum.max_weight", "privacy.clip_quantile")
	c.refuse(c.masked(), "training.mask", "leave it out, or sum.groups",
		"signs are counted, and the median of groups counts nothing")
	c.refuse(len(c.Parties.Weights) > 0, "parties.weights", "leave it out, or sum.groups",
		"the median counts the means of all groups alike")
	c.refuse(c.Asks(), "sum.groups", "leave it out", "answers are about the rows of all parties")
}

// buffer checks rounds that take a given number of submissions, the first to come.
func (c *checker) buffer(n int) {
	s, p := &c.Sum, &c.Parties
	c.takes(s.Buffer > 0, "a round takes only what parties make from its own model", "write "+
		"sum.buffer too, or leave it out", "sum.stale")
	c.refuse(s.Buffer == 1 || n > 0 && s.Buffer > n, "sum.buffer",
		within(2, cmp.Or(n, MaxParties), "write 0 for all that come"), "%d is outside its range",
		s.Buffer)
	c.refuse(s.Buffer > 1 && c.fewest(n)-p.Colluders < 2 && p.Colluders+2 <= n, "sum.buffer",
		within(p.Colluders+2, n)+", and allow that many by parties.drop_out",
		"of the at least %d parties in a sum, %d may pool what they know: fewer than two honest parties "+
			"hide nothing", c.fewest(n), p.Colluders)
	c.refuse(s.Buffer > 0 && c.Privacy.ClipQuantile > 0, "privacy.clip_quantile",
		"leave out the quantile or sum.buffer", "what was made from an earlier model has an earlier clip")
	c.refuse(s.Buffer > 0 && c.Training.Submit == "weights", "training.submit", `write "updates"`,
		"what was made of an earlier model counts for less, which takes updates")
	c.refuse(s.Buffer > 0 && (c.Training.stored() || c.Training.sums() > 1), "training.rule",
		"use fedavg or fedprox", "control variates need a round that all parties are in")
}

func (c *checker) privacy() {
	p := &c.Privacy
	c.takes(c.Noisy(), "there is no noise", `write privacy.noise = "discrete-gaussian", or leave it out`,
		"privacy.epsilon", "privacy.before", "privacy.multiplier",
		"privacy.delta", "privacy.bits", "privacy.sign_share")
	c.refuse(p.NoiseBy == "committee" && !c.Noisy(), "privacy.noise_by",
		`write privacy.noise = "discrete-gaussian", or leave it out`, "there is no noise to add")
	c.refuse(p.NoiseBy == "committee" && !c.Oneshot(), "privacy.noise_by",
		`leave it out, or write sum.protocol = "oneshot"`, "pairwise sums have no committee")
	c.refuse(c.ofKeys() && !c.Oneshot(), "privacy.noise",
		`write sum.protocol = "oneshot", or "none"`, "pairwise sums hide keys without noise")
	c.refuse(c.ofKeys() && c.Asks(), "privacy.noise", `write "discrete-gaussian"`,
		"answers to queries are for release")
	c.refuse(c.ofKeys() && p.Clip == 0, "privacy.clip",
		"write the L2 norm to which a party's vector is clipped, such as 1.0",
		"nothing says how large a vector is against the noise")
	c.refuse(c.ofKeys() && (c.masked() || p.ClipQuantile > 0 || c.Training.stored() ||
		c.Training.sums() > 1 || c.Sum.MaxWeight > 0 && len(c.Parties.Weights) == 0), "privacy.noise",
		`write "none" for exact sums`,
		"vectors alone are summed with it: no mask, votes, control variates or weights of parties' own")
	c.refuse(c.ofKeys() && c.Training.Submit == "weights", "training.submit", `write "updates"`,
		"updates are clipped, and weights are not")
	c.refuse(c.Noisy() && p.Clip == 0 && !c.Asks(), "privacy.clip",
		"write the L2 norm to which what a unit adds is clipped, such as 1.0",
		"noise hides only what is bounded")
	c.refuse(c.Noisy() && p.Epsilon == 0 && p.Multiplier == 0, "privacy.epsilon",
		"write a budget such as 4.0, or privacy.multiplier", "nothing says how much noise there is")
	c.takes(p.Epsilon > 0, "there is no budget that it counts against", "write privacy.epsilon",
		"privacy.before", "privacy.study")
	c.takes(p.Study > 0, "there is no study", "write privacy.study", "privacy.study_plan")
	c.refuse(p.Study > 0 && p.Epsilon > p.Study, "privacy.epsilon",
		fmt.Sprintf("write up to %v, and end the study once that is spent", p.Study),
		"the study may spend %v in all, and %v is more", p.Study, p.Epsilon)
	c.refuse(p.Clip != 0 && !(p.Clip >= 0x1p-500 && p.Clip <= 0x1p500), "privacy.clip",
		"use a number such as 1.0", "%v bounds no norm", p.Clip)
	c.refuse(p.ClipQuantile > 0 && p.Clip == 0, "privacy.clip", "write the clip of the first round",
		"a clip that follows a quantile needs a first value")
	c.takes(p.ClipQuantile > 0, "the clip is fixed", "write privacy.clip_quantile, or leave it out",
		"privacy.clip_rate")
	c.takes(c.Noisy(), "zeros without noise are visible", "name privacy.noise, or leave it out",
		"privacy.submit_after")
	c.refuse(c.Parties.Hidden > 0 && p.SubmitAfter == 0, "privacy.submit_after",
		`write how long training takes at most, such as "1m"`,
		"parties that train would answer later than those that do not")
	wait := cmp.Or(c.Time.StepTime, 30*time.Second)
	c.refuse(p.SubmitAfter >= wait, "privacy.submit_after", "write less, or a longer time.step_time",
		"steps wait for %v, and all would be too late", wait)
	c.takes(c.masked(), "there is no mask whose signs are sent", "leave it out", "privacy.sign_share")
}

func (c *checker) masked() bool { return c.Training.Mask != "" && c.Training.Mask != "none" }

func (c *checker) model() {
	m := &c.Model
	declared := 0
	for _, is := range []bool{m.Name != "", m.Length > 0, len(m.Tensor) > 0,
		m.File != "" && m.Name == ""} { // a named model may begin with a file's weights
		if is {
			declared++
		}
	}
	c.refuse(declared == 0, "model", `write model.name = "logistic", or model.length of a vector`,
		"nothing says what is summed")
	c.refuse(declared > 1, "model", "leave all but one out",
		"a model is one of name, length, tensor and file")
	c.takes(m.Name != "", "rows are the parties' own", "leave it out, or write model.name",
		"model.features", "model.classes")
	c.takes(len(m.Tensor) > 0, "there are no tensors to initialise", "leave it out", "model.init")
	c.takes(len(m.Tensor) > 0 || m.File != "" && m.Name == "",
		"the model has no tensors of its own", "leave it out", "model.personal")
	c.refuse(m.Name == "logistic" && m.Classes > 2, "model.name", "use softmax",
		"logistic regression has two classes, and rows have %d", m.Classes)
	if lenet := m.Name == "lenet" || m.Name == "lenet-norm"; lenet && m.Features > 0 {
		side, _ := lenetSide(m.Features)
		c.refuse(side == 0, "model.features", "use a square such as 784, or three of them",
			"%s takes square images of 16 to 256 pixels a side, a multiple of 4", m.Name)
	}
	c.refuse(m.Name == "scattering" && m.Features > 0 && scatteringNumbers(m.Features, 2) == 0,
		"model.features", "use a square such as 784",
		"scattering takes square images of one plane, of 8 to 256 pixels a side")
	names := map[string]bool{}
	for i, t := range m.Tensor {
		at := fmt.Sprintf("model.tensor.%d", i)
		c.refuse(names[t.Name], at+".name", "use another", "%q is taken", t.Name)
		names[t.Name] = true
		size := 1.0
		for _, k := range t.Shape {
			size *= float64(k)
		}
		c.refuse(size > MaxLength, at+".shape", "use fewer", "a sum has up to %d numbers", MaxLength)
	}
}

// stored reports whether parties keep control variates from round to round.
func (t *Training) stored() bool { return t.Rule == "scaffold" && t.Variates != "fresh" }

// sums returns how many sums a step of the model takes.
func (t *Training) sums() int {
	if t.Rule == "fedga" || t.Rule == "scaffold" && t.Variates == "fresh" {
		return 2
	}
	return 1
}

func (c *checker) training() {
	t := &c.Training
	c.takes(c.Model.Name != "", "the parties' own programs train", "leave it out, or write model.name",
		"training.epochs", "training.steps", "training.rate", "training.momentum",
		"training.weight_decay", "training.lambda", "training.rule", "training.variates",
		"training.restart")
	c.takes(c.Model.Name != "" || c.PerRecord(), "the parties' own programs train",
		"leave it out, or write model.name", "training.batch")
	c.refuse(t.Epochs > 0 && t.Steps > 0, "training.steps", "leave it out, or training.epochs",
		"%d steps and %d passes give one round two lengths", t.Steps, t.Epochs)
	c.takes(c.Model.Name == "scattering" && c.PerRecord(),
		"moments are summed over records, and of features whose norm is bounded",
		`write model.name = "scattering" and privacy.unit = "record", or leave it out`,
		"training.standardise")
	c.refuse(t.Standardise > 0 && c.Rounds > 0 && t.Standardise >= c.Rounds, "training.standardise",
		within(0, c.Rounds-1), "none of the %s would be left to train in",
		count(c.Rounds, "round", "rounds"))
	c.takes(t.Rule == "fedprox", "it applies to fedprox "+
		"only", `write training.rule = "fedprox", or leave it out`,
		"training.mu")
	c.takes(t.Rule == "fedga", "it applies to fedga "+
		"only", `write training.rule = "fedga", or leave it out`,
		"training.beta")
	c.takes(t.Rule == "scaffold", "it applies to scaffold only",
		`write training.rule = "scaffold", or leave it out`, "training.variates")
	c.refuse(t.stored() && t.Variates != "gradient" && t.Momentum > 0, "training.momentum",
		`write 0, or training.variates = "gradient"`,
		"the mean of steps with momentum is not a gradient")
	c.takes(c.masked(), "there is no mask", `write training.mask = "soft", or leave it out`,
		"training.mask_threshold")
	if t.Submit != "weights" {
		return
	}
	c.refuse(c.Privacy.Clip > 0 && !c.Noisy(), "training.submit", `write "updates"`,
		"updates are clipped, and weights are not")
	c.refuse(c.masked(), "training.submit", `write "updates"`, "a mask is for updates")
	c.refuse(c.Server.Rule != "" && c.Server.Rule != "fedavg", "training.submit", `write "updates"`,
		"the mean of weights is already the next model")
}

// adaptive reports whether the server's rule is one.
func (s *Server) adaptive() bool {
	return s.Rule == "fedadagrad" || s.Rule == "fedadam" || s.Rule == "fedyogi"
}

func (c *checker) server() {
	s := &c.Server
	momentum := s.Rule == "fedavgm" || s.adaptive()
	c.takes(momentum, "plain averaging has no moments", "leave it out, or name server.rule",
		"server.beta1")
	c.takes(s.adaptive(), "it applies to adaptive rules only", "leave it out, or name server.rule",
		"server.beta2", "server.tau", "server.tau_inside")
	c.takes(c.Model.Name != "", "models of the parties' own programs are not averaged over rounds",
		"leave it out, or write model.name", "server.average")
	c.refuse(c.Model.Name != "" && c.Metrics.Share > 0, "metrics.share", "leave it out",
		"the declared training sums no metrics")
	c.refuse(c.Metrics.Share > 0 && c.Privacy.Clip == 0, "metrics.share", "write privacy.clip",
		"metrics are given a share of the clip, and there is none")
	c.refuse(c.Metrics.Share > 0 && c.masked(), "metrics.share", "leave it out, or training.mask",
		"a mask is of the model's numbers, and metrics stand next to them")
	c.refuse(c.Model.Name != "" && c.Oneshot() && c.Training.stored(), "training.rule", "use fedavg",
		"control variates are not summed with one message")
}
