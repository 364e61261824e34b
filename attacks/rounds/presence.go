package rounds

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/simulation"
)

// This file shows what a server learns about a party's rows from who is present, where sums have
// noise.

// presenceEpsilon is the ε that the noise of a run keeps.
const presenceEpsilon = 0.5

// presenceRuns is how often each of two worlds is played.
const presenceRuns = 200

// runPresence has one party's rows differ between two worlds.
func runPresence(r *runner) error {
	if err := r.leaving(); err != nil {
		return err
	}
	absent := func(tells bool) (int, error) {
		const rounds = 5
		w, err := newWorld(r, options{rounds: rounds, colluders: 1, tells: tells})
		if err != nil {
			return 0, err
		}
		w.parties[bad].unfit = true
		if err := w.join(); err != nil {
			return 0, err
		}
		if err := w.run(w.ended); err != nil {
			return 0, err
		}
		missing := rounds
		for _, s := range w.sums {
			if slices.Contains(s.parties, bad) {
				missing--
			}
		}
		return missing, nil
	}
	undefended, err := absent(true)
	if err != nil {
		return err
	}
	defended, err := absent(false)
	if err != nil {
		return err
	}
	r.measured("rows that cannot be trained on", "rounds of 5 in which the party is missing", 5,
		exactly(undefended, 5), exactly(defended, 0))
	return nil
}

// leaving has a party leave once its own model is near to the common one, as PrivacyFL has it.
func (r *runner) leaving() error {
	l, err := newLeaver()
	if err != nil {
		return err
	}
	var left [2]int
	for world := range left {
		out := make([]bool, presenceRuns)
		err := r.o.Parallel(r.ctx, uint64(1+world), presenceRuns, func(i int, random *rand.Rand) error {
			var seed [32]byte
			for k := range seed {
				seed[k] = byte(random.Uint32())
			}
			out[i], err = l.leaves(l.rows[world], seed)
			return err
		})
		if err != nil {
			return err
		}
		for _, gone := range out {
			if gone {
				left[world]++
			}
		}
	}
	undefended := shown(left[0], left[1])
	gone, err := l.scenarios(r.ctx)
	if err != nil {
		return err
	}
	r.rows = append(r.rows, attacks.Row{
		Case:   "leaves by convergence",
		Metric: fmt.Sprintf("least ε that presence shows, with noise for %v", presenceEpsilon),
		// Each bound fails with a probability of 2.5 % where presence shows no more than the noise.
		Undefended: attacks.Exactly(undefended, 2*presenceRuns, 0).Within(3, math.Inf(1)),
		Defended: attacks.Exactly(shown(gone[0], gone[1]), 2*presenceRuns, 0).
			Within(0, presenceEpsilon),
		Note: fmt.Sprintf("It left in %d of %d runs with one set of rows and in %d with the other; "+
			"with noise such a job is refused, and nobody leaves.", left[0], presenceRuns, left[1]),
	})
	return nil
}

// shown is the least ε, at the noise's δ, with which an event is so often in runs of two worlds.
func shown(one, other int) float64 {
	const alpha = 0.025
	delta := privacy.Budget{}.WithDefaults().Delta
	bound := func(a, b int) float64 {
		return math.Log(max(audit.BinomialLower(a, presenceRuns, alpha)-delta, 0) /
			audit.BinomialUpper(b, presenceRuns, alpha))
	}
	return max(0, bound(one, other), bound(other, one))
}

// leaver has what two worlds have in common, and the rows of one party in each.
type leaver struct {
	mechanism *privacy.Mechanism
	model     learning.Logistic
	local     learning.SGD
	rows      [2]*learning.Dataset
}

// leaverTolerance is how near a weight is, several deviations of the noise in a mean.
const leaverTolerance = 10

func newLeaver() (l *leaver, err error) {
	l = &leaver{model: learning.Logistic{Features: 2}, local: learning.SGD{Rate: 100, Steps: 50}}
	release := privacy.Release{
		Promise:   privacy.Assumed(parties, parties),
		Noise:     privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Clip: 1, Bits: 32},
		Dimension: l.model.NumParams(),
	}
	budget := privacy.Budget{Epsilon: presenceEpsilon}.WithDefaults()
	if release.Noise.Multiplier, err = release.Calibrate(budget, 1); err != nil {
		return nil, err
	}
	// In the one world rows say nothing of their classes, in the other they part them: local models
	// are where they began, and far away.
	for world := range l.rows {
		d := &learning.Dataset{Features: 2}
		for i := range 40 {
			side, label := float64(2*(i%2)-1), i/2%2
			if world == 1 {
				label = i % 2
			}
			d.X, d.Labels = append(d.X, side/10, side/10), append(d.Labels, label)
		}
		l.rows[world] = d
	}
	l.mechanism, err = release.Mechanism()
	return l, err
}

// leaves plays a round with noise, and reports whether the party with these rows leaves after it.
func (l *leaver) leaves(rows *learning.Dataset, seed [32]byte) (bool, error) {
	weights := l.model.Init(0)
	random := rand.NewChaCha8(seed)
	var sum [][]uint64
	var local []float64 // of the last of them
	for i := range parties {
		own := l.rows[0]
		if i == bad {
			own = rows
		}
		local = slices.Clone(weights)
		if _, err := l.local.Train(l.model, local, own, 0); err != nil {
			return false, err
		}
		update := make([]float64, len(local))
		for k := range update {
			update[k] = local[k] - weights[k]
		}
		values, err := l.mechanism.Encode(seed, update, nil, random)
		if err != nil {
			return false, err
		}
		if sum == nil {
			sum = values
			continue
		}
		for k := range sum[0] {
			sum[0][k] += values[0][k]
		}
	}
	for k := range sum[0] {
		sum[0][k] &= ^uint64(0) >> (64 - l.mechanism.Encoder.Bits)
	}
	mean, _, err := l.mechanism.Decode(seed, sum, parties)
	for k := range mean {
		if math.Abs(weights[k]+mean[k]-local[k]) > leaverTolerance {
			return false, err
		}
	}
	return err == nil, err
}

// scenarios plays the two worlds as a simulation has them, with the same rule, and returns in
// how many runs of each the party leaves: in none if the rule is refused, and does nothing where it
// is not given.
func (l *leaver) scenarios(ctx context.Context) (left [2]int, err error) {
	for world, rows := range l.rows {
		for _, tolerance := range []float64{leaverTolerance, 0} {
			gone, err := l.scenario(ctx, rows, tolerance)
			var refused *job.ConfigError
			switch {
			case errors.As(err, &refused) && refused.Path == "world.tolerance" && tolerance > 0:
				continue
			case err != nil:
				return left, err
			}
			left[world] = max(left[world], gone)
		}
	}
	return left, nil
}

// scenario plays one world, and returns in how many runs, of as many as leaves has, the party
// leaves. If nobody leaves in the first of them the others are not played.
func (l *leaver) scenario(
	ctx context.Context, rows *learning.Dataset, tolerance float64,
) (left int, err error) {
	j := &job.Job{
		Name:     "presence",
		Rounds:   2,
		Parties:  job.Parties{Count: parties},
		Privacy:  job.Privacy{Noise: "discrete-gaussian", Epsilon: presenceEpsilon, Clip: 1},
		Model:    job.Model{Name: "logistic"},
		Training: job.Training{Rate: l.local.Rate, Steps: l.local.Steps},
		World: job.World{Fidelity: "ring", Tolerance: tolerance,
			Data: job.Data{Rows: rows.Len() / parties}},
	}
	for range presenceRuns {
		settled, world, err := simulation.Settle(j, simulation.Rows{Train: rows, Test: l.rows[1]})
		if err != nil {
			return 0, err
		}
		result, err := simulation.Run(ctx, settled, world, nil)
		if err != nil {
			return 0, err
		}
		gone := false
		for _, one := range result.Rounds {
			gone = gone || len(one.Gone) > 0
		}
		if gone {
			left++
		} else if left == 0 {
			break
		}
	}
	return left, nil
}
