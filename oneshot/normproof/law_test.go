package normproof

import (
	"math"
	"math/rand/v2"
	"testing"
)

// pass returns the logarithms to base 2 of the probabilities that ‖u‖² is at most 0, 1, 2, … for n
// equal coordinates of 1 and so many rows, by the law of one row 256 times over.
func pass(n, count, most int) []float64 {
	row := make([]float64, n+1) // of |u_1|
	for u := range row {
		row[u] = math.Exp(logGamma(float64(2*n+1)) - logGamma(float64(n+u+1)) -
			logGamma(float64(n-u+1)) - float64(2*n)*math.Ln2)
		if u > 0 {
			row[u] *= 2
		}
	}
	law := make([]float64, most+1) // of ‖u‖²; 2^-256 and more for n = 1, so that none is rounded to 0
	law[0] = 1
	for range count {
		for s := most; s >= 0; s-- {
			sum := 0.0
			for u := 0; u <= n && u*u <= s; u++ {
				sum += row[u] * law[s-u*u]
			}
			law[s] = sum
		}
	}
	sum := 0.0
	for s := range law {
		sum += law[s]
		law[s] = math.Log2(sum)
	}
	return law
}

// longestEqual returns how long a vector of n equal coordinates may be, in β, to pass with 2^-bits.
func longestEqual(n, count int, limit, bits float64) float64 {
	law := pass(n, count, 2*count*n)
	for s, p := range law {
		if p >= -bits {
			return math.Sqrt(limit * float64(n) / float64(s))
		}
	}
	return 0
}

// longestNormal returns it of a vector of many coordinates, by the lower tail of χ².
func longestNormal(count int, limit, bits float64) float64 {
	tail := func(x float64) float64 { // log₂ P(χ²/2 ≤ x)
		a := float64(count) / 2
		sum, term := 1.0, 1.0
		for n := 1.0; term > sum*1e-17; n++ {
			term *= x / (a + n)
			sum += term
		}
		return (a*math.Log(x) - x - logGamma(a+1) + math.Log(sum)) / math.Ln2
	}
	low, high := 1., 6.
	for range 60 {
		f := (low + high) / 2
		if tail(limit/f/f) >= -bits {
			low = f
		} else {
			high = f
		}
	}
	return low
}

// TestGrinding computes how long vectors are that pass, by the law of ‖u‖² and not by the lemma's
// bound: of one coordinate, of few and of many; with 2^-128, and for a cheat of 2^40 hashes.
// None of them is longer than the lemma says, and the law is that of the matrix.
func TestGrinding(t *testing.T) {
	for _, c := range []struct{ bits, least, most float64 }{
		{128, 2.9, long}, {40, 2.0, 2.05},
	} {
		longest := longestNormal(rows, slack, c.bits)
		t.Logf("2^-%v: many coordinates: %.3f", c.bits, longest)
		for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16} {
			f := longestEqual(n, rows, slack, c.bits)
			t.Logf("2^-%v: %d coordinates: %.3f", c.bits, n, f)
			longest = max(longest, f)
		}
		if longest < c.least || longest > c.most {
			t.Errorf("with 2^-%v a vector of %.3f passes", c.bits, longest)
		}
	}

	// Columns of the matrix under hashes, as a cheat draws them: within six deviations of the law.
	r := rand.New(rand.NewPCG(61, 62))
	const tries, n, at = 4000, 4, 460
	probability := math.Exp2(pass(n, rows, at)[at])
	passed := 0
	for range tries {
		var h [32]byte
		for i := range h {
			h[i] = byte(r.Uint32())
		}
		sums := make([]int64, rows)
		(&matrix{rows: rows, stream: stream(&h, 0)}).times(sums, []int64{1, -1, 1, 1})
		square := int64(0)
		for _, u := range sums {
			square += u * u
		}
		if square <= at {
			passed++
		}
	}
	want := tries * probability
	t.Logf("%d of %d pass, want %.1f", passed, tries, want)
	if math.Abs(float64(passed)-want) > 6*math.Sqrt(want) || want < 100 {
		t.Errorf("%d of %d pass, want %.1f", passed, tries, want)
	}
}
