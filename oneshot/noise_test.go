package oneshot

import (
	"math"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"gonum.org/v1/gonum/stat/distuv"
)

// falseAlarm is the probability with which each of the four statistics of checkLaw
// would reject the right law on fresh seeds; the seeds are fixed.
const falseAlarm = 1e-6

// TestNoiseLaw: the noise of released sums is that of as many discrete Gaussians as
// parties are in them: by its mean, its variance, its fourth moment, and a χ² test of its
// law.
func TestNoiseLaw(t *testing.T) {
	const n, sigma = 4, 8
	terms := Terms{Length: 20_000, Bits: 8, MinSurvivors: n, Faults: 1, KEM: KEMX25519,
		Noise: gaussian(sigma, n)}
	w := newWorld(n, 4, terms)
	rounds := 1
	if suite.Longest() {
		rounds = 20
	}
	var noises []float64
	counts := make(map[int64]int)
	for range rounds {
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		var messages [][]byte
		for i := range n {
			messages = append(messages, must(w.submit(i)))
		}
		sum, err := w.run(messages)
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range w.total(0, 1, 2, 3) {
			e := sum[k] - want
			noises = append(noises, float64(e))
			counts[e]++
		}
	}
	checkLaw(t, noises, counts, n*sigma*sigma)
}

// checkLaw compares noise with a discrete Gaussian of the given variance.
func checkLaw(t *testing.T, noises []float64, counts map[int64]int, variance float64) {
	t.Helper()
	count := float64(len(noises))
	var mean, second, fourth float64
	for _, e := range noises {
		mean += e / count
		second += e * e / count
		fourth += e * e * e * e / count
	}
	for _, c := range []struct {
		name                 string
		got, want, deviation float64
	}{
		{"mean", mean, 0, math.Sqrt(variance / count)},
		{"variance", second, variance, variance * math.Sqrt(2/count)},
		{"fourth moment", fourth, 3 * variance * variance, variance * variance * math.Sqrt(96/count)},
	} {
		limit := distuv.UnitNormal.Quantile(1 - falseAlarm/2)
		if z := (c.got - c.want) / c.deviation; math.Abs(z) > limit {
			t.Errorf("%s: %.4g, want %.4g: %.1f deviations off", c.name, c.got, c.want, z)
		}
	}
	// χ² over cells of 4 integers, tails together. A sum of discrete Gaussians of this
	// width is one, to less than 10^-100.
	cell := func(e int64) int { return int(math.Floor(float64(max(-50, min(50, e))) / 4)) }
	law, total := make(map[int]float64), 0.0
	for e := int64(-400); e <= 400; e++ {
		p := math.Exp(-float64(e*e) / (2 * variance))
		law[cell(e)] += p
		total += p
	}
	cells := make(map[int]float64)
	for e, n := range counts {
		cells[cell(e)] += float64(n)
	}
	var chi float64
	degrees := len(law) - 1
	for c, p := range law {
		want := count * p / total
		chi += (cells[c] - want) * (cells[c] - want) / want
	}
	limit := distuv.ChiSquared{K: float64(degrees)}.Quantile(1 - falseAlarm)
	if chi > limit {
		t.Errorf("χ² = %.1f on %d degrees of freedom, limit %.1f", chi, degrees, limit)
	}
	t.Logf("%d samples: χ² = %.1f on %d degrees of freedom, limit %.1f", len(noises), chi, degrees,
		limit)
}
