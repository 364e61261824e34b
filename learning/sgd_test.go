package learning

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"pgregory.net/rapid"
)

// foreign hides that a model is one of this package.
type foreign struct{ Model }

// TestSGDIsItsDefinition compares all ways through Train with the formula in the
// comment of SGD, step by step over Gradient.
func TestSGDIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		rows := rapid.IntRange(1, 30).Draw(t, "rows")
		d := scattered(rows, featuresOf(m), m.Classes(), 3)
		s := SGD{
			Rate:        0.05,
			Momentum:    rapid.SampledFrom([]float64{0, 0.9}).Draw(t, "momentum"),
			WeightDecay: rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "decay"),
			Batch:       rapid.IntRange(0, 12).Draw(t, "batch"),
		}
		pull := func(g, w []float64) {
			for j := range g {
				g[j] += 0.3 * (w[j] - 1)
			}
		}
		if rapid.Bool().Draw(t, "adjust") {
			s.Adjust = pull
		}
		batch := s.Batch
		if batch == 0 {
			batch = rows
		}
		perEpoch := (rows + batch - 1) / batch
		want := perEpoch
		switch rapid.IntRange(0, 2).Draw(t, "length") {
		case 1:
			s.Epochs = 2
			want = 2 * perEpoch
		case 2:
			s.Steps = rapid.IntRange(1, 20).Draw(t, "steps")
			want = s.Steps
		}

		start := normal(m.NumParams(), 4)
		w, v, g := slices.Clone(start), make([]float64, len(start)), make([]float64, len(start))
		rng := rand.New(rand.NewPCG(11, streamSGD))
		order := make([]int, rows)
		for i := range order {
			order[i] = i
		}
		for step := range want {
			at := step % perEpoch
			if at == 0 && perEpoch > 1 {
				for i := rows - 1; i > 0; i-- {
					j := rng.IntN(i + 1)
					order[i], order[j] = order[j], order[i]
				}
			}
			part, err := d.Subset(order[at*batch : min(rows, (at+1)*batch)])
			must(t, err)
			must(t, m.Gradient(g, w, part))
			for j := range g {
				g[j] += s.WeightDecay * w[j]
			}
			if s.Adjust != nil {
				s.Adjust(g, w)
			}
			for j := range w {
				v[j] = s.Momentum*v[j] + g[j]
				w[j] -= s.Rate * v[j]
			}
		}
		for _, m := range []Model{m, foreign{m}} {
			got := slices.Clone(start)
			steps, err := s.Train(m, got, d, 11)
			if err != nil || steps != want {
				t.Fatalf("%T: %d steps, %v, want %d", m, steps, err, want)
			}
			for j := range w {
				// Only the order of sums differs; ReLU's kinks do not, at these sizes.
				if math.Abs(got[j]-w[j]) > 1e-9*(1+math.Abs(w[j])) {
					t.Fatalf("%T: parameter %d is %v, by definition %v", m, j, got[j], w[j])
				}
			}
		}
	})
}

func TestSGDSeeds(t *testing.T) {
	m := Softmax{Features: 4, Outputs: 3}
	d := scattered(40, 4, 3, 1)
	train := func(batch int, seed uint64) []float64 {
		w := m.Init(0)
		_, err := SGD{Rate: 0.1, Batch: batch, Epochs: 3}.Train(m, w, d, seed)
		must(t, err)
		return w
	}
	if !slices.Equal(train(8, 1), train(8, 1)) || slices.Equal(train(8, 1), train(8, 2)) {
		t.Error("the seed does not decide the order of the rows")
	}
	if !slices.Equal(train(0, 1), train(0, 2)) || !slices.Equal(train(0, 1), train(math.MaxInt, 1)) {
		t.Error("full batches depend on the seed or on their name")
	}
}

func TestSGDRejects(t *testing.T) {
	m := Softmax{Features: 2, Outputs: 2}
	w := normal(m.NumParams(), 1)
	before := slices.Clone(w)
	nan := math.NaN()
	for _, s := range []SGD{
		{}, {Rate: -1}, {Rate: nan}, {Rate: math.Inf(1)},
		{Rate: 1, Momentum: 1}, {Rate: 1, Momentum: -0.1}, {Rate: 1, Momentum: nan},
		{Rate: 1, WeightDecay: -1}, {Rate: 1, WeightDecay: nan}, {Rate: 1, WeightDecay: math.Inf(1)},
		{Rate: 1, Batch: -1}, {Rate: 1, Epochs: -1}, {Rate: 1, Steps: -1},
		{Rate: 1, Epochs: 1, Steps: 1}, {Rate: 1, Batch: 1, Epochs: math.MaxInt},
	} {
		if n, err := s.Train(m, w, small(), 1); n != 0 || !errors.Is(err, ErrValue) {
			t.Errorf("%+v: %d, %v", s, n, err)
		}
	}
	if _, err := (SGD{Rate: 1}).Train(nil, w, small(), 1); !errors.Is(err, ErrShape) {
		t.Errorf("nil model: %v", err)
	}
	wild := SGD{Rate: 1e200, Batch: 1, Epochs: 3, WeightDecay: 1}
	for _, m := range []Model{m, foreign{m}} {
		for _, momentum := range []float64{0, 0.5} {
			wild.Momentum = momentum
			if n, err := wild.Train(m, w, small(), 1); n != 0 || !errors.Is(err, ErrDiverged) {
				t.Errorf("%T, momentum %v: %d, %v", m, momentum, n, err)
			}
		}
	}
	nans := SGD{Rate: 1, Adjust: func(g, _ []float64) { g[0] = nan }}
	if _, err := nans.Train(m, w, small(), 1); !errors.Is(err, ErrDiverged) {
		t.Errorf("NaN by Adjust: %v", err)
	}
	if !slices.Equal(w, before) {
		t.Error("an error changed w")
	}
}

// TestSGDAllocations: none depends on the number of steps.
func TestSGDAllocations(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counts on its own")
	}
	pixels := &Dataset{Features: 40, Pixels: make([]byte, 64*40), Labels: make([]int, 64)}
	for _, m := range []Model{Logistic{Features: 40}, Softmax{Features: 40, Outputs: 10},
		MLP{Features: 40, Hidden: []int{70, 70}, Outputs: 10}} {
		for _, d := range []*Dataset{pixels, scattered(64, 40, 2, 1)} {
			w := m.Init(1)
			allocs := func(s SGD, steps int) float64 {
				s.Rate, s.Batch, s.Steps = 1e-3, 16, steps
				return testing.AllocsPerRun(5, func() {
					_, err := s.Train(m, w, d, 1)
					must(t, err)
				})
			}
			for _, s := range []SGD{{}, {Momentum: 0.9, Adjust: func(_, _ []float64) {}}} {
				// The garbage collector may empty the pool in between, at most
				// once or twice in such a short time.
				if one, many := allocs(s, 1), allocs(s, 200); many > one+20 {
					t.Errorf("%T: %v allocations with 1 step, %v with 200", m, one, many)
				}
			}
		}
	}
}

// TestSGDConcurrent: one model and one data set serve many goroutines, and what
// a pooled workspace held before has no influence.
func TestSGDConcurrent(t *testing.T) {
	m := MLP{Features: 20, Hidden: []int{30}, Outputs: 4}
	d := scattered(100, 20, 4, 1)
	train := func(seed uint64) []float64 {
		w := m.Init(1)
		_, err := SGD{Rate: 0.1, Momentum: 0.5, Batch: 16, Epochs: 2}.Train(m, w, d, seed)
		if err != nil {
			t.Error(err)
		}
		return w
	}
	var want, got [8][]float64
	for i := range want {
		want[i] = train(uint64(i))
	}
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = train(uint64(i)) })
	}
	wg.Wait()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("seed %d: other weights next to other goroutines", i)
		}
	}
}

func benchmarkSGD(b *testing.B, m Model, widths []int, s SGD) {
	d := images(b)
	w := m.Init(1)
	s.Rate, s.Batch, s.Steps = 0.01, 32, 100
	b.ReportAllocs()
	steps := 0
	var products time.Duration
	for b.Loop() {
		n, err := s.Train(m, w, d, 1)
		must(b, err)
		b.StopTimer()
		start := time.Now()
		for range n {
			denseProducts(d, w, widths, s.Batch)
		}
		products += time.Since(start)
		b.StartTimer()
		steps += n
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(products.Seconds()/b.Elapsed().Seconds(), "×gemm")
}

// denseProducts does the matrix products of one step by blas64.Gemm and nothing
// else: into each layer, out of it but for the first, and its weights' gradient.
func denseProducts(d *Dataset, w []float64, widths []int, rows int) {
	matrix := func(rows, cols int, data []float64) blas64.General {
		return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data[:rows*cols]}
	}
	x := matrix(rows, widths[0], d.matrix().Data)
	for l, out := range widths[1:] {
		weights := matrix(x.Cols, out, w)
		z := matrix(rows, out, make([]float64, rows*out))
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, x, weights, 0, z)
		if l > 0 {
			blas64.Gemm(blas.NoTrans, blas.Trans, 1, z, weights, 0,
				matrix(rows, x.Cols, make([]float64, rows*x.Cols)))
		}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, z, 0,
			matrix(x.Cols, out, make([]float64, x.Cols*out)))
		w, x = w[(x.Cols+1)*out:], z
	}
}

// BenchmarkSGD trains on 3,200 MNIST images with batches of 32; run it with
// -cpu 1. ×gemm is the time of the dense matrix products alone over the whole step.
func BenchmarkSGD(b *testing.B) {
	mlp := MLP{Features: 784, Hidden: []int{200}, Outputs: 10}
	soft := Softmax{Features: 784, Outputs: 10}
	b.Run("mlp", func(b *testing.B) { benchmarkSGD(b, mlp, []int{784, 200, 10}, SGD{}) })
	b.Run("mlp-decay", func(b *testing.B) {
		benchmarkSGD(b, mlp, []int{784, 200, 10}, SGD{WeightDecay: 1e-5})
	})
	b.Run("mlp-adjust", func(b *testing.B) {
		benchmarkSGD(b, mlp, []int{784, 200, 10}, SGD{Adjust: func(_, _ []float64) {}})
	})
	b.Run("mlp-momentum", func(b *testing.B) {
		benchmarkSGD(b, mlp, []int{784, 200, 10}, SGD{Momentum: 0.9, WeightDecay: 1e-5})
	})
	b.Run("softmax", func(b *testing.B) { benchmarkSGD(b, soft, []int{784, 10}, SGD{}) })
}

// Steps over all rows are those of Logistic.Train bit for bit, however many rows there
// are.
func TestSGDOverAllRows(t *testing.T) {
	for _, rows := range []int{3, 200, 700} {
		m := Logistic{Features: 9, Lambda: 1e-3}
		d := scattered(rows, 9, 2, 5)
		want := normal(9, 6)
		got := slices.Clone(want)
		if err := m.Train(want, d, 0.7, 120); err != nil {
			t.Fatal(err)
		}
		if steps, err := (SGD{Rate: 0.7, Steps: 120}).Train(m, got, d, 8); err != nil || steps != 120 ||
			!slices.Equal(got, want) {
			t.Errorf("%d rows: %d steps, %v, another outcome", rows, steps, err)
		}
	}
}

// An interrupted training leaves the weights alone, within 50 steps.
func TestSGDInterrupt(t *testing.T) {
	stop := errors.New("stop")
	for _, m := range []Model{Logistic{Features: 4}, Softmax{Features: 4, Outputs: 2}} {
		d := scattered(20, 4, 2, 5)
		start := normal(m.NumParams(), 6)
		for after := range 3 {
			w, asked := slices.Clone(start), 0
			s := SGD{Rate: 0.1, Steps: math.MaxInt32, Batch: 20 * after, Interrupt: func() error {
				if asked++; asked > after {
					return stop
				}
				return nil
			}}
			if steps, err := s.Train(m, w, d, 1); !errors.Is(err, stop) || steps != 0 ||
				!slices.Equal(w, start) {
				t.Errorf("%T: %d steps, %v", m, steps, err)
			}
		}
		free, bound := slices.Clone(start), slices.Clone(start)
		s := SGD{Rate: 0.1, Epochs: 3, Batch: 5}
		if _, err := s.Train(m, free, d, 1); err != nil {
			t.Fatal(err)
		}
		s.Interrupt = func() error { return nil }
		if _, err := s.Train(m, bound, d, 1); err != nil || !slices.Equal(free, bound) {
			t.Errorf("%T: a question changes the outcome, %v", m, err)
		}
	}
}
