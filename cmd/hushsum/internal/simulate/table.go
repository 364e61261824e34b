package simulate

import (
	"fmt"
	"math"
	"strings"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// sheet prints what stands above and below the rounds of a run of sums.
type sheet struct {
	*grid
	*run
}

// column is a column of the table: a heading, a given number of characters wide, above its values
// for each round.
type column struct {
	heading string
	width   int
	value   func(r *simulation.RoundResult) string
}

// newColumns returns the columns of a run: 77 to 80 characters with the space between them.
func (s *run) newColumns() []column {
	up := func(r *simulation.RoundResult) string { return show.Grouped(int(r.Cost.BytesUp)) }
	down := func(r *simulation.RoundResult) string { return show.Grouped(int(r.Cost.BytesDown)) }
	train := func(r *simulation.RoundResult) string { return show.Short(r.Cost.Train) }
	sum := func(r *simulation.RoundResult) string { return show.Short(r.Cost.Client) }
	server := func(r *simulation.RoundResult) string { return show.Short(r.Cost.Server) }
	spentServer := func(r *simulation.RoundResult) string {
		return r.Server.Most()
	}
	spentPublic := func(r *simulation.RoundResult) string {
		return r.Public.Most()
	}
	norm := func(r *simulation.RoundResult) string { return fmt.Sprintf("%.3g", r.MeanNorm) }
	clipped := func(r *simulation.RoundResult) string { return fmt.Sprintf("%.0f%%", 100*r.Clipped) }
	mask := func(r *simulation.RoundResult) string { return fmt.Sprintf("%.3f", r.Masked) }
	correct, coefficient := s.judgedColumns()
	number := func(r *simulation.RoundResult) string { return fmt.Sprint(r.Round) }
	all := []column{{"round", 5, number},
		{"parties", 9, s.included}}
	add := func(more ...column) { all = append(all, more...) }
	noisy, rules := s.mechanism != nil, !s.averaging
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
	switch {
	case s.world.Training.Records != nil: // only records are clipped, and nothing is masked
		add(column{"norm", 9, norm}, column{"accuracy", 9, correct}, column{"MCC", 8, coefficient})
	case rules:
		add(column{"norm", 8, norm}, column{"clipped", 7, clipped}, column{"mask", 6, mask},
			column{"accuracy", 8, correct})
	default:
		add(column{"accuracy", 9, correct}, column{"MCC", 7, coefficient})
	}
	return all
}

// judgedColumns return the values of the columns that say how good the model is.
func (s *run) judgedColumns() (accuracy, mcc func(r *simulation.RoundResult) string) {
	judged := func(of func(show.Score) float64) func(r *simulation.RoundResult) string {
		return func(r *simulation.RoundResult) string {
			if r.Test == nil {
				return "" // see world.evaluate_every
			}
			return fmt.Sprintf("%.4f", of(s.judge(r.Test)))
		}
	}
	return judged(show.Score.Accuracy), judged(show.Score.MCC)
}

// included prints how many parties are in a round's sum, out of how many.
func (s *run) included(r *simulation.RoundResult) string {
	if r.Lost != nil {
		return "lost"
	}
	return fmt.Sprintf("%d/%d", r.Parties, s.perRound())
}

// head prints what is run, and the headings of its columns.
func (s *run) head(g *grid) {
	headings := line{}
	if s.timed {
		s.columns, headings.text = s.timedColumns(), "left for good, or party"
		s.headTimed(g)
	} else {
		s.columns = s.newColumns()
		sheet{g, s}.begin()
	}
	for i := range s.columns {
		g.widths = append(g.widths, s.columns[i].width)
		headings.cells = append(headings.cells, s.columns[i].heading)
	}
	g.row(headings)
}

// round prints a round: its own row, those of its parties in virtual time where there are few, and
// the steps of a one-message sum.
func (s *run) round(g *grid, r *simulation.RoundResult) {
	own := line{text: strings.Join(r.Gone, ", ")}
	for i := range s.columns {
		own.cells = append(own.cells, s.columns[i].value(r))
	}
	rows := []line{own}
	if s.timed && r.Lost != nil {
		rows[0] = line{own.cells[:2], "lost: " + cli.Plain(r.Lost)}
	} else if s.timed {
		rows = append(rows, partyRows(r)...)
	}
	for _, l := range rows {
		g.row(l)
	}
	for _, text := range stepLines(r) {
		g.Printf("%s\n", text)
	}
}

// foot prints how good the models are, what was spent and what it cost.
func (s *run) foot(g *grid) {
	if s.timed {
		s.footTimed(g)
		return
	}
	sheet{g, s}.end()
}

func (t sheet) begin() {
	o := &t.world.Training
	title := "Federated training over private sums of updates"
	if t.averaging {
		title = "Federated averaging over a private sum, and the same training in the clear"
	}
	if o.Records != nil {
		title = "Federated training over private sums of records' gradients"
	}
	t.Printf("%s\n\n", title)
	t.Field("data", "%s", t.data)
	t.fieldParties()
	t.fieldTraining()
	if o.Mask.Kind != aggregation.NoMask {
		t.Field("mask", "%s, threshold %v", t.mask, o.Mask.Threshold)
	}
	t.fieldRing()
	if o.Clip.Kind != training.NoClip {
		t.Field("clipping", "updates to an L2 norm of %v", o.Clip.Norm)
	}
	parties := len(t.world.Parties)
	if !t.byMessage() {
		t.fieldLosses()
	} else {
		t.Screen.Recovery(t.recovery, t.job.Parties.Colluders, t.perRound(), t.dropOuts(), parties)
	}
	if n := simulation.Cheats(t.job, parties); n > 0 {
		what := "nothing bounds what they add"
		if t.job.Sum.Bounded {
			what = "what they send carries no proof"
		}
		t.Field("cheats", "%d of %s; %s", n, show.Plural(parties, "party"), what)
	}
	server := ""
	if t.averaging {
		server = "; the server's are for all"
	}
	t.Printf("\nBytes and milliseconds are for one party and round%s.\n\n", server)
}

// fieldLosses prints what does not arrive in sums that do not use messages.
func (t sheet) fieldLosses() {
	if least := t.recovery; least != nil {
		t.Field("losses", "%d of %s in each round; at least %d in a sum", t.dropOuts(),
			show.Plural(t.perRound(), "message"), least.MinSurvivors)
	}
	if n := t.job.World.LostRounds; n > 0 {
		t.Field("losses", "%s of %s, drawn by seed", show.Grouped(n),
			show.Plural(t.job.Rounds, "whole round"))
	}
}

func (t sheet) fieldParties() {
	least, most := math.MaxInt, 0
	for _, d := range t.world.Parties {
		least, most = min(least, d.Len()), max(most, d.Len())
	}
	rows := show.Plural(least, "row")
	if least < most {
		rows = fmt.Sprintf("%s to %s", show.Grouped(least), show.Plural(most, "row"))
	}
	dealt := ""
	if !t.averaging {
		dealt = fmt.Sprintf(", dealt by %s; all in each round", t.split)
		if n := t.perRound(); n < len(t.world.Parties) {
			dealt = fmt.Sprintf(", dealt by %s; %s in each round", t.split, show.Grouped(n))
		}
	}
	t.Field("parties", "%s with %s each%s", show.Grouped(len(t.world.Parties)), rows, dealt)
	t.Field("chosen on", "%s", t.judged)
}

func (t sheet) fieldTraining() {
	o := &t.world.Training
	local := show.Plural(max(o.Local.Epochs, 1), "local epoch")
	if o.Local.Steps > 0 {
		local = show.Plural(o.Local.Steps, "local step")
	}
	if t.averaging {
		t.Field("model", "logistic regression, %s", show.Plural(o.Model.NumParams(), "weight"))
		t.Field("training", "%s of %s; rate %v, lambda %v, seed %d", show.Plural(o.Rounds, "round"),
			local, o.Local.Rate, t.lambda, o.Seed)
		return
	}
	if r := o.Records; r != nil {
		t.Field("model", "%s, %s", t.model, show.Plural(o.Model.NumParams(), "weight"))
		t.Field("training", "%s, each a step over the records that secret coins draw: %s expected, of "+
			"%s; rule %s, rate %v, lambda %v, seed %d", show.Plural(o.Rounds, "round"),
			show.Grouped(r.Batch), show.Grouped(r.Coins.Count), t.rule, o.Server.Rate, t.lambda, o.Seed)
		return
	}
	batch := fmt.Sprintf("in batches of %d", o.Local.Batch)
	if o.Local.Batch == 0 {
		batch = "over all rows"
	}
	t.Field("model", "%s, %s", t.model, show.Plural(o.Model.NumParams(), "weight"))
	t.Field("training", "%s of %s %s; rule %s, rate %v, seed %d", show.Plural(o.Rounds, "round"),
		local, batch, t.rule, o.Local.Rate, o.Seed)
	if t.byRows {
		t.Field("weights", "by rows")
	}
}

// fieldRing prints how numbers are encoded, and with which noise.
func (t sheet) fieldRing() {
	o, sum := &t.world.Training, &t.job.Sum
	if t.job.World.Fidelity == simulation.Clear {
		t.Field("sum", "in the clear, on floating-point numbers")
		return
	}
	bits := show.Plural(t.layout[0].Bits, "bit")
	switch m := t.mechanism; {
	case m != nil:
		p, bounds := &t.job.Privacy, m.Vector.Sensitivity
		honest := m.Vector.Shares.MinHonest
		t.Field("ring", "%s for each of %s of a turned update, %.4g units to 1.0",
			bits, show.Plural(bounds.Dimension, "coordinate"), m.Encoder.Scale)
		clipped := "updates"
		if o.Records != nil {
			clipped = "gradients of " + m.Statement().Unit().Words()
		}
		t.Field("noise", "%s, multiplier %s; %s clipped to %v, L2 sensitivity %.4g units "+
			"after rounding; %s must suffice, for a standard deviation of %.4g units in each coordinate of "+
			"the sum, which is %.3g in the weights' own units",
			strings.ReplaceAll(p.Noise, "-", " "), show.Short4(t.settled.Multiplier()), clipped, p.Clip,
			bounds.L2, show.Plural(honest, "honest share"), m.Vector.SumStdDev(honest), m.StdDev(honest))
		t.Budget(t.settled.Budget(), p.Delta)
	case o.Models && o.MaxSamples > 0:
		t.Field("ring", "%s for weight times rows: weights to %v, %s; %s for the number of rows",
			bits, sum.Range, show.Plural(sum.FractionBits, "binary place"),
			show.Plural(t.layout[1].Bits, "bit"))
	default:
		of := "each coordinate of an update"
		if o.Models {
			of = "each weight"
		}
		t.Field("ring", "%s for %s: up to %v, %s", bits, of, sum.Range,
			show.Plural(sum.FractionBits, "binary place"))
	}
}

func (t sheet) end() {
	r := t.result
	rounds := len(r.Rounds)
	if r.Stopped != nil {
		t.Stopped(rounds, r.Stopped)
	}
	final := r.Final()
	if final != nil {
		t.Lost(max(0, r.Lost()-t.job.World.LostRounds), rounds)
		sums := "private sums"
		if t.averaging {
			sums = "the private sum"
		}
		if r.Lost() < rounds { // else both models are the first one
			t.Outcome(rounds, sums, t.judge(final.Test))
			if t.alone != nil {
				t.Alone(t.alone)
			}
			if final.Clear != nil {
				t.Compare(t.judge(final.Test), t.judge(final.Clear), final.MaxAbsDiff)
			}
			if t.alone != nil {
				t.Gain(t.judge(final.Test), t.alone)
			}
			if oneClass(final.Test) {
				flag := "--rate"
				if t.world.Training.Records != nil {
					flag = "--server-rate"
				}
				t.Sentence("The private model gives all rows the same class, so it has learnt nothing that "+
					"counts: try more --rounds, another %s or less noise.", flag)
			}
		}
	} else if r.Stopped == nil {
		t.Sentence("No round was completed.")
	}
	switch {
	// even if the first round failed, which may have revealed something
	case t.mechanism != nil && r.Server.Spends():
		show.Claims(t.Std, r.Server, r.Public)
		if t.caution != "" {
			t.Sentence("Caution: %s.", t.caution)
		}
	case t.world.Training.Models && final != nil:
		t.Printf("The largest weight of any party was %.3g; the ring holds up to %v.\n", largest(r),
			t.job.Sum.Range)
	}
	if final == nil {
		return
	}
	title := "Cost of a party, whole run"
	if t.perRound() < len(t.world.Parties) {
		title = "Cost of one in every round"
	}
	if t.byMessage() {
		t.costs(title, r.Setup, r.Total(), rounds, int64(8*len(r.Model)*rounds*final.Exchanges))
	} else {
		t.Sentence("%s: %s ms of training. The sums were taken without messages.", title,
			show.Short(r.Total().Train))
	}
	t.Took(t.took)
}

// oneClass reports whether a model gives all rows the same class.
func oneClass(m *learning.Matrix) bool {
	given := 0
	for class := range m.Classes {
		for actual := range m.Classes {
			if m.At(actual, class) > 0 {
				given++
				break
			}
		}
	}
	return given == 1
}

// largest returns the largest magnitude that any party submitted.
func largest(r *simulation.Result) (x float64) {
	for i := range r.Rounds {
		x = max(x, r.Rounds[i].Largest)
	}
	return x
}
