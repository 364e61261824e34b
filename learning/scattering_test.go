package learning

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
)

// patterned is an image of 28 × 28 pixels that follows from a formula.
func patterned() []float64 {
	x := make([]float64, 784)
	for i := range 28 {
		for j := range 28 {
			x[i*28+j] = float64((7*i*i+3*i*j+11*j)%256) / 255
		}
	}
	return x
}

// Features are those of another program, in Python with SciPy's transforms and in float32, which
// the recipe was found with.
func TestScatteringGolden(t *testing.T) {
	got := scatterOf(28).transform(patterned())
	if len(got) != 3969 {
		t.Fatalf("%d features", len(got))
	}
	sum, squares := 0.0, 0.0
	for _, x := range got {
		sum += math.Abs(float64(x))
		squares += float64(x) * float64(x)
	}
	if math.Abs(sum-35.244843) > 1e-4 || math.Abs(math.Sqrt(squares)-0.7324355) > 1e-6 {
		t.Errorf("sum of magnitudes %v, norm %v", sum, math.Sqrt(squares))
	}
	for at, want := range map[int]float64{0: -0.0047291, 1: 0.0070279, 48: 0.0242955, 49: -0.0140913,
		100: -0.0131286, 500: -0.0071523, 833: -0.0170435, 834: -0.0186138, 1000: -0.0045848,
		2000: 0.0128993, 3000: -0.0116560, 3968: -0.0093668} {
		if math.Abs(float64(got[at])-want) > 2e-6 {
			t.Errorf("feature %d is %v, want %v", at, got[at], want)
		}
	}
}

// imagesOf makes rows of random pixels, some of them odd: all 0, all alike, huge.
func imagesOf(n, side int) *Dataset {
	random := rand.New(rand.NewPCG(5, 5))
	d := &Dataset{Features: side * side}
	for i := range n {
		for range side * side {
			x := random.Float64()
			switch i % 10 {
			case 7:
				x = 0
			case 8:
				x = 0.5
			case 9:
				x *= 1e150
			}
			d.X = append(d.X, x)
		}
		d.Labels = append(d.Labels, i%3)
	}
	return d
}

// A row's features are the same to the last bit alone and among others, remembered or not, and
// their norm is at most 1: conditions of what noise on records promises.
func TestScatteringAlone(t *testing.T) {
	for _, side := range []int{8, 28, 30, 33} {
		d := imagesOf(40, side)
		m, ok := ScatteringFor(side*side, 3)
		if !ok {
			t.Fatal(side)
		}
		all, fresh := m.features(d, first(40)), newScatter(side)
		for i := range 40 {
			row := d.Row(i)
			alone := fresh.transform(slices.Clone(row))
			for j, x := range alone {
				if float64(x) != all.X[i*all.Features+j] {
					t.Fatalf("side %d: feature %d of row %d is another among others", side, j, i)
				}
			}
			if norm := blas64.Nrm2(vector(all.Row(i))); !(norm <= 1+1e-6) {
				t.Errorf("side %d: row %d has a norm of %v", side, i, norm)
			}
		}
	}
	for _, features := range []int{49, 100 * 101, 257 * 257, 3 * 32 * 32} {
		if _, ok := ScatteringFor(features, 3); ok {
			t.Errorf("%d features are taken", features)
		}
	}
}

// Gradients, clipped sums and scores are those of the softmax of the features.
func TestScatteringModel(t *testing.T) {
	d := imagesOf(30, 12)
	d.X = d.X[:9*144] // without the huge ones, whose differences have no digits
	d.Labels = d.Labels[:9]
	m, _ := ScatteringFor(144, 3)
	m.Lambda = 0.1
	own := m.features(d, first(9))
	w, random := m.Init(0), rand.New(rand.NewPCG(6, 6))
	for i := range w {
		w[i] = random.NormFloat64()
	}
	loss, err := m.Loss(w, d)
	want, err2 := m.softmax().Loss(w, own)
	if err != nil || err2 != nil || math.Abs(loss-want) > 1e-12 {
		t.Fatalf("loss %v, %v, want %v", loss, err, want)
	}
	got, softmax := make([]float64, len(w)), make([]float64, len(w))
	for _, f := range []func(m Model, dst []float64, d *Dataset) error{
		func(m Model, dst []float64, d *Dataset) error { return m.Gradient(dst, w, d) },
		func(m Model, dst []float64, d *Dataset) error {
			return ClippedSum(dst, m, w, d, unitsOf(9, 1), 0.5)
		},
		func(m Model, dst []float64, d *Dataset) error { return m.Scores(dst[:27], w, d) },
	} {
		if err := f(m, got, d); err != nil {
			t.Fatal(err)
		}
		if err := f(m.softmax(), softmax, own); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Abs(got[i]-softmax[i]) > 1e-12 {
				t.Fatalf("number %d is %v, want %v", i, got[i], softmax[i])
			}
		}
	}
}

func BenchmarkScattering(b *testing.B) {
	s, x := scatterOf(28), patterned()
	for b.Loop() {
		s.transform(x)
	}
}

func BenchmarkScatteringSum(b *testing.B) {
	d := imagesOf(600, 28)
	m, _ := ScatteringFor(784, 10)
	w := m.Init(0)
	units, dst := unitsOf(600, 1), make([]float64, len(w))
	for b.Loop() {
		if err := ClippedSum(dst, m, w, d, units, 0.5); err != nil {
			b.Fatal(err)
		}
	}
}
