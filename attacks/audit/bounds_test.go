package audit

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/hushsum/hushsum/attacks"
)

// The figures are those of independent implementations.
func TestOneRunAudit(t *testing.T) {
	for _, c := range []struct {
		m, r, v     int
		delta, want float64
	}{
		{1000, 1000, 750, 0, .976667},
		{1000, 1000, 750, 1e-5, .976367},
		{1000, 100, 95, 0, 2.172434},
		{1000, 100, 95, 1e-5, 2.165176},
		{1000, 100, 100, 0, 3.492965},
		{1000, 1000, 600, 0, .297468},
		{1000, 1000, 500, 0, 0},
	} {
		got, err := OneRun(c.m, c.r, c.v, c.delta, 0.95)
		if err != nil || math.Abs(got-c.want) > 1e-6 {
			t.Errorf("m = %d, r = %d, v = %d, δ = %v: ε ≥ %.6f, %v; want %.6f", c.m, c.r, c.v, c.delta, got, err, c.want)
		}
	}
	// All right is refuted for q^r ≤ 0.05: ε = ln(q/(1−q)) in closed form.
	q := math.Pow(0.05, 1.0/100)
	if got, _ := OneRun(100, 100, 100, 0, 0.95); math.Abs(got-math.Log(q/(1-q))) > 1e-8 {
		t.Errorf("all right: %v, want %v", got, math.Log(q/(1-q)))
	}
	for _, c := range [][3]int{{0, 1, 1}, {10, 11, 1}, {10, 5, 6}, {10, 0, 0}, {10, 5, -1}} {
		if _, err := OneRun(c[0], c[1], c[2], 0, 0.95); !errors.Is(err, ErrCounts) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, bad := range []float64{math.NaN(), -1, 2} {
		if _, err := OneRun(10, 5, 3, bad, 0.95); !errors.Is(err, ErrCounts) {
			t.Errorf("δ = %v: %v", bad, err)
		}
		if _, err := OneRun(10, 5, 3, 0, bad); !errors.Is(err, ErrCounts) {
			t.Errorf("confidence %v: %v", bad, err)
		}
	}
}

func TestClopperPearson(t *testing.T) {
	a, err := ClopperPearson(900, 1000, 50, 1000, 0, 0.025)
	if err != nil || math.Abs(a.Lower-2.599218) > 1e-6 {
		t.Errorf("ε ≥ %.6f, %v; want 2.599218", a.Lower, err)
	}
	// The negated test shows as much when the two errors change places.
	b, err := ClopperPearson(950, 1000, 100, 1000, 0, 0.025)
	if err != nil || math.Abs(a.Lower-b.Lower) > 1e-12 {
		t.Errorf("mirrored: %v, %v; want %v", b.Lower, err, a.Lower)
	}
	// None of n: the upper bound is 1 − α^(1/n).
	if got, want := attacks.BinomialUpper(0, 50, 0.01), 1-math.Pow(0.01, 1.0/50); math.Abs(got-want) > 1e-12 {
		t.Errorf("0 of 50: %v, want %v", got, want)
	}
	if a, err := ClopperPearson(50, 1000, 50, 1000, 0, 0.025); err != nil || a.Lower != 0 {
		t.Errorf("equal rates: %+v, %v", a, err)
	}
	for _, c := range [][4]int{{-1, 10, 0, 10}, {11, 10, 0, 10}, {0, 0, 0, 10}, {0, 10, 11, 10}, {0, 10, 0, 0}} {
		if _, err := ClopperPearson(c[0], c[1], c[2], c[3], 0, 0.025); !errors.Is(err, ErrCounts) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, alpha := range []float64{0, 0.5, math.NaN()} {
		if _, err := ClopperPearson(1, 10, 1, 10, 0, alpha); !errors.Is(err, ErrCounts) {
			t.Errorf("α = %v: %v", alpha, err)
		}
	}
	if _, err := Scores([]float64{1}, []float64{1, 2}, 0, 0.025); !errors.Is(err, ErrCounts) {
		t.Errorf("one run: %v", err)
	}
}

// One run of a mechanism that claims ε = 0.5 included each of 1,000 canaries by a
// coin. Of 100 guesses 95 are right: the claim is wrong.
func ExampleOneRun() {
	epsilon, err := OneRun(1000, 100, 95, 1e-5, 0.95)
	fmt.Printf("ε ≥ %.3f, %v\n", epsilon, err)
	// Output: ε ≥ 2.165, <nil>
}
