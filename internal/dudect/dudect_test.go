package dudect

import (
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"testing"
)

var sink byte

// compare is a comparison that ends at the first difference: the classical leak.
func compare(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A leak of some nanoseconds is found, and none where there is none.
func TestPower(t *testing.T) {
	secret := make([]byte, 4096)
	prepare := func(class int) []byte {
		guess := make([]byte, len(secret))
		guess[0] = byte(class) // class 1 differs at once
		return guess
	}
	Check(t, "an early exit", true, 1<<14, prepare, func(guess []byte) {
		if compare(secret, guess) {
			sink++
		}
	})
	Check(t, "a hash", false, 1<<14, prepare, func(guess []byte) {
		sum := sha256.Sum256(guess)
		sink += sum[0]
	})
}

// Welch's statistic has known values, and tells a shift of a tenth of a standard deviation
// from none.
func TestWelch(t *testing.T) {
	// Means 2 and 5, variances 1 and 4 of three values each.
	got, want := welch([]float64{1, 2, 3}, []float64{3, 5, 7}), -3/math.Sqrt(1./3+4./3)
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("t = %v, want %v", got, want)
	}
	for name, few := range map[string][]float64{"nothing": nil, "one": {1}} {
		if got := welch(few, []float64{1, 2}); got != 0 {
			t.Errorf("%s: t = %v, want 0", name, got)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	sample := func(mean float64) []float64 {
		out := make([]float64, 1<<15)
		for i := range out {
			out[i] = mean + random.NormFloat64()
		}
		return out
	}
	if same := math.Abs(welch(sample(0), sample(0))); same > Limit {
		t.Errorf("two samples of one law: |t| = %v", same)
	}
	if other := math.Abs(welch(sample(0), sample(0.1))); other <= Limit {
		t.Errorf("two samples of two laws: |t| = %v", other)
	}
}

// What is above a cut is left out.
func TestKept(t *testing.T) {
	if got := kept([]float64{3, 1, 2, 9}, 2); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Error(got)
	}
}
