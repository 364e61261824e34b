package learning

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func mustCensus(t testing.TB, rows int, seed uint64) (*Dataset, []float64) {
	t.Helper()
	d, w, err := Census(rows, seed)
	if err != nil {
		t.Fatal(err)
	}
	return d, w
}

func TestCensusShape(t *testing.T) {
	d, _ := mustCensus(t, 20000, 5)
	groups := []int{censusWork, censusMarital, censusOccupation, censusHousehold, censusRegion,
		censusSex, censusConstant}
	seen := make([]bool, censusFeatures)
	for i := range d.Len() {
		x := d.Row(i)
		var sum float64
		for j, v := range x[:censusConstant] {
			if v < 0 || v > 1 {
				t.Fatalf("row %d has feature %d outside [0, 1]: %v", i, j, v)
			}
			sum += v * v
			seen[j] = seen[j] || v > 0
		}
		if math.Sqrt(sum) > 1+1e-12 || x[censusConstant] != 1 {
			t.Fatalf("row %d: norm %v, constant %v", i, math.Sqrt(sum), x[censusConstant])
		}
		for g := range len(groups) - 1 {
			ones := 0
			for _, v := range x[groups[g]:groups[g+1]] {
				if v > 0 {
					ones++
				}
			}
			if ones != 1 {
				t.Fatalf("row %d: group %d has %d levels set", i, g, ones)
			}
		}
	}
	if j := slices.Index(seen[:censusConstant], false); j >= 0 {
		t.Errorf("feature %d is never set", j)
	}
}

func TestCensusDeterministic(t *testing.T) {
	long, w := mustCensus(t, 1000, 9)
	short, v := mustCensus(t, 100, 9)
	other, u := mustCensus(t, 100, 10)
	if !slices.Equal(short.X, long.X[:len(short.X)]) ||
		!slices.Equal(short.Labels, long.Labels[:100]) {
		t.Error("a shorter table is not a prefix of the longer one")
	}
	if slices.Equal(short.X, other.X) {
		t.Error("two seeds gave the same rows")
	}
	if !slices.Equal(w, v) || !slices.Equal(w, u) {
		t.Error("the true weights depend on seed or size")
	}
	w[0]++
	if _, again := mustCensus(t, 1, 9); again[0] == w[0] {
		t.Error("the caller can change the true weights")
	}
}

// TestCensusFigures pins what the doc comment promises. Over 50,000 rows the
// share of positives has a standard deviation of 0.002 and the MCC one of about
// 0.004, so the bounds are five deviations wide.
func TestCensusFigures(t *testing.T) {
	for seed := range uint64(3) {
		d, w := mustCensus(t, 50000, seed)
		share := float64(positives(d)) / float64(d.Len())
		c, err := Logistic{Features: censusFeatures}.Evaluate(w, d)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(share-0.25) > 0.01 || math.Abs(c.MCC()-0.566) > 0.02 ||
			math.Abs(c.Accuracy()-0.843) > 0.01 {
			t.Errorf("seed %d: %.4f positive, MCC %.4f, accuracy %.4f", seed, share, c.MCC(), c.Accuracy())
		}
	}
}

// TestCensusRecoversTruth trains on many rows and compares the predictions on
// fresh ones with those of the true weights.
func TestCensusRecoversTruth(t *testing.T) {
	train, truth := mustCensus(t, 20000, 1)
	test, _ := mustCensus(t, 20000, 2)
	m := Logistic{Features: censusFeatures, Lambda: 1e-6}
	w := newton(t, m, train)
	p, q := make([]float64, test.Len()), make([]float64, test.Len())
	if err := errors.Join(m.Predict(p, w, test), m.Predict(q, truth, test)); err != nil {
		t.Fatal(err)
	}
	if r := correlation(p, q); r < 0.99 {
		t.Errorf("learnt and true probabilities correlate by %.4f only", r)
	}
	got, err1 := m.Evaluate(w, test)
	best, err2 := m.Evaluate(truth, test)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.MCC()-best.MCC()) > 0.02 {
		t.Errorf("learnt MCC %.4f, with the true weights %.4f", got.MCC(), best.MCC())
	}
}

func correlation(a, b []float64) float64 {
	n := float64(len(a))
	var ma, mb, ab, aa, bb float64
	for i := range a {
		ma += a[i] / n
		mb += b[i] / n
	}
	for i := range a {
		ab += (a[i] - ma) * (b[i] - mb)
		aa += (a[i] - ma) * (a[i] - ma)
		bb += (b[i] - mb) * (b[i] - mb)
	}
	return ab / math.Sqrt(aa*bb)
}

func TestCensusRejects(t *testing.T) {
	for _, rows := range []int{0, -1, maxCensusRows + 1, math.MaxInt} {
		if _, _, err := Census(rows, 1); !errors.Is(err, ErrValue) {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
}
