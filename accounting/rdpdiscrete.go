package accounting

import "math"

// SumTau returns τ = 10·Σ_{k=1}^{n−1} e^{−2π²σ²k/(k+1)}, the distance in log ratio
// of a sum of n discrete Gaussians of parameter σ² = variance each from the
// discrete Gaussian of their total (Kairouz, Liu, Steinke 2021 Theorem 1). The theorem
// is for σ of at least 1/2: below that, and for n above 1, τ is +Inf.
func SumTau(n int, variance float64) (float64, error) {
	if n < 1 {
		return 0, configError("%d summands, want at least 1", n)
	}
	if err := checkPositive("variance", variance); err != nil {
		return 0, err
	}
	switch {
	case n == 1:
		return 0, nil
	case variance < 0.25:
		return math.Inf(1), nil
	}
	// Terms approach e^{−2π²σ²} from above within k of 1/ulp: sum the first ones,
	// bound the rest by the last.
	const direct = 1 << 20
	sum := 0.0
	last := 0.0
	for k := 1; k < n && k <= direct; k++ {
		last = math.Exp(-2 * math.Pi * math.Pi * variance * float64(k) / float64(k+1))
		sum += last
	}
	if n-1 > direct {
		sum += float64(n-1-direct) * last
	}
	return 10 * sum, nil
}

// DistributedGaussianRDP bounds the Rényi curve of an integer vector plus the sum
// of n discrete Gaussians of the given variance parameter each, in every
// coordinate (Kairouz, Liu, Steinke 2021 Proposition 14):
// min{αΔ₂²/2V + τd, α/2·(Δ₂²/V + 2Δ₁τ/√V + τ²d), α/2·(Δ₂/√V + τ√d)²}, V = n·variance.
// It is infinite where [SumTau] is.
func DistributedGaussianRDP(n int, variance float64, s Sensitivity, orders []float64) (RDP, error) {
	s, err := s.check()
	if err != nil {
		return RDP{}, err
	}
	tau, err := SumTau(n, variance)
	if err != nil {
		return RDP{}, err
	}
	v, d := float64(n)*variance, float64(s.Dimension)
	return NewRDP(orders, func(a float64) float64 {
		x := a*s.L2*s.L2/(2*v) + tau*d
		y := a / 2 * (s.L2*s.L2/v + 2*s.L1*tau/math.Sqrt(v) + tau*tau*d)
		r := s.L2/math.Sqrt(v) + tau*math.Sqrt(d)
		return math.Min(math.Min(x, y), a/2*r*r)
	})
}

// SkellamRDP bounds the Rényi curve of an integer vector plus Skellam noise of
// the given total variance in every coordinate (Agarwal, Kairouz, Liu 2021), for
// integer orders; others take the next integer's value, as Rényi divergence
// grows with its order.
func SkellamRDP(variance float64, s Sensitivity, orders []float64) (RDP, error) {
	s, err := s.check()
	if err != nil {
		return RDP{}, err
	}
	if err := checkPositive("Skellam variance", variance); err != nil {
		return RDP{}, err
	}
	return NewRDP(orders, func(a float64) float64 {
		a = math.Ceil(a)
		x := ((2*a-1)*s.L2*s.L2 + 6*s.L1) / (4 * variance * variance)
		return a*s.L2*s.L2/(2*variance) + math.Min(x, 3*s.L1/(2*variance))
	})
}

// Poisson returns a bound of the curve after Poisson sampling at the given rate
// under add/remove adjacency, for any mechanism: the smaller of Zhu, Wang 2019
// Theorem 5 (the general bound with its factor 3) at the next integer order, for
// which the curve must have every integer order from 2 up to that, and
// ln(1−q+q·e^{(α−1)ρ(α)})/(α−1), by joint convexity over whether the client is
// drawn.
func (r RDP) Poisson(rate float64) (RDP, error) {
	if err := checkRate(rate); err != nil {
		return RDP{}, err
	}
	if rate == 1 {
		return r, nil
	}
	at, full := r.integers()
	lnq, ln1q := math.Log(rate), math.Log1p(-rate)
	general := func(n float64) float64 {
		if n > float64(full) {
			return math.Inf(1)
		}
		k := int(n)
		ln := (n-1)*ln1q + math.Log(n*rate-rate+1)
		comb := math.Log(n)
		for l := 2; l <= k; l++ {
			f := float64(l)
			comb += math.Log((n - f + 1) / f)
			t := comb + (n-f)*ln1q + f*lnq + (f-1)*at[l]
			if l > 2 {
				t += math.Log(3)
			}
			ln = logAdd(ln, t)
		}
		return math.Max(0, ln/(n-1))
	}
	return r.mapped(func(a, v float64) float64 {
		return math.Min(general(math.Ceil(a)), drawnOrNot(rate, (a-1)*v)/(a-1))
	}), nil
}
