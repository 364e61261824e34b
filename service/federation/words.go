package federation

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/tensor"
)

// Meaning says in words what taking part means for a party: who learns what, under which
// assumption, and what is spent.
func (f *Federation) Meaning() []string {
	plan := f.Plan()
	n, least := f.Settled.Roster().Len(), f.Settled.MinSurvivors()
	out := []string{
		fmt.Sprintf("In each of %s, the server and all parties learn the mean of the updates of at "+
			"least %d of the %d parties of the roster, and the model that follows from it.",
			count(plan.Rounds, "round"), least, n),
	}
	if f.training != nil {
		out = append(out, f.trainingWords()...)
	}
	if k := f.Sample(); k > 0 {
		out = append(out, fmt.Sprintf("In each round %d parties take part, drawn anew by a rule that "+
			"all can compute. That saves work and hides nothing: epsilon is as if a party took part in "+
			"all.", k))
	}
	who := "the server, even one that sends anything to anyone,"
	switch plan.Adversary {
	case protocol.SemiMaliciousServer:
		who = "the server, if it is honest while a session is set up,"
	case protocol.CuriousServer:
		who = "the server, if it follows the protocol,"
	}
	if plan.Colluders > 0 {
		who += fmt.Sprintf(" together with up to %s,", count(plan.Colluders, "party"))
	}
	out = append(out, fmt.Sprintf("About a single party's update %s learns nothing else. That rests "+
		"on the roster being the true one: compare its fingerprint by a way that the operator does not "+
		"control. A server that invents parties in the roster is not stopped by anything else.", who))
	switch {
	case plan.Noise == 0:
		out = append(out, "No noise is added: the means themselves say what they say about a party's "+
			"data, and nothing bounds it.")
	default:
		out = append(out, fmt.Sprintf("Every party adds %v noise to its update, clipped to an L2 norm "+
			"of %g, so that over all rounds a party spends at most epsilon %g at delta %g, against a "+
			"server that sees every message and %s, with the noise of the %d honest parties that a sum "+
			"has at least.", plan.Noise, plan.Clip, plan.Epsilon, plan.Delta, colluding(plan.Colluders),
			least-plan.Colluders))
	}
	if f.File.Metrics.Share > 0 {
		out = append(out, "Loss and accuracy on each party's own rows are summed with the updates, "+
			"under the same masks and noise; nobody sees one party's.")
	}
	out = append(out, fmt.Sprintf("The model has %d shared numbers in %s.", f.Spec.Len(),
		count(len(f.Spec.Tensors), "tensor")))
	switch {
	case f.training != nil:
		out = append(out, fmt.Sprintf("The first model is made from the seed %d.", f.File.Seed))
	case f.File.Model.File != "":
		out = append(out, "The first model is that of the file "+f.File.Model.File+".")
	case f.Initial != nil:
		out = append(out, fmt.Sprintf("The first model is drawn from the seed %d.", f.File.Seed))
	}
	if len(f.Kept) > 0 {
		out = append(out, "These parts stay with each party and never leave it: "+
			strings.Join(f.Kept, ", ")+".")
	}
	missing := fmt.Sprintf("goes on without those who are gone; up to %d of the roster may be missing",
		n-least)
	if n == least {
		missing = "has a sum only if no party of the roster is missing"
	}
	out = append(out, fmt.Sprintf("A round takes %s up and %s down of each party, and %s.",
		size(f.up()), size(f.down()), missing))
	return out
}

// trainingWords say what parties do, and what is summed beside updates.
func (f *Federation) trainingWords() []string {
	t := f.File.Training
	work := fmt.Sprintf("%s of gradient descent on its own rows", count(t.Steps, "step"))
	if t.Steps == 0 {
		work = fmt.Sprintf("%s over its own rows", count(max(1, t.Epochs), "pass"))
	}
	out := []string{fmt.Sprintf("Each party trains the model %s by %s, at rate %g, and the rule %s.",
		t.Model, work, t.Rate, cmp.Or(t.Rule, "fedavg"))}
	also := func(text string) { out = append(out, "Also summed, and known to all: "+text+".") }
	if t.Mask != "" && t.Mask != "none" {
		also("how many parties' updates are above and below zero, of each weight")
	}
	if f.training.Stored() {
		also("the mean change of the parties' control variates, which are means of their gradients")
	}
	if f.training.Exchanges() > 1 {
		also("the mean of the parties' gradients at the round's model, in a sum of its own before each " +
			"of updates, so that two rounds make a step of the model")
	}
	if t.ByRows {
		also(fmt.Sprintf("how many rows the parties of a sum have together, who has more than %d "+
			"counting with those", t.Rows.Most))
	}
	return out
}

// Needs says what the server takes.
func (f *Federation) Needs() []string {
	d, n := f.Spec.Len(), f.Settled.Roster().Len()
	tables := 700 * n * n // shares, keys and signatures of all pairs, with their copies
	return []string{
		fmt.Sprintf("Memory of the node that leads: about %s.", size(40<<20+6*8*d+tables)),
		fmt.Sprintf("Disk, on each node: about %s, and a line of the audit log for each event.",
			size(2*(8*d+tables)+(1<<20))),
	}
}

func (f *Federation) up() int {
	layout := f.Config(1).Layout
	return layout.PackedSize() + 400*f.Settled.Roster().Len()
}

func (f *Federation) down() int {
	width := 4
	if f.Spec.DType == tensor.Float64 {
		width = 8
	}
	return f.Spec.Len()*width + 400*f.Settled.Roster().Len()
}

func colluding(c int) string {
	if c == 0 {
		return "no colluding parties"
	}
	return "up to " + count(c, "colluding party")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	if strings.HasSuffix(noun, "y") {
		noun = strings.TrimSuffix(noun, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func size(bytes int) string {
	switch {
	case bytes < 10_000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 10_000_000:
		return fmt.Sprintf("%d kB", bytes/1000)
	}
	return fmt.Sprintf("%d MB", bytes/1_000_000)
}
