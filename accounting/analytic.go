package accounting

import "math"

// GaussianEpsilon returns the bound of ε(δ) of one Gaussian mechanism of the
// given noise multiplier by the closed form of Balle and Wang (2018, Theorem 8),
// 0 < delta < 1.
func GaussianEpsilon(noiseMultiplier, delta float64) (Bound, error) {
	if err := checkPositive("noise multiplier", noiseMultiplier); err != nil {
		return Bound{}, err
	}
	if !(delta > 0 && delta < 1) {
		return Bound{}, configError("delta is %v, want between 0 and 1", delta)
	}
	return gaussianEpsilon(1/noiseMultiplier, delta), nil
}

// GaussianDelta returns the bound of δ(ε) of one Gaussian mechanism (Balle, Wang
// 2018, Theorem 8), epsilon ≥ 0.
func GaussianDelta(noiseMultiplier, epsilon float64) (Bound, error) {
	if err := checkPositive("noise multiplier", noiseMultiplier); err != nil {
		return Bound{}, err
	}
	if !(epsilon >= 0) {
		return Bound{}, configError("epsilon is %v, want 0 or more", epsilon)
	}
	return gaussianDelta(1/noiseMultiplier, epsilon), nil
}

// gaussianDelta is Φ(μ/2−ε/μ) − e^ε·Φ(−μ/2−ε/μ) with an error bound.
func gaussianDelta(mu, eps float64) Bound {
	if mu == 0 {
		return Bound{}
	}
	d, err := gaussianGap(mu, eps)
	return Bound{Lower: math.Max(0, d-err), Upper: math.Min(1, d+err)}
}

// gaussianGap computes δ(ε) = Φ(−a) − e^ε·Φ(−b), a = ε/μ − μ/2, b = a + μ. As
// e^ε = e^{(b²−a²)/2}, both terms share the factor φ(a), which leaves a
// difference of Mills ratios M(a) − M(b), M(x) = Φ(−x)/φ(x).
func gaussianGap(mu, eps float64) (d, err float64) {
	a := eps/mu - mu/2
	b := eps/mu + mu/2
	place := unit * (3*eps/mu + 2*mu) // error of a and b
	if a < 3 {
		p, q := math.Erfc(a*invSqrt2)/2, mills(b)*math.Exp(-a*a/2)/math.Sqrt(2*math.Pi)
		d = p - q
		err = unit*(8*p+q*(24+4*a*a)) + 2*place*(1+math.Abs(a))*math.Min(1, d+place)
		return math.Max(d, 0), err + 4*place*math.Exp(-a*a/2)
	}
	phi := math.Exp(-a*a/2) / math.Sqrt(2*math.Pi)
	ma := mills(a)
	diff, slip := ma-mills(b), 128*unit*ma
	if mu < 0.5 {
		diff = millsDifference(a, mu)
		slip = 128 * unit * diff
	}
	d = phi * diff
	err = d*(unit*(64+4*a*a)+4*a*place) + phi*slip
	return math.Max(d, 0), err
}

// mills returns Φ(−x)/φ(x), relative error below 64u for x ≥ −8.
func mills(x float64) float64 {
	if x < 26 {
		return math.Exp(x*x/2) * math.Erfc(x*invSqrt2) / 2 * math.Sqrt(2*math.Pi)
	}
	// Laplace's continued fraction, converged to double precision here.
	t := x
	for k := 24; k >= 1; k-- {
		t = x + float64(k)/t
	}
	return 1 / t
}

// millsDifference returns M(a) − M(a+mu) for a ≥ 3, mu < 1/2 without cancellation:
// M(x) = ∫₀^∞ e^{−xt−t²/2} dt, so the difference is ∫ e^{−at−t²/2}(1−e^{−mu·t}) dt,
// by Gauss-Legendre panels on the scale 1/a.
func millsDifference(a, mu float64) float64 {
	// A panel is at most 40/16 decays wide, where ten nodes err by
	// 2.5^21·(10!)^4/(21·(20!)^3)·20 < 3e-21 of what they add.
	const panels = 16
	reach := math.Min(40/a, 9)
	width := reach / panels
	sum := 0.0
	for i := range panels {
		mid := (float64(i) + 0.5) * width
		for j, x := range legendreX {
			for _, s := range [2]float64{-1, 1} {
				t := mid + s*x*width/2
				sum += legendreW[j] * math.Exp(-a*t-t*t/2) * -math.Expm1(-mu*t)
			}
		}
	}
	return sum * width / 2
}

// Gauss-Legendre nodes and weights of order 10 (positive half).
var (
	legendreX = [5]float64{0.14887433898163122, 0.4333953941292472, 0.6794095682990244,
		0.8650633666889845, 0.9739065285171717}
	legendreW = [5]float64{0.29552422471475287, 0.26926671930999635, 0.21908636251598204,
		0.1494513491505806, 0.06667134430868814}
)

// gaussianEpsilon inverts gaussianGap by bisection, outward on both sides.
func gaussianEpsilon(mu, delta float64) Bound {
	if mu == 0 {
		return Bound{}
	}
	if math.IsInf(mu, 1) {
		return Bound{Lower: 0, Upper: math.Inf(1), Reason: reasonOverflow}
	}
	up := func(e float64) bool { d, err := gaussianGap(mu, e); return d+err <= delta }
	down := func(e float64) bool { d, err := gaussianGap(mu, e); return d-err <= delta }
	hi := 1.0
	for !up(hi) {
		if hi *= 2; math.IsInf(hi, 1) {
			return Bound{Lower: 0, Upper: hi, Reason: reasonOverflow}
		}
	}
	// Both bounds go the same way until the error decides.
	lo := 0.0
	for range 200 {
		mid := lo + (hi-lo)/2
		d, err := gaussianGap(mu, mid)
		if d+err <= delta {
			hi = mid
		} else if d-err > delta {
			lo = mid
		} else {
			break
		}
	}
	return Bound{Lower: bisect(down, lo, hi, false), Upper: bisect(up, lo, hi, true)}
}

// bisect finds where ok turns true on [lo, hi], unless it is true from 0 on; outer picks the true
// side.
func bisect(ok func(float64) bool, lo, hi float64, outer bool) float64 {
	if lo == 0 && ok(0) {
		return 0
	}
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if ok(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	if outer {
		return hi
	}
	return lo
}
