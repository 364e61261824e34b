package observation

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/noise"
)

// Attacks returns the attacks of the family, in the order of the report.
func Attacks() []attacks.Attack {
	return []attacks.Attack{
		{
			Name:      "Snooping",
			Adversary: "curious server",
			About:     "regress masked values on inputs that became known, compare coordinates, count bytes",
			Defence:   "a mask of its own for every coordinate",
			Run:       runSnooping,
		},
		{
			Name:      "Differencing",
			Adversary: "curious server",
			About:     "subtract the sums of two cohorts that differ by one party",
			Defence:   "noise in every sum, and a ledger",
			Run:       runDifferencing,
		},
		{
			Name:      "Disaggregation",
			Adversary: "curious server",
			About:     "factor many sums, with counts of participation, into who took part and with what",
			Defence:   "noise; participation that cannot be linked",
			Run:       runDisaggregation,
		},
		{
			Name:      "FloatSupport",
			Adversary: "outsider",
			About:     "look for outputs of floating-point Laplace noise that only one input can have",
			Defence:   "integer samplers",
			Run:       runFloatSupport,
		},
		{
			Name:      "SamplerTiming",
			Adversary: "co-located process",
			About:     "correlate the time that a sample takes with its absolute value",
			Defence:   "tables with a fixed amount of work",
			Run:       runSamplerTiming,
		},
		{
			Name:      "WrapAround",
			Adversary: "client",
			About:     "add half the ring, or scale the update, past the encoder",
			Defence:   "the decoder refuses what no updates add up to; within that, a documented limit",
			Run:       runWrapAround,
		},
		{
			Name:      "SignLeak",
			Adversary: "curious server and clients",
			About:     "read signs of an update off a sum of signs",
			Defence:   "noise on the sign lane",
			Run:       runSignLeak,
		},
	}
}

func runSnooping(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	length := 1 << 16
	if o.Long {
		length <<= 4
	}
	undefended, err := snooping(length, true, o.Rand(50))
	if err != nil {
		return nil, err
	}
	defended, err := snooping(length, false, o.Rand(51))
	if err != nil {
		return nil, err
	}
	one := attacks.Correlated(undefended.Correlation, length)
	one.Min, one.Max = 1-1e-9, 1
	excess := attacks.Between(defended.Excess, 1, defended.Bytes, -attacks.Sigmas, attacks.Sigmas)
	// Of 32 masked bits the upper half of every packed value is the same two bytes, so
	// that χ² is about as large as the number of bytes.
	striking := attacks.Between(undefended.Excess, 1, undefended.Bytes, 1000, math.Inf(1))
	equal := attacks.Exactly(defended.Differences, length-1, 0)
	equal.Max = 2 / float64(length) // each coordinate by chance, 2^-32
	return &attacks.Report{Rows: []attacks.Row{
		{Case: "known inputs", Metric: "correlation with masked values", Undefended: one, Defended: attacks.Uncorrelated(defended.Correlation, length), Note: "undefended: one scalar masks the vector"},
		{Case: "unknown inputs", Metric: "differences of coordinates", Undefended: attacks.Exactly(undefended.Differences, length-1, 1), Defended: equal},
		{Case: "bytes", Metric: "χ² above its mean, in σ", Undefended: striking, Defended: excess},
	}}, nil
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
	table, err := draw.Table(shares)
	if err != nil {
		return nil, err
	}
	sampler := table.NewSampler(nil)
	r := o.Rand(52)
	target, with, without := make([]int64, length), make([]int64, length), make([]int64, length)
	others := make([]int64, length)
	for i := range target {
		target[i] = r.Int64N(1000) - 500
		others[i] = r.Int64N(10000) - 5000
		with[i], without[i] = others[i]+target[i], others[i]
	}
	wrong := 0
	for i, x := range difference(with, without) {
		if x != target[i] {
			wrong++
		}
	}
	// With noise each of the 20 and the 19 adds its share to each of the sums.
	share := make([]int64, length)
	for k := range 2*parties - 1 {
		if err := sampler.Fill(share); err != nil {
			return nil, err
		}
		sum := with
		if k >= parties {
			sum = without
		}
		for i, x := range share {
			sum[i] += x
		}
	}
	expected := 0.0
	for _, k := range []int{parties, parties - 1} {
		sum, err := shares.Sum(k)
		if err != nil {
			return nil, err
		}
		expected += sum.Law.Variance()
	}
	errors := make([]float64, length)
	for i, x := range difference(with, without) {
		errors[i] = float64(x-target[i]) / math.Sqrt(expected)
	}
	variance := attacks.MeanSquare(errors)
	// Shapes add to 39/15, so that the excess kurtosis is 3·15/39.
	se := math.Sqrt((2 + 3*float64(honest)/(2*parties-1)) / float64(length))
	return &attacks.Report{Rows: []attacks.Row{{
		Metric:     "squared error, of both sums' noise",
		Undefended: attacks.Exactly(float64(wrong), length, 0),
		Defended:   attacks.Near(variance, se, length, 1),
		Note:       "the noise of both sums stays, and both are charged to the ledger",
	}}}, nil
}

func runDisaggregation(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	trials := 20
	if o.Long {
		trials *= 10
	}
	const parties, rounds, window, coordinates = 6, 16, 4, 20
	measure := func(part uint64, sigma float64) (columns, found int, err error) {
		c, f := make([]int, trials), make([]int, trials)
		err = o.Parallel(ctx, part, trials, func(i int, r *rand.Rand) (err error) {
			c[i], f[i], err = disaggregation(parties, rounds, window, coordinates, sigma, r)
			return err
		})
		for i := range trials {
			columns, found = columns+c[i], found+f[i]
		}
		return columns, found, err
	}
	columns, found, err := measure(53, 0)
	if err != nil {
		return nil, err
	}
	noisyColumns, noisyFound, err := measure(54, 1)
	if err != nil {
		return nil, err
	}
	// Two parties have equal counts in all four windows with probability (70/256)^4 =
	// .0056, and are then swapped every other time: with 15 pairs, in 1.4 % of all
	// places. Six vectors that depend on each other cost as little.
	all := parties * trials
	return &attacks.Report{Rows: []attacks.Row{
		{
			Case: "participation", Metric: "parties' rounds found", Limit: true,
			Undefended: attacks.Proportion(columns, all, .8, 1), Defended: attacks.Proportion(noisyColumns, all, 0, .1),
			Note: "noise of the size of an update; counts per window stay a leak, so link no participation",
		},
		{
			Case: "updates", Metric: "updates found within a tenth", Limit: true,
			Undefended: attacks.Proportion(found, all, .8, 1), Defended: attacks.Proportion(noisyFound, all, 0, 0),
		},
	}}, nil
}

func runFloatSupport(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	samples, rounded := 40000, 8000
	if o.Long {
		samples, rounded = 50*samples, 10*rounded
	}
	count := func(part uint64, n int, ln func(float64) float64) (int, error) {
		outside := make([]int, n)
		err := o.Parallel(ctx, part, n, func(i int, r *rand.Rand) error {
			w := r.Uint64()
			x := ln(float64(w>>11+1) / (1 << 53))
			if w&1 == 1 {
				x = -x
			}
			if !inLaplaceSupport(1+x, ln) {
				outside[i] = 1
			}
			return nil
		})
		total := 0
		for _, k := range outside {
			total += k
		}
		return total, err
	}
	exact, err := count(55, rounded, logRounded)
	if err != nil {
		return nil, err
	}
	// What the reference sampler of package noise does.
	outside := 0
	r := o.Rand(56)
	for range samples {
		x, err := noise.ReferenceLaplace{Scale: 1}.Sample(r)
		if err != nil {
			return nil, err
		}
		if !inLaplaceSupport(1+x, math.Log) {
			outside++
		}
	}

	const scale = 8
	law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
	if err != nil {
		return nil, err
	}
	values, err := draw.Samples(law, samples)
	if err != nil {
		return nil, err
	}
	largest := slices.Max(values) + scale // D = 1 adds scale
	smallest := slices.Min(values) + scale
	possible, err := law.Probabilities(smallest, largest)
	if err != nil {
		return nil, err
	}
	integers := 0
	for _, x := range values {
		if possible[x+scale-smallest] == 0 {
			integers++
		}
	}
	want := outsideSupport()
	spread := attacks.Sigmas * math.Sqrt(want*(1-want)/float64(rounded))
	return &attacks.Report{Rows: []attacks.Row{
		{
			Case: "rounded logarithm", Metric: "outputs that only D = 1 has",
			Undefended: attacks.Proportion(exact, rounded, want-spread, want+spread),
			Defended:   attacks.Proportion(integers, samples, 0, 0),
			Note:       fmt.Sprintf("U a multiple of 2^-53, scale 1, inputs 0 and 1; theory %.4f", want),
		},
		{
			Case: "math.Log", Metric: "outputs that only D = 1 has",
			Undefended: attacks.Proportion(outside, samples, want-.05, want+spread),
			Note:       "errors of up to an ulp make some values meet; published .578, by another logarithm",
		},
	}}, nil
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
	slow, n, err := timeSamples(ctx, exact, samples, o.Now)
	if err != nil {
		return nil, err
	}
	undefended := attacks.Correlated(slow, n)
	undefended.Min, undefended.Max = 10/math.Sqrt(float64(n)), 1
	fast, n, err := timeSamples(ctx, table.NewSampler(nil), samples, o.Now)
	if err != nil {
		return nil, err
	}
	defended := attacks.Correlated(fast, n)
	defended.Max = 5 / math.Sqrt(float64(n)) // false alarm 6e-7
	defended.Min = -defended.Max
	return &attacks.Report{Rows: []attacks.Row{{
		Metric: "correlation of time and |noise|", Undefended: undefended, Defended: defended,
		Note: "undefended: the exact sampler, which says so",
	}}}, nil
}

func runWrapAround(context.Context, attacks.Options) (*attacks.Report, error) {
	const parties = 10
	e := aggregation.Encoder{Parties: parties, Dimension: 4, Clip: 1, Scale: 64}
	layout, err := e.Layout()
	if err != nil {
		return nil, err
	}
	ring := uint64(1) << layout[0].Bits
	half, err := wrapAround(e, []uint64{ring / 2})
	if err != nil {
		return nil, err
	}
	shifts := make([]uint64, ring)
	for i := range shifts {
		shifts[i] = uint64(i)
	}
	all, err := wrapAround(e, shifts)
	if err != nil {
		return nil, err
	}
	// Without the bound of the encoder a decoder takes the whole ring.
	undecoded, err := aggregation.Integers([]uint64{ring / 2}, layout[0].Bits)
	if err != nil {
		return nil, err
	}
	return &attacks.Report{Rows: []attacks.Row{
		{
			Case: "x + M/2", Metric: "shifts that go unnoticed",
			Undefended: attacks.Exactly(math.Abs(float64(undecoded[0]))/float64(ring/2), 1, 1),
			Defended:   attacks.Exactly(1-float64(half.Refused)/float64(half.Tried), half.Tried, 0),
			Note:       "undefended: the decoded shift, of M/2",
		},
		{
			Case: "scaling", Metric: "largest unnoticed shift of the sum, in clipping norms", Limit: true,
			Defended: attacks.Exactly(all.Shift, all.Tried, parties),
			Note:     "a client can take the place of all: only a proof of its norm would stop that",
		},
	}}, nil
}

func runSignLeak(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	length := 100000
	if o.Long {
		length *= 10
	}
	const parties, scale = 5, 4
	law, err := noise.DiscreteLaplace(big.NewRat(scale, 1))
	if err != nil {
		return nil, err
	}
	samples, err := draw.Samples(law, length)
	if err != nil {
		return nil, err
	}
	sums, last := signLane(parties, length, o.Rand(57))
	colluders, noisy := difference(sums, last), make([]int64, length)
	for i, s := range sums {
		noisy[i] = s + samples[i]
	}
	// Half of the sums that come out even are right.
	right := func(guesses []int64) (twice int) {
		for i, g := range guesses {
			if g == last[i] {
				twice += 2
			} else if g == 0 {
				twice++
			}
		}
		return twice
	}
	undefended := float64(right(signGuesses(sums, colluders))) / float64(2*length)
	accuracy := float64(right(signGuesses(noisy, colluders))) / float64(2*length)
	want := signAccuracy(scale)
	se := math.Sqrt(want * (1 - want) / float64(length)) // a little more than it is, for the halves

	looks, is := unanimous(sums, sums, parties)
	share := attacks.Exactly(float64(is)/float64(looks), looks, 1)
	noisyLooks, noisyIs := unanimous(sums, noisy, parties)
	wantShare, err := unanimousShare(parties, law)
	if err != nil {
		return nil, err
	}
	spread := attacks.Sigmas * math.Sqrt(wantShare*(1-wantShare)/float64(noisyLooks))
	epsilon := 2.0 / scale
	return &attacks.Report{Rows: []attacks.Row{
		{
			Case: "n−1 colluders", Metric: "signs guessed right",
			Undefended: attacks.Exactly(undefended, length, 1), Defended: attacks.Near(accuracy, se, length, want),
			Note: fmt.Sprintf("noise of ε = %g per sign allows %.4f", epsilon, 1/(1+math.Exp(-epsilon))),
		},
		{
			Case: "unanimous coordinates", Metric: "of those that look so, right",
			Undefended: share, Defended: attacks.Proportion(noisyIs, noisyLooks, wantShare-spread, wantShare+spread),
			Note: "5 parties, no colluders",
		},
	}}, nil
}
