package graph

import (
	"math"
	"math/big"
)

// The conditions of Parameters compare hypergeometric tails with powers of two.
// They are decided in floating point when the two sides are further apart than
// the arithmetic can be wrong, and in exact integers otherwise. A decision is
// therefore never off by a rounding error, in either direction.

// logSlack is the distance of two logarithms below which the exact path decides.
// Near a threshold the logarithms are below 200 in size and are sums of a few
// terms of one sign, so they carry an error of about 1e-13; the tail sum adds
// three roundings per term and stops after at most some 10^4 terms. 1e-9 leaves
// a factor of more than a hundred.
const logSlack = 1e-9

// hyp is the hypergeometric law Hyp(n, m, k): how many of m marked parties are
// in a uniform k-subset of n. Valid for 0 ≤ m, k ≤ n, n ≥ 1.
type hyp struct{ n, m, k int }

// low and high bound the support.
func (h hyp) low() int  { return max(0, h.m+h.k-h.n) }
func (h hyp) high() int { return min(h.m, h.k) }

// up and down are the factors from P[X = i] to P[X = i+1], and from P[X = i] to
// P[X = i-1].
func (h hyp) up(i int) float64 {
	return float64(h.m-i) * float64(h.k-i) / (float64(i+1) * float64(h.n-h.m-h.k+i+1))
}

func (h hyp) down(i int) float64 {
	return float64(i) * float64(h.n-h.m-h.k+i) / (float64(h.m-i+1) * float64(h.k-i+1))
}

// logPMF returns ln P[X = x] for x in the support.
//
// Differences of log-factorials would cancel: ln 10^6! is near 1.3e7, and its
// last bit is worth 2e-9. Instead each log-factorial is split into
// j·ln j − j + stirling(j). The large parts of all nine combine into the
// deviances of the 2×2 table (marked or not, chosen or not) from its expected
// counts, four terms that are never negative and so never cancel (the idea is
// Loader's, "Fast and Accurate Computation of Binomial Probabilities", 2000).
func (h hyp) logPMF(x int) float64 {
	n, m, k := float64(h.n), float64(h.m), float64(h.k)
	// Exact numerator: at most 2^48 each for n ≤ 2^24.
	diff := float64(int64(x)*int64(h.n)-int64(h.m)*int64(h.k)) / n
	dev := deviance(float64(x), m*k/n, diff) +
		deviance(float64(h.m-x), m*(n-k)/n, -diff) +
		deviance(float64(h.k-x), (n-m)*k/n, -diff) +
		deviance(float64(h.n-h.m-h.k+x), (n-m)*(n-k)/n, diff)
	rest := stirling(h.m) + stirling(h.n-h.m) + stirling(h.k) + stirling(h.n-h.k) - stirling(h.n) -
		stirling(x) - stirling(h.m-x) - stirling(h.k-x) - stirling(h.n-h.m-h.k+x)
	return rest - dev
}

// deviance returns o·ln(o/e) + e − o ≥ 0 for an observed count o, an expected
// count e and their difference diff = o − e, which the caller knows better than
// a subtraction would.
func deviance(o, e, diff float64) float64 {
	if e == 0 {
		return 0 // a row or column is empty, so o is 0 as well
	}
	if o == 0 {
		return e
	}
	v := diff / (o + e)
	if math.Abs(v) >= 0.1 {
		return o*math.Log(o/e) - diff
	}
	// ln(o/e) = 2·atanh(v), and 2·o·v − diff = diff·v.
	sum, power := diff*v, 2*o*v
	for j := 3; j < 40; j += 2 {
		power *= v * v
		next := sum + power/float64(j)
		if next == sum {
			break
		}
		sum = next
	}
	return sum
}

// stirling returns ln j! − (j·ln j − j), with 0 for j = 0.
func stirling(j int) float64 {
	if j == 0 {
		return 0
	}
	x := float64(j)
	if j < 16 {
		f := 1.0
		for i := 2; i <= j; i++ {
			f *= float64(i)
		}
		return math.Log(f) - (x*math.Log(x) - x)
	}
	// Stirling's series; the first term left out is below 1e-15 from j = 16.
	y := 1 / (x * x)
	series := (1.0/12 - y*(1.0/360-y*(1.0/1260-y*(1.0/1680-y*(1.0/1188))))) / x
	return 0.5*math.Log(2*math.Pi*x) + series
}

// logTail returns ln P[X > x] for low−1 ≤ x < high.
func (h hyp) logTail(x int) float64 {
	mode := int(int64(h.m+1) * int64(h.k+1) / int64(h.n+2))
	if x < mode {
		// The lower tail is the short one, and 1 − P[X ≤ x] loses nothing that
		// matters: the result is not small.
		if x < h.low() {
			return 0
		}
		return math.Log1p(-math.Exp(h.logPMF(x)) * h.relative(x, h.low(), -1, h.down))
	}
	return h.logPMF(x+1) + math.Log(h.relative(x+1, h.high(), 1, h.up))
}

// relative returns the sum of P[X = i] for i from start to end in steps of step,
// divided by P[X = start]. The factors must fall below 1 and keep falling, as
// they do on the way out from the mode.
func (h hyp) relative(start, end, step int, factor func(int) float64) float64 {
	sum, term := 1.0, 1.0
	for i := start; i != end; i += step {
		r := factor(i)
		term *= r
		sum += term
		// What is left is at most the geometric series with ratio r.
		if r < 1 && term*r <= (1-r)*sum*0x1p-60 {
			break
		}
	}
	return sum
}

// tailAtMost reports whether P[X > x] ≤ 2^-bits / n, exactly.
func (h hyp) tailAtMost(x, bits int) bool {
	if x >= h.high() {
		return true
	}
	if x < h.low() {
		return false // the tail is 1, and n ≥ 2
	}
	gap := h.logTail(x) + float64(bits)*math.Ln2 + math.Log(float64(h.n))
	if math.Abs(gap) > logSlack {
		return gap < 0
	}
	return h.tailAtMostExact(x, bits)
}

// tailAtMostExact is tailAtMost in integers:
// n·2^bits·Σ_{i>x} C(m,i)·C(n−m,k−i) ≤ C(n,k).
func (h hyp) tailAtMostExact(x, bits int) bool {
	i := max(x+1, h.low())
	if i > h.high() {
		return true
	}
	term := h.ways(i)
	sum := new(big.Int).Set(term)
	var f big.Int
	for ; i < h.high(); i++ {
		// The quotient is the next product of binomials, so nothing is lost.
		term.Mul(term, f.SetInt64(int64(h.m-i)*int64(h.k-i)))
		term.Quo(term, f.SetInt64(int64(i+1)*int64(h.n-h.m-h.k+i+1)))
		sum.Add(sum, term)
	}
	sum.Mul(sum, f.SetInt64(int64(h.n)))
	sum.Lsh(sum, uint(bits))
	return sum.Cmp(f.Binomial(int64(h.n), int64(h.k))) <= 0
}

// ways returns the number of k-subsets with exactly i marked parties.
func (h hyp) ways(i int) *big.Int {
	var b big.Int
	w := new(big.Int).Binomial(int64(h.m), int64(i))
	return w.Mul(w, b.Binomial(int64(h.n-h.m), int64(h.k-i)))
}

// quantile returns the smallest x in [from, to] with holds(x). The caller knows that to qualifies
// and that nothing below from does.
func quantile(from, to int, holds func(x int) bool) int {
	for from < to {
		mid := from + (to-from)/2
		if holds(mid) {
			to = mid
		} else {
			from = mid + 1
		}
	}
	return from
}
