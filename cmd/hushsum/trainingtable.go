package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/simulation"
)

// The rows of the table of a training: 77 and 79 characters.
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
	clear    *simulation.Trained // nil if it did not run
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
	if x.PerRound > 0 && x.PerRound < len(x.Parties) {
		each = fmt.Sprintf("%s in each round", grouped(x.PerRound))
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
		t.field("noise", "%s, multiplier %s; updates clipped to %v; %s a coordinate", strings.ReplaceAll(laws[n.Law], "-", " "), short4(n.Multiplier), n.Clip, plural(n.Bits, "bit"))
		if n.Epsilon > 0 {
			t.field("privacy", "budget of each party: epsilon %v at delta %v against the server", n.Epsilon, n.Delta)
		} else {
			t.field("privacy", "epsilon is stated at delta %v; there is no budget", n.Delta)
		}
	} else if x.Clip.Kind != simulation.NoClip {
		t.field("clipping", "updates to an L2 norm of %v", x.Clip.Norm)
	}
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
		t.line(newJSONTrainingRound(r))
		return
	}
	t.wipe()
	of := t.training.PerRound
	if of == 0 {
		of = len(t.training.Parties)
	}
	parties := fmt.Sprintf("%d/%d", r.Clients, of)
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
	if final == nil {
		if out.Stopped == nil {
			t.sentence("No round was completed.")
		}
		return
	}
	t.printf("\n%-28s %9s %9s\n", fmt.Sprintf("After %s", plural(len(out.Rounds), "round")), "accuracy", "MCC")
	t.printf("%-28s %9.4f %9.4f\n", "  over private sums", final.Accuracy(), final.MCC())
	if t.clear != nil && t.clear.Final() != nil {
		c := t.clear.Final()
		t.printf("%-28s %9.4f %9.4f\n", "  in the clear, same seeds", c.Accuracy(), c.MCC())
		t.printf("%-28s %+9.4f %+9.4f\n", "  difference", final.Accuracy()-c.Accuracy(), final.MCC()-c.MCC())
		t.printf("\nThe largest difference between two weights of the models is %.2g.\n", largestDifference(out.Model, t.clear.Model))
	}
	if last := out.Rounds[len(out.Rounds)-1]; t.training.Noise != nil {
		t.privacy(t.training.Noise.Delta, last.Server, last.Public)
	}
	t.printf("\nThe run took %.1f s in all.\n", took.Seconds())
}

func largestDifference(a, b []float64) (d float64) {
	for j := range a {
		d = max(d, math.Abs(a[j]-b[j]))
	}
	return d
}

// jsonTrainingRound is the object of one round.
type jsonTrainingRound struct {
	Round         int      `json:"round"`
	Clients       int      `json:"clients"`
	Accuracy      *float64 `json:"accuracy"`
	MCC           *float64 `json:"mcc"`
	MeanNorm      float64  `json:"mean_norm"`
	MaxNorm       float64  `json:"max_norm"`
	Cosine        float64  `json:"cosine"`
	Clipped       float64  `json:"clipped"`
	ClipNorm      float64  `json:"clip_norm"`
	Mask          float64  `json:"mask"`
	BytesUp       int64    `json:"bytes_up"`
	BytesDown     int64    `json:"bytes_down"`
	TrainMS       float64  `json:"train_ms"`
	ClientMS      float64  `json:"client_ms"`
	ServerMS      float64  `json:"server_ms"`
	Dropped       int      `json:"dropped"`
	Lost          bool     `json:"lost"`
	Epsilon       *float64 `json:"epsilon"`
	EpsilonLower  *float64 `json:"epsilon_lower"`
	EpsilonPublic *float64 `json:"epsilon_public"`
	Accountant    string   `json:"accountant,omitempty"`
}

func newJSONTrainingRound(r simulation.TrainingRound) jsonTrainingRound {
	j := jsonTrainingRound{
		Round: r.Round, Clients: r.Clients, MeanNorm: r.MeanNorm, MaxNorm: r.MaxNorm, Cosine: r.Cosine,
		Clipped: r.Clipped, ClipNorm: r.ClipNorm, Mask: r.Masked,
		BytesUp: r.Cost.BytesUp, BytesDown: r.Cost.BytesDown,
		TrainMS: milliseconds(r.Cost.Train), ClientMS: milliseconds(r.Cost.Client), ServerMS: milliseconds(r.Cost.Server),
		Dropped: r.Dropped, Lost: r.Lost != nil,
	}
	if r.Test != nil {
		j.Accuracy, j.MCC = finite(r.Test.Accuracy()), finite(r.Test.MCC())
	}
	if r.Server.Accountant != "" {
		j.Epsilon, j.EpsilonLower, j.EpsilonPublic = finite(r.Server.Upper), finite(r.Server.Lower), finite(r.Public.Upper)
		j.Accountant = r.Server.Accountant
	}
	return j
}

// jsonTraining is the last object of a training.
type jsonTraining struct {
	Summary         bool     `json:"summary"`
	Complete        bool     `json:"complete"`
	Data            string   `json:"data"`
	Model           string   `json:"model"`
	Split           string   `json:"split"`
	Rule            string   `json:"rule"`
	Mask            string   `json:"mask"`
	Parameters      int      `json:"parameters"`
	Accuracy        *float64 `json:"accuracy"`
	MCC             *float64 `json:"mcc"`
	ClearAccuracy   *float64 `json:"clear_accuracy"`
	ClearMCC        *float64 `json:"clear_mcc"`
	MaxAbsDiff      *float64 `json:"max_abs_diff"`
	Epsilon         *float64 `json:"epsilon"`
	EpsilonLower    *float64 `json:"epsilon_lower"`
	EpsilonPublic   *float64 `json:"epsilon_public"`
	Accountant      string   `json:"accountant,omitempty"`
	EpsilonBudget   float64  `json:"epsilon_budget"`
	Delta           float64  `json:"delta"`
	NoiseMultiplier float64  `json:"noise_multiplier"`
	Stopped         bool     `json:"stopped"`
	TotalMS         float64  `json:"total_ms"`
}

func (t *trainingTable) summary(out *simulation.Trained, took time.Duration) {
	x, w := t.training, &t.flags.train
	j := jsonTraining{
		Summary: true, Complete: len(out.Rounds) == x.Rounds, Data: t.flags.data,
		Model: w.model, Split: w.split, Rule: w.rule, Mask: w.mask, Parameters: x.Model.NumParams(),
		Stopped: out.Stopped != nil, TotalMS: milliseconds(took),
	}
	if final := out.Final(); final != nil {
		j.Accuracy, j.MCC = finite(final.Accuracy()), finite(final.MCC())
	}
	if t.clear != nil && t.clear.Final() != nil {
		c := t.clear.Final()
		j.ClearAccuracy, j.ClearMCC = finite(c.Accuracy()), finite(c.MCC())
		j.MaxAbsDiff = finite(largestDifference(out.Model, t.clear.Model))
	}
	if n := len(out.Rounds); n > 0 && x.Noise != nil {
		last := newJSONTrainingRound(out.Rounds[n-1])
		j.Epsilon, j.EpsilonLower, j.EpsilonPublic, j.Accountant = last.Epsilon, last.EpsilonLower, last.EpsilonPublic, last.Accountant
		j.EpsilonBudget = x.Noise.Epsilon
		j.Delta, j.NoiseMultiplier = x.Noise.Delta, x.Noise.Multiplier
	}
	t.line(j)
}

// line writes one object. All numbers in it are finite.
func (t *trainingTable) line(v any) {
	if b, err := json.Marshal(v); err == nil {
		t.std.out.Write(append(b, '\n'))
	}
}
