package aggregation

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

func TestAdaptiveClipByHand(t *testing.T) {
	a := AdaptiveClip{Norm: 2}
	// 3 of 4 within C: b̄ = 0.75, C·exp(−0.2·0.25).
	if err := a.Update(2, 4); err != nil || math.Abs(a.Norm-2*math.Exp(-0.05)) > 1e-15 {
		t.Error(a, err)
	}
	a = AdaptiveClip{Norm: 2, Quantile: 0.8, Rate: 1}
	if err := a.Update(-4, 4); err != nil || math.Abs(a.Norm-2*math.Exp(0.8)) > 1e-15 {
		t.Error(a, err)
	}
	a.Norm = maxClip
	if err := a.Update(-1<<40, 1); err != nil || a.Norm != maxClip {
		t.Error(a, err)
	}
	if err := a.Update(1<<40, 1); err != nil || a.Norm != minClip {
		t.Error(a, err)
	}
	a.Norm = 1
	for _, c := range []struct{ norm, want float64 }{{0, 1}, {1, 1}, {1.1, -1}, {math.Inf(1), -1},
		{math.NaN(), -1}} {
		if v := a.Vote(c.norm); len(v) != 1 || v[0] != c.want {
			t.Error(c.norm, v)
		}
	}
	for _, bad := range []AdaptiveClip{
		{}, {Norm: -1}, {Norm: math.NaN()}, {Norm: 1, Quantile: 1}, {Norm: 1, Quantile: -0.1},
		{Norm: 1, Rate: -1}, {Norm: 1, Rate: math.Inf(1)},
	} {
		before := bad
		if err := bad.Update(1, 1); !errors.Is(err, ErrConfig) || bad != before && !math.IsNaN(bad.Norm) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := a.Update(1, 0); !errors.Is(err, ErrConfig) || a.Norm != 1 {
		t.Error(a, err)
	}
}

// Through the lane and with noise, C comes to the quantile and stays near it.
// Norms are log-normal with median 3: the 0.7-quantile is 3·e^0.5244, where the
// share within C has a slope of 0.348 in log C. A round's b̄ has a standard
// deviation of 0.084, so the mean of log C over 200 rounds one of
// 0.084/(0.348·√200) = 0.017. A bound of 0.1 has a false-alarm rate below 10^-8.
func TestAdaptiveClipFindsQuantile(t *testing.T) {
	const parties, sigma = 50, 2.5
	rng := newRandom(21)
	lane := Signs{Parties: parties, Dimension: 1, NoiseStdDev: 2 * sigma,
		NoiseFamily: accounting.FamilyDiscreteGaussian}
	layout, err := lane.Layout()
	if err != nil {
		t.Fatal(err)
	}
	a := AdaptiveClip{Norm: 0.1, Quantile: 0.7}
	var mean float64
	for round := range 300 {
		var sum uint64
		for range parties {
			norm := 3 * math.Exp(rng.NormFloat64())
			// a test's, not a release's
			noise := int64(math.Round(rng.NormFloat64() * 2 * sigma / math.Sqrt(parties)))
			part, err := lane.Encode(a.Vote(norm), []int64{noise})
			if err != nil {
				t.Fatal(err)
			}
			sum = (sum + part[0][0]) % (1 << layout[0].Bits)
		}
		votes, err := lane.Decode([][]uint64{{sum}}, parties)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Update(votes[0], parties); err != nil {
			t.Fatal(err)
		}
		if round >= 100 {
			mean += math.Log(a.Norm) / 200
		}
	}
	if want := math.Log(3) + 0.5244; math.Abs(mean-want) > 0.1 {
		t.Errorf("log C is %v, want %v", mean, want)
	}
}

func TestMeanNormClip(t *testing.T) {
	if c, err := MeanNormClip(0.5, []float64{1, 2, 6}); err != nil || math.Abs(c-1.5) > 1e-15 {
		t.Error(c, err)
	}
	for _, c := range []struct {
		factor float64
		norms  []float64
		want   error
	}{
		{1, nil, ErrLength},
		{1, []float64{math.Inf(1)}, ErrNotFinite},
		{1, []float64{-1}, ErrNotFinite},
		{0, []float64{1}, ErrConfig},
		{-1, []float64{1}, ErrConfig},
		{math.NaN(), []float64{1}, ErrConfig},
		{1, []float64{0}, ErrConfig},
	} {
		if got, err := MeanNormClip(c.factor, c.norms); !errors.Is(err, c.want) || got != 0 {
			t.Errorf("MeanNormClip(%v, %v) = %v, %v; want %v", c.factor, c.norms, got, err, c.want)
		}
	}
}
