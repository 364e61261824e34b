package job

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Explain says in sentences what a valid job declares, before a roster settles it, for people to
// read next to the digest.
func (j *Job) Explain() []string {
	j = j.WithDefaults()
	lines := j.explain(nil)
	if names := j.sayFiles(); names != "" {
		lines = append(lines, "It names "+names+", whose content is not in this digest.")
	}
	return append(lines, j.sayWorld()...)
}

// Explain says in sentences what a settled job means for a party: who learns what, under which
// assumption, and what is spent.
func (s *Settled) Explain() []string { return s.job.explain(s) }

// explain says what is declared, and of a settled job what follows with its roster.
func (j *Job) explain(s *Settled) []string {
	lines := []string{j.sayWho()}
	if s != nil {
		lines = append(lines, s.sayMean())
	}
	lines = append(lines, j.sayServer())
	if s != nil {
		lines = append(lines, s.sayWeights()...)
		lines = append(lines, s.Robustness()...)
		lines = append(lines, "That rests on the roster being genuine: compare its fingerprint over a "+
			"channel that the operator does not control. Nothing else stops a server that invents parties "+
			"in the roster.")
	}
	if j.Sum.Classical {
		lines = append(lines, "Anyone who records the messages and later has a quantum computer can "+
			"read all of them: key exchange is classical.")
	} else if s != nil && s.oneshot != nil {
		lines = append(lines, sayMasks(s.oneshot)...)
	}
	lines = append(lines, j.sayNoise(s)...)
	units := j.units()
	if s != nil && !j.PerRecord() {
		units = s.Roster().Len()
	}
	if caution := j.largeDelta(units); caution != "" {
		lines = append(lines, "Caution: "+caution+".")
	}
	if s != nil && s.before != nil {
		lines = append(lines, s.sayBefore())
	}
	if study := j.studied(s); study != nil {
		lines = append(lines, fmt.Sprintf("It belongs to a study: together with all jobs that continue "+
			"it, it may spend %v. No party takes part beyond that.", study))
	}
	if s != nil && j.Noisy() && !j.noisyMembers() {
		lines = append(lines, fmt.Sprintf("That counts the noise of the %s that every sum has at least.",
			count(s.Honest(), "honest party", "honest parties")))
	}
	if j.Model.Name != "" || j.PerRecord() && !j.Asks() {
		lines = append(lines, j.sayTraining())
	}
	return append(lines, j.saySums()...)
}

// sayMean says what a round tells.
func (s *Settled) sayMean() string {
	model := ""
	if s.Trains() {
		model = ", and the model that follows from it"
	}
	missing := "; if any is missing, the round gives no sum"
	n := s.Roster().Len()
	if s.survivors < n {
		missing = "; the round goes on without those that are missing"
	}
	missing = s.sayGraph() + missing
	if s.job.Asks() {
		sums := "In one sum"
		if s.Rounds() > 1 {
			sums = fmt.Sprintf("In %d sums", s.Rounds())
		}
		return fmt.Sprintf("%s the server and all parties learn the answers that the rows of at least "+
			"%d of the %d parties of the roster give together%s.", sums, s.survivors, n, missing)
	}
	if s.job.PerRecord() {
		return fmt.Sprintf("In each of %s the server and all parties learn the sum of what the records "+
			"drawn by at least %d of the %d parties of the roster add%s%s.",
			count(s.Rounds(), "sum", "sums"), s.survivors, n, model, missing)
	}
	return fmt.Sprintf("In each of %s the server and all parties learn the mean of the vectors of at "+
		"least %d of the %d parties of the roster%s%s.", count(s.Rounds(), "sum", "sums"), s.survivors, n,
		model, missing)
}

// sayGraph says what a sparse graph leaves of that.
func (s *Settled) sayGraph() string {
	if s.oneshot != nil {
		return ""
	}
	p, says := s.pairwise(), ""
	if p.Sparse && p.Adversary == protocol.SemiMaliciousServer {
		says = fmt.Sprintf(", and a server that cheats once keys are exchanged may learn sums of as few "+
			"as %s", count(p.Honest, "honest party", "honest parties"))
	}
	if p.Failure > 0 {
		says += fmt.Sprintf(", but for a probability of 2^%.0f a round", math.Ceil(math.Log2(p.Failure)))
	}
	return says
}

// saySums says what is summed with the vectors, and so known to all.
func (j *Job) saySums() (lines []string) {
	t := &j.Training
	for _, c := range []struct {
		is   bool
		what string
	}{
		{t.Mask != "none", "how many parties' updates are above and below zero, for each weight"},
		{t.stored(), "the mean change of the parties' control variates, which are means of their " +
			"gradients"},
		{t.sums() > 1, "the mean of the parties' gradients at the round's model, in a separate sum " +
			"before each sum of updates"},
		{j.Privacy.ClipQuantile > 0, "how many parties' norms are within the clip"},
		{j.MaxRows() > 0, fmt.Sprintf("how many rows the parties have together, where a party with "+
			"more than %d counts as having that many", j.MaxRows())},
		{j.Metrics.Share > 0, "the means of loss and accuracy on each party's own rows, under the same " +
			"masks and noise"},
	} {
		if c.is {
			lines = append(lines, "Also summed, and known to all: "+c.what+".")
		}
	}
	return lines
}

func (j *Job) sayWho() string {
	parties := "The parties of the roster"
	if n := j.Size(); n > 0 {
		parties = count(n, "party", "parties")
	}
	if j.Asks() {
		return parties + j.sayQueries()
	}
	model := "bring vectors of " + count(j.Model.Length, "number", "numbers")
	switch {
	case j.Model.Name != "":
		model = "train a model (" + j.Model.Name + ")"
	case j.Model.File != "":
		model = "improve the model of " + j.Model.File + " with their own programs"
	case len(j.Model.Tensor) > 0:
		model = "improve a model of " + count(len(j.Model.Tensor), "tensor", "tensors") +
			" with their own programs"
	}
	text := fmt.Sprintf("%s %s, in %s.", parties, model, count(j.Rounds, "round", "rounds"))
	switch p := &j.Parties; {
	case p.PerRound > 0:
		text += fmt.Sprintf(" %d of them are drawn for each round, by a rule that all can compute: "+
			"that saves work and hides nothing.", p.PerRound)
		if k := p.Participations; k > 0 && k < j.Rounds {
			text += fmt.Sprintf(" A party submits in %s at most, no matter who draws them.",
				count(k, "of these", "of these"))
		}
	case j.Privacy.Factorise > 0:
		b := j.Privacy.Factorise
		text += fmt.Sprintf(" Noise is correlated: parties take turns to train, each once in %d rounds, "+
			"and submit parts of what they made in all rounds in between; the model of a round comes with "+
			"the %d sums before it.", b, b-1)
	case j.Sum.Buffer > 0:
		text += fmt.Sprintf(" A round takes %d submissions, and the server chooses whose; a slower "+
			"party submits what it made in one of the %d rounds before, weighted by 1/√(1 + rounds). A "+
			"party spends each time it submits.", j.Sum.Buffer, j.Sum.Stale)
	case p.Hidden > 0:
		text += fmt.Sprintf(" In each round each takes part with probability %v, by its own coin that "+
			"nobody else sees; all submit %v after the model arrives, and those that sit out send zeros "+
			"with their share of the noise. The fixed instant hides how long training takes, but not "+
			"power, load or what a shared machine reveals.", p.Hidden, j.Privacy.SubmitAfter)
	}
	return text
}

// sayQueries says what parties answer together.
func (j *Job) sayQueries() string {
	names := make([]string, len(j.Query))
	for i, q := range j.Query {
		names[i] = q.Name + " (" + q.Kind + ")"
	}
	rounds := "one round of one sum"
	if j.Rounds > 1 {
		rounds = fmt.Sprintf("%d rounds, each of one sum", j.Rounds)
	}
	text := fmt.Sprintf(" answer %s about rows of their own, all in %s of %s: %s.",
		count(len(names), "query", "queries"), rounds, count(j.Model.Length, "number", "numbers"),
		strings.Join(names, ", "))
	for _, t := range j.Together() {
		var together []string
		for _, i := range t.Queries {
			together = append(together, j.Query[i].Name)
		}
		last := len(together) - 1
		text += fmt.Sprintf(" Answers to %s and %s are read together from %s of the sum, by least "+
			"squares, which errs less than a measurement of each.",
			strings.Join(together[:last], ", "), together[last],
			count(len(t.Strategy.Counts), "number", "numbers"))
	}
	return text
}

// sayRows says which rows count, and what noise hides of them.
func (j *Job) sayRows() string {
	if j.PerRecord() {
		return ""
	}
	return fmt.Sprintf(" Of a party %s at most, and the noise hides all of them.",
		count(j.Parties.Rows, "row counts", "rows count"))
}

func (j *Job) sayServer() string {
	learns := stated(j.learns())
	text := "Nothing but sums is learnt by " + learns.Against()
	if j.Parties.Colluders == 0 {
		text += ", as long as no party tells it what it knows"
	}
	if j.Oneshot() {
		text += fmt.Sprintf("; with %d members it may read single inputs", j.inLeague()+1)
	}
	text += ". "
	if learns.Server() == accounting.CuriousServer {
		text += "A server that is curious follows the protocol, and keeps all it sees. "
	}
	switch {
	case j.Oneshot():
		text += "A party sends one message a round, and the committee removes the masks. "
		if !j.Sum.Covered {
			text += "That a server gains nothing by looking at submissions before it chooses who is in a " +
				"sum rests on an assumption of its own, which sum.covered does without. "
		}
	case !j.Recovers():
		return text + "All parties of a round must submit, or it gives no sum."
	}
	if j.Sum.Bounded {
		text += "Each party proves that what it adds, with its noise, is at most 3.05 times as long as " +
			"an honest vector with its noise; one that cannot is refused by name, and the others are " +
			"summed without it. "
	}
	switch n := j.Size(); {
	case n > 0 && j.fewest(n) == j.Parties.most(n),
		n == 0 && j.Parties.DropOut == 0 && j.Sum.Buffer == 0:
		return text + "None of the parties of a round may be missing from its sum."
	case j.Parties.DropOut == 0:
		return text + "Sums proceed without absent parties."
	}
	whose := "the parties"
	if j.Parties.PerRound > 0 {
		whose = "the parties of a round"
	}
	return text + fmt.Sprintf("Up to %s %% of %s may be missing from a sum.",
		percent(j.Parties.DropOut), whose)
}

// budget bounds what a party spends, with the roster or as far as it is known without one; nil if
// none is declared.
func (j *Job) budget(s *Settled) *accounting.Budget {
	switch p := &j.Privacy; {
	case s != nil:
		return s.Budget()
	case j.Noisy() && p.Epsilon > 0:
		return budgetOf(j.statement(), p.Epsilon, p.Delta)
	}
	return nil
}

// studied is the budget of the study to which the job belongs, nil if there is none.
func (j *Job) studied(s *Settled) *accounting.Budget {
	switch p := &j.Privacy; {
	case s != nil:
		return s.Study()
	case p.Study > 0:
		return budgetOf(j.statement(), p.Study, p.Delta)
	}
	return nil
}

// sayNoise says what noise hides, and what that assumes.
func (j *Job) sayNoise(s *Settled) []string {
	p := &j.Privacy
	if j.ofKeys() {
		return []string{s.sayKeyed()}
	}
	if !j.Noisy() {
		return []string{"There is no noise: sums may reveal something about a party, and no epsilon " +
			"holds."}
	}
	text := fmt.Sprintf("Noise (%s) hides vectors of L2 norm up to %v", p.Noise, p.Clip)
	switch {
	case j.Asks():
		text = fmt.Sprintf("Noise (%s) hides what %s adds to the answers", p.Noise, j.Unit().Words())
	case j.PerRecord():
		text = fmt.Sprintf("Noise (%s) hides gradients of L2 norm up to %v, of %s", p.Noise, p.Clip,
			j.Unit().Words())
	}
	if p.ClipQuantile > 0 {
		text += fmt.Sprintf(" at first, and later up to quantile %v of the norms", p.ClipQuantile)
	}
	budget := j.budget(s)
	switch {
	case p.Multiplier > 0 && budget != nil:
		text += fmt.Sprintf(", with multiplier %v; a party stops before it has spent %v.", p.Multiplier,
			budget)
	case p.Multiplier > 0:
		text += fmt.Sprintf(", with multiplier %v; no epsilon is promised.", p.Multiplier)
	case budget != nil:
		text += fmt.Sprintf(": all rounds together spend at most %v.", budget)
	default:
		text += "."
	}
	if j.noisyMembers() {
		members, f := j.Sum.Members, j.faults()
		text += fmt.Sprintf(" The committee adds it, %s of %d members in any sum; epsilon rests on %d "+
			"honest ones among these, and on no party.", count(members-f, "share", "shares"), members,
			members-f-j.inLeague())
	}
	if j.Asks() {
		text += j.sayRows()
	}
	lines := []string{text}
	if budget != nil {
		for _, words := range budget.Statement().Assumes().Words() {
			lines = append(lines, "Epsilon assumes "+words+".")
		}
	}
	return lines
}

// LargeDelta returns a caution if privacy.delta is above 1 divided by the number of parties or
// records that the job declares, see [privacy.LargeDelta], and otherwise nothing.
func (j *Job) LargeDelta() string {
	j = j.WithDefaults()
	return j.largeDelta(j.units())
}

func (j *Job) largeDelta(units int) string {
	if !j.Noisy() {
		return ""
	}
	return privacy.LargeDelta(j.Privacy.Delta, units)
}

// units counts what epsilon protects, 0 where the job does not say.
func (j *Job) units() int {
	if j.PerRecord() {
		return j.Privacy.Records
	}
	return j.Size()
}

func (j *Job) sayTraining() string {
	t := &j.Training
	if j.PerRecord() {
		often, batch := "", "the records that there are"
		if r := j.Records(); r.Count > 0 {
			often = fmt.Sprintf(", which comes up with probability %.4g,", r.Rate)
			batch = count(j.Batch(), "record", "records")
		}
		text := fmt.Sprintf("In a round each party tosses a secret coin for each of its %ss%s and sums "+
			"the gradients of those drawn, each clipped. The server divides by %s; its rule is %s at "+
			"rate %v.", cmp.Or(j.Privacy.Group, "record"), often, batch, j.Server.Rule, j.Server.Rate)
		if k := t.Standardise; k > 0 {
			text += fmt.Sprintf(" In the first %s the records drawn add their features and the squares of "+
				"these instead, clipped alike: later rounds take features less their means, by their "+
				"deviations.", count(k, "sum", "sums"))
		}
		if j.Model.Name == "" {
			text += " The Python package does that for a party, and hushsumd join --gradients; any other " +
				"program has to do it itself."
		}
		return text
	}
	work := count(t.Epochs, "pass", "passes") + " over its rows"
	if t.Steps > 0 {
		work = count(t.Steps, "step", "steps")
	}
	batch := "all rows at a time"
	if t.Batch > 0 {
		batch = count(t.Batch, "row", "rows") + " at a time"
	}
	return fmt.Sprintf("In a round each party makes %s, %s, at rate %v, by %s; the server's rule is "+
		"%s at rate %v.", work, batch, t.Rate, t.Rule, j.Server.Rule, j.Server.Rate)
}

// sayFiles lists the files that a job names.
func (j *Job) sayFiles() string {
	var names []string
	for _, name := range []string{j.Parties.Roster, j.Sum.Committee, j.Privacy.Before,
		j.Model.File} {
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// sayWorld says what of the world of a simulation a reader should know.
func (j *Job) sayWorld() (lines []string) {
	w := &j.World
	if j.Model.Name != "" {
		lines = append(lines,
			fmt.Sprintf("In a simulation the rows are those of world.data.set = %q.", w.Data.Set))
	}
	if w.Data.Final {
		lines = append(lines, "In a simulation the set's own test rows judge: what is chosen by looking "+
			"at them is chosen on test rows.")
	}
	if w.Drop > 0 {
		lines = append(lines, fmt.Sprintf("In a simulation %s %% of the parties drop out of each round.",
			percent(w.Drop)))
	}
	if w.Malicious > 0 {
		lines = append(lines, fmt.Sprintf("In a simulation %v of the parties cheat.", w.Malicious))
	}
	if w.LostRounds > 0 {
		lines = append(lines, fmt.Sprintf("In a simulation %s lost.",
			count(w.LostRounds, "round is", "rounds are")))
	}
	if w.Fidelity == "clear" || w.Reference.Law != "" {
		lines = append(lines, "Its simulation is for comparison only: it protects nobody.")
	}
	return lines
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text + " " + many
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) }
