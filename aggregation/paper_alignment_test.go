package aggregation_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
)

// The statements of "Implicit Gradient Alignment in Distributed and Federated
// Learning". g_i and H_i are gradient and Hessian of client i at x, g is the mean of
// g_i, r = 1/(2n)·Σ‖g_i − g‖² and ∇r = 1/n·Σ H_i(g_i − g); α is the rate, K the steps.

// expansion is a claim that to − from = factor·∇r + terms of higher order in the rate.
type expansion struct {
	claim    string
	from, to func(rate float64) []float64
	factor   func(rate float64) float64 // nil: there is no leading term
	scale    func(rate float64) float64 // what "higher order" is compared with; nil: |factor|
	exact    bool                       // no terms of higher order
}

// check halves the rate: the distance to the leading term, relative to that, must
// halve with it to within a tenth at the smallest rates, and end below 1 %.
func (c expansion) check(t *testing.T, gradR []float64) {
	var last float64
	for e := 5; e <= 12; e++ {
		a := math.Ldexp(1, -e)
		factor, scale := 0.0, 0.0
		if c.factor != nil {
			factor = c.factor(a)
			scale = math.Abs(factor)
		}
		if c.scale != nil {
			scale = c.scale(a)
		}
		off := length(plus(minus(c.to(a), c.from(a)), -factor, gradR)) / (scale * length(gradR))
		switch {
		case c.exact:
			if off > 1e-6 {
				t.Errorf("rate 2^-%d: off by %v, want exact", e, off)
			}
		case e > 9 && math.Abs(last/off-2) > 0.2:
			t.Errorf("rate 2^-%d: off by %v after %v, want half", e, off, last)
		case e == 12 && off > 0.01:
			t.Errorf("rate 2^-%d: off by %v", e, off)
		}
		last = off
	}
	t.Logf("relative distance at the rate 2^-12: %.2g", last)
}

// TestPaperAlignmentTheorems245 checks Theorems 2 (GradAlign), 4 (FedGA) and 5
// (SCAFFOLD with fresh variates), with their signs and factors, by Taylor expansion:
//
//   - GradAlign, K = 1: a client's gradient at x + v_i with v_i = β(g_i − g) is
//     g_i + βH_i(g_i − g) + O(β²), so the round is a step of gradient descent and
//     −αβ∇r + O(αβ²). The O(αβ²) is of third order: it vanishes for quadratics.
//   - FedGA: the K gradients of a client each gain H_i·v_i + O(αβ + β²) over those
//     of federated averaging, and the v_i add up to 0: −αβK∇r + O(αβ(α+β)); see
//     TestPaperAlignmentTheorem4Order for the order that is printed.
//   - SCAFFOLD with c_i = g_i, c = g: step k starts at x − αkg + O(α²) instead of
//     x − αkg_i + O(α²), where the gradient is larger by αkH_i(g_i − g), and the
//     corrections add up to 0: the sum over k < K gives −α²K(K−1)/2·∇r + O(α³)
//     from federated averaging.
//   - Federated averaging itself is +α²K(K−1)/2·∇r + O(α³) from K steps of
//     gradient descent, by the same sums; SCAFFOLD therefore is O(α³) from that,
//     as FedGA with β = α(K−1)/2 is.
func TestPaperAlignmentTheorems245(t *testing.T) {
	const n, d, steps = 4, 6, 5
	const drift = steps * (steps - 1) / 2
	for name, clients := range bothKinds(31, n, d) {
		x := draw(rand.New(rand.NewPCG(32, 7)), d)
		own, all := gradients(clients, x)
		_, gradR := misalignment(clients, x)
		gradientDescent := func(a float64) []float64 { return descent(clients, x, a, steps) }
		fedAvg := func(a float64) []float64 { return fedGA(clients, x, a, 0, steps) }
		scaffold := func(a float64) []float64 {
			adjust := func(i int) aggregation.Adjust {
				return must(aggregation.Scaffold{Server: all, Own: own[i]}.Adjust())
			}
			return round(clients, x, func(i int) []float64 {
				return train(clients[i], x, a, steps, adjust(i))
			})
		}
		ofDrift := func(a float64) float64 { return a * a * drift }
		for _, c := range []expansion{
			{claim: "Theorem 2, GradAlign from gradient descent",
				from:   func(a float64) []float64 { return descent(clients, x, a, 1) },
				to:     func(a float64) []float64 { return fedGA(clients, x, a, 0.7*a, 1) },
				factor: func(a float64) float64 { return -a * 0.7 * a }, exact: name == "quadratics"},
			{claim: "Theorem 4, FedGA from FedAvg", from: fedAvg,
				to:     func(a float64) []float64 { return fedGA(clients, x, a, 3*a, steps) },
				factor: func(a float64) float64 { return -a * 3 * a * steps }},
			{claim: "Theorem 5, SCAFFOLD from FedAvg", from: fedAvg, to: scaffold,
				factor: func(a float64) float64 { return -ofDrift(a) }},
			{claim: "FedAvg from gradient descent", from: gradientDescent, to: fedAvg, factor: ofDrift},
			{claim: "SCAFFOLD from gradient descent", from: gradientDescent, to: scaffold, scale: ofDrift},
			{claim: "FedGA with β = α(K−1)/2 from gradient descent", from: gradientDescent,
				to:    func(a float64) []float64 { return fedGA(clients, x, a, a*(steps-1)/2, steps) },
				scale: ofDrift},
		} {
			t.Run(name+", "+c.claim, func(t *testing.T) { c.check(t, gradR) })
		}
	}
}

// TestPaperAlignmentTheorem4Order: Theorem 4 prints E[x_FedGA − x_FedAvg] =
// −αβK∇r + O(αβ²). There are terms of α²β besides, unless K = 1. On quadratics
// nothing is of second order in β, so that the printed remainder would be 0; at a
// fixed rate what remains is proportional to β, and to α² at a fixed β.
func TestPaperAlignmentTheorem4Order(t *testing.T) {
	const d = 6
	clients := bothKinds(31, 4, d)["quadratics"]
	x := draw(rand.New(rand.NewPCG(33, 7)), d)
	_, gradR := misalignment(clients, x)
	remainder := func(rate, beta float64, steps int) float64 {
		moved := minus(fedGA(clients, x, rate, beta, steps), fedGA(clients, x, rate, 0, steps))
		return length(plus(moved, rate*beta*float64(steps), gradR))
	}
	const a, b = 0x1p-8, 0x1p-8
	whole := remainder(a, b, 5)
	if r := whole / remainder(a, b/2, 5); math.Abs(r-2) > 1e-6 {
		t.Errorf("half of β: the remainder falls to 1/%v, want 1/2", r)
	}
	if r := whole / remainder(a/2, b, 5); math.Abs(r-4) > 0.1 {
		t.Errorf("half of α: the remainder falls to 1/%v, want 1/4", r)
	}
	if r := remainder(a, b, 1); r > 1e-6*whole {
		t.Errorf("K = 1: %v remains", r)
	}
}

// TestPaperAlignmentLemma1: ‖∇f(x+v) − ∇f(x) − H(x)v‖ ≤ ρ/2·‖v‖² with ρ the
// Lipschitz constant of the Hessian; quadratics, where ρ = 0, have equality. The
// constant cannot be smaller: one logistic row at the steepest place of its second
// derivative reaches 99 % of the bound.
func TestPaperAlignmentLemma1(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 7))
	gap := func(f objective, x, v []float64) float64 {
		return length(minus(minus(f.gradient(plus(x, 1, v)), f.gradient(x)), f.hessian(x, v)))
	}
	for name, clients := range bothKinds(35, 4, 6) {
		for _, f := range clients {
			for e := -12; e <= 4; e++ {
				x, v := draw(rng, 6), draw(rng, 6)
				v = plus(make([]float64, 6), math.Ldexp(1, e), v)
				bound := f.bend() / 2 * dot(v, v)
				if g := gap(f, x, v); g > bound+1e-12*(1+length(v)) {
					t.Errorf("%s: ‖v‖ = %v: off by %v, bound %v", name, length(v), g, bound)
				}
			}
		}
	}
	one := logistics(rng, 1, 1)[0].(logistic)
	one.model.Lambda, one.data.X, one.data.Labels = 0, []float64{1}, []int{0}
	x, v := []float64{math.Log(2 - math.Sqrt(3))}, []float64{0.01}
	if share := gap(one, x, v) / (one.bend() / 2 * dot(v, v)); share < 0.99 || share > 1 {
		t.Errorf("the steepest row reaches %v of the bound", share)
	}
}

// TestPaperAlignmentTheorem1: SGD over a multiset of K batches, in an order whose
// reverse is as likely, is −α²/2·ΣH_a(g_a − g_A) + O(α³) = −Kα²/2·∇r_A + O(α³) from K
// steps of gradient descent on their mean f_A; by the corollary it is O(α³) from as
// many steps on f_A + α/2·r_A. The mean here is over one order and its reverse, and
// one batch is in the set twice. Linear scaling keeps the regulariser in one step:
// x − αΣ_i ∇f_i(x − α/2·Σ_{j≠i}∇f_j(x)) is O(α³) from SGD too.
func TestPaperAlignmentTheorem1(t *testing.T) {
	const d = 6
	for name, batches := range bothKinds(36, 4, d) {
		batches = append(batches, batches[1])
		k := len(batches)
		x := draw(rand.New(rand.NewPCG(37, 7)), d)
		_, gradR := misalignment(batches, x)
		sgd := func(a float64) []float64 {
			forward, back := x, x
			for i := range batches {
				forward = plus(forward, -a, batches[i].gradient(forward))
				back = plus(back, -a, batches[k-1-i].gradient(back))
			}
			return mean([][]float64{forward, back})
		}
		regularised := func(a float64) []float64 {
			w := x
			for range k {
				_, all := gradients(batches, w)
				_, pull := misalignment(batches, w)
				w = plus(plus(w, -a, all), -a*a/2, pull)
			}
			return w
		}
		scaled := func(a float64) []float64 {
			own, all := gradients(batches, x)
			w := x
			for i, f := range batches {
				others := minus(plus(make([]float64, d), float64(k), all), own[i])
				w = plus(w, -a, f.gradient(plus(x, -a/2, others)))
			}
			return w
		}
		scale := func(a float64) float64 { return float64(k) * a * a / 2 }
		for _, c := range []expansion{
			{claim: "SGD from gradient descent", to: sgd,
				from:   func(a float64) []float64 { return descent(batches, x, a, k) },
				factor: func(a float64) float64 { return -scale(a) }},
			{claim: "corollary: SGD from descent on f + α/2·r", to: sgd, from: regularised, scale: scale},
			{claim: "linear scaling: one long step from SGD", to: scaled, from: sgd, scale: scale},
		} {
			t.Run(name+", "+c.claim, func(t *testing.T) { c.check(t, gradR) })
		}
	}
}

// TestPaperAlignmentTheorem3: with α ≤ 1/(2L₁), a step of GradAlign x⁺ lowers
// f̂ = f + βr unless ∇f = ∇r = 0, for β below L₁/L₂ and (L₁/ρ·‖x⁺−x‖/r)^½; where
// ∇f = 0, for β up to αL₁/(ρ(1+αL₁))·‖∇r‖/r. By the proof,
// f̂(x⁺) − f̂(x) ≤ −L₁‖x⁺−x‖² + ρβ²r‖x⁺−x‖ already for β ≤ L₁/L₂.
//
// L₁ and L₂ bound the Hessians of f and r, ρ is the Lipschitz constant of theirs:
// ‖∇²r‖ ≤ max‖H_i‖² + 2ρ·max‖g_i − g‖, near x the more so for the factor of 2.
func TestPaperAlignmentTheorem3(t *testing.T) {
	const d = 6
	for name, clients := range bothKinds(38, 4, d) {
		rng := rand.New(rand.NewPCG(39, 7))
		smooth, bend := most(clients, objective.smooth), most(clients, objective.bend)
		optimum := descent(clients, make([]float64, d), 1/smooth, 4000)
		if _, all := gradients(clients, optimum); length(all) > 1e-12 {
			t.Fatalf("%s: no optimum of f: gradient %v", name, length(all))
		}
		lowered := 0
		for trial := range 200 {
			x := plus(optimum, math.Ldexp(1, -trial%12), draw(rng, d))
			atOptimum := trial%10 == 0
			if atOptimum {
				x = optimum
			}
			own, all := gradients(clients, x)
			var away float64
			for _, g := range own {
				away = max(away, length(minus(g, all)))
			}
			r, gradR := misalignment(clients, x)
			limit := smooth / (smooth*smooth + 2*2*bend*away)
			alpha := (0.1 + 0.9*rng.Float64()) / (2 * smooth)
			beta := limit * math.Ldexp(1, -trial%7)
			if atOptimum && bend > 0 {
				beta = min(beta, alpha*smooth/(bend*(1+alpha*smooth))*length(gradR)/r*(1-1e-9))
			}
			next := fedGA(clients, x, alpha, beta, 1)
			step := length(minus(next, x))
			rNext, _ := misalignment(clients, next)
			change := meanValue(clients, next) + beta*rNext - meanValue(clients, x) - beta*r
			if bound := -smooth*step*step + bend*beta*beta*r*step; change > bound+1e-13 {
				t.Errorf("%s: β %v: f̂ changes by %v, bound %v", name, beta, change, bound)
			}
			if atOptimum || bend*beta*beta*r < smooth*step {
				lowered++
				if change >= 0 {
					t.Errorf("%s: β %v, at the optimum: %v: f̂ changes by %v", name, beta, atOptimum, change)
				}
			}
		}
		if lowered < 100 {
			t.Errorf("%s: only %d of 200 within the theorem", name, lowered)
		}
		t.Logf("%s: f̂ fell in all of %d steps within the theorem's range", name, lowered)
	}
}

// TestPaperAlignmentTwoForms: displacing the start by −βv_i (FedGA) and taking every
// gradient at the displaced place, x_i^k = x_i^{k−1} − α∇f_i(x_i^{k−1} − βv_i) (the
// paper's Algorithm 3), are the same round exactly when Σv_i = 0: the client's
// models differ by βv_i, their means by the mean of that. When a client drops out
// between the exchanges the forms part by it.
func TestPaperAlignmentTwoForms(t *testing.T) {
	const d, steps, rate, beta = 6, 7, 0.05, 0.3
	for name, clients := range bothKinds(40, 4, d) {
		x := draw(rand.New(rand.NewPCG(41, 7)), d)
		own, all := gradients(clients, x)
		forms := func(sent []int) (short, long, v []float64) {
			var shorts, longs, vs [][]float64
			for _, i := range sent {
				f := clients[i]
				vs = append(vs, minus(all, own[i]))
				start := must(aggregation.Displace(x, all, own[i], beta))
				shorts = append(shorts, train(f, start, rate, steps, nil))
				w := x
				for range steps {
					w = plus(w, -rate, f.gradient(plus(w, -beta, vs[len(vs)-1])))
				}
				longs = append(longs, w)
			}
			return mean(shorts), mean(longs), mean(vs)
		}
		short, long, _ := forms([]int{0, 1, 2, 3})
		if off := length(minus(short, long)); off > 1e-14 {
			t.Errorf("%s: the forms differ by %v", name, off)
		}
		short, long, v := forms([]int{0, 1, 3})
		if off := length(plus(minus(short, long), beta, v)); off > 1e-14 || beta*length(v) < 0.01 {
			t.Errorf("%s, client 2 gone: off by %v from −β·mean v, which is %v", name, off, beta*length(v))
		}
	}
}
