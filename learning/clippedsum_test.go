package learning

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"pgregory.net/rapid"
)

// plainly is m without regularisation.
func plainly(m Model) Model {
	switch m := m.(type) {
	case Logistic:
		m.Lambda = 0
		return m
	case Softmax:
		m.Lambda = 0
		return m
	case MLP:
		m.Lambda = 0
		return m
	}
	lenet := m.(LeNet)
	lenet.Lambda = 0
	return lenet
}

// oneByOne is ClippedSum by its definition.
func oneByOne(
	t interface{ Fatal(...any) }, m Model, w []float64, d *Dataset, units [][]int, clip float64,
) []float64 {
	sum, g := make([]float64, len(w)), make([]float64, len(w))
	for _, unit := range units {
		rows, err := d.Subset(unit)
		must(t, err)
		must(t, plainly(m).Gradient(g, w, rows))
		blas64.Axpy(min(1, clip/blas64.Nrm2(vector(g))), vector(g), vector(sum))
	}
	return sum
}

// unitsOf deals the first rows to units of one row or some.
func unitsOf(rows, most int) (units [][]int) {
	for at := 0; at < rows; {
		var unit []int
		for range 1 + at%most {
			if at < rows {
				unit = append(unit, at)
				at++
			}
		}
		units = append(units, unit)
	}
	return units
}

// The sum is that of the units' gradients, each clipped: for every model, units of one row and of
// more, more rows than are worked on at once, all clipped, none, or some.
func TestClippedSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		n := rapid.SampledFrom([]int{1, 5, chunkRows, chunkRows + 7}).Draw(t, "rows")
		d := scattered(n, featuresOf(m), m.Classes(), rapid.Uint64().Draw(t, "seed"))
		units := unitsOf(n, rapid.IntRange(1, 3).Draw(t, "most"))
		w := normal(m.NumParams(), 1)
		clip := rapid.SampledFrom([]float64{1e-3, 0.3, 1, 1e6}).Draw(t, "clip")
		got := normal(len(w), 2) // what was there must not matter
		must(t, ClippedSum(got, m, w, d, units, clip))
		for j, want := range oneByOne(t, m, w, d, units, clip) {
			if math.Abs(got[j]-want) > 1e-11*(1+math.Abs(want)) {
				t.Fatalf("coordinate %d is %v, want %v", j, got[j], want)
			}
		}
	})
}

// LeNet's too, from pixels.
func TestClippedSumLeNet(t *testing.T) {
	m := LeNet{Side: 16, Outputs: 3, Lambda: 0.1}
	d := &Dataset{Features: 256, Pixels: make([]byte, 5*256), Labels: []int{0, 1, 2, 0, 1}}
	for j, x := range normal(len(d.Pixels), 3) {
		d.Pixels[j] = byte(128 + 40*x)
	}
	w, units := m.Init(1), [][]int{{0}, {1, 4}, {2}}
	got := make([]float64, len(w))
	must(t, ClippedSum(got, m, w, d, units, 0.5))
	for j, want := range oneByOne(t, m, w, d, units, 0.5) {
		if math.Abs(got[j]-want) > 1e-12 {
			t.Fatalf("coordinate %d is %v, want %v", j, got[j], want)
		}
	}
}

// Taking a unit away moves the sum by at most the clip, whatever is in its rows: numbers that are
// none, or so large that nothing is finite, or a label that there is not.
func TestClippedSumBoundsUnits(t *testing.T) {
	const clip = 0.7
	for _, m := range []Model{Logistic{3, 0.5}, Softmax{3, 4, 0.5}, MLP{3, []int{20}, 4, 0.5}} {
		w := normal(m.NumParams(), 4)
		for _, bad := range []struct {
			x     float64
			label int
		}{
			{1, 0}, {1e3, 1}, {1e200, 0}, {math.MaxFloat64, 1}, {math.NaN(), 0}, {math.Inf(1), 1},
			{math.Inf(-1), 0}, {1, -1}, {1, 4},
		} {
			d := scattered(50, 3, m.Classes(), 5)
			units := unitsOf(50, 1)
			with, without := make([]float64, len(w)), make([]float64, len(w))
			must(t, ClippedSum(without, m, w, d, append(append([][]int(nil), units[:9]...), units[10:]...),
				clip))
			d.X[9*3+1], d.Labels[9] = bad.x, bad.label
			must(t, ClippedSum(with, m, w, d, units, clip))
			moved := 0.0
			for j := range with {
				moved = math.Hypot(moved, with[j]-without[j])
			}
			if !(moved <= clip*(1+1e-12)) {
				t.Errorf("%T with %v: it moved by %v", m, bad, moved)
			}
			if unknown := bad.label < 0 || bad.label >= m.Classes(); unknown && moved > 1e-12 {
				t.Errorf("%T with %v: it counts, by %v", m, bad, moved)
			}
		}
	}
}

// Taking a unit away moves the sum by at most the clip, also where others are near to a jump: with
// weights so large that the last bits of a score decide a gradient, a row's score must be computed
// alike wherever it is among others, and whatever these are.
func TestClippedSumBoundsUnitsAnyWeights(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for range 2000 {
		f := 2 + random.IntN(20)
		n := 5 + random.IntN(5)
		d := scattered(n, f, 2, random.Uint64())
		row := normal(f, random.Uint64())
		for i := range n {
			copy(d.X[i*f:], row) // the others are alike
		}
		for j := range f {
			d.X[j] = random.NormFloat64()
		}
		if random.IntN(2) == 0 {
			d.X[0] = 1e200 // its norm is found another way, and those of others with it
		}
		for _, m := range []Model{Logistic{f, 0}, Softmax{f, 2, 0}, MLP{f, []int{19}, 2, 0}} {
			w := normal(m.NumParams(), random.Uint64())
			for j := range w {
				w[j] *= 1e18
			}
			if _, linear := m.(Logistic); linear { // the others' scores cancel
				w[0] -= blas64.Dot(vector(w), vector(row)) / row[0]
			}
			units := unitsOf(n, 1)
			with, without := make([]float64, len(w)), make([]float64, len(w))
			must(t, ClippedSum(with, m, w, d, units, 1))
			must(t, ClippedSum(without, m, w, d, units[1:], 1))
			blas64.Axpy(-1, vector(without), vector(with))
			worst = max(worst, blas64.Nrm2(vector(with)))
		}
	}
	if !(worst <= 1+1e-12) {
		t.Errorf("a record moved a sum by %v clips", worst)
	}
}

// Nor does it move the sum by more where squares underflow, or quotients of the clip.
func TestClippedSumBoundsUnitsTinyClip(t *testing.T) {
	for _, clip := range []float64{1e-12, 1e-60, 0x1p-500} {
		for _, c := range []struct{ x, z float64 }{
			{1e153, -374}, {1e150, -370}, {1e120, -380}, {1e308, 1}, {1e300, 1},
		} {
			d := &Dataset{X: []float64{c.x}, Features: 1, Labels: []int{0}}
			for _, m := range []Model{Logistic{1, 0}, Softmax{1, 2, 0}} {
				w := make([]float64, m.NumParams())
				w[len(w)-1-len(w)/3*2] = c.z / c.x
				sum := make([]float64, len(w))
				must(t, ClippedSum(sum, m, w, d, [][]int{{0}}, clip))
				if norm := blas64.Nrm2(vector(sum)); !(norm <= clip*(1+1e-12)) {
					t.Errorf("%T of %v: a record adds %v, the clip is %v", m, c, norm, clip)
				}
			}
		}
	}
}

func TestClippedSumRefuses(t *testing.T) {
	m, d := Logistic{3, 0}, scattered(4, 3, 2, 1)
	for _, c := range []struct {
		say   string
		m     Model
		w     int
		units [][]int
		clip  float64
		want  error
	}{
		{"batch normalisation", LeNet{Side: 16, Outputs: 2, BatchNorm: true}, 3, nil, 1, ErrValue},
		{"a model of somebody else's", struct{ Model }{m}, 3, nil, 1, ErrValue},
		{"no clip", m, 3, nil, 0, ErrValue},
		{"a clip that is none", m, 3, nil, math.NaN(), ErrValue},
		{"too few parameters", m, 2, nil, 1, ErrShape},
		{"another number of features", Logistic{2, 0}, 2, nil, 1, ErrShape},
		{"a unit without rows", m, 3, [][]int{{}}, 1, ErrShape},
		{"a row that there is not", m, 3, [][]int{{4}}, 1, ErrShape},
	} {
		dst := []float64{7, 7, 7}[:c.w]
		err := ClippedSum(dst, c.m, make([]float64, c.w), d, c.units, c.clip)
		if !errors.Is(err, c.want) || dst[0] != 7 {
			t.Errorf("%s: %v, %v", c.say, err, dst)
		}
	}
	dst := []float64{7, 7, 7}
	if err := ClippedSum(dst, m, make([]float64, 3), &Dataset{Features: 3}, nil, 1); err != nil ||
		dst[0] != 0 {
		t.Errorf("no units: %v, %v", err, dst)
	}
}

func BenchmarkClippedSum(b *testing.B) {
	d := scattered(3000, 105, 2, 1)
	units := unitsOf(3000, 1)
	for _, m := range []Model{Logistic{105, 0}, MLP{105, []int{64}, 10, 0}} {
		name := "logistic"
		if _, ok := m.(MLP); ok {
			name = "mlp:64"
		}
		b.Run(name, func(b *testing.B) {
			dst, w := make([]float64, m.NumParams()), m.Init(1)
			for range b.N {
				must(b, ClippedSum(dst, m, w, d, units, 1))
			}
		})
	}
}
