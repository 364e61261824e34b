package observation

import (
	"math"
	"testing"

	"github.com/hushsum/hushsum/attacks"
)

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
	if got := outsideSupport(); math.Abs(got-0.6013) > 1e-4 {
		t.Errorf("outside: %v", got)
	}
}
