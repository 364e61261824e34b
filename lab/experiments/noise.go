package experiments

import (
	"context"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/accounting"
)

// noise sets the noise multiplier of Theorem 3.2 of "Understanding Clipping for
// Federated Learning" next to what the accountants certify for continuous Gaussian
// noise and Poisson sampling.
func noise(ctx context.Context, o Options) (*Table, error) {
	const clients, perRound, delta = 1920, 80, 1e-5
	t := &Table{
		Title:  "Noise multipliers for 1,920 clients, 80 a round, delta 1e-5",
		Labels: []string{"epsilon", "rounds"},
		Measures: []Measure{{Name: "theorem", Digits: 4}, {Name: "RDP", Digits: 4},
			{Name: "PLD", Digits: 4}, {Name: "eps of theorem", Digits: 3}},
		Settings: []string{
			"the standard deviation of the noise in the sum over the clipping norm, Gaussian noise, each " +
				"client in a round with probability 1/24 that outsiders do not see",
			"theorem: (P/N) sqrt(v T ln(1/delta))/epsilon with v = 2, its value in the limit of much " +
				"noise; the paper leaves v open",
			"eps of theorem: what PLD certifies for the theorem's multiplier",
		},
	}
	t.Figures = []Figure{{Name: "noise", Title: t.Title, X: "rounds", Y: "noise multiplier",
		LogX: true}}
	counts := pick(o, []int{10, 100, 500, 2000},
		[]int{10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}, []int{10})
	epsilons := []float64{1.5, 5}
	of, done := len(counts)*len(epsilons), 0
	rate := float64(perRound) / clients
	short := 0
	for _, epsilon := range epsilons {
		lines := make([][]float64, 3)
		var x []float64
		for _, rounds := range counts {
			if err := ctx.Err(); err != nil {
				return t, err
			}
			theorem, err := accounting.ClippingTheorem(clients, perRound, rounds, epsilon, delta, 2)
			if err != nil {
				return t, err
			}
			sampled := func(z float64) []accounting.Step {
				return []accounting.Step{{Mechanism: sampledGaussian(z, rate), Count: rounds}}
			}
			byRDP, err := calibrateRDP(epsilon, delta, rate, rounds)
			if err != nil {
				return t, err
			}
			byPLD, err := accounting.CalibrateNoise(accounting.Target{Epsilon: epsilon, Delta: delta},
				sampled)
			if err != nil {
				return t, err
			}
			run, err := accounting.Compose(sampled(theorem)...)
			if err != nil {
				return t, err
			}
			spent, err := run.Epsilon(delta)
			if err != nil {
				return t, err
			}
			if spent.Lower > epsilon {
				short++
			}
			x = append(x, float64(rounds))
			values := []float64{theorem, byRDP, byPLD, spent.Upper}
			for k := range lines {
				lines[k] = append(lines[k], values[k])
			}
			t.Rows = append(t.Rows,
				Row{Labels: []string{fmt.Sprint(epsilon), fmt.Sprint(rounds)}, Values: [][]float64{values}})
			if done++; o.Progress != nil {
				o.Progress(done, of)
			}
		}
		for k, name := range []string{"theorem", "RDP", "PLD"} {
			t.Figures[0].add(fmt.Sprintf("%s, epsilon %v", name, epsilon), x, lines[k])
		}
	}
	t.Notes = append(t.Notes,
		fmt.Sprintf("In %d of %d rows the theorem's multiplier with v = 2 spends more than epsilon: "+
			"what PLD proves as a lower bound is above it.", short, len(t.Rows)),
		fmt.Sprintf("The theorem is for epsilon < u (P/N)^2 T and leaves u open too; (P/N)^2 T is "+
			"%.2g to %.2g here, so that small T may be outside its range.",
			rate*rate*float64(counts[0]), rate*rate*float64(counts[len(counts)-1])))
	t.Complete = true
	return t, nil
}

func sampledGaussian(z, rate float64) accounting.Sampled {
	return accounting.Sampled{Mechanism: accounting.Gaussian{NoiseMultiplier: z}, Rate: rate}
}

// calibrateRDP returns the least multiplier by Renyi divergence, to 1e-4 relative,
// from above.
func calibrateRDP(epsilon, delta, rate float64, rounds int) (float64, error) {
	within := func(z float64) (bool, error) {
		curve, err := accounting.MechanismRDP(sampledGaussian(z, rate), nil)
		if err != nil {
			return false, err
		}
		spent, _, err := curve.Times(rounds).Epsilon(delta)
		return spent <= epsilon, err
	}
	low, high := 0.1, 1024.0
	for high/low > 1+1e-4 {
		middle := math.Sqrt(low * high)
		ok, err := within(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}
