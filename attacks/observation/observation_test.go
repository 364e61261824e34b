package observation

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/attacks"
	"gonum.org/v1/gonum/mat"
)

// Three parties in four rounds, by hand.
func TestDisaggregate(t *testing.T) {
	truth := mat.NewDense(4, 3, []float64{1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0})
	updates := mat.NewDense(3, 3, []float64{1, 2, 3, -1, 0, 5, 7, 7, -2})
	var sums mat.Dense
	sums.Mul(truth, updates)
	p := Participation{Sums: &sums, Window: 2, Counts: [][]int{{2, 0}, {1, 2}, {1, 1}}}
	matrix, got, err := Disaggregate(p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for r := range 4 {
			if float64(matrix[i][r]) != truth.At(r, i) {
				t.Errorf("party %d, round %d: %d", i, r, matrix[i][r])
			}
		}
	}
	if !mat.EqualApprox(got, updates, 1e-9) {
		t.Errorf("updates %v", mat.Formatted(got))
	}
	for _, bad := range []Participation{
		{Sums: &sums, Window: 3, Counts: p.Counts},
		{Sums: &sums, Window: 2, Counts: [][]int{{2}, {1}, {1}}},
		{Sums: &sums, Window: 2, Counts: [][]int{{9, 0}, {1, 2}, {1, 1}}},
		{Sums: &sums, Window: 2},
	} {
		if _, _, err := Disaggregate(bad); !errors.Is(err, ErrDisaggregation) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Every output on input 0 is in the support; and the slow logarithm agrees with the
// fast one to an ulp.
func TestLaplaceSupport(t *testing.T) {
	r := attacks.Options{}.Rand(1)
	for range 2000 {
		u := float64(r.Uint64()>>11+1) / (1 << 53)
		for _, ln := range []func(float64) float64{math.Log, logRounded} {
			if !inLaplaceSupport(ln(u), ln) {
				t.Fatalf("ln %v is not in the support", u)
			}
		}
		if a, b := math.Log(u), logRounded(u); math.Abs(a-b) > math.Abs(a)*0x1p-51 {
			t.Errorf("ln %v: %v and %v", u, a, b)
		}
	}
	if got := logRounded(1); got != 0 {
		t.Errorf("ln 1 = %v", got)
	}
	if got := logRounded(0.5); got != -math.Ln2 {
		t.Errorf("ln ½ = %v", got)
	}
	if got := outsideSupport(); math.Abs(got-.6013) > 1e-4 {
		t.Errorf("outside: %v", got)
	}
}

func TestTimeSamplesWithoutClock(t *testing.T) {
	if _, _, err := timeSamples(context.Background(), nil, 1, nil); !errors.Is(err, errClock) {
		t.Error(err)
	}
}
