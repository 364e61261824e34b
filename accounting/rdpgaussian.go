package accounting

import "math"

// sampledGaussianRDP is ln E_{x∼N(0,1)}[(1−q+q·e^{mu·x−mu²/2})^α]/(α−1): the
// remove direction, the larger one (Mironov, Talwar, Zhang 2019 Theorem 5).
func sampledGaussianRDP(q, mu, alpha float64) float64 {
	if alpha == math.Trunc(alpha) && alpha <= 512 {
		return sampledGaussianInteger(q, mu, int(alpha))
	}
	return sampledGaussianQuadrature(q, mu, alpha)
}

// sampledGaussianInteger is the binomial sum. As Σ C(α,k)(1−q)^{α−k}q^k = 1,
// E − 1 = Σ_{k≥2} C(α,k)(1−q)^{α−k}q^k·(e^{k(k−1)mu²/2} − 1): positive terms.
func sampledGaussianInteger(q, mu float64, alpha int) float64 {
	ln := math.Inf(-1) // ln(E−1)
	a := float64(alpha)
	lnComb := 0.0
	for k := 1; k <= alpha; k++ {
		f := float64(k)
		lnComb += math.Log((a - f + 1) / f)
		if k < 2 {
			continue
		}
		grow := logExpm1(f * (f - 1) * mu * mu / 2)
		ln = logAdd(ln, lnComb+(a-f)*math.Log1p(-q)+f*math.Log(q)+grow)
	}
	return softplus(ln) / (a - 1)
}

// softplus is ln(1+e^x).
func softplus(x float64) float64 {
	if x > 30 {
		return x + math.Log1p(math.Exp(-x))
	}
	return math.Log1p(math.Exp(x))
}

// sampledGaussianQuadrature integrates E[(1+w)^α − 1 − αw], w = q(y−1), which
// is E[(1+w)^α] − 1 because E[w] = 0, by the trapezoid rule. The integrand is
// analytic in a strip of half-width π/mu, so the error falls as
// e^{−2π²/(mu·step)} and is below 1e-12 at the step used.
func sampledGaussianQuadrature(q, mu, alpha float64) float64 {
	step := math.Min(0.1, 0.6/mu)
	lo, hi := -14.0, alpha*mu+14
	var pos, neg float64
	top := math.Inf(-1)
	// Two passes: the largest exponent, then the sum relative to it.
	term := func(t float64) (sign, lnAbs float64) {
		l := mu*t - mu*mu/2
		lnPhi := -t * t / 2
		x := sampledLoss(q, l)
		if ax := alpha * x; ax > 30 {
			// the power less 1+αw, relative to the power
			less := math.Exp(logAdd(0, math.Log(alpha)+math.Log(q)+l) - ax)
			return 1, ax + math.Log1p(-math.Min(less, 0.99)) + lnPhi
		}
		w := q * math.Expm1(l)
		v := excessPower(w, alpha)
		if v == 0 {
			return 0, math.Inf(-1)
		}
		return math.Copysign(1, v), math.Log(math.Abs(v)) + lnPhi
	}
	n := int(math.Ceil((hi - lo) / step))
	for i := 0; i <= n; i++ {
		if _, l := term(lo + float64(i)*step); l > top {
			top = l
		}
	}
	for i := 0; i <= n; i++ {
		s, l := term(lo + float64(i)*step)
		if s > 0 {
			pos += math.Exp(l - top)
		} else if s < 0 {
			neg += math.Exp(l - top)
		}
	}
	ln := top + math.Log(pos-neg) + math.Log(step) - math.Log(2*math.Pi)/2
	return math.Max(0, softplus(ln)/(alpha-1))
}

// excessPower is (1+w)^α − 1 − αw for w > −1, without cancellation for small w.
func excessPower(w, alpha float64) float64 {
	if math.Abs(w)*math.Max(alpha, 2) > 0.2 {
		return math.Expm1(alpha*math.Log1p(w)) - alpha*w
	}
	c, sum := alpha*w, 0.0
	for k := 2; k < 40; k++ {
		c *= (alpha - float64(k) + 1) / float64(k) * w
		sum += c
		if math.Abs(c) < 1e-18*math.Abs(sum) {
			break
		}
	}
	return sum
}

// FixedSizeGaussianRDP bounds the Rényi curve of a Gaussian over a sample of
// exactly m out of n clients drawn without replacement, under replace-one
// adjacency (Wang, Balle, Kasiviswanathan 2019 Theorem 27, the form with even
// moments), and by joint convexity over whether the client is drawn, as in
// [RDP.FixedSize]. noiseMultiplier is σ over the replace-one sensitivity. It is a
// bound, not the exact curve; orders between integers interpolate (α−1)·ρ(α),
// which is convex.
func FixedSizeGaussianRDP(noiseMultiplier float64, m, n int, orders []float64) (RDP, error) {
	if err := checkPositive("noise multiplier", noiseMultiplier); err != nil {
		return RDP{}, err
	}
	if m < 1 || n < m {
		return RDP{}, configError("sample of %d out of %d, want 1 ≤ m ≤ n", m, n)
	}
	mu := 1 / noiseMultiplier
	if m == n {
		return NewRDP(orders, func(a float64) float64 { return a * mu * mu / 2 })
	}
	f := &fixedSize{q: float64(m) / float64(n), mu: mu, moments: map[int]float64{}}
	return NewRDP(orders, func(a float64) float64 {
		k := math.Floor(a)
		x := a - k
		v := (1 - x) * f.cgf(int(k))
		if x > 0 {
			v += x * f.cgf(int(k)+1)
		}
		return math.Min(v, drawnOrNot(f.q, (a-1)*a*mu*mu/2)) / (a - 1)
	})
}

type fixedSize struct {
	q, mu   float64
	moments map[int]float64
}

// cgf returns (α−1)·ρ(α) at an integer order.
func (f *fixedSize) cgf(alpha int) float64 {
	out := 0.0
	a := float64(alpha)
	lnComb := 0.0
	plain := func(k float64) float64 { return k * (k - 1) * f.mu * f.mu / 2 }
	for k := 1; k <= alpha; k++ {
		i := float64(k)
		lnComb += math.Log((a - i + 1) / i)
		if k == 1 {
			continue
		}
		var s float64
		if k == 2 {
			s = math.Min(math.Log(4)+logExpm1(plain(2)), math.Ln2+plain(2))
		} else {
			s = math.Ln2 + plain(i)
			if alpha <= 256 {
				even := math.Log(4) + 0.5*(f.moment(k/2*2)+f.moment((k+1)/2*2))
				s = math.Min(s, even)
			}
		}
		out = logAdd(out, s+lnComb+i*math.Log(f.q))
	}
	return out
}

// moment returns ln E_Q[(P/Q − 1)^k] for even k: the k-th forward difference of
// e^{(x²−x)mu²/2} at 0, as a sum without cancellation.
func (f *fixedSize) moment(k int) float64 {
	if v, ok := f.moments[k]; ok {
		return v
	}
	step := math.Min(0.1, 0.6/f.mu)
	ln := math.Inf(-1)
	for t := -14.0; t < 14+float64(k)*f.mu; t += step {
		l := f.mu*t - f.mu*f.mu/2
		m := math.Log(math.Abs(math.Expm1(math.Min(l, 600))))
		if l > 600 {
			m = l
		}
		ln = logAdd(ln, float64(k)*m-t*t/2)
	}
	ln += math.Log(step) - math.Log(2*math.Pi)/2
	f.moments[k] = ln
	return ln
}
