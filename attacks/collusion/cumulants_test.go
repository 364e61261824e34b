package collusion

import (
	"math"
	"testing"
)

// The closed formulas of the table, and its figures at n = 100.
func TestCollusionFormulas(t *testing.T) {
	want := map[string]struct {
		formula func(n float64) float64
		at100   float64
		r2      float64
	}{
		"T Naive":  {func(n float64) float64 { return 2 * n }, 200, 0.078},
		"T Random": {func(n float64) float64 { return 2 * (n*n - n + 1) / n }, 198, 0.079},
		"T Diff":   {func(n float64) float64 { return 2 * (3*(n-1)*(n-1) + n) / n }, 590, 0.028},
		"T Mean":   {func(n float64) float64 { return (n-1)*(n-1)/n + 2 }, 100, 0.144},
		"F Naive":  {func(n float64) float64 { return 2 * (2*n - 1) / n }, 3.98, 0.81},
		"F Random": {func(n float64) float64 { return 2 * (2*n - 1) / n }, 3.98, 0.81},
		"F Diff":   {func(n float64) float64 { return 2 * (4*n - 3) / n }, 7.94, 0.68},
		"F Mean":   {func(n float64) float64 { return (3*n - 1) / n }, 2.99, 0.85},
		"L Naive":  {func(n float64) float64 { return (3*n - 1) / n }, 2.99, 0.85},
		"L Random": {func(n float64) float64 { return (3*n - 1) / n }, 2.99, 0.85},
		"L Diff":   {func(n float64) float64 { return (7*n - 5) / n }, 6.95, 0.71},
		"L Mean":   {func(float64) float64 { return 2 }, 2, 0.894},
		"Sybil":    {func(n float64) float64 { return (n + 1) / n }, 1.01, 0.944},
		"Transfer": {func(float64) float64 { return 2 }, 2, 0.894},
	}
	for _, n := range []int{2, 3, 7, 100} {
		for _, c := range tableCases(n) {
			w, ok := want[c.name]
			if !ok {
				t.Fatalf("no formula for %s", c.name)
			}
			left := c.form.left(c.pooling, c.guess).second
			if math.Abs(left-w.formula(float64(n))) > 1e-9*left {
				t.Errorf("%s at n = %d: %v, want %v", c.name, n, left, w.formula(float64(n)))
			}
			if n != 100 {
				continue
			}
			if math.Abs(left-w.at100) > 0.005*w.at100 {
				t.Errorf("%s: %v, the table has %v", c.name, left, w.at100)
			}
			digits := 2000.0 // of r², to half a unit in the third place
			if w.r2 == 0.81 || w.r2 == 0.68 || w.r2 == 0.85 || w.r2 == 0.71 {
				digits = 200
			}
			if r2 := determination(left); math.Abs(r2-w.r2) > 1/digits+1e-9 {
				t.Errorf("%s: r² = %v, the table has %v", c.name, r2, w.r2)
			}
		}
	}
	for left, r2 := range map[float64]float64{2: 0.894, 0.02: 0.999} {
		if got := determination(left); math.Abs(got-r2) > 0.0005 {
			t.Errorf("variance %v: r² = %v, the table has %v", left, got, r2)
		}
	}
}
