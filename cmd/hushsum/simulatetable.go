package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// table shows a run to people.
type table struct {
	screen
	*shown
	columns []column
}

// column is one of the table's: a heading, so many characters wide, over what it says
// of a round.
type column struct {
	heading string
	width   int
	value   func(r *simulation.Round) string
}

// newColumns are the columns of a run: 77 to 80 characters with the space between them.
func (t *table) newColumns() []column {
	up := func(r *simulation.Round) string { return grouped(int(r.Cost.BytesUp)) }
	down := func(r *simulation.Round) string { return grouped(int(r.Cost.BytesDown)) }
	train := func(r *simulation.Round) string { return short(r.Cost.Train) }
	sum := func(r *simulation.Round) string { return short(r.Cost.Client) }
	server := func(r *simulation.Round) string { return short(r.Cost.Server) }
	spentServer := func(r *simulation.Round) string { return epsilon(r.Server.Upper) }
	spentPublic := func(r *simulation.Round) string { return epsilon(r.Public.Upper) }
	norm := func(r *simulation.Round) string { return fmt.Sprintf("%.3g", r.MeanNorm) }
	clipped := func(r *simulation.Round) string { return fmt.Sprintf("%.0f%%", 100*r.Clipped) }
	mask := func(r *simulation.Round) string { return fmt.Sprintf("%.3f", r.Masked) }
	correct := func(r *simulation.Round) string { return fmt.Sprintf("%.4f", r.Test.Accuracy()) }
	coefficient := func(r *simulation.Round) string {
		return fmt.Sprintf("%.4f", t.judge(r.Test).MCC())
	}

	all := []column{{"round", 5, func(r *simulation.Round) string { return fmt.Sprint(r.Round) }},
		{"parties", 9, t.included}}
	add := func(more ...column) { all = append(all, more...) }
	noisy, rules := t.mechanism != nil, !t.averaging
	switch {
	case rules && noisy:
		add(column{"up", 9, up}, column{"eps server", 10, spentServer},
			column{"eps public", 10, spentPublic})
	case rules:
		add(column{"up", 9, up}, column{"train ms", 9, train}, column{"sum ms", 9, sum})
	case noisy:
		add(column{"up", 9, up}, column{"sum ms", 9, sum}, column{"eps server", 11, spentServer},
			column{"eps public", 11, spentPublic})
	default:
		add(column{"up", 7, up}, column{"down", 7, down}, column{"train ms", 9, train},
			column{"sum ms", 8, sum}, column{"server ms", 10, server})
	}
	if rules {
		add(column{"norm", 8, norm}, column{"clipped", 7, clipped}, column{"mask", 6, mask},
			column{"accuracy", 8, correct})
	} else {
		add(column{"accuracy", 9, correct}, column{"MCC", 7, coefficient})
	}
	return all
}

// included is how many parties are in a round's sum, of how many.
func (t *table) included(r *simulation.Round) string {
	if r.Lost != nil {
		return "lost"
	}
	return fmt.Sprintf("%d/%d", r.Parties, t.perRound())
}

// line prints a line of the table.
func (t *table) line(cell func(c *column) string) {
	for i := range t.columns {
		if i > 0 {
			t.printf(" ")
		}
		t.printf("%*s", t.columns[i].width, cell(&t.columns[i]))
	}
	t.printf("\n")
}

func (t *table) begin() {
	o := &t.options
	title := "Federated training over private sums of updates"
	if t.averaging {
		title = "Federated averaging over a private sum, beside the same training in the clear"
	}
	t.printf("%s\n\n", title)
	t.field("data", "%s", t.data)
	t.fieldParties()
	t.fieldTraining()
	if o.Mask.Kind != aggregation.NoMask {
		t.field("mask", "%s, threshold %v", t.mask, o.Mask.Threshold)
	}
	t.fieldRing()
	if o.Clip.Kind != training.NoClip {
		t.field("clipping", "updates to an L2 norm of %v", o.Clip.Norm)
	}
	t.screen.recovery(t.shown.recovery, o.Colluders, t.perRound(), o.DropOuts(), len(o.Parties))
	server := ""
	if t.averaging {
		server = "; the server's are for all"
	}
	t.printf("\nBytes and milliseconds are for one party and round%s.\n\n", server)
	t.columns = t.newColumns()
	t.line(func(c *column) string { return c.heading })
}

func (t *table) fieldParties() {
	least, most := math.MaxInt, 0
	for _, d := range t.options.Parties {
		least, most = min(least, d.Len()), max(most, d.Len())
	}
	rows := plural(least, "row")
	if least < most {
		rows = fmt.Sprintf("%s to %s", grouped(least), plural(most, "row"))
	}
	dealt := ""
	if !t.averaging {
		dealt = fmt.Sprintf(", dealt by %s; all in each round", t.split)
		if n := t.perRound(); n < len(t.options.Parties) {
			dealt = fmt.Sprintf(", dealt by %s; %s in each round", t.split, grouped(n))
		}
	}
	t.field("parties", "%s with %s each%s", grouped(len(t.options.Parties)), rows, dealt)
}

func (t *table) fieldTraining() {
	o := &t.options
	local := plural(max(o.Local.Epochs, 1), "local epoch")
	if o.Local.Steps > 0 {
		local = plural(o.Local.Steps, "local step")
	}
	if t.averaging {
		t.field("model", "logistic regression, %s", plural(o.Model.NumParams(), "weight"))
		t.field("training", "%s of %s; rate %v, lambda %v, seed %d", plural(o.Rounds, "round"), local,
			o.Local.Rate, t.lambda, o.Seed)
		return
	}
	batch := fmt.Sprintf("in batches of %d", o.Local.Batch)
	if o.Local.Batch == 0 {
		batch = "over all rows"
	}
	t.field("model", "%s, %s", t.model, plural(o.Model.NumParams(), "weight"))
	t.field("training", "%s of %s %s; rule %s, rate %v, seed %d", plural(o.Rounds, "round"), local,
		batch, t.rule, o.Local.Rate, o.Seed)
	if t.byRows {
		t.field("weights", "by rows")
	}
}

// fieldRing says how numbers are encoded, and with which noise.
func (t *table) fieldRing() {
	o := &t.options
	bits := plural(t.layout[0].Bits, "bit")
	switch m := t.mechanism; {
	case m != nil:
		n, bounds := o.Noise, m.Vector.Sensitivity
		honest := m.Vector.Shares.MinHonest
		t.field("ring", "%s for each of %s of a turned update, %.4g units to 1.0",
			bits, plural(bounds.Dimension, "coordinate"), m.Encoder.Scale)
		t.field("noise", "%s, multiplier %s; updates clipped to %v, L2 sensitivity %.4g units after "+
			"rounding; %s must suffice, for a standard deviation of %.4g units in each coordinate of the "+
			"sum, which is %.3g in the weights' own units",
			strings.ReplaceAll(n.Family.String(), "-", " "), short4(n.Multiplier), n.Clip, bounds.L2,
			plural(honest, "honest share"), m.Vector.SumStdDev(honest), m.StdDev(honest))
		t.budget(o.Budget)
	case o.Models && o.MaxSamples > 0:
		t.field("ring", "%s for weight times rows: weights to %v, %s; %s for the number of rows",
			bits, o.Range, plural(o.FractionBits, "binary place"), plural(t.layout[1].Bits, "bit"))
	default:
		of := "each coordinate of an update"
		if o.Models {
			of = "each weight"
		}
		t.field("ring", "%s for %s: up to %v, %s", bits, of, o.Range,
			plural(o.FractionBits, "binary place"))
	}
}

func (t *table) progress(round, done, of int) { t.screen.progress(round, done, of, "") }

func (t *table) round(r simulation.Round) {
	t.wipe()
	t.line(func(c *column) string { return c.value(&r) })
}

func (t *table) end(r *simulation.Result, took time.Duration) {
	t.wipe()
	rounds := len(r.Rounds)
	if r.Stopped != nil {
		t.stopped(rounds, r.Stopped)
	}
	final := r.Final()
	if final != nil {
		t.lost(r.Lost(), rounds)
		sums := "private sums"
		if t.averaging {
			sums = "the private sum"
		}
		if r.Lost() < rounds { // else both models are the first one
			t.outcome(rounds, sums, t.judge(final.Test))
			t.compare(t.judge(final.Test), t.judge(final.Clear), final.MaxAbsDiff)
		}
	} else if r.Stopped == nil {
		t.sentence("No round was completed.")
	}
	switch {
	// also if the first round failed, which may have shown something
	case t.mechanism != nil && r.Server.Upper > 0:
		t.privacy(t.options.Budget.Delta, r.Server, r.Public)
	case t.options.Models && final != nil:
		t.printf("The largest weight of any party was %.3g; the ring takes up to %v.\n", largest(r),
			t.options.Range)
	}
	if final == nil {
		return
	}
	title := "Cost of a party, whole run"
	if t.perRound() < len(t.options.Parties) {
		title = "Cost of one in every round"
	}
	t.costs(title, r.Setup, r.Total(), rounds, int64(8*len(r.Model)*rounds*final.Exchanges))
	t.took(took)
}

// largest is the largest magnitude that any party submitted.
func largest(r *simulation.Result) (x float64) {
	for i := range r.Rounds {
		x = max(x, r.Rounds[i].Largest)
	}
	return x
}
