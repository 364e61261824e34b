package audit

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// The figures are those of independent implementations.
func TestOneRun(t *testing.T) {
	for _, c := range []struct {
		run         OneRun
		delta, want float64
	}{
		{OneRun{1000, 1000, 750}, 0, 0.976667},
		{OneRun{1000, 1000, 750}, 1e-5, 0.976367},
		{OneRun{1000, 100, 95}, 0, 2.172434},
		{OneRun{1000, 100, 95}, 1e-5, 2.165176},
		{OneRun{1000, 100, 100}, 0, 3.492965},
		{OneRun{1000, 1000, 600}, 0, 0.297468},
		{OneRun{1000, 1000, 500}, 0, 0},
	} {
		got, err := c.run.Epsilon(c.delta, 0.95)
		if err != nil || math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%+v, δ = %v: ε ≥ %.6f, %v; want %.6f", c.run, c.delta, got, err, c.want)
		}
	}
	// All right is refuted for q^r ≤ 0.05: ε = ln(q/(1−q)) in closed form.
	q := math.Pow(0.05, 1.0/100)
	if got, _ := (OneRun{100, 100, 100}).Epsilon(0, 0.95); math.Abs(got-math.Log(q/(1-q))) > 1e-8 {
		t.Errorf("all right: %v, want %v", got, math.Log(q/(1-q)))
	}
	for _, run := range []OneRun{{0, 1, 1}, {10, 11, 1}, {10, 5, 6}, {10, 0, 0}, {10, 5, -1}} {
		if _, err := run.Epsilon(0, 0.95); !errors.Is(err, ErrCounts) {
			t.Errorf("%+v: %v", run, err)
		}
	}
	for _, bad := range []float64{math.NaN(), -1, 2} {
		if _, err := (OneRun{10, 5, 3}).Epsilon(bad, 0.95); !errors.Is(err, ErrCounts) {
			t.Errorf("δ = %v: %v", bad, err)
		}
		if _, err := (OneRun{10, 5, 3}).Epsilon(0, bad); !errors.Is(err, ErrCounts) {
			t.Errorf("confidence %v: %v", bad, err)
		}
	}
}

// One run of a mechanism that claims ε = 0.5 included each of 1,000 canaries by a
// coin. Of 100 guesses 95 are right: the claim is wrong.
func ExampleOneRun() {
	run := OneRun{Canaries: 1000, Guesses: 100, Right: 95}
	epsilon, err := run.Epsilon(1e-5, 0.95)
	fmt.Printf("ε ≥ %.3f, %v\n", epsilon, err)
	// Output: ε ≥ 2.165, <nil>
}
