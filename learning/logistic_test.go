package learning

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawProblem(t *rapid.T) (Logistic, []float64, *Dataset) {
	features := rapid.IntRange(1, 9).Draw(t, "features")
	rows := rapid.IntRange(1, 20).Draw(t, "rows")
	num := rapid.Float64Range(-2, 2)
	d := &Dataset{
		X:        rapid.SliceOfN(num, rows*features, rows*features).Draw(t, "x"),
		Features: features,
		Labels:   rapid.SliceOfN(rapid.IntRange(0, 1), rows, rows).Draw(t, "labels"),
	}
	m := Logistic{Features: features,
		Lambda: rapid.SampledFrom([]float64{0, 1e-3, 0.5}).Draw(t, "lambda")}
	return m, rapid.SliceOfN(num, features, features).Draw(t, "w"), d
}

func TestGradientIsFiniteDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w, d := drawProblem(t)
		g := make([]float64, m.NumParams())
		if err := m.Gradient(g, w, d); err != nil {
			t.Fatal(err)
		}
		const h = 1e-5
		for j := range w {
			at := func(x float64) float64 {
				v := slices.Clone(w)
				v[j] = x
				loss, err := m.Loss(v, d)
				if err != nil {
					t.Fatal(err)
				}
				return loss
			}
			// Central differences are off by h²·F‴/6 plus rounding of F over h.
			if want := (at(w[j]+h) - at(w[j]-h)) / (2 * h); math.Abs(g[j]-want) > 1e-8 {
				t.Fatalf("derivative %d is %v, difference quotient %v", j, g[j], want)
			}
		}
	})
}

// TestTrainIsGradientDescent compares the fused steps of Train with plain steps
// along Gradient, which may write over its own argument.
func TestTrainIsGradientDescent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w, d := drawProblem(t)
		const rate, steps = 0.1, 7
		want, g := slices.Clone(w), make([]float64, len(w))
		for range steps {
			copy(g, want)
			if err := m.Gradient(g, g, d); err != nil {
				t.Fatal(err)
			}
			for j := range want {
				want[j] -= rate * g[j]
			}
		}
		if err := m.Train(w, d, rate, steps); err != nil {
			t.Fatal(err)
		}
		for j := range w {
			if math.Abs(w[j]-want[j]) > 1e-12 {
				t.Fatalf("weight %d is %v, want %v", j, w[j], want[j])
			}
		}
	})
}

func TestLogisticKnownAnswers(t *testing.T) {
	m := Logistic{Features: 2, Lambda: 0.5}
	d := &Dataset{X: []float64{1, 1, 2, 1}, Features: 2, Labels: []int{1, 0}}
	ln3 := math.Log(3)
	w := []float64{ln3, -ln3} // scores 0 and ln 3, probabilities 1/2 and 3/4
	p := make([]float64, 2)
	if err := m.Predict(p, w, d); err != nil {
		t.Fatal(err)
	}
	if p[0] != 0.5 || math.Abs(p[1]-0.75) > 1e-15 {
		t.Errorf("probabilities %v, want [0.5 0.75]", p)
	}
	loss, err := m.Loss(w, d)
	if want := (math.Log(2)+math.Log(4))/2 + 0.25*2*ln3*ln3; err != nil ||
		math.Abs(loss-want) > 1e-14 {
		t.Errorf("loss %v, %v, want %v", loss, err, want)
	}
	// A score of exactly 0 counts as negative.
	if c, err := m.Evaluate(w, d); err != nil || c != (Confusion{FN: 1, FP: 1}) {
		t.Errorf("confusion %+v, %v", c, err)
	}
}

func TestStableFarOut(t *testing.T) {
	for _, c := range []struct {
		z       float64
		y       int
		p, loss float64
	}{
		{1e4, 1, 1, 0}, {1e4, 0, 1, 1e4}, {-1e4, 1, 0, 1e4}, {-1e4, 0, 0, 0},
		{-40, 0, math.Exp(-40), math.Exp(-40)}, // not rounded to 0
		{40, 1, 1, math.Exp(-40)},
	} {
		if got := sigmoid(c.z); math.Abs(got-c.p) > 1e-15*c.p {
			t.Errorf("sigmoid(%v) = %v, want %v", c.z, got, c.p)
		}
		if got := logLoss(c.z, c.y); math.Abs(got-c.loss) > 1e-14*c.loss {
			t.Errorf("logLoss(%v, %d) = %v, want %v", c.z, c.y, got, c.loss)
		}
	}
}

func TestTrainAllocatesPerCallOnly(t *testing.T) {
	d, _, err := Census(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := Logistic{Features: censusFeatures}
	w := make([]float64, m.NumParams())
	allocs := func(steps int) float64 {
		return testing.AllocsPerRun(10, func() {
			if err := m.Train(w, d, 1, steps); err != nil {
				t.Fatal(err)
			}
		})
	}
	if one, many := allocs(1), allocs(50); one != many || many > 2 {
		t.Errorf("%v allocations with 1 step, %v with 50", one, many)
	}
}

func TestLogisticRejects(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := Logistic{Features: 2, Lambda: 0.1}
	w := []float64{0.5, -0.5}
	with := func(i int, x float64) *Dataset {
		d := small()
		d.X[i] = x
		return d
	}
	label := func(y int) *Dataset {
		d := small()
		d.Labels[1] = y
		return d
	}
	for _, c := range []struct {
		name string
		m    Logistic
		w    []float64
		d    *Dataset
		want error
	}{
		{"zero model", Logistic{}, nil, small(), ErrShape},
		{"negative lambda", Logistic{2, -1}, w, small(), ErrValue},
		{"NaN lambda", Logistic{2, nan}, w, small(), ErrValue},
		{"infinite lambda", Logistic{2, inf}, w, small(), ErrValue},
		{"short parameters", good, w[:1], small(), ErrShape},
		{"long parameters", good, []float64{1, 2, 3}, small(), ErrShape},
		{"NaN parameter", good, []float64{0, nan}, small(), ErrValue},
		{"infinite parameter", good, []float64{-inf, 0}, small(), ErrValue},
		{"NaN feature", good, w, with(3, nan), ErrValue},
		{"infinite feature", good, w, with(5, inf), ErrValue},
		{"label 2", good, w, label(2), ErrValue},
		{"label -1", good, w, label(-1), ErrValue},
		{"nil data", good, w, nil, ErrShape},
		{"no rows", good, w, &Dataset{Features: 2}, ErrTooFewRows},
		{"other width", good, w, numberedWide(), ErrShape},
	} {
		before := slices.Clone(c.w)
		out := []float64{7, 7, 7}[:max(2, len(c.w))]
		_, lossErr := c.m.Loss(c.w, c.d)
		_, evalErr := c.m.Evaluate(c.w, c.d)
		for call, err := range map[string]error{
			"Loss": lossErr, "Evaluate": evalErr,
			"Gradient": c.m.Gradient(out, c.w, c.d),
			"Predict":  c.m.Predict(out, c.w, c.d),
			"Train":    c.m.Train(c.w, c.d, 1, 1),
		} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %s: %v, want %v", c.name, call, err, c.want)
			}
		}
		for i := range before {
			if math.Float64bits(before[i]) != math.Float64bits(c.w[i]) {
				t.Errorf("%s: a parameter changed", c.name)
			}
		}
		if out[0] != 7 || out[1] != 7 {
			t.Errorf("%s: output written despite the error", c.name)
		}
	}
	for _, n := range []int{0, 1, 4} {
		if err := good.Predict(make([]float64, n), w, small()); !errors.Is(err, ErrShape) {
			t.Errorf("Predict into %d places: %v", n, err)
		}
		if err := good.Gradient(make([]float64, n), w, small()); !errors.Is(err, ErrShape) {
			t.Errorf("Gradient into %d places: %v", n, err)
		}
	}
}

func numberedWide() *Dataset {
	return &Dataset{X: []float64{1, 2, 3}, Features: 3, Labels: []int{1}}
}

func TestTrainRejects(t *testing.T) {
	m := Logistic{Features: 2, Lambda: 10}
	w := []float64{0.5, -0.5}
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := m.Train(w, small(), rate, 1); !errors.Is(err, ErrValue) {
			t.Errorf("rate %v: %v", rate, err)
		}
	}
	if err := m.Train(w, small(), 1, -1); !errors.Is(err, ErrValue) {
		t.Errorf("-1 steps: %v", err)
	}
	// Each step multiplies the weights by 1 − 100·10.
	if err := m.Train(w, small(), 100, 200); !errors.Is(err, ErrDiverged) {
		t.Errorf("a rate far too high: %v", err)
	}
	if !slices.Equal(w, []float64{0.5, -0.5}) {
		t.Errorf("w changed to %v", w)
	}
	if err := m.Train(w, small(), 1, 0); err != nil || !slices.Equal(w, []float64{0.5, -0.5}) {
		t.Errorf("0 steps: %v, w = %v", err, w)
	}
}

func BenchmarkTrain200x105(b *testing.B) {
	d := &Dataset{X: make([]float64, 200*105), Features: 105, Labels: make([]int, 200)}
	for i := range d.X {
		d.X[i] = float64(i%7) / 70
	}
	m := Logistic{Features: 105, Lambda: 1e-4}
	w := make([]float64, 105)
	for b.Loop() {
		if err := m.Train(w, d, 1, 50); err != nil {
			b.Fatal(err)
		}
	}
}
