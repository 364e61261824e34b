package accounting

import (
	"math"
	"slices"
)

// RDP is a Rényi-differential-privacy curve (Mironov 2017): at each order α > 1
// an upper bound of the Rényi divergence, in both directions. Curves over the
// same orders add under adaptive composition.
type RDP struct {
	orders []float64
	values []float64
}

// DefaultOrders returns a copy of the orders that this package uses when none
// are given: 1.1 to 10.9 by tenths, 11 to 64, 80, 96, 128, 256, 512, 1024.
func DefaultOrders() []float64 { return slices.Clone(defaultOrders) }

var defaultOrders = func() []float64 {
	var out []float64
	for i := 11; i < 110; i++ {
		out = append(out, float64(i)/10)
	}
	for i := 11; i <= 64; i++ {
		out = append(out, float64(i))
	}
	return append(out, 80, 96, 128, 256, 512, 1024)
}()

// NewRDP evaluates a curve at orders (nil means DefaultOrders). f may return +Inf where it has no
// bound, but neither negative numbers nor NaN.
func NewRDP(orders []float64, f func(alpha float64) float64) (RDP, error) {
	if orders == nil {
		orders = defaultOrders
	}
	if len(orders) == 0 {
		return RDP{}, configError("no orders")
	}
	r := RDP{orders: slices.Clone(orders), values: make([]float64, len(orders))}
	for i, a := range orders {
		if !(a > 1) || math.IsInf(a, 1) {
			return RDP{}, configError("order is %v, want a finite number above 1", a)
		}
		v := f(a)
		if !(v >= 0) {
			return RDP{}, configError("RDP at order %v is %v, want 0 or more", a, v)
		}
		r.values[i] = v
	}
	return r, nil
}

// Orders returns a copy of the curve's orders.
func (r RDP) Orders() []float64 { return slices.Clone(r.orders) }

// Values returns a copy of the curve's values, one per order.
func (r RDP) Values() []float64 { return slices.Clone(r.values) }

// Times returns the curve of n adaptive repetitions, n ≥ 0.
func (r RDP) Times(n int) RDP {
	return r.mapped(func(_, v float64) float64 {
		if n < 1 {
			return 0 // of +Inf too
		}
		return float64(n) * v
	})
}

// Plus returns the curve of both mechanisms together. The orders must be equal.
func (r RDP) Plus(o RDP) (RDP, error) {
	if !slices.Equal(r.orders, o.orders) {
		return RDP{}, configError("RDP curves have different orders")
	}
	out := RDP{orders: r.orders, values: slices.Clone(r.values)}
	for i, v := range o.values {
		out.values[i] += v
	}
	return out, nil
}

// mapped is the curve over the same orders with value f(α, ρ(α)).
func (r RDP) mapped(f func(alpha, rho float64) float64) RDP {
	out := RDP{orders: r.orders, values: make([]float64, len(r.values))}
	for i, v := range r.values {
		out.values[i] = f(r.orders[i], v)
	}
	return out
}

// Epsilon converts the curve to an upper bound of ε(δ), 0 < delta < 1, and
// returns the order that attains it:
// ε = ρ(α) + ln((α−1)/α) − (ln δ + ln α)/(α−1)
// (Canonne, Kamath, Steinke 2020 Proposition 12; Asoodeh et al. 2021). It is
// +Inf if the curve is infinite at every order.
func (r RDP) Epsilon(delta float64) (epsilon, order float64, err error) {
	if !(delta > 0 && delta < 1) {
		return 0, 0, configError("delta is %v, want between 0 and 1", delta)
	}
	epsilon = math.Inf(1)
	for i, a := range r.orders {
		if e := rdpToEpsilon(a, r.values[i], delta); e < epsilon {
			epsilon, order = e, a
		}
	}
	return math.Max(epsilon, 0), order, nil
}

// rdpToEpsilon rounds up: every term is good to a few units in the last place.
func rdpToEpsilon(alpha, rho, delta float64) float64 {
	less, tail := math.Log1p(-1/alpha), (math.Log(delta)+math.Log(alpha))/(alpha-1)
	slack := 16 * unit * (rho - less + (math.Abs(math.Log(delta))+math.Log(alpha))/(alpha-1))
	return rho + less - tail + slack
}

// Delta converts the curve to an upper bound of δ(ε), epsilon ≥ 0, by the same
// proposition.
func (r RDP) Delta(epsilon float64) (float64, error) {
	if !(epsilon >= 0) {
		return 0, configError("epsilon is %v, want 0 or more", epsilon)
	}
	best := 0.0
	for i, a := range r.orders {
		best = math.Min(best, (a-1)*(r.values[i]-epsilon+math.Log1p(-1/a))-math.Log(a))
	}
	return math.Exp(best), nil
}

// MechanismRDP returns the Rényi curve of one step of a mechanism: exact for the
// Gaussian, the Poisson-sampled Gaussian (Mironov, Talwar, Zhang 2019), Laplace,
// and finite laws (discrete Laplace, randomised response, Pair without tails),
// sampled or not. Discrete Gaussian and Skellam have the bounds αΔ²/2σ² (Canonne,
// Kamath, Steinke 2020 Theorem 4) and [SkellamRDP], sampled by [RDP.Poisson], as
// has sampled Laplace. Replace-one Gaussian sampling has none and returns
// ErrUnsupported; use Compose for it.
func MechanismRDP(m Mechanism, orders []float64) (RDP, error) {
	if m == nil {
		return RDP{}, configError("no mechanism")
	}
	q := 1.0
	inner := m
	if s, ok := m.(Sampled); ok {
		inner, q = s.Mechanism, s.Rate
	}
	var plain RDP
	var err error
	switch x := inner.(type) {
	case DiscreteGaussian:
		if err = checkNoise("discrete Gaussian sigma", x.Sigma, x.Sensitivity); err == nil {
			r := float64(x.Sensitivity) / x.Sigma
			plain, err = NewRDP(orders, func(a float64) float64 { return a * r * r / 2 })
		}
	case Skellam:
		if err = checkNoise("Skellam variance", x.Variance, x.Sensitivity); err == nil {
			d := float64(x.Sensitivity)
			plain, err = SkellamRDP(x.Variance, Sensitivity{L1: d, L2: d, Dimension: 1}, orders)
		}
	case Laplace:
		if err = checkPositive("Laplace scale", x.Scale); err == nil {
			plain, err = NewRDP(orders, func(a float64) float64 { return laplaceRDP(x.Scale, a) })
		}
	}
	if err != nil {
		return RDP{}, err
	}
	if plain.orders != nil {
		return plain.Poisson(q)
	}
	l, err := m.law()
	if err != nil {
		return RDP{}, err
	}
	s, ok := l.(*sampledLaw)
	if !ok {
		return RDP{}, ErrUnsupported
	}
	switch b := s.base.(type) {
	case gaussianBase:
		if s.q == 1 {
			return NewRDP(orders, func(a float64) float64 { return a * b.mu * b.mu / 2 })
		}
		return NewRDP(orders, func(a float64) float64 { return sampledGaussianRDP(s.q, b.mu, a) })
	case *table:
		if b.lostP == 0 && b.lostQ == 0 {
			return NewRDP(orders, func(a float64) float64 { return tableRDP(b, s.q, a) })
		}
	}
	return RDP{}, ErrUnsupported
}

func checkNoise(name string, scale float64, sensitivity int) error {
	if err := checkPositive(name, scale); err != nil {
		return err
	}
	return checkSensitivity(sensitivity)
}

// laplaceRDP is Mironov 2017 Proposition 6 with λ = b.
func laplaceRDP(b, a float64) float64 {
	x := math.Log(a/(2*a-1)) + (a-1)/b
	y := math.Log((a-1)/(2*a-1)) - a/b
	return math.Max(0, logAdd(x, y)/(a-1))
}

// tableRDP is the larger direction's divergence of a finite pair.
func tableRDP(t *table, q, a float64) float64 {
	up, down := math.Inf(-1), math.Inf(-1)
	for _, x := range t.list {
		p := (1-q)*x.q + q*x.p
		if p == 0 || x.q == 0 {
			return math.Inf(1)
		}
		l := sampledLoss(q, x.l)
		up = logAdd(up, math.Log(p)+(a-1)*l)
		down = logAdd(down, math.Log(x.q)-(a-1)*l)
	}
	return math.Max(0, math.Max(up, down)/(a-1))
}
