package experiments

import (
	"context"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// clipping is after the MLP's row of the table in "Understanding Clipping for
// Federated Learning" that says what clipping costs, and noise on top of it:
// 1,920 parties, 80 a round, epsilon 1.5 at delta 1e-5 against those who see
// released models.
func clipping(ctx context.Context, o Options) (*Table, error) {
	const epsilon, delta = 1.5, 1e-5
	clients, perRound := pick(o, 1920, 1920, 60), pick(o, 80, 80, 20)
	hidden := pick(o, 40, 200, 4)
	rounds := pick(o, 60, 200, 2)
	every := pick(o, 10, 20, 1)
	splits := pick(o, []string{"label-skew"}, []string{"iid", "label-skew"}, []string{"iid"})
	d, err := newDealer(o, "mnist", 60000, pick(o, 5000, 10000, 200))
	if err != nil {
		return nil, err
	}
	with, err := d.deal(splits[0], clients, 1)
	if err != nil {
		return nil, err
	}
	model := d.network(hidden)
	start := norm(model.Init(1))
	// The norm of difference clipping is about half the mean update norm of early
	// rounds without clipping.
	const fixed = .5
	private := simulation.DefaultNoise()
	// Skellam shares add up exactly, however small: 1,920 discrete Gaussians that
	// together have some votes' standard deviation do not.
	private.Law, private.Clip, private.Bits = accounting.FamilySkellam, fixed, pick(o, 17, 18, 17)
	private.Epsilon, private.Delta, private.Against = epsilon, delta, accounting.PublicView

	t := &Table{
		Title:    fmt.Sprintf("Clipping and noise: MLP %d-%d-10 on MNIST, %d parties", d.train.Features, hidden, clients),
		Labels:   []string{"split", "clipping"},
		Measures: []Measure{accuracyMeasure, {Name: "clipped", Percent: true, Digits: 0}, {Name: "update norm", Digits: 2}, {Name: "z", Digits: 3}},
		Figures: []Figure{
			learningFigure("accuracy", "Clipping and noise"),
			{Name: "norms", Title: "Update norms before clipping", X: "round", Y: "mean L2 norm"},
			{Name: "cosines", Title: "Updates and the last step of the model", X: "round", Y: "mean cosine"},
		},
		Notes: []string{
			"The columns clipped and update norm are means over all rounds, of norms before clipping; z is the noise multiplier of updates and votes together.",
			"With noise all parties submit, those not drawn zeros and their share of the noise, and means are over the number expected: else the noise, or the divisor, would tell how many were drawn. Their draws are secret, and not those of the other rows.",
			"The published effects are that model clipping is worse than difference clipping, and that noise costs accuracy on top of clipping.",
			"Data, network, rates and rounds are not the paper's, and its figures are not set beside these.",
		},
	}
	t.Settings = []string{
		fmt.Sprintf("%d parties of %d rows, in each of %d rounds with probability %d/%d; %d weights; %d test rows",
			clients, with.parties[0].Len(), rounds, perRound, clients, model.NumParams(), d.test.Len()),
		"local rate 0.1, 2 epochs, batches of 10, server rate 1, all chosen here",
		fmt.Sprintf("model clipping: weights to half the norm of the first model, %.3g; difference clipping: updates to %v, to half the mean norm of the round before, or to their median by votes", start/2, fixed),
		fmt.Sprintf("noise: Skellam in a ring of %d bits, calibrated to epsilon(public) %v at delta 1e-5", private.Bits, epsilon),
	}
	base := simulation.Training{
		Model: model, Test: d.test, Rounds: rounds, PerRound: perRound, Poisson: true,
		Local: learning.SGD{Rate: .1, Batch: 10, Epochs: 2}, EvaluateEvery: every,
	}
	kinds := clipKinds(start/2, fixed)
	runs := &clipRuns{dealer: d, clients: clients, base: base, private: private, multipliers: map[string]float64{}}
	var arms []arm
	for _, split := range splits {
		for _, kind := range kinds {
			arms = append(arms, arm{labels: []string{split, kind.name}, steps: rounds, run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				return runs.run(ctx, split, kind, seed, step)
			}})
		}
	}
	err = t.fill(ctx, o, arms)
	if runs.server > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Against the server, which knows who is in a round, the same noise spends epsilon %.3g for a party in all rounds.", runs.server))
	}
	for _, split := range splits {
		row := func(name string) []string { return []string{split, name} }
		for _, c := range []struct {
			a, b     string
			expected int
		}{
			{"model", "none", 0}, {"difference, fixed", "none", 0}, {"difference, mean/2", "none", 0}, {"difference, median", "none", 0},
			{"model", "difference, fixed", -1},
			{"fixed, with noise", "difference, fixed", -1}, {"median, with noise", "difference, median", -1},
		} {
			t.compare(fmt.Sprintf("%s, (%s) less (%s)", split, c.a, c.b), row(c.a), row(c.b), 0, c.expected)
		}
	}
	return t, err
}

// clipKind is a row of the table of clipping, once for each split.
type clipKind struct {
	name  string
	clip  simulation.Clipping
	noise bool
}

// clipKinds are the rows, with the norms that weights and updates are clipped to.
func clipKinds(weights, updates float64) []clipKind {
	median := &aggregation.AdaptiveClip{}
	return []clipKind{
		{"none", simulation.Clipping{}, false},
		{"model", simulation.Clipping{Kind: simulation.ModelClip, Norm: weights}, false},
		{"difference, fixed", simulation.Clipping{Kind: simulation.DifferenceClip, Norm: updates}, false},
		{"difference, mean/2", simulation.Clipping{Kind: simulation.DifferenceClip, Norm: updates, Factor: .5}, false},
		{"difference, median", simulation.Clipping{Kind: simulation.DifferenceClip, Norm: updates, Adaptive: median}, false},
		{"fixed, with noise", simulation.Clipping{}, true},
		{"median, with noise", simulation.Clipping{Adaptive: median}, true},
	}
}

// clipRuns is what the runs of all arms share.
type clipRuns struct {
	dealer      *dealer
	clients     int
	base        simulation.Training
	private     simulation.Noise
	multipliers map[string]float64 // by kind, the same for all seeds and splits
	server      float64            // the largest epsilon(server)
}

func (c *clipRuns) run(ctx context.Context, split string, kind clipKind, seed uint64, step func()) (outcome, error) {
	x := c.base
	with, err := c.dealer.deal(split, c.clients, seed)
	if err != nil {
		return outcome{}, err
	}
	x.Parties, x.Seed, x.Clip = with.parties, seed, kind.clip
	z := math.NaN()
	if kind.noise {
		n := c.private
		x.Sum, x.Noise = simulation.Ring, &n
		if c.multipliers[kind.name] == 0 {
			if c.multipliers[kind.name], err = x.Calibrate(); err != nil {
				return outcome{}, err
			}
		}
		z = c.multipliers[kind.name]
		n.Multiplier = z
	}
	trained, err := train(ctx, x, step)
	if err != nil {
		return outcome{}, err
	}
	if kind.noise && len(trained.Rounds) > 0 {
		c.server = max(c.server, trained.Rounds[len(trained.Rounds)-1].Server.Upper)
	}
	out := clipOutcome(trained, z)
	if kind.clip.Kind == simulation.ModelClip { // its norms are those of weights
		out.values[2], out.lines[1] = math.NaN(), line{}
	}
	return out, nil
}

// clipOutcome is what the table of clipping says of a training.
func clipOutcome(trained *simulation.Trained, z float64) outcome {
	var norms, cosines line
	clipped, mean, rounds := 0.0, 0.0, 0.0
	for _, r := range trained.Rounds {
		if r.Lost != nil || r.Clients == 0 {
			continue
		}
		rounds++
		clipped += r.Clipped
		mean += r.MeanNorm
		norms.x, norms.y = append(norms.x, float64(r.Round)), append(norms.y, r.MeanNorm)
		if r.Round > 1 { // there is no last step before
			cosines.x, cosines.y = append(cosines.x, float64(r.Round)), append(cosines.y, r.Cosine)
		}
	}
	return outcome{[]float64{accuracy(trained), clipped / rounds, mean / rounds, z}, []line{learned(trained), norms, cosines}}
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
