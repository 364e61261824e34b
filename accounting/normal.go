package accounting

import (
	"fmt"
	"math"
)

// A release of integer vectors under noise with a symmetric, log-concave law on the integers,
// the same in every coordinate, is dominated by N(μ,1), N(0,1) with μ = μ₁·|v|₂, however many
// coordinates and rounds there are (docs/privacy-proofs.md, Lemma 3). μ₁ is the largest step
// H(j+1) − H(j) of H(j) = −Φ⁻¹(P[noise ≥ j]). Shares need no law of their own for that: the sum of
// shares is log-concave if they are.
//
// Of μ₁ there are two upper bounds. The steps of a law can be scanned, one by one. And where
// −ln P has no second difference above κ < 3, μ₁² is at most 2κ/(1+√(1−κ/3)), about that of a
// Gaussian of variance 1/κ − 1/12 (Lemma 4 there). κ is 1/V for a discrete Gaussian of parameter
// V, 1/V + 4τ for a sum of them ([SumTau]), −ln(1 − (1 + 1/2V²)/V) for Skellam noise of
// variance V ≥ 2.4 (Lemma 5).

const (
	// cutMass bounds, in one coordinate, the distance of a law from the one that is scanned,
	// whose tails fall as a geometric law's from where the scan ends.
	cutMass = 1e-190
	// cutDelta and cutEpsilon are how far that distance does not matter: over 2^103 samples,
	// (1+e^cutEpsilon)·2^103·cutMass is below 1e-12·cutDelta.
	cutDelta, cutEpsilon = 1e-60, 200
	// scanVariance is the largest variance of Skellam noise that is scanned: from there on
	// Lemma 4 loses less than 2e-5.
	scanVariance = 1 << 14
	// scanShares is the most shares, and scanLeast the least variance of one, whose sum is
	// tabulated: no factor of it is below e^{−1/(4·scanLeast)} for each doubling of the shares, of
	// which there are ten.
	scanShares, scanLeast = 1 << 10, 0.01
	// smallSum is below which variance a single coordinate is accounted for by the law of the sum
	// itself: above, a Gaussian is as good, and less work.
	smallSum = 16
)

// normal returns μ of the lane's release as a Gaussian, rounded up, +Inf if there is none. With
// scan it uses the lesser of the bounds; cut then reports that cutMass counts.
func (l Lane) normal(f Family, shares int, scan bool) (mu float64, cut bool, err error) {
	s, err := l.Sensitivity.check()
	if err != nil {
		return 0, false, err
	}
	switch f {
	case FamilyDiscreteGaussian:
		mu, cut, err = gaussianStep(shares, l.ShareSigma*l.ShareSigma, scan)
	case FamilySkellam:
		mu, cut = skellamStep(float64(shares)*l.ShareVariance, scan)
	default:
		mu = laplaceStep(l.SumScale)
	}
	return mu * s.norm(), cut, err
}

// norm is the largest L2 norm of an integer vector within both norms, at least 1. A square that
// float64 arithmetic left just below an integer counts as it.
func (s Sensitivity) norm() float64 {
	square := math.Floor(s.L2 * s.L2 * (1 + 1e-9))
	return math.Max(1, math.Min(math.Sqrt(square), math.Floor(s.L1*(1+1e-9))))
}

// gaussianStep returns μ₁ of the sum of that many discrete Gaussians of the given parameter.
func gaussianStep(shares int, variance float64, scan bool) (mu float64, cut bool, err error) {
	tau, err := SumTau(shares, variance)
	if err != nil {
		return 0, false, err
	}
	v := float64(shares) * variance * (1 - 4*unit)
	mu = curvatureStep(1/v + 4*tau)
	if !scan || v > 64 && 4*tau*v < 1e-4 {
		return mu, false, nil
	}
	theta, ok := shareTheta(shares, variance)
	if !ok {
		return mu, false, nil
	}
	ln := make([]float64, 4+int(math.Sqrt(1000*v)))
	for j := range ln {
		ln[j] = theta.ln(j)
	}
	mu, cut = lessOf(mu, ln)
	return mu, cut, nil
}

// skellamStep is μ₁ of Skellam noise.
func skellamStep(variance float64, scan bool) (mu float64, cut bool) {
	v := variance * (1 - 4*unit)
	mu = math.Inf(1)
	if v >= 2.4 {
		mu = curvatureStep(-math.Log1p(-(1 + 1/(2*v*v)) / v))
	}
	if !scan || v > scanVariance || v < 0x1p-300 {
		return mu, false
	}
	reach := 4.0
	for chernoffSkellam(v, reach) > -460 {
		reach *= 1.05
	}
	// I_k/I_{k−1} by the recurrence 1/R_k = 2k/V + R_{k+1}, backward, which forgets its start.
	ln := make([]float64, int(reach)+4)
	next := 0.0
	for k := len(ln) + 60 + int(3*math.Sqrt(v)); k > 0; k-- {
		next = 1 / (2*float64(k)/v + next)
		if k < len(ln) {
			ln[k] = math.Log(next)
		}
	}
	for k := 1; k < len(ln); k++ {
		ln[k] += ln[k-1]
	}
	return lessOf(mu, ln)
}

// curvatureStep is Lemma 4's bound of μ₁, +Inf if it has none.
func curvatureStep(kappa float64) float64 {
	if !(kappa < 3) {
		return math.Inf(1)
	}
	return math.Sqrt(2*kappa/(1+math.Sqrt(1-kappa/3))) * (1 + 16*unit)
}

// lessOf is the less of mu and what a scan finds, and whether that is the scan's.
func lessOf(mu float64, ln []float64) (float64, bool) {
	if s := largestStep(ln); s < mu {
		return s, true
	}
	return mu, false
}

// largestStep returns μ₁ of the law of which ln has the logarithms of masses at 0, 1, 2 and so
// on, up to a common factor; from the last but one on its tail is geometric. It is +Inf if that
// is further than cutMass from what it stands for, which falls faster there.
func largestStep(ln []float64) float64 {
	end := len(ln) - 2
	fall := ln[end] - ln[end+1]
	if !(fall > 0) {
		return math.Inf(1)
	}
	// ln P[noise ≥ j], up to the same factor.
	tails := make([]float64, end+2)
	tails[end] = ln[end] - math.Log(-math.Expm1(-fall))
	tails[end+1] = tails[end] - fall // beyond that steps get smaller
	for j := end - 1; j >= 0; j-- {
		tails[j] = logAdd(tails[j+1], ln[j])
	}
	all := logAdd(tails[0], tails[1])
	if !(tails[end+1]-all < math.Log(cutMass/4)) {
		return math.Inf(1)
	}
	h := lnNormalQuantile(tails[1]-all, 0)
	largest := 2 * h // P[noise ≥ 0] = 1 − P[noise ≥ 1]
	for j := 2; j <= end+1; j++ {
		next := lnNormalQuantile(tails[j]-all, h+largest)
		largest = math.Max(largest, next-h)
		h = next
	}
	return largest * (1 + 1e-9)
}

// lnNormalQuantile returns t ≥ 0 with ln Φ(−t) = lnP, by Newton's method from near it: the
// function is concave, so that from the second step on t falls towards the root.
func lnNormalQuantile(lnP, near float64) float64 {
	if near == 0 {
		near = math.Sqrt(math.Max(0, -2*(lnP+math.Ln2)))
	}
	t := near
	for range 60 {
		m := mills(t)
		step := (math.Log(m) - t*t/2 - math.Log(2*math.Pi)/2 - lnP) * m
		if t = math.Max(0, t+step); math.Abs(step) <= 4*unit*(1+t) {
			break
		}
	}
	return t
}

// A theta is the law of a sum of shares, discrete Gaussians of one parameter: the mass of k is
// e^{−k²/2V} times a factor that has the number of shares as its period.
type theta struct {
	variance float64 // of the parameter of one share
	factor   []float64
}

// ln is ln P(k), up to a constant.
func (t theta) ln(k int) float64 {
	n := len(t.factor)
	x := float64(k)
	return math.Log(t.factor[k%n]) - x*x/(2*float64(n)*t.variance)
}

// shareTheta returns the law of the sum of the given number of shares, or ok = false if it is not
// tabulated. Of two sums, of a and b shares, the factor of k is Σ over n of the factors of n and
// k−n, times e^{−(n−ka/(a+b))²/2w²} with w² = variance·ab/(a+b): terms of one sign, within few
// standard deviations.
func shareTheta(shares int, variance float64) (t theta, ok bool) {
	t = theta{variance, []float64{1}}
	if shares == 1 {
		return t, true
	}
	if shares > scanShares || !(variance >= scanLeast && variance <= 16) {
		return t, false
	}
	half, _ := shareTheta(shares/2, variance)
	t = half.plus(half)
	if shares%2 == 1 {
		t = t.plus(theta{variance, []float64{1}})
	}
	return t, true
}

func (t theta) plus(o theta) theta {
	a, b := len(t.factor), len(o.factor)
	out := theta{t.variance, make([]float64, a+b)}
	part := float64(a) / float64(a+b)
	w2 := t.variance * part * float64(b)
	reach := int(12*math.Sqrt(w2)) + 3
	for k := range out.factor {
		c := float64(k) * part
		for n := int(c) - reach; n <= int(c)+reach; n++ {
			x := float64(n) - c
			out.factor[k] += t.factor[mod(n, a)] * o.factor[mod(k-n, b)] * math.Exp(-x*x/(2*w2))
		}
	}
	return out
}

func mod(k, n int) int { return ((k % n) + n) % n }

// shareSum is the noise of discrete Gaussian shares together, which is no discrete Gaussian if
// they are small, added to an integer that one client changes by at most by.
type shareSum struct {
	theta theta
	by    int
}

func (m shareSum) key() string {
	return fmt.Sprintf("%d shares %x %d", len(m.theta.factor), m.theta.variance, m.by)
}

func (m shareSum) law() (law, error)   { return plainLaw(m) }
func (m shareSum) base() (base, error) { return shifted(m) }
func (m shareSum) sensitivity() int    { return m.by }

func (m shareSum) mass() (masses, error) {
	v := float64(len(m.theta.factor)) * m.theta.variance
	n := 40 + m.by + int(17*math.Sqrt(v))
	if err := checkAtoms(2 * float64(n)); err != nil {
		return masses{}, err
	}
	out := masses{half: make([]float64, n), relative: 1e-12}
	sum, top := 0.0, m.theta.ln(0)
	for k := n - 1; k >= 0; k-- {
		out.half[k] = math.Exp(m.theta.ln(k) - top)
		if sum += out.half[k]; k > 0 {
			sum += out.half[k]
		}
	}
	for k := range out.half {
		out.half[k] /= sum
	}
	// Ratios of neighbouring masses fall: beyond the table a geometric law has more.
	ratio := out.half[n-1] / out.half[n-2]
	out.lost = 2 * out.half[n-1] * ratio / (1 - ratio)
	if !(ratio < 1) {
		out.lost = 1e-300 // all of it underflows
	}
	return out, nil
}
