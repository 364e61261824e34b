package experiments

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// clipping is the MLP's row of the table in "Understanding Clipping for Federated
// Learning" that says what clipping costs, and noise on top of it.
func clipping(ctx context.Context, o Options) (*Table, error) {
	return clippingOf(ctx, o, pick(o, 480, 480, 48))
}

// manyClipped is the same with the paper's number of parties.
func manyClipped(ctx context.Context, o Options) (*Table, error) {
	return clippingOf(ctx, o, pick(o, 1920, 1920, 72))
}

func clippingOf(ctx context.Context, o Options, clients int) (*Table, error) {
	const epsilon, delta = 1.5, 1e-5
	rounds := pick(o, 40, 200, 3)
	hidden := pick(o, 32, 200, 4)
	splits := pick(o, []string{"label-skew"}, []string{"iid", "label-skew"}, []string{"iid"})
	shown := min(16, rounds)
	d, err := newDealer(o, "mnist", 60000, pick(o, 2000, 10000, 200))
	if err != nil {
		return nil, err
	}
	if o.made == nil && !o.Long {
		d.smaller(o, 14)
	}
	model := d.network(hidden)
	start := norm(model.Init(1))
	// Skellam shares add up exactly, however small.
	private := job.Privacy{Noise: "skellam", Epsilon: epsilon, Delta: delta, Bits: pick(o, 18, 18, 17),
		SubmitAfter: time.Second}

	t := &Table{
		Title:  fmt.Sprintf("Clipping and noise: MLP %d-%d-10 on MNIST", d.train.Features, hidden),
		Labels: []string{"split", "parties", "clipping"},
		Measures: []Measure{
			accuracyMeasure, riseMeasure, {Name: "clipped", Percent: true, Digits: 0},
			{Name: "update norm", Digits: 3},
			{Name: "left", Digits: 3}, {Name: "spread", Digits: 3}, {Name: "z", Digits: 3},
		},
		Figures: []Figure{
			learningFigure("accuracy", "Clipping and noise"),
			{Name: "norms", Title: "Update norms before clipping", X: "round", Y: "mean L2 norm"},
			{Name: "spread", Title: "What clipping leaves: spread over parties", X: "round",
				Y: "mean |α − mean α|"},
			{Name: "points", Title: fmt.Sprintf("Each party in round %d, seed 1", shown),
				X: "L2 norm of the update", Y: "cosine with the model's last step", Points: true},
		},
		Notes: []string{
			"accuracy: the mean of the last ten rounds; rise: how much that is above the mean " +
				"of the ten before; clipped, update norm, left and spread are means over all " +
				"rounds: of norms before clipping, of α = c/max(c, norm), and of the mean " +
				"distance of α from its mean; z is the noise multiplier.",
			"fixed: c is .5, chosen before anything is known of the data. two-pass: c is half the " +
				"mean update norm over all parties and rounds of the row without clipping and the same seed: " +
				"the paper's constant, which nothing protects.",
			"With noise a party is in a round with probability, all submit, those not drawn " +
				"zeros and their share of the noise, and means are over the number expected: " +
				"else the noise, or the divisor, would tell how many were drawn. The row of " +
				"sampling without noise says what that alone changes.",
			"The paper has EMNIST digits: 1,920 parties of 125 rows, MLP 784-200-10 at 94.0, " +
				"less 1.84 by clipping, less a further .29 by noise at epsilon 1.5.",
		},
	}
	t.Settings = []string{
		fmt.Sprintf("%d parties, a 24th of them in each of %d rounds, a fixed number; all "+
			"60,000 rows of %s; %d weights; %d test rows", clients, rounds, imagesAre(d.train),
			model.NumParams(), d.test.Len()),
		"of the paper: 32 local steps of batches of 64, c by an unclipped run, delta 1e-5; " +
			"local rate 0.1, server rate 1, chosen here; two main classes with 92 % of a " +
			"party's rows in label skew",
		fmt.Sprintf("model clipping: weights to half the norm of the first model, %.3g", start/2),
		fmt.Sprintf("noise: Skellam in a ring of %d bits, calibrated to epsilon %v at delta "+
			"1e-5, with parties' own secret coins", private.Bits, epsilon),
	}
	runs := &clipRuns{
		dealer: d, private: private, weights: start / 2, shown: shown,
		base: job.Job{Rounds: rounds, Model: mlp(hidden),
			Training: job.Training{Rate: 0.1, Batch: 64, Steps: 32}},
		constants: map[string]float64{}, multipliers: map[int]float64{},
	}
	var arms []arm
	for _, split := range splits {
		for _, kind := range []string{"none", "model", "fixed", "two-pass", "two-pass, sampling",
			"two-pass, noise"} {
			a := arm{labels: []string{split, fmt.Sprint(clients), kind}, steps: rounds}
			if split == "label-skew" {
				switch kind {
				case "none":
					a.published = percent(94.0)
				case "two-pass":
					a.published = percent(94.0 - 1.84)
				case "two-pass, noise":
					a.published = percent(94.0 - 1.84 - 0.29)
				}
			}
			a.run = func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				return runs.run(ctx, split, clients, kind, seed, step)
			}
			if kind == "none" {
				a.done = func(seed uint64, out outcome) {
					runs.constants[fmt.Sprint(split, clients, seed)] = out.values[3]
				}
			}
			arms = append(arms, a)
		}
	}
	err = t.fill(ctx, o, arms)
	for _, split := range splits {
		row := func(name string) []string { return []string{split, fmt.Sprint(clients), name} }
		for _, c := range []struct {
			a, b     string
			expected int
		}{
			{"two-pass", "none", -1}, {"fixed", "none", -1}, {"two-pass, noise", "two-pass", -1},
			{"two-pass, noise", "two-pass, sampling", -1}, {"model", "two-pass", -1},
		} {
			t.compare(fmt.Sprintf("%s, %d: (%s) less (%s)", split, clients, c.a, c.b), row(c.a),
				row(c.b), 0, c.expected)
		}
	}
	return t, err
}

// fixedClip is a constant that owes nothing to the data.
const fixedClip = 0.5

// clipRuns holds what the runs of all arms share.
type clipRuns struct {
	dealer      *dealer
	base        job.Job
	private     job.Privacy
	weights     float64            // the norm of model clipping
	shown       int                // the round whose parties are points
	constants   map[string]float64 // mean update norms without clipping, by split, parties and seed
	multipliers map[int]float64    // by parties: the same for all seeds, splits and norms
}

func (c *clipRuns) run(
	ctx context.Context, split string, clients int, kind string, seed uint64, step func(),
) (outcome, error) {
	with, err := c.dealer.dealWith(split, seed, false,
		learning.PartitionOptions{Clients: clients, Share: 0.92})
	if err != nil {
		return outcome{}, err
	}
	x := setting{rows: with, Job: c.base}
	inRound := max(2, clients/24)
	x.Seed, x.Parties.PerRound = seed, inRound
	z := math.NaN()
	constant := 0.0
	switch kind {
	case "none", "model":
	case "fixed":
		constant = fixedClip
	default:
		if constant, err = aggregation.MeanNormClip(0.5,
			[]float64{c.constants[fmt.Sprint(split, clients, seed)]}); err != nil {
			return outcome{}, err
		}
	}
	switch kind {
	case "model":
		x.world = func(w *simulation.World) {
			w.Training.Clip = training.Clipping{Kind: training.ModelClip, Norm: c.weights}
		}
	case "fixed", "two-pass":
		x.Privacy.Clip = constant
	case "two-pass, sampling":
		x.Privacy.Clip, x.Parties.PerRound = constant, 0
		x.world = func(w *simulation.World) {
			w.Replay = sampled(seed, clients, c.base.Rounds, float64(inRound)/float64(clients))
		}
	case "two-pass, noise":
		x.World.Fidelity, x.Privacy = simulation.Ring, c.private
		x.Privacy.Clip, x.Privacy.Multiplier = constant, c.multipliers[clients]
		x.Parties.Hidden, x.Parties.PerRound = float64(inRound)/float64(clients), 0
	}
	trained, err := train(ctx, &x, step)
	if err != nil {
		return outcome{}, err
	}
	if kind == "two-pass, noise" {
		z = x.multiplier
		c.multipliers[clients] = z
	}
	out := clipOutcome(trained, z, c.base.Rounds)
	if kind == "model" { // its norms are those of weights
		out.values[3], out.values[4], out.values[5] = nan(), nan(), nan()
		out.lines[1], out.lines[2] = line{}, line{}
	}
	var points line
	if seed == 1 && kind == "none" && len(trained.Rounds) >= c.shown {
		r := trained.Rounds[c.shown-1]
		points = line{r.Norms, r.Cosines}
	}
	out.lines = append(out.lines, points)
	return out, nil
}

// sampled draws the parties of rounds, each party with a probability.
func sampled(seed uint64, clients, rounds int, probability float64) [][]int {
	drawn := make([][]int, rounds)
	for k := range drawn {
		rng := rand.New(rand.NewPCG(training.DerivedSeed(seed, "parties", k+1, 0), 0))
		for i := range clients {
			if rng.Float64() < probability {
				drawn[k] = append(drawn[k], i)
			}
		}
	}
	return drawn
}

// clipOutcome returns what the table of clipping says of a training.
func clipOutcome(trained *simulation.Result, z float64, planned int) outcome {
	var norms, spreads line
	clipped, mean, left, spread, rounds := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, r := range trained.Rounds {
		norms.x, spreads.x = append(norms.x, float64(r.Round)), append(spreads.x, float64(r.Round))
		if r.Lost != nil || r.Parties == 0 {
			norms.y, spreads.y = append(norms.y, nan()), append(spreads.y, nan())
			continue
		}
		rounds++
		clipped += r.Clipped
		mean += r.MeanNorm
		left += r.Left
		spread += r.Spread
		norms.y, spreads.y = append(norms.y, r.MeanNorm), append(spreads.y, r.Spread)
	}
	l := learned(trained)
	last, before := l.meanOver(planned, min(lastRounds, planned))
	return outcome{
		[]float64{last, last - before, clipped / rounds, mean / rounds, left / rounds, spread / rounds,
			z},
		[]line{l, norms, spreads},
	}
}

// norm is the L2 norm. floats.Norm adds up in another order, which would change the
// clipping bound in its last places, and with it the table.
func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
