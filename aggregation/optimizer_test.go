package aggregation

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The first steps by hand, and a second one to see that the state is carried.
func TestOptimizerByHand(t *testing.T) {
	for _, c := range []struct {
		name    string
		server  Optimizer
		updates []float64 // of one coordinate, round after round
		want    []float64 // the steps
	}{
		{"zero value", Optimizer{}, []float64{2, -3}, []float64{2, -3}},
		{"rate", Optimizer{Rate: 0.5}, []float64{2, -3}, []float64{1, -1.5}},
		// m = 2, then 0.5·2 − 3.
		{"momentum", Optimizer{Rule: RuleMomentum, Beta1: 0.5}, []float64{2, -3}, []float64{2, -2}},
		{"momentum 0", Optimizer{Rule: RuleMomentum}, []float64{2, -3}, []float64{2, -3}},
		// m = 0.5·4, v = 3² + 4², 2/(5 + 3).
		{"FedAdagrad", Optimizer{Rule: RuleFedAdagrad, Beta1: 0.5, Tau: 3}, []float64{4}, []float64{0.25}},
		// β₁ = 0: v = 25, then 169: 12/(13 + 3).
		{"FedAdagrad twice", Optimizer{Rule: RuleFedAdagrad, Tau: 3}, []float64{4, 12}, []float64{0.5, 0.75}},
		// m = 1, v = 0.75·4 + 0.25·4, 1/(2 + 2); then m = 0.5 + 1, v = 4 again.
		{"FedAdam", Optimizer{Rule: RuleFedAdam, Beta1: 0.5, Beta2: 0.75, Tau: 2}, []float64{2, 2},
			[]float64{0.25, 0.375}},
		// v = 0.75 + 0.25·4.
		{"FedAdam, root", Optimizer{Rule: RuleFedAdam, Beta1: 0.5, Beta2: 0.75, Tau: 1},
			[]float64{-2}, []float64{-1 / (math.Sqrt(1.75) + 1)}},
		// v = 1 + 0.25·4, 1/(√2 + 1).
		{"FedYogi up", Optimizer{Rule: RuleFedYogi, Beta1: 0.5, Beta2: 0.75, Tau: 1}, []float64{2},
			[]float64{math.Sqrt2 - 1}},
		// v = 1 − 0.25/4.
		{"FedYogi down", Optimizer{Rule: RuleFedYogi, Beta1: 0.5, Beta2: 0.75, Tau: 1},
			[]float64{0.5}, []float64{0.25 / (math.Sqrt(0.9375) + 1)}},
		// v = Δ²: it stays.
		{"FedYogi still", Optimizer{Rule: RuleFedYogi, Beta1: 0.5, Beta2: 0.75, Tau: 2}, []float64{2}, []float64{0.25}},
		// The presets: v = 0.99e-6 + 0.01·0.25, and 1e-6 + 0.01·0.25.
		{"FedAdam presets", Optimizer{Rule: RuleFedAdam, Beta1: 0.9}, []float64{0.5},
			[]float64{0.05 / (math.Sqrt(0.00250099) + 0.001)}},
		{"FedYogi presets", Optimizer{Rule: RuleFedYogi, Beta1: 0.9}, []float64{0.5},
			[]float64{0.05 / (math.Sqrt(0.002501) + 0.001)}},
	} {
		w := []float64{10}
		for k, d := range c.updates {
			next, err := c.server.Apply(w, []float64{d}, nil)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if got := next[0] - w[0]; math.Abs(got-c.want[k]) > 1e-14 {
				t.Errorf("%s: step %d is %v, want %v", c.name, k, got, c.want[k])
			}
			w = next
		}
	}
}

var everyRule = []Rule{RuleFedAvg, RuleMomentum, RuleFedAdagrad, RuleFedAdam, RuleFedYogi}

// A threshold of 0 is plain averaging bit for bit, for every rule and kind, over
// several rounds; and a mask scales the step and nothing else.
func TestMaskOfThresholdZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := newRandom(rapid.Uint64().Draw(t, "seed"))
		d, n := rapid.IntRange(1, 20).Draw(t, "d"), rapid.IntRange(1, 9).Draw(t, "n")
		rule := rapid.SampledFrom(everyRule).Draw(t, "rule")
		kind := rapid.SampledFrom([]MaskKind{NoMask, SoftMask, HardMask}).Draw(t, "kind")
		plain := Optimizer{Rule: rule, Rate: 0.3, Beta1: 0.9}
		masked, half := plain, plain
		w := normals(rng, d)
		v := slices.Clone(w)
		for range 3 {
			updates := make([][]float64, n)
			mean := make([]float64, d)
			for k := range updates {
				updates[k] = normals(rng, d)
				for i := range mean {
					mean[i] += updates[k][i] / float64(n)
				}
			}
			if rng.IntN(2) == 0 {
				mean[rng.IntN(d)] = math.Copysign(0, -1)
			}
			signs, err := SumSigns(updates...)
			if err != nil {
				t.Fatal(err)
			}
			ones, err := GradientMask{Kind: kind}.Weights(signs, n)
			if err != nil {
				t.Fatal(err)
			}
			halves := slices.Repeat([]float64{0.5}, d)
			before := slices.Clone(w)
			if w, err = plain.Apply(w, mean, nil); err != nil {
				t.Fatal(err)
			}
			if v, err = masked.Apply(v, mean, ones); err != nil {
				t.Fatal(err)
			}
			u, err := half.Apply(before, mean, halves)
			if err != nil {
				t.Fatal(err)
			}
			if !sameBits(w, v) {
				t.Fatalf("plain %v, masked %v", w, v)
			}
			for i := range u {
				if step, want := u[i]-before[i], (w[i]-before[i])/2; math.Abs(step-want) > 1e-12 {
					t.Fatalf("half a mask: step %v, want %v", step, want)
				}
			}
		}
	})
}

func TestOptimizerErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one := []float64{1}
	for _, c := range []struct {
		name            string
		server          Optimizer
		w, update, mask []float64
		want            error
	}{
		{"rule", Optimizer{Rule: 5}, one, one, nil, ErrConfig},
		{"negative rule", Optimizer{Rule: -1}, one, one, nil, ErrConfig},
		{"rate", Optimizer{Rate: -1}, one, one, nil, ErrConfig},
		{"rate NaN", Optimizer{Rate: nan}, one, one, nil, ErrConfig},
		{"beta1", Optimizer{Beta1: 1}, one, one, nil, ErrConfig},
		{"beta2", Optimizer{Beta2: 1}, one, one, nil, ErrConfig},
		{"beta2 negative", Optimizer{Beta2: -0.1}, one, one, nil, ErrConfig},
		{"tau", Optimizer{Tau: -1}, one, one, nil, ErrConfig},
		{"tau infinite", Optimizer{Tau: inf}, one, one, nil, ErrConfig},
		{"nothing", Optimizer{}, nil, nil, nil, ErrLength},
		{"short update", Optimizer{}, []float64{1, 2}, one, nil, ErrLength},
		{"short mask", Optimizer{}, one, one, []float64{}, ErrLength},
		{"update NaN", Optimizer{}, one, []float64{nan}, nil, ErrNotFinite},
		{"update infinite", Optimizer{Rule: RuleFedAdam}, one, []float64{inf}, nil, ErrNotFinite},
		{"square overflows", Optimizer{Rule: RuleFedAdam}, one, []float64{1e200}, nil, ErrNotFinite},
		{"masked NaN", Optimizer{}, one, []float64{nan}, []float64{0}, ErrNotFinite},
		{"weight NaN", Optimizer{}, []float64{nan}, one, nil, ErrNotFinite},
		{"sum overflows", Optimizer{}, []float64{math.MaxFloat64}, []float64{math.MaxFloat64}, nil, ErrNotFinite},
		{"mask below 0", Optimizer{}, one, one, []float64{-0.1}, ErrConfig},
		{"mask infinite", Optimizer{}, one, one, []float64{math.Inf(1)}, ErrConfig},
		{"mask NaN", Optimizer{}, one, one, []float64{nan}, ErrConfig},
	} {
		if got, err := c.server.Apply(c.w, c.update, c.mask); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}

	// An error leaves the state as it was, also when it comes in the last place.
	for _, rule := range everyRule {
		a, b := Optimizer{Rule: rule, Beta1: 0.5}, Optimizer{Rule: rule, Beta1: 0.5}
		w := []float64{1, 2}
		for round := range 3 {
			for _, bad := range [][]float64{{5, nan}, {5}, {5, inf}} {
				if _, err := b.Apply(w, bad, nil); err == nil {
					t.Fatal("no error")
				}
			}
			if round > 0 {
				if _, err := b.Apply([]float64{1, 2, 3}, []float64{1, 2, 3}, nil); !errors.Is(err, ErrLength) {
					t.Fatalf("another length: %v", err)
				}
			}
			x, err := a.Apply(w, []float64{0.5, -1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			y, err := b.Apply(w, []float64{0.5, -1}, nil)
			if err != nil || !sameBits(x, y) {
				t.Fatalf("rule %d, round %d: %v, want %v (%v)", rule, round, y, x, err)
			}
		}
	}
}

func TestGradientMask(t *testing.T) {
	signs := []int64{5, -5, 4, -2, 2, 1, 0, 7}
	for _, c := range []struct {
		mask GradientMask
		want []float64
	}{
		{GradientMask{}, []float64{1, 1, 1, 1, 1, 1, 1, 1}},
		{GradientMask{NoMask, 0.4}, []float64{1, 1, 1, 1, 1, 1, 1, 1}},
		{GradientMask{SoftMask, DefaultThreshold}, []float64{1, 1, 1, 1, 1, 0.2, 0, 1}},
		{GradientMask{HardMask, DefaultThreshold}, []float64{1, 1, 1, 1, 1, 0, 0, 1}},
		{GradientMask{SoftMask, 1}, []float64{1, 1, 0.8, 0.4, 0.4, 0.2, 0, 1}},
		{GradientMask{HardMask, 1}, []float64{1, 1, 0, 0, 0, 0, 0, 1}},
		{GradientMask{SoftMask, 0}, []float64{1, 1, 1, 1, 1, 1, 1, 1}},
		{GradientMask{HardMask, 0}, []float64{1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		got, err := c.mask.Weights(signs, 5)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, %v; want %v", c.mask, got, err, c.want)
		}
	}
	for _, g := range []GradientMask{{Kind: FlatMask + 1}, {Kind: -1}, {Threshold: -0.1},
		{Threshold: 1.1}, {Threshold: math.NaN()}} {
		if out, err := g.Weights(signs, 5); !errors.Is(err, ErrConfig) || out != nil {
			t.Errorf("%+v: %v, %v", g, out, err)
		}
	}
	if _, err := (GradientMask{}).Weights(signs, 0); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}

	sum, err := SumSigns([]float64{1e-320, -3, 0, math.Copysign(0, -1)}, []float64{2, -1, 5, 0})
	if err != nil || !slices.Equal(sum, []int64{2, -2, 1, 0}) {
		t.Error(sum, err)
	}
	for _, c := range []struct {
		updates [][]float64
		want    error
	}{
		{nil, ErrLength},
		{[][]float64{{}}, ErrLength},
		{[][]float64{{1}, {1, 2}}, ErrLength},
		{[][]float64{{1}, {math.NaN()}}, ErrNotFinite},
	} {
		if out, err := SumSigns(c.updates...); !errors.Is(err, c.want) || out != nil {
			t.Errorf("%v: %v, %v; want %v", c.updates, out, err, c.want)
		}
	}
}
