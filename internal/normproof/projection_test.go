package normproof

import (
	"math"
	"testing"
)

// Constants of the lemma of SPEC-ONESHOT.md §13.6, in units of β.
const (
	long     = 2.85                   // the least length that is refused
	exponent = 2.31                   // t·2.85²
	tilt     = exponent / long / long // t
)

// highest bounds E[|cos(v/√a)|^(2a)] from above, for v normal of variance exponent/2, for all a
// from low to high: an upper sum over so many intervals of v.
func highest(low, high float64, intervals int) float64 {
	const end = 12 // 11 deviations
	sum := math.Erfc(end / math.Sqrt(exponent))
	step := end / float64(intervals)
	for i := range intervals {
		v := float64(i) * step
		// Angles from first to last; cos² is 1 if a multiple of π is among them.
		first, last := v/math.Sqrt(high), (v+step)/math.Sqrt(low)
		cos := max(math.Abs(math.Cos(first)), math.Abs(math.Cos(last)))
		if math.Floor(first/math.Pi) != math.Floor(last/math.Pi) || i == 0 {
			cos = 1
		}
		density := math.Exp(-v*v/exponent) / math.Sqrt(math.Pi*exponent)
		sum += 2 * step * density * math.Pow(cos, 2*low)
	}
	return sum
}

// below finds intervals from low to high that are so short that all are below the limit.
func below(t *testing.T, low, high, limit float64, depth int) int {
	t.Helper()
	if highest(low, high, 400<<min(depth, 8)) < limit {
		return 1
	}
	if depth == 24 {
		t.Fatalf("not below %g for a of %g", limit, low)
	}
	middle := math.Sqrt(low * high)
	return below(t, low, middle, limit, depth+1) + below(t, middle, high, limit, depth+1)
}

// TestProjection is the numerical part of the lemma that no long vector looks short, whatever it
// is, modulo numbers of 24 times the bound and more: upper bounds, not estimates.
func TestProjection(t *testing.T) {
	const limit = 0.5500
	t.Logf("%d intervals of a", below(t, 1, 16, limit, 0))
	// Beyond 16, cos² x ≤ exp(−x²) up to |x| = π/2, and what is further out has little weight.
	if far := 1/math.Sqrt(1+exponent) + math.Erfc(math.Pi/2*4/math.Sqrt(exponent)); far >= limit {
		t.Errorf("%.5f beyond 16", far)
	}
	if single := 0.5 + math.Exp(-exponent)/2; single >= limit {
		t.Errorf("%.5f for one coordinate", single)
	}
	// Step 4: sums beyond q/2.
	around := 2.02*math.Exp(-wrap*wrap/8./long/long) + 2.02*math.Exp(-tilt*wrap*wrap/4)
	power := (slack*tilt + rows*math.Log(limit+around)) / math.Ln2
	t.Logf("‖u‖ ≤ 15β with 2^%.2f at most; %.5f of it for sums beyond q/2", power, around)
	if power >= -128 {
		t.Errorf("a long vector looks short with 2^%.2f", power)
	}
	// The limits depend on all of it.
	if closer := (slack*tilt + rows*math.Log(1/math.Sqrt(1+exponent))) / math.Ln2; closer < -129 {
		t.Errorf("2^%.2f: the lemma gives away more than a bit", closer)
	}
}

// TestProjectionLaw compares step 2's sum over frequencies with what a row gives, by enumeration of
// all rows: of vectors whose sums reach around the modulus several times.
func TestProjectionLaw(t *testing.T) {
	for _, z := range [][]float64{
		{24}, {48}, {8, 8, 8}, {3, 5, 7, 11}, {16, 16, 16, 16, 16}, {0.5, 40, 1, 1, 1, 1},
	} {
		const q = 97.0
		frequencies := 0.0
		for k := -200; k <= 200; k++ {
			w := math.Sqrt(math.Pi/tilt) / q * math.Exp(-math.Pi*math.Pi*float64(k*k)/tilt/q/q)
			for _, x := range z {
				w *= math.Pow(math.Cos(math.Pi*float64(k)*x/q), 2)
			}
			frequencies += w
		}
		rows := 0.0
		for code := range 1 << (2 * len(z)) {
			sum := 0.0
			for j, x := range z {
				sum += x * float64(code>>(2*j)&1-code>>(2*j+1)&1)
			}
			for l := -9.0; l <= 9; l++ {
				rows += math.Exp(-tilt*(sum-l*q)*(sum-l*q)) / math.Exp2(2*float64(len(z)))
			}
		}
		if math.Abs(rows/frequencies-1) > 1e-9 {
			t.Errorf("%v: %g by rows, %g by frequencies", z, rows, frequencies)
		}
	}
}
