package observation

import (
	"errors"
	"testing"

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
		{Window: 2, Counts: p.Counts},
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
