package observation

import (
	"context"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/noise"
)

var samplerTiming = attacks.Attack{
	Name:      "SamplerTiming",
	Adversary: "co-located process",
	About:     "correlate the time that a sample takes with its absolute value",
	Defence:   "tables with a fixed amount of work",
	Run:       runSamplerTiming,
}

// filler is a sampler of package noise.
type filler interface{ Fill(dst []int64) error }

// timeSamples draws samples one by one and returns the correlation of the time that
// each took and its absolute value, and the number of samples it is of. The slowest
// percent are left out: interrupts fall on those whatever the value.
func timeSamples(
	ctx context.Context, sampler filler, samples int, now func() time.Time,
) (r float64, n int, err error) {
	times, sizes := make([]float64, samples), make([]float64, samples)
	var sample [1]int64
	for i := range times {
		if i%1000 == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		start := now()
		err := sampler.Fill(sample[:])
		times[i] = float64(now().Sub(start))
		if err != nil {
			return 0, 0, err
		}
		sizes[i] = math.Abs(float64(sample[0]))
	}
	sorted := slices.Clone(times)
	slices.Sort(sorted)
	slowest := sorted[len(sorted)*99/100]
	for i, t := range times {
		if t <= slowest {
			times[n], sizes[n] = t, sizes[i]
			n++
		}
	}
	return attacks.Correlation(times[:n], sizes[:n]), n, nil
}

func runSamplerTiming(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	if o.Now == nil {
		return &attacks.Report{}, nil
	}
	samples := 60000
	if o.Long {
		samples *= 10
	}
	law, err := noise.DiscreteLaplace(big.NewRat(7, 1))
	if err != nil {
		return nil, err
	}
	exact, err := noise.NewExact(law, nil)
	if err != nil {
		return nil, err
	}
	table, err := noise.NewTable(law)
	if err != nil {
		return nil, err
	}
	exactR, exactN, err := timeSamples(ctx, exact, samples, o.Now)
	if err != nil {
		return nil, err
	}
	tableR, tableN, err := timeSamples(ctx, table.NewSampler(nil), samples, o.Now)
	if err != nil {
		return nil, err
	}
	least := 10 / math.Sqrt(float64(exactN))
	most := 5 / math.Sqrt(float64(tableN)) // false alarm 6e-7
	return &attacks.Report{Rows: []attacks.Row{{
		Metric:     "correlation of time and |noise|",
		Undefended: attacks.Correlated(exactR, exactN).Within(least, 1),
		Defended:   attacks.Correlated(tableR, tableN).Within(-most, most),
		Note:       "undefended: the exact sampler, which says so",
	}}}, nil
}
