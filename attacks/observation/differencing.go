package observation

import (
	"context"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/noise"
)

var differencing = attacks.Attack{
	Name:      "Differencing",
	Adversary: "curious server",
	About:     "subtract the sums of two cohorts that differ by one party",
	Defence:   "noise in every sum, and a ledger",
	Run:       runDifferencing,
}

// difference subtracts the sums of two cohorts that differ by one party: its input,
// plus the noise of both sums.
func difference(with, without []int64) []int64 {
	out := make([]int64, len(with))
	for i := range with {
		out[i] = with[i] - without[i]
	}
	return out
}

func runDifferencing(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	length := 20000
	if o.Long {
		length *= 10
	}
	const parties, honest = 20, 15
	law, err := noise.DiscreteLaplace(big.NewRat(64, 1))
	if err != nil {
		return nil, err
	}
	shares := noise.Shares{Parties: parties, MinHonest: honest, Law: law}

	r := o.Rand(partCohorts)
	target := make([]int64, length) // the input of the party that is in one cohort only
	with, without := make([]int64, length), make([]int64, length)
	for i := range target {
		target[i] = r.Int64N(1000) - 500
		others := r.Int64N(10000) - 5000
		with[i], without[i] = others+target[i], others
	}
	wrong := 0
	for i, x := range difference(with, without) {
		if x != target[i] {
			wrong++
		}
	}

	own, err := shares.Party()
	if err != nil {
		return nil, err
	}
	table, err := noise.NewTable(own)
	if err != nil {
		return nil, err
	}
	sampler := table.NewSampler(nil)
	if err := addNoise(with, sampler, parties); err != nil {
		return nil, err
	}
	if err := addNoise(without, sampler, parties-1); err != nil {
		return nil, err
	}
	expected := 0.0
	for _, count := range []int{parties, parties - 1} {
		sum, err := shares.Sum(count)
		if err != nil {
			return nil, err
		}
		expected += sum.Law.Variance()
	}
	missed := make([]float64, length)
	for i, x := range difference(with, without) {
		missed[i] = float64(x-target[i]) / math.Sqrt(expected)
	}
	// Shapes add to 39/15, so that the excess kurtosis is 3·15/39.
	standardError := math.Sqrt((2 + 3*float64(honest)/(2*parties-1)) / float64(length))
	return &attacks.Report{Rows: []attacks.Row{{
		Metric:     "squared error, of both sums' noise",
		Undefended: attacks.Exactly(float64(wrong), length, 0),
		Defended:   attacks.Near(attacks.MeanSquare(missed), standardError, length, 1),
		Note:       "the noise of both sums stays, and both are charged to the ledger",
	}}}, nil
}

// addNoise adds the noise shares of a given number of parties to a sum.
func addNoise(sum []int64, share *noise.Sampler, parties int) error {
	values := make([]int64, len(sum))
	for range parties {
		if err := share.Fill(values); err != nil {
			return err
		}
		for i, x := range values {
			sum[i] += x
		}
	}
	return nil
}
