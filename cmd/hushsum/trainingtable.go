package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// The rows of the table of a training: 78 and 80 characters.
const (
	trainingFormat      = "%5s %9s %9s %9s %9s %8s %7s %6s %8s"
	noisyTrainingFormat = "%5s %9s %9s %10s %10s %8s %7s %6s %8s"
)

// trainingTable shows a training as it goes on, as a table or as JSON lines.
type trainingTable struct {
	screen
	flags    *simulateFlags
	training *simulation.Training
	about    string
	inClear  bool                // the training in the clear runs
	clear    *simulation.Trained // nil unless it ran to its end
	recovery *protocol.Recovery  // with defaults filled in; nil without
}

// perRound is how many parties are in a round.
func (t *trainingTable) perRound() int {
	return cmp.Or(t.training.PerRound, len(t.training.Parties))
}

// ringBits are those of a coordinate of the sum.
func (t *trainingTable) ringBits() int {
	x := t.training
	if x.Noise != nil {
		return x.Noise.Bits
	}
	layout, err := aggregation.Mean{Parties: t.perRound(), Dimension: 1, Range: x.Range, FractionBits: x.FractionBits}.Layout()
	if err != nil {
		return 0 // Training.Validate has been there
	}
	return layout[0].Bits
}

func (t *trainingTable) begin() {
	x, w := t.training, &t.flags.train
	least, most := math.MaxInt, 0
	for _, d := range x.Parties {
		least, most = min(least, d.Len()), max(most, d.Len())
	}
	t.printf("Federated training over private sums of updates\n\n")
	t.field("data", "%s", t.about)
	rows := plural(least, "row")
	if least < most {
		rows = fmt.Sprintf("%s to %s", grouped(least), plural(most, "row"))
	}
	each := "all in each round"
	if n := t.perRound(); n < len(x.Parties) {
		each = fmt.Sprintf("%s in each round", grouped(n))
	}
	t.field("parties", "%s with %s each, dealt by %s; %s", grouped(len(x.Parties)), rows, w.split, each)
	t.field("model", "%s, %s", w.model, plural(x.Model.NumParams(), "weight"))
	local := plural(max(x.Local.Epochs, 1), "local epoch")
	if x.Local.Steps > 0 {
		local = plural(x.Local.Steps, "local step")
	}
	batch := fmt.Sprintf("in batches of %d", x.Local.Batch)
	if x.Local.Batch == 0 {
		batch = "over all rows"
	}
	t.field("training", "%s of %s %s; rule %s, rate %v, seed %d", plural(x.Rounds, "round"), local, batch, w.rule, x.Local.Rate, x.Seed)
	if x.Mask.Kind != aggregation.NoMask {
		t.field("mask", "%s, threshold %v", w.mask, x.Mask.Threshold)
	}
	if n := x.Noise; n != nil {
		t.field("ring", "%s for each coordinate of a turned update", plural(n.Bits, "bit"))
		t.field("noise", "%s, multiplier %s; updates clipped to %v", strings.ReplaceAll(laws[n.Law], "-", " "), short4(n.Multiplier), n.Clip)
		t.budget(n)
	} else {
		t.field("ring", "%s for each coordinate of an update: up to %v, %s", plural(t.ringBits(), "bit"), x.Range, plural(x.FractionBits, "binary place"))
	}
	if x.Clip.Kind != simulation.NoClip {
		t.field("clipping", "updates to an L2 norm of %v", x.Clip.Norm)
	}
	drops := (&simulation.Options{Clients: len(x.Parties), Drop: x.Drop}).DropOuts()
	t.screen.recovery(t.recovery, x.Colluders, t.perRound(), drops, len(x.Parties))
	t.printf("\nBytes and milliseconds are for one party and round.\n\n")
	if x.Noise != nil {
		t.printf(noisyTrainingFormat+"\n", "round", "parties", "up", "eps server", "eps public", "norm", "clipped", "mask", "accuracy")
		return
	}
	t.printf(trainingFormat+"\n", "round", "parties", "up", "train ms", "sum ms", "norm", "clipped", "mask", "accuracy")
}

func (t *trainingTable) progress(round, done, of int) {
	note := ""
	if t.inClear {
		note = "  in the clear"
	}
	if !t.flags.json {
		t.screen.progress(round, done, of, note)
	}
}

func (t *trainingTable) round(r simulation.TrainingRound) {
	if t.flags.json {
		printJSON(t.std, newJSONTrainingRound(r))
		return
	}
	t.wipe()
	parties := fmt.Sprintf("%d/%d", r.Clients, t.perRound())
	if r.Lost != nil {
		parties = "lost"
	}
	accuracy := "-"
	if r.Test != nil {
		accuracy = fmt.Sprintf("%.4f", r.Test.Accuracy())
	}
	norm, clipped, mask := fmt.Sprintf("%.3g", r.MeanNorm), fmt.Sprintf("%.0f%%", 100*r.Clipped), fmt.Sprintf("%.3f", r.Masked)
	if t.training.Noise != nil {
		t.printf(noisyTrainingFormat+"\n", fmt.Sprint(r.Round), parties, grouped(int(r.Cost.BytesUp)), epsilon(r.Server.Upper), epsilon(r.Public.Upper), norm, clipped, mask, accuracy)
		return
	}
	t.printf(trainingFormat+"\n", fmt.Sprint(r.Round), parties, grouped(int(r.Cost.BytesUp)), short(r.Cost.Train), short(r.Cost.Client), norm, clipped, mask, accuracy)
}

func (t *trainingTable) end(out *simulation.Trained, took time.Duration) {
	t.wipe()
	if t.flags.json {
		t.summary(out, took)
		return
	}
	if out.Stopped != nil {
		t.stopped(len(out.Rounds), out.Stopped)
	}
	final := out.Final()
	if final != nil {
		t.lost(lostRounds(out), len(out.Rounds))
		t.outcome(len(out.Rounds), "private sums", final)
		if t.clear != nil {
			t.compare(final, t.clear.Final(), distance(out.Model, t.clear.Model))
		}
	} else if out.Stopped == nil {
		t.sentence("No round was completed.")
	}
	if t.training.Noise != nil && out.Server.Upper > 0 {
		t.privacy(t.training.Noise.Delta, out.Server, out.Public)
	}
	if final == nil {
		return
	}
	title := "Cost of a party, whole run"
	if t.perRound() < len(t.training.Parties) {
		title = "Cost of one in every round"
	}
	models := 8 * len(out.Model) * len(out.Rounds)
	if t.training.Client.Kind == simulation.FedGA {
		models *= 2 // before each of two sums
	}
	t.costs(title, out.Setup, totalCost(out), len(out.Rounds), int64(models))
	t.took(took)
}

// totalCost is that of all rounds, set-up aside.
func totalCost(out *simulation.Trained) (total simulation.Cost) {
	for i := range out.Rounds {
		c := &out.Rounds[i].Cost
		total.BytesUp += c.BytesUp
		total.BytesDown += c.BytesDown
		total.Train += c.Train
		total.Client += c.Client
		total.Server += c.Server
	}
	return total
}

// lostRounds is how many rounds were lost.
func lostRounds(out *simulation.Trained) (lost int) {
	for i := range out.Rounds {
		if out.Rounds[i].Lost != nil {
			lost++
		}
	}
	return lost
}

// distance is the largest difference between two weights.
func distance(a, b []float64) float64 { return floats.Distance(a, b, math.Inf(1)) }

// jsonTrainingRound is the object of one round.
type jsonTrainingRound struct {
	Round    int      `json:"round"`
	Clients  int      `json:"clients"`
	Accuracy *float64 `json:"accuracy"`
	MCC      *float64 `json:"mcc"`
	MeanNorm float64  `json:"mean_norm"`
	MaxNorm  float64  `json:"max_norm"`
	Cosine   float64  `json:"cosine"`
	Clipped  float64  `json:"clipped"`
	ClipNorm float64  `json:"clip_norm"`
	Mask     float64  `json:"mask"`
	jsonCost
}

func newJSONTrainingRound(r simulation.TrainingRound) jsonTrainingRound {
	j := jsonTrainingRound{
		Round: r.Round, Clients: r.Clients, MeanNorm: r.MeanNorm, MaxNorm: r.MaxNorm, Cosine: r.Cosine,
		Clipped: r.Clipped, ClipNorm: r.ClipNorm, Mask: r.Masked,
		jsonCost: newJSONCost(r.Cost, r.Dropped, r.Lost, newJSONSpent(r.Server, r.Public)),
	}
	if r.Test != nil {
		j.Accuracy, j.MCC = finite(r.Test.Accuracy()), finite(r.Test.MCC())
	}
	return j
}

// jsonTraining is the last object of a training.
type jsonTraining struct {
	Summary       bool     `json:"summary"`
	Complete      bool     `json:"complete"`
	Data          string   `json:"data"`
	Model         string   `json:"model"`
	Split         string   `json:"split"`
	Rule          string   `json:"rule"`
	Mask          string   `json:"mask"`
	Parameters    int      `json:"parameters"`
	Accuracy      *float64 `json:"accuracy"`
	MCC           *float64 `json:"mcc"`
	ClearAccuracy *float64 `json:"clear_accuracy"`
	ClearMCC      *float64 `json:"clear_mcc"`
	MaxAbsDiff    *float64 `json:"max_abs_diff"`
	jsonSpent
	jsonSession
	RingBits        int     `json:"ring_bits"`
	Noise           string  `json:"noise"`
	EpsilonBudget   float64 `json:"epsilon_budget"`
	Delta           float64 `json:"delta"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	Clip            float64 `json:"clip"`
	Stopped         bool    `json:"stopped"`
	TotalMS         float64 `json:"total_ms"`
}

func (t *trainingTable) summary(out *simulation.Trained, took time.Duration) {
	x, w := t.training, &t.flags.train
	j := jsonTraining{
		Summary: true, Complete: len(out.Rounds) == x.Rounds, Data: t.flags.data,
		Model: w.model, Split: w.split, Rule: w.rule, Mask: w.mask, Parameters: x.Model.NumParams(),
		jsonSpent:   newJSONSpent(out.Server, out.Public),
		jsonSession: newJSONSession(out.Setup, t.recovery, x.Colluders, t.perRound(), x.Drop, lostRounds(out)),
		RingBits:    t.ringBits(), Noise: laws[noNoise], Clip: x.Clip.Norm,
		Stopped: out.Stopped != nil, TotalMS: milliseconds(took),
	}
	if final := out.Final(); final != nil {
		j.Accuracy, j.MCC = finite(final.Accuracy()), finite(final.MCC())
	}
	if t.clear != nil {
		c := t.clear.Final()
		j.ClearAccuracy, j.ClearMCC = finite(c.Accuracy()), finite(c.MCC())
		j.MaxAbsDiff = finite(distance(out.Model, t.clear.Model))
	}
	if n := x.Noise; n != nil {
		j.Noise, j.NoiseMultiplier, j.Clip = laws[n.Law], n.Multiplier, n.Clip
		j.EpsilonBudget, j.Delta = n.Epsilon, n.Delta
	}
	printJSON(t.std, j)
}
