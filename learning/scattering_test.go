package learning

import (
	"errors"
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
	if n := (Scattering{Side: 28}).numFeatures(); n != 3969 || len(got) < n {
		t.Fatalf("%d features in %d places", n, len(got))
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

// featuresOfRows returns a data set of the features of all rows, standardised if m does.
func featuresOfRows(m Scattering, d *Dataset) *Dataset {
	n := m.numFeatures()
	out := &Dataset{Features: n, Labels: d.Labels}
	for i := range d.Len() {
		x := make([]float64, n)
		for j, v := range newScatter(m.Side).transform(d.Row(i))[:n] {
			x[j] = float64(v)
			if s := m.Standard; s != nil {
				x[j] = (x[j] - s.mean[j]) * s.scale[j]
			}
		}
		if norm := blas64.Nrm2(vector(x)); m.Standard != nil && norm > 1 {
			blas64.Scal(1/norm, vector(x))
		}
		out.X = append(out.X, x...)
	}
	return out
}

// A row's features, and its scores, are the same to the last bit alone and among 6,000, remembered
// or not, and the norm of features is at most 1: conditions of what noise on records promises.
func TestScatteringAlone(t *testing.T) {
	for _, side := range []int{8, 28, 30, 33} {
		rows := 40
		if side == 8 {
			rows = 6000
		}
		d := imagesOf(rows, side)
		m, ok := ScatteringFor(side*side, 3)
		if !ok {
			t.Fatal(side)
		}
		w, random := m.Init(0), rand.New(rand.NewPCG(4, 4))
		for i := range w {
			w[i] = random.NormFloat64()
		}
		scores, one := make([]float64, 3*rows), make([]float64, 3)
		if err := m.Scores(scores, w, d); err != nil {
			t.Fatal(err)
		}
		ws, transform := new(workspace), scatterOf(side)
		fresh := newScatter(side)
		for i := range rows {
			among := slices.Clone(transform.features(ws, d, i))
			if i%7 == 0 || rows < 6000 {
				alone := fresh.transform(slices.Clone(d.Row(i)))
				if !slices.Equal(alone, among) {
					t.Fatalf("side %d: features of row %d are others among others", side, i)
				}
			}
			norm := 0.0
			for _, x := range among {
				norm = math.Hypot(norm, float64(x))
			}
			if !(norm <= 1+1e-6) {
				t.Errorf("side %d: row %d has a norm of %v", side, i, norm)
			}
			if err := m.Scores(one, w, d.view(i, i+1)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(one, scores[3*i:3*i+3]) {
				t.Fatalf("side %d: scores of row %d are others among others", side, i)
			}
		}
	}
	for _, features := range []int{49, 100 * 101, 257 * 257, 3 * 32 * 32} {
		if _, ok := ScatteringFor(features, 3); ok {
			t.Errorf("%d features are taken", features)
		}
	}
}

// Gradients, clipped sums and scores are those of the softmax of the features, standardised or not.
func TestScatteringModel(t *testing.T) {
	d := imagesOf(30, 12)
	d.X = d.X[:9*144] // without the huge ones, whose differences have no digits
	d.Labels = d.Labels[:9]
	plain, _ := ScatteringFor(144, 3)
	plain.Lambda = 0.1
	moments, random := make([]float64, plain.Moments()), rand.New(rand.NewPCG(6, 6))
	if err := plain.MomentSum(moments, d, unitsOf(9, 1), 0.5); err != nil {
		t.Fatal(err)
	}
	blas64.Scal(1./9, vector(moments))
	standard, err := plain.Standardised(moments, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Scattering{plain, standard} {
		own := featuresOfRows(m, d)
		w := m.Init(0)
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
}

// Moments are those of plain sums, and what a unit adds has a norm of at most the clip, whatever is
// in its rows. What is not finite adds nothing.
func TestMoments(t *testing.T) {
	const clip = 0.5
	d := imagesOf(30, 12)
	d.X[5*144+3], d.X[6*144+4] = math.NaN(), math.Inf(1)
	m, _ := ScatteringFor(144, 3)
	n, sum := m.numFeatures(), make([]float64, m.Moments())
	own := featuresOfRows(m, d)
	for i := range 30 {
		if err := m.MomentSum(sum, d, [][]int{{i}}, clip); err != nil {
			t.Fatal(err)
		}
		norm := blas64.Nrm2(vector(sum))
		if bad := i == 5 || i == 6; bad != (norm == 0) && i%10 != 7 && i%10 != 8 {
			t.Errorf("row %d adds a norm of %v", i, norm)
		}
		if !(norm <= clip*(1+1e-12)) {
			t.Errorf("row %d adds a norm of %v", i, norm)
		}
	}
	good := [][]int{{0, 1, 2}, {3}, {4}}
	if err := m.MomentSum(sum, d, append(good, []int{5}), clip); err != nil {
		t.Fatal(err)
	}
	for j := range n {
		first, second := 0.0, 0.0
		for _, unit := range good {
			for _, i := range unit {
				x, fourth := own.Row(i), 0.0
				for _, v := range x {
					fourth += v * v * v * v
				}
				first += x[j] / float64(len(unit))
				second += x[j] * x[j] / max(0.1, math.Sqrt(fourth)) / float64(len(unit))
			}
		}
		if math.Abs(sum[j]-first*clip/math.Sqrt2) > 1e-6 ||
			math.Abs(sum[n+j]-second*clip/math.Sqrt2) > 1e-6 {
			t.Fatalf("moments %d: %v and %v", j, sum[j], sum[n+j])
		}
	}
	for _, size := range []float32{0.1, 1, 3} { // in a single feature, as no image has it
		clear(sum)
		spike := make([]float32, m.padding())
		spike[7] = size
		m.addMoments(sum, spike)
		for name, half := range map[string][]float64{"first": sum[:n], "second": sum[n:]} {
			if norm := blas64.Nrm2(vector(half)); !(norm <= 1+1e-12) {
				t.Errorf("%s moments of norm %v", name, norm)
			}
		}
	}
	sum[4] = math.NaN()
	if _, err := m.Standardised(sum, clip); !errors.Is(err, ErrValue) {
		t.Errorf("a moment that is no number: %v", err)
	}
	if _, err := m.Standardised(sum[1:], clip); !errors.Is(err, ErrShape) {
		t.Errorf("a moment less: %v", err)
	}
	clear(sum)
	if zero, err := m.Standardised(sum, clip); err != nil || !allFinite(zero.Standard.scale) {
		t.Errorf("moments of nothing: %v", err)
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
