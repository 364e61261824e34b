package normproof

import (
	"math"
	"testing"
)

// Constants of the lemma of SPEC-ONESHOT.md §13.6, in units of β.
const (
	long     = 3.05                   // the least length that is refused
	exponent = 2.31                   // t·3.05²
	tilt     = exponent / long / long // t
)

// highest bounds E[|cos(v/√a)|^(2a)] from above, for v normal of variance exponent/2, for all a
// from low to high: an upper sum over this many intervals of v.
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
	t.Logf("‖u‖ ≤ 16β with 2^%.2f at most; %.5f of it for sums beyond q/2", power, around)
	if power >= -128 {
		t.Errorf("a long vector looks short with 2^%.2f", power)
	}
	// The limits depend on all of it.
	if closer := (slack*tilt + rows*math.Log(1/math.Sqrt(1+exponent))) / math.Ln2; closer < power-1 {
		t.Errorf("2^%.2f: the lemma gives away more than a bit", closer)
	}
}

// TestProjectionHonest is the numerical part of what SPEC-ONESHOT.md §13.6 says of honest vectors:
// how rarely one of the bound's own length misses the limit, and a party over its noise, whatever
// its values are.
func TestProjectionHonest(t *testing.T) {
	// The law of long vectors: half of χ² of 256 degrees of freedom.
	normal := 0.0
	for j := range rows / 2 {
		normal += math.Exp(float64(j)*math.Log(slack) - slack - logGamma(float64(j+1)))
	}
	t.Logf("χ²: 2^%.2f", math.Log2(normal))
	if math.Log2(normal) >= -61.5 {
		t.Error("an honest vector misses the limit too often")
	}
	// Vectors of a few equal coordinates, of which one never misses, do so still less often.
	before := math.Inf(-1)
	for _, n := range []int{2, 4, 8, 16} {
		exact := math.Log2(missing(n))
		t.Logf("%d equal coordinates: 2^%.2f", n, exact)
		if exact <= before || exact >= math.Log2(normal) {
			t.Errorf("%d equal coordinates miss with 2^%.2f", n, exact)
		}
		before = exact
	}
	if missing(1) != 0 {
		t.Error("a single coordinate misses the limit")
	}
	// Every vector, by its moments; and over noise, by those of the whole.
	if every := moment(128); every >= -57 {
		t.Errorf("2^%.2f for every vector", every)
	}
	worst := math.Inf(-1)
	for d := 65.; d < 1<<27; d *= 1.5 {
		for v := 0.01; v < 1e10; v *= 1.5 {
			least := 0.
			for _, m := range []int{32, 64, 128} {
				least = min(least, moment(m)+lengths(d, v, m))
			}
			worst = max(worst, least)
		}
	}
	t.Logf("every vector: 2^%.2f; over noise, all lengths of inputs: 2^%.2f", moment(128), worst)
	if worst >= -57 {
		t.Errorf("2^%.2f over noise", worst)
	}
}

func logGamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// moment returns the logarithm of a bound on the probability that ‖u‖² is beyond the limit, by its
// moment m, for ‖z‖ = β.
func moment(m int) float64 {
	return (logGamma(rows/2+float64(m)) - logGamma(rows/2) - float64(m)*math.Log(slack)) / math.Ln2
}

// lengths returns the logarithm of the moment m of ‖z‖²/β², for z of d coordinates with normal
// noise, around a vector of norm v, in deviations of the noise.
func lengths(d, v float64, m int) float64 {
	sum, scale, term := 0.0, 0.0, 0.0 // exp(scale) times the sum so far; the logarithm of a term
	for j := range m + 1 {
		if term > scale {
			sum *= math.Exp(scale - term)
			scale = term
		}
		sum += math.Exp(term - scale)
		term += math.Log(float64(m-j) / float64(j+1) / (d/2 + float64(j)) * v * v / 2)
	}
	log := math.Log(sum) + scale + logGamma(d/2+float64(m)) - logGamma(d/2)
	return (log + float64(m)*math.Log(2/(v*v+15*v+d+11*math.Sqrt(d)))) / math.Ln2
}

// missing returns the probability that a vector of n equal coordinates and the bound's norm misses
// the limit, by the law of ‖u‖², each value tilted so that the limit is in the middle.
func missing(n int) float64 {
	limit := slack * n
	law := make([]float64, 4*limit)
	law[0] = 1
	tilt := 0.5 / float64(n)
	row := make([]float64, n+1) // of |u_1|, in units of a coordinate
	for u := range row {
		row[u] = math.Exp(logGamma(float64(2*n+1))-logGamma(float64(n+u+1))-logGamma(float64(n-u+1))-
			float64(2*n)*math.Ln2) * math.Exp(tilt*float64(u*u))
		if u > 0 {
			row[u] *= 2
		}
	}
	scale := 0.0
	for range rows {
		total := 0.0
		for s := len(law) - 1; s >= 0; s-- {
			sum := 0.0
			for u := 0; u < len(row) && u*u <= s; u++ {
				sum += row[u] * law[s-u*u]
			}
			law[s] = sum
			total += sum
		}
		for s := range law {
			law[s] /= total
		}
		scale += math.Log(total)
	}
	tail := 0.0
	for s := limit + 1; s < len(law); s++ {
		tail += law[s] * math.Exp(tilt*float64(limit-s))
	}
	return tail * math.Exp(scale-tilt*float64(limit))
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
