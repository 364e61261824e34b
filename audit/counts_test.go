package audit

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// The bound of 900/1000 against 50/1000 is that of an independent implementation.
func TestCounts(t *testing.T) {
	plain := Counts{TruePositives: 900, Positives: 1000, FalsePositives: 50, Negatives: 1000}
	epsilon, err := plain.Epsilon(0, 0.025)
	if err != nil || math.Abs(epsilon-2.599218) > 1e-6 {
		t.Errorf("ε ≥ %.6f, %v; want 2.599218", epsilon, err)
	}
	// The negated test shows as much when the two errors change places.
	mirrored := Counts{TruePositives: 950, Positives: 1000, FalsePositives: 100, Negatives: 1000}
	if got, err := mirrored.Epsilon(0, 0.025); err != nil || math.Abs(got-epsilon) > 1e-12 {
		t.Errorf("mirrored: %v, %v; want %v", got, err, epsilon)
	}
	equal := Counts{TruePositives: 50, Positives: 1000, FalsePositives: 50, Negatives: 1000}
	if got, err := equal.Epsilon(0, 0.025); err != nil || got != 0 {
		t.Errorf("equal rates: %v, %v", got, err)
	}
	// The bounds of the two rates are 0.879712 and 0.065390 by sums of binomial probabilities.
	if got := plain.Delta(0.025); math.Abs(got-(0.879712-0.065390)) > 2e-6 {
		t.Errorf("δ ≥ %v", got)
	}
	if got := equal.Delta(0.025); got != 0 {
		t.Errorf("equal rates: δ ≥ %v", got)
	}
	for _, bad := range []Counts{
		{-1, 10, 0, 10}, {11, 10, 0, 10}, {0, 0, 0, 10}, {0, 10, 11, 10}, {0, 10, 0, 0},
	} {
		if _, err := bad.Epsilon(0, 0.025); !errors.Is(err, ErrCounts) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, alpha := range []float64{0, 0.5, math.NaN()} {
		if _, err := plain.Epsilon(0, alpha); !errors.Is(err, ErrCounts) {
			t.Errorf("α = %v: %v", alpha, err)
		}
	}
	if _, err := Scores([]float64{1}, []float64{1, 2}, 0, 0.025); !errors.Is(err, ErrCounts) {
		t.Errorf("one run: %v", err)
	}
}

// Scores are from 0 to 3, and 3 more with the canary. The threshold 3 is chosen on the
// first half: only runs without the canary are below it, three quarters of them.
func ExampleScores() {
	without, with := make([]float64, 400), make([]float64, 400)
	for i := range without {
		without[i], with[i] = float64(i%4), float64(i%4)+3
	}
	result, err := Scores(without, with, 0, 0.025)
	fmt.Printf("%+v: ε ≥ %.2f, %v\n", result.Counts, result.Lower, err)
	// Output: {TruePositives:200 Positives:200 FalsePositives:50 Negatives:200}: ε ≥ 3.62, <nil>
}
