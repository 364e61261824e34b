package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation"
)

// privacyTask is a data set and a model of the table of privacy.
type privacyTask struct {
	name    string
	about   string // the model and the parties' training
	clients int
	rounds  int
	every   int
	clip    float64
	local   job.Training
	model   string
	deal    func(seed uint64) (dealt, error)
}

// privateSums compares private sums with sums in the clear, from the same seeds, without
// noise and with budgets against the server.
func privateSums(ctx context.Context, o Options) (*Table, error) {
	const delta = 1e-5
	o.Store = nil // its rows compare models with each other, which no store keeps
	tasks, err := privacyTasks(o)
	if err != nil {
		return nil, err
	}
	t := &Table{
		Title:  "Private against clear: cost of secure sums and of epsilon(server)",
		Labels: []string{"data", "sum"},
		Measures: []Measure{accuracyMeasure, mccMeasure, {Name: "z", Digits: 2},
			{Name: "off by", Digits: 3}},
	}
	for _, p := range tasks {
		t.Settings = append(t.Settings,
			fmt.Sprintf("%s: %s; %d parties, all in each of %d rounds; with noise, and where the table "+
				"says so, updates are clipped to %v",
				p.name, p.about, p.clients, p.rounds, p.clip))
		t.Figures = append(t.Figures,
			learningFigure(strings.ToLower(p.name), "Private against clear, "+p.name))
	}
	t.Settings = append(t.Settings,
		"noise: discrete Gaussian, calibrated to epsilon(server) at delta 1e-5",
		"ring: what the private sum adds up, without its masks; private: the protocol with all its "+
			"messages, with seed 1")
	epsilons := pick(o, []float64{8, 4, 1}, []float64{8, 4, 2, 1}, []float64{8})
	var arms []arm
	runs := make([]privacyRuns, len(tasks))
	for k, p := range tasks {
		runs[k] = privacyRuns{privacyTask: p, figure: k, multipliers: map[float64]float64{}}
		arms = append(arms, runs[k].arms(epsilons, delta)...)
	}
	err = t.fill(ctx, o, arms)
	for _, p := range runs {
		if p.private != "" {
			t.Notes = append(t.Notes,
				fmt.Sprintf("%s: the model out of %d private sums %s.", p.name, p.rounds, p.private))
		}
		row := func(name string) []string { return []string{p.name, name} }
		t.compare(p.name+", ring sums less clear", row("ring"), row("clear"), 0, 0)
		t.compare(p.name+", clipped less not", row("clear, clipped"), row("clear"), 0, 0)
		for _, epsilon := range epsilons {
			for measure := range 2 {
				t.compare(fmt.Sprintf("%s, epsilon %v less clear", p.name, epsilon),
					row(fmt.Sprintf("epsilon %v", epsilon)), row("clear"), measure, 0)
			}
		}
	}
	t.Notes = append(t.Notes,
		"Off by: the largest difference between two weights, from the model in the clear; z: the "+
			"noise multiplier.")
	return t, err
}

// privacyRuns is a task and what its runs share.
type privacyRuns struct {
	privacyTask
	figure      int                 // of the table
	clear, ring []float64           // models of this seed
	private     string              // what the model out of private sums does, once there is one
	multipliers map[float64]float64 // by epsilon, the same for all seeds
}

// arms are the task's rows.
func (p *privacyRuns) arms(epsilons []float64, delta float64) []arm {
	one := func(name string, change func(*setting)) arm {
		return arm{labels: []string{p.name, name}, steps: p.rounds,
			run: func(ctx context.Context, seed uint64, step func()) (outcome, error) {
				return p.run(ctx, name, change, seed, step)
			}}
	}
	summed := func(fidelity string) func(*setting) {
		return func(x *setting) { x.World.Fidelity = fidelity }
	}
	private := one("private", summed(simulation.Messages))
	private.seeds = 1
	arms := []arm{one("clear", summed(simulation.Clear)), one("ring", summed(simulation.Ring)),
		private,
		one("clear, clipped", func(x *setting) { x.Privacy.Clip = p.clip })}
	for _, epsilon := range epsilons {
		arms = append(arms, one(fmt.Sprintf("epsilon %v", epsilon), func(x *setting) {
			x.World.Fidelity = simulation.Ring
			x.Privacy = job.Privacy{Noise: "discrete-gaussian", Epsilon: epsilon, Delta: delta,
				Clip: p.clip, Bits: 22, Multiplier: p.multipliers[epsilon]}
		}))
	}
	return arms
}

// run is one seed of the arm of that name.
func (p *privacyRuns) run(
	ctx context.Context, name string, change func(*setting), seed uint64, step func(),
) (outcome, error) {
	with, err := p.deal(seed)
	if err != nil {
		return outcome{}, err
	}
	x := setting{rows: with, Job: job.Job{Rounds: p.rounds, Seed: seed,
		Model: job.Model{Name: p.model}, Training: p.local, World: job.World{EvaluateEvery: p.every}}}
	change(&x)
	trained, err := train(ctx, &x, step)
	if err != nil {
		return outcome{}, err
	}
	z, off := math.NaN(), math.NaN()
	switch name {
	case "clear":
		p.clear = trained.Model
	case "ring":
		p.ring, off = trained.Model, floats.Distance(trained.Model, p.clear, math.Inf(1))
	case "private":
		off = floats.Distance(trained.Model, p.clear, math.Inf(1))
		p.private = "DIFFERS from that of the ring sums"
		if slices.Equal(trained.Model, p.ring) {
			p.private = "equals that of the ring sums bit for bit"
		}
	}
	if x.Noisy() {
		z = x.multiplier
		p.multipliers[x.Privacy.Epsilon] = z
	}
	return outcome{[]float64{accuracy(trained), mcc(trained), z, off},
		inFigure(p.figure, learned(trained))}, nil
}

// privacyTasks reads the data.
func privacyTasks(o Options) ([]privacyTask, error) {
	digits, err := newDealer(o, "mnist", 60000, pick(o, 10000, 10000, 200))
	if err != nil {
		return nil, err
	}
	census, _, err := o.load("adult")
	if err != nil {
		return nil, err
	}
	many := pick(o, 300, 500, 10)
	rows := census.Len() * 3 / 4 / many
	return []privacyTask{
		{
			name: "MNIST",
			about: fmt.Sprintf("softmax regression, %d test rows; rate 0.1, 1 local epoch, batches of 20",
				digits.test.Len()),
			clients: many, rounds: pick(o, 20, 40, 2), every: pick(o, 5, 10, 1), clip: 0.5,
			local: job.Training{Rate: 0.1, Batch: 20, Epochs: 1},
			model: "softmax",
			deal:  func(seed uint64) (dealt, error) { return digits.deal("iid", many, seed) },
		},
		{
			name: "Adult",
			about: fmt.Sprintf("logistic regression, lambda 1e-4, %d rows of each party, a quarter of "+
				"all rows for tests; rate 2, 25 local steps on all rows", rows),
			clients: many, rounds: pick(o, 20, 40, 2), every: pick(o, 5, 10, 1), clip: 1,
			local: job.Training{Rate: 2, Steps: 25, Lambda: 1e-4},
			model: "logistic",
			deal: func(seed uint64) (out dealt, err error) {
				train, test, err := census.Split(0.25, seed)
				if err == nil {
					out.test = test
					out.parties, err = train.PartitionIID(many, rows, seed)
				}
				return out, err
			},
		},
	}, nil
}
