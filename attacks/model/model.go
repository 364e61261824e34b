package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
)

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{
		{
			Name:      "GradientInversion",
			Adversary: "curious server",
			About:     "divide the change of a linear layer by that of its bias: the row that it was trained on",
			Defence:   "masks; clipping and noise",
			Run:       runGradientInversion,
		},
		{
			Name:      "Imprint",
			Adversary: "cheating server",
			About:     "put a layer of equal rows with quantile biases in front of the model, and read rows off a secure sum",
			Defence:   "clipping and noise; a pinned architecture; documented limit",
			Run:       runImprint,
		},
		{
			Name:      "Membership",
			Adversary: "outsider",
			About:     "tell from a model whether a row was in its training, by regression on logits and by LiRA",
			Defence:   "client-level noise: TPR ≤ e^2ε·FPR + (1+e^ε)·δ of a row",
			Run:       runMembership,
		},
	}
}

func runGradientInversion(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	rows, err := invertedRows(o)
	if err != nil {
		return nil, err
	}
	const steps, rate, bits = 5, 0.5, 32
	model := learning.Logistic{Features: rows.Features}
	encoder, law, err := noisyEncoder(aggregation.Encoder{Parties: 10, Dimension: rows.Features, Bits: 20}, 8)
	if err != nil {
		return nil, err
	}
	// What 8 honest parties' shares add to, as the other 2 may take theirs out.
	shares, err := draw.Samples(law, rows.Len()*rows.Features)
	if err != nil {
		return nil, err
	}
	fixed := aggregation.FixedPoint{Range: 16, FractionBits: 20}
	layout := masking.Layout{{Length: rows.Features, Bits: bits}}
	r := o.Rand(70)
	exact, labels := 0, 0
	var inputs, open, masked, clipped, noisy []float64
	for i := range rows.Len() {
		row, err := rows.Subset([]int{i})
		if err != nil {
			return nil, err
		}
		update := make([]float64, rows.Features)
		if err := model.Train(update, row, rate, steps); err != nil {
			return nil, err
		}
		guess, label, err := InvertRow(update, rows.Features-1)
		if err != nil {
			return nil, err
		}
		if recovered([][]float64{row.Row(0)}, [][]float64{guess}, 1e-9) == 1 {
			exact++
		}
		if label == rows.Labels[i] {
			labels++
		}

		// The same update as the server gets it: in a ring, under a mask.
		values, err := fixed.Encode(update, bits)
		if err != nil {
			return nil, err
		}
		unmasked, err := fixed.Decode(values, bits)
		if err != nil {
			return nil, err
		}
		vector, err := masking.FromValues(layout, values)
		if err != nil {
			return nil, err
		}
		var seed masking.Seed
		draw.Bytes(seed[:], r)
		vector.AddMask(&seed)
		seen, err := fixed.Decode(vector.Values()[0], bits)
		if err != nil {
			return nil, err
		}
		inputs, open, masked = append(inputs, update...), append(open, unmasked...), append(masked, seen...)

		// And in a sum of its own, with the noise that is always left in one.
		c, _, err := aggregation.Clip(update, encoder.Clip)
		if err != nil {
			return nil, err
		}
		for k, v := range c {
			clipped = append(clipped, v*encoder.Scale)
			noisy = append(noisy, v*encoder.Scale+float64(shares[i*rows.Features+k]))
		}
	}
	mean, _ := attacks.MeanAndError(clipped)
	power := attacks.MeanSquare(clipped)
	signal := power - mean*mean
	want := math.Sqrt(signal / (signal + law.Variance()))
	n := len(inputs)
	noisyRow := attacks.Correlated(attacks.Correlation(clipped, noisy), n)
	// The variance of a correlation is at most about 1/N, more for wide updates; 8/√N
	// leaves room for both.
	noisyRow.Min, noisyRow.Max = want-8/math.Sqrt(float64(n)), want+8/math.Sqrt(float64(n))
	whole := attacks.Correlated(attacks.Correlation(inputs, open), n)
	whole.Min, whole.Max = 1-1e-6, 1+1e-6 // but for rounding to 2^-20
	all := rows.Len()
	return &attacks.Report{Rows: []attacks.Row{
		{Case: "rows", Metric: "recovered exactly", Undefended: attacks.Exactly(float64(exact)/float64(all), all, 1), Note: fmt.Sprintf("%d local steps on one row", steps)},
		{Case: "labels", Metric: "recovered", Undefended: attacks.Exactly(float64(labels)/float64(all), all, 1)},
		{Case: "masked", Metric: "correlation of update and what is seen", Undefended: whole, Defended: attacks.Uncorrelated(attacks.Correlation(inputs, masked), n)},
		{Case: "clip and noise", Metric: "correlation of update and what is seen", Undefended: whole, Defended: noisyRow, Note: fmt.Sprintf("noise of multiplier 1 in a sum of this update alone; theory %.3f", want)},
	}}, nil
}

// invertedRows are rows of Adult, or without the data of the synthetic census.
func invertedRows(o attacks.Options) (*learning.Dataset, error) {
	const count = 500
	if o.Data == "" {
		rows, _, err := learning.Census(count, o.Seed)
		return rows, err
	}
	adult, err := learning.ReadAdult(filepath.Join(o.Data, "adult"))
	if err != nil {
		return nil, err
	}
	return adult.Subset(o.Rand(74).Perm(adult.Len())[:count])
}

// noisyEncoder completes an encoder of updates of norm 1 for discrete Gaussian noise
// of multiplier 1, and returns it with the law of what that many honest parties'
// shares add to.
func noisyEncoder(e aggregation.Encoder, honest int) (aggregation.Encoder, noise.Law, error) {
	e.Clip, e.NoiseTail = 1, aggregation.GaussianTail
	e, err := e.ChooseScale(1, honest)
	if err != nil {
		return e, noise.Law{}, err
	}
	sensitivity, err := e.Sensitivity()
	if err != nil {
		return e, noise.Law{}, err
	}
	variance, err := noise.Rational(sensitivity.L2 * sensitivity.L2)
	if err != nil {
		return e, noise.Law{}, err
	}
	law, err := noise.DiscreteGaussian(variance)
	return e, law, err
}

func runImprint(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	trials := 40
	if o.Long {
		trials *= 10
	}
	const parties, features, units = 32, 24, 64
	dimension := units * (features + 1)
	fixed := aggregation.FixedPoint{Range: 8, FractionBits: 30}
	bits, err := fixed.Bits(parties)
	if err != nil {
		return nil, err
	}
	encoder, law, err := noisyEncoder(aggregation.Encoder{Parties: parties, Dimension: dimension, Bits: 24}, parties)
	if err != nil {
		return nil, err
	}
	table, err := draw.Table(noise.Shares{Parties: parties, MinHonest: parties, Law: law})
	if err != nil {
		return nil, err
	}
	plain, private := make([]float64, trials), make([]float64, trials)
	err = o.Parallel(ctx, 71, trials, func(trial int, r *rand.Rand) error {
		weights := make([]float64, features)
		for i := range weights {
			weights[i] = 1 / math.Sqrt(features)
		}
		layer := NewImprint(weights, units)
		var rows [][]float64
		sum := make([]uint64, dimension)
		noisy := make([]uint64, dimension)
		noiseShare := make([]int64, dimension)
		sampler := table.NewSampler(nil)
		for range parties {
			row := make([]float64, features)
			for i := range row {
				row[i] = r.NormFloat64()
			}
			rows = append(rows, row)
			gradient := layer.Gradient(row)
			values, err := fixed.Encode(gradient, bits)
			if err != nil {
				return err
			}
			if err := sampler.Fill(noiseShare); err != nil {
				return err
			}
			encoded, err := encoder.Encode(gradient, noiseShare, nil)
			if err != nil {
				return err
			}
			for i := range sum { // the private sum, masks having cancelled
				sum[i] = (sum[i] + values[i]) & (1<<bits - 1)
				noisy[i] = (noisy[i] + encoded[0][i]) & (1<<encoder.Bits - 1)
			}
		}
		decoded, err := fixed.Decode(sum, bits)
		if err != nil {
			return err
		}
		candidates, err := layer.Recover(decoded)
		if err != nil {
			return err
		}
		plain[trial] = float64(recovered(rows, candidates, 1e-6)) / parties
		if decoded, err = encoder.Decode([][]uint64{noisy}, 1); err != nil {
			return err
		}
		if candidates, err = layer.Recover(decoded); err != nil {
			return err
		}
		private[trial] = float64(recovered(rows, candidates, 0.1)) / parties
		return nil
	})
	if err != nil {
		return nil, err
	}
	// A row is recovered if it is alone in its bin. There are units−1 bins of equal
	// probability, the last one with half of that and the first quantile with half
	// below it, where no unit sees a row.
	lone := func(p float64) float64 { return p * math.Pow(1-p, parties-1) }
	alone := (units-1)*lone(1.0/units) + lone(0.5/units)
	mean, se := attacks.MeanAndError(plain)
	none, _ := attacks.MeanAndError(private)
	return &attacks.Report{Rows: []attacks.Row{{
		Metric:     "rows recovered from a secure sum",
		Undefended: attacks.Near(mean, se, trials*parties, alone),
		Defended:   attacks.Exactly(none, trials*parties, 0),
		Limit:      true,
		Note:       "a secure sum alone does not stop it: pin the architecture, clip and add noise",
	}}}, nil
}
