package learning

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"

	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/internal/suite"
)

// startOf is Init with biases, shifts and scales that are not 0 or 1.
func startOf(m LeNet, seed uint64) []float64 {
	w := m.Init(seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	for j := range w {
		w[j] += 0.05 * rng.NormFloat64()
	}
	return w
}

func lenets() []LeNet {
	return []LeNet{
		{Side: 16, Outputs: 4, Lambda: 1e-3},
		{Side: 20, Planes: 3, Outputs: 3},
		{Side: 16, Outputs: 4, BatchNorm: true},
		{Side: 16, Planes: 2, Outputs: 3, BatchNorm: true, Lambda: 1e-2},
	}
}

func TestLeNetSizes(t *testing.T) {
	for _, c := range []struct {
		m    LeNet
		want int
	}{
		{LeNet{Side: 28, Outputs: 10}, 44426}, // 156 + 2,416 + 30,840 + 10,164 + 850
		{LeNet{Side: 28, Planes: 3, Outputs: 10}, 44726},
		{LeNet{Side: 28, Outputs: 10, BatchNorm: true}, 44426 + 4*22},
		{LeNet{Side: 16, Outputs: 2}, 156 + 2416 + 17*120 + 10164 + 170},
		{LeNet{Side: 14, Outputs: 10}, 0}, {LeNet{Side: 12, Outputs: 10}, 0}, {LeNet{Side: 260, Outputs: 10}, 0},
		{LeNet{Side: 28, Outputs: 0}, 0}, {LeNet{Side: 28, Planes: -1, Outputs: 2}, 0},
		{LeNet{Side: 28, Outputs: math.MaxInt}, 0},
	} {
		if got := c.m.NumParams(); got != c.want || len(c.m.Init(1)) != c.want {
			t.Errorf("%+v has %d parameters, want %d", c.m, got, c.want)
		}
	}
	spans := LeNet{Side: 28, Outputs: 10, BatchNorm: true}.Normalisation()
	if want := []Span{{156, 180}, {180 + 2416, 180 + 2416 + 64}}; !slices.Equal(spans, want) {
		t.Errorf("batch norm is at %v, want %v", spans, want)
	}
	if (LeNet{Side: 28, Outputs: 10}).Normalisation() != nil {
		t.Error("spans without batch norm")
	}
	for features, want := range map[int]LeNet{
		784: {Side: 28, Planes: 1, Outputs: 10}, 3 * 784: {Side: 28, Planes: 3, Outputs: 10},
		256: {Side: 16, Planes: 1, Outputs: 10},
		196: {}, 785: {}, 0: {}, 3: {},
	} {
		if m, ok := LeNetFor(features, 10); m != want || ok != (want.Side > 0) {
			t.Errorf("%d features: %+v, %v", features, m, ok)
		}
	}
	d := scattered(2, 256, 4, 1)
	for _, m := range []LeNet{{Side: 14, Outputs: 4}, {Side: 16, Outputs: 1}, {Side: 20, Outputs: 4}} {
		if _, err := m.Loss(m.Init(1), d); !errors.Is(err, ErrShape) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// TestLeNetGradients checks derivatives against difference quotients: one direction in
// each part of the parameters, and single ones.
func TestLeNetGradients(t *testing.T) {
	for _, m := range lenets() {
		d := scattered(5, max(1, m.Planes)*m.Side*m.Side, m.Outputs, 5)
		w := startOf(m, 2)
		g := make([]float64, len(w))
		must(t, m.Gradient(g, w, d))
		same := slices.Clone(w)
		must(t, m.Gradient(same, same, d))
		if !slices.Equal(g, same) {
			t.Errorf("%+v: the gradient in place is another one", m)
		}
		conv, top := m.layers()
		var cuts []int
		for _, c := range conv {
			cuts = append(cuts, c.at, c.at+c.filters(), c.at+c.filters()+c.maps)
		}
		for _, l := range top {
			cuts = append(cuts, l.at, l.at+l.in*l.out)
		}
		rng := rand.New(rand.NewPCG(8, 8))
		check := func(name string, along []float64) {
			var want float64
			for j := range along {
				want += along[j] * g[j]
			}
			loss := func(h float64) float64 {
				v := slices.Clone(w)
				for j := range v {
					v[j] += h * along[j]
				}
				loss, err := m.Loss(v, d)
				must(t, err)
				return loss
			}
			// Kinks of pooling and ReLU may be between the two points: smaller steps too.
			var got float64
			for _, h := range []float64{1e-4, 1e-5, 1e-6, 1e-7} {
				if got = (loss(h) - loss(-h)) / (2 * h); math.Abs(got-want) < 1e-6*(1+math.Abs(want)) {
					return
				}
			}
			t.Errorf("%+v, %s: derivative %v, quotient %v", m, name, want, got)
		}
		// without batch norm a convolution ends with its biases
		cuts = slices.Compact(append(cuts, len(w)))
		for k, from := range cuts[:len(cuts)-1] {
			to := cuts[k+1]
			along := make([]float64, len(w))
			var norm float64
			for j := from; j < to; j++ {
				along[j] = rng.NormFloat64()
				norm += along[j] * along[j]
			}
			for j := from; j < to; j++ {
				along[j] /= math.Sqrt(norm)
			}
			check(fmt.Sprint("parameters ", from, " to ", to), along)
			for range 3 {
				j := from + rng.IntN(to-from)
				one := make([]float64, len(w))
				one[j] = 1
				check(fmt.Sprint("parameter ", j), one)
			}
		}
	}
}

// naive is LeNet without batch norm, one image and one loop at a time.
func naive(m LeNet, w, x []float64) []float64 {
	conv, top := m.layers()
	for _, c := range conv {
		half := c.pooled()
		next := make([]float64, c.maps*half*half)
		for k := range c.maps {
			for y := range half {
				for z := range half {
					best := 0.0
					for corner := range 4 {
						sum := c.bias(w)[k]
						for p := range c.planes {
							for dy := range kernel {
								for dx := range kernel {
									row, col := 2*y+corner/2+dy, 2*z+corner%2+dx
									weight := c.weights(w)[((k*c.planes+p)*kernel+dy)*kernel+dx]
									sum += weight * x[(p*c.side+row)*c.side+col]
								}
							}
						}
						best = max(best, sum)
					}
					next[(k*half+y)*half+z] = best
				}
			}
		}
		x = next
	}
	for k, l := range top {
		next := slices.Clone(l.bias(w))
		for i, v := range x {
			for j := range next {
				next[j] += v * l.weights(w)[i*l.out+j]
			}
		}
		for j := range next {
			if k < 2 {
				next[j] = max(0, next[j])
			}
		}
		x = next
	}
	return x
}

func TestLeNetScores(t *testing.T) {
	for _, m := range lenets()[:2] {
		d := scattered(imagesAtOnce+3, max(1, m.Planes)*m.Side*m.Side, m.Outputs, 6)
		w := startOf(m, 3)
		z := make([]float64, d.Len()*m.Outputs)
		must(t, m.Scores(z, w, d))
		for i := range d.Len() {
			for j, want := range naive(m, w, d.Row(i)) {
				if got := z[i*m.Outputs+j]; math.Abs(got-want) > 1e-12 {
					t.Errorf("%+v: score %d of row %d is %v, want %v", m, j, i, got, want)
				}
			}
		}
	}
}

// In training the maps have mean shift and deviation scale; afterwards the statistics
// are those of the rows, so that scores equal those that training saw. Their gradient is 0.
func TestBatchNorm(t *testing.T) {
	m := LeNet{Side: 16, Outputs: 3, BatchNorm: true}
	d := scattered(40, 256, 3, 7)
	w := startOf(m, 4)
	conv, _ := m.layers()
	ws := new(workspace)
	rows := ws.rowOrder(d.Len())
	logits := slices.Clone(m.forward(ws, w, d, rows, true))
	g := make([]float64, len(w))
	must(t, m.Gradient(g, w, d))
	m.forward(ws, w, d, rows, true)
	for k, c := range conv {
		n := d.Len() * c.out() * c.out()
		for j := range c.maps {
			mean, variance := moments(ws.maps[k].values[j*n : (j+1)*n])
			scale, shift := c.normal(w)[j], c.normal(w)[c.maps+j]
			if math.Abs(mean-shift) > 1e-12 || math.Abs(variance/(scale*scale)-1) > 1e-3 {
				t.Errorf("convolution %d, map %d: mean %v and variance %v, want %v and %v", k, j, mean,
					variance, shift, scale*scale)
			}
			if c.normal(g)[2*c.maps+j] != 0 || c.normal(g)[3*c.maps+j] != 0 {
				t.Errorf("convolution %d: the statistics have a gradient", k)
			}
		}
	}
	trained := slices.Clone(w)
	if _, err := (SGD{Rate: 1e-300}).Train(m, trained, d, 1); err != nil {
		t.Fatal(err)
	}
	scores := make([]float64, len(logits))
	must(t, m.Scores(scores, trained, d))
	for i := range scores {
		if math.Abs(scores[i]-logits[i]) > 1e-12 {
			t.Fatalf("score %d is %v, in training %v", i, scores[i], logits[i])
		}
	}
	untrained := make([]float64, len(logits))
	must(t, m.Scores(untrained, w, d))
	if slices.Equal(untrained, scores) {
		t.Error("the statistics change nothing")
	}
}

// TestLeNetLearns trains on Fashion-MNIST a little; TestLeNetCentral is the long form.
func TestLeNetLearns(t *testing.T) {
	train, test := fashion(t)
	train, test = train.view(0, 2000), test.view(0, 500)
	for _, m := range []LeNet{{Side: 28, Outputs: 10}, {Side: 28, Outputs: 10, BatchNorm: true}} {
		w := m.Init(1)
		if _, err := (SGD{Rate: 0.02, Momentum: 0.9, Batch: 32, Epochs: 2}).
			Train(m, w, train, 1); err != nil {
			t.Fatal(err)
		}
		c, err := Evaluate(m, w, test)
		must(t, err)
		t.Logf("batch norm %v: %.4f after 2 epochs of 2,000 rows", m.BatchNorm, c.Accuracy())
		if c.Accuracy() < 0.6 {
			t.Errorf("batch norm %v: accuracy %v", m.BatchNorm, c.Accuracy())
		}
	}
}

// BenchmarkLeNet measures training by batches of 32 at 28×28, next to the same products on
// gonum's BLAS alone: those of both convolutions and the dense layers, forwards and
// backwards. ratio is the time of training over that of the products.
func BenchmarkLeNet(b *testing.B) {
	const batch = 32
	for _, m := range []LeNet{{Side: 28, Outputs: 10}, {Side: 28, Outputs: 10, BatchNorm: true}} {
		b.Run(fmt.Sprintf("norm=%v", m.BatchNorm), func(b *testing.B) {
			d := scattered(batch, 784, 10, 1)
			w := startOf(m, 1)
			conv, top := m.layers()
			var took, bare time.Duration
			sgd := SGD{Rate: 1e-9, Momentum: 0.9, Batch: batch, Steps: 1}
			for b.Loop() {
				start := time.Now()
				if _, err := sgd.Train(m, w, d, 1); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				for k, c := range conv {
					area := c.out() * c.out()
					width := max(1, panelLength/c.out()) * c.out()
					p, z := matrixOf(normal(c.patch()*width, 1), c.patch(), width),
						matrixOf(make([]float64, c.maps*width), c.maps, width)
					f := matrixOf(c.weights(w), c.maps, c.patch())
					from := time.Now()
					for range batch * area / width {
						product(blas.NoTrans, blas.NoTrans, f, p, 1, z)
						product(blas.NoTrans, blas.Trans, z, p, 0, f)
						if k == 1 {
							product(blas.Trans, blas.NoTrans, f, z, 0, p)
						}
					}
					bare += time.Since(from)
				}
				for _, l := range top {
					x, v, z := matrixOf(normal(batch*l.in, 1), batch, l.in), matrixOf(l.weights(w), l.in, l.out),
						matrixOf(make([]float64, batch*l.out), batch, l.out)
					from := time.Now()
					product(blas.NoTrans, blas.NoTrans, x, v, 1, z)
					product(blas.NoTrans, blas.Trans, z, v, 0, x)
					product(blas.Trans, blas.NoTrans, x, z, 1, v)
					bare += time.Since(from)
				}
				took += middle.Sub(start)
				w = startOf(m, 1)
			}
			b.ReportMetric(float64(batch*b.N)/took.Seconds(), "images/s")
			b.ReportMetric(took.Seconds()/bare.Seconds(), "ratio")
		})
	}
}

func fashion(t testing.TB) (train, test *Dataset) {
	t.Helper()
	train, test, err := ReadMNIST(realdata.Dir(t, "fashion-mnist"))
	must(t, err)
	return train, test
}

// TestLeNetCentral is ten epochs on all of Fashion-MNIST, some eight minutes of one
// core: run it with -longest.
func TestLeNetCentral(t *testing.T) {
	suite.OnlyLongest(t)
	train, test := fashion(t)
	m := LeNet{Side: 28, Outputs: 10}
	w := m.Init(1)
	start := time.Now()
	for epoch := range 10 {
		sgd := SGD{Rate: 0.01, Momentum: 0.9, WeightDecay: 1e-5, Batch: 32}
		if _, err := sgd.Train(m, w, train, uint64(epoch)); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		c, err := Evaluate(m, w, test)
		must(t, err)
		t.Logf("epoch %d: %.4f, %.0f images/s", epoch+1, c.Accuracy(),
			float64((epoch+1)*train.Len())/took.Seconds())
		if epoch == 9 && c.Accuracy() < 0.88 {
			t.Errorf("accuracy %v after ten epochs", c.Accuracy())
		}
	}
}

// Training allocates nothing per step.
func TestLeNetAllocations(t *testing.T) {
	m := LeNet{Side: 16, Outputs: 4}
	d := scattered(24, 256, 4, 1)
	w := startOf(m, 1)
	perTrain := func(steps int) float64 {
		return testing.AllocsPerRun(5, func() {
			if _, err := (SGD{Rate: 1e-9, Momentum: 0.9, Batch: 8, Steps: steps}).
				Train(m, w, d, 1); err != nil {
				t.Fatal(err)
			}
		})
	}
	if short, more := perTrain(3), perTrain(30); more > short+2 { // the pool may be emptied
		t.Errorf("%v allocations for 3 steps, %v for 30", short, more)
	}
}
