package aggregation_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

// The statements of "Understanding Clipping for Federated Learning".

// parabola is h/2·(x − a)², a client of the clipping claims.
type parabola struct{ h, a float64 }

// local is the model after Q steps from x; Q = 0 stands for the minimum itself,
// the paper's Q = ∞.
func (p parabola) local(x, rate float64, steps int) float64 {
	if steps == 0 {
		return p.a
	}
	return p.a + math.Pow(1-rate*p.h, float64(steps))*(x-p.a)
}

// settle runs rounds from x until the model stands still. submit turns a client's
// local model and the server's into what the server averages as Δ.
func settle(
	clients []parabola, x, serverRate, rate float64, steps int,
	submit func(local, model float64) float64,
) float64 {
	server := aggregation.Optimizer{Rate: serverRate}
	w := []float64{x}
	for range 5000 {
		var updates [][]float64
		for _, p := range clients {
			updates = append(updates, []float64{submit(p.local(w[0], rate, steps), w[0])})
		}
		w = must(server.Apply(w, mean(updates), nil))
	}
	return w[0]
}

func clipped(x, c float64) float64 {
	out, _, err := aggregation.Clip([]float64{x}, c)
	return must(out, err)[0]
}

func clipModel(c float64) func(local, model float64) float64 {
	return func(local, model float64) float64 { return clipped(local, c) - model }
}

func clipDifference(c float64) func(local, model float64) float64 {
	return func(local, model float64) float64 { return clipped(local-model, c) }
}

func whole(local, model float64) float64 { return local - model }

// TestPaperClippingClaim21: model clipping misses the optimum of a convex quadratic
// for every c, Q and rate. The clients are ½(x − b_i)², b = (−c/2, −c/2, kc), k > 4;
// with λ = (1−η)^Q the only fixed point of a round, x ← ⅓Σ clip(λx + (1−λ)b_i, c), is
// λc/(3−2λ) ≤ c, and the optimum is (k−1)c/3 > c. Difference clipping with the same c
// gets there when the rate is small enough (Claim 2.2).
//
// k > 4 is needed: below it the optimum is within the ball, and with λ near 1 nobody
// is clipped there.
func TestPaperClippingClaim21(t *testing.T) {
	for _, c := range []float64{0.01, 1, 30} {
		for _, k := range []float64{4.0001, 4.5, 10, 100} {
			clients := []parabola{{1, -c / 2}, {1, -c / 2}, {1, k * c}}
			optimum := (k - 1) * c / 3
			for _, s := range []struct {
				steps int
				rate  float64
			}{{1, 0.01}, {1, 0.9}, {5, 0.1}, {20, 0.1}, {20, 0.01}} {
				lambda := math.Pow(1-s.rate, float64(s.steps))
				fixed := lambda * c / (3 - 2*lambda)
				for _, start := range []float64{0, optimum, -5 * c} {
					x := settle(clients, start, 1, s.rate, s.steps, clipModel(c))
					if math.Abs(x-fixed) > 1e-6*c {
						t.Errorf("c %v, k %v, λ %.3v: settles at %v, want %v", c, k, lambda, x, fixed)
					}
				}
				if fixed > c || optimum <= c {
					t.Errorf("c %v, k %v, λ %.3v: fixed point %v, optimum %v", c, k, lambda, fixed, optimum)
				}
			}
			rate := c / (optimum + k*c) // no clipping at the optimum
			if x := settle(clients, optimum+c, 1, min(rate, 0.5), 1,
				clipDifference(c)); math.Abs(x-optimum) > 1e-6*c {
				t.Errorf("c %v, k %v: difference clipping settles at %v, want %v", c, k, x, optimum)
			}
		}
	}
	const k = 3.9
	if x := settle([]parabola{{1, -0.5}, {1, -0.5}, {1, k}}, 0, 1, 0.01, 1,
		clipModel(1)); math.Abs(x-(k-1)/3) > 1e-6 {
		t.Errorf("k %v: settles at %v, want the optimum %v", k, x, (k-1)/3)
	}
}

// TestPaperClippingTable1 has the clients ½(x−4)², ½(2x−1)², ½(6x+1)², whose sum has
// its minimum at 0, and the stationary points of federated averaging: Q = 1 is 0
// without clipping and ½ with c = 1; Q = ∞ is 13/9 and ⅔. So clipping hurts at Q = 1
// and helps at Q = ∞.
func TestPaperClippingTable1(t *testing.T) {
	clients := []parabola{{1, 4}, {4, 0.5}, {36, -1. / 6}}
	const c, rate = 1, 0.01
	found := map[string]float64{}
	for _, p := range []struct {
		name       string
		serverRate float64
		steps      int
		submit     func(local, model float64) float64
		want       float64
	}{
		{"Q = 1", 1, 1, whole, 0},
		// One step is −η times the gradient, and the threshold scales with it.
		{"Q = 1, clipped", 1, 1, clipDifference(rate * c), 1. / 2},
		{"Q = ∞", 1, 0, whole, 13. / 9},
		{"Q = ∞, clipped", 0.01, 0, clipDifference(c), 2. / 3},
	} {
		for _, start := range []float64{-4, 0.3, 5} {
			x := settle(clients, start, p.serverRate, rate, p.steps, p.submit)
			if math.Abs(x-p.want) > 1e-6 {
				t.Errorf("%s from %v: %v, want %v", p.name, start, x, p.want)
			}
			found[p.name] = x
		}
		t.Logf("%s: %.6f", p.name, found[p.name])
	}
	if math.Abs(found["Q = 1, clipped"]) <= math.Abs(found["Q = 1"]) {
		t.Error("clipping does not hurt at Q = 1")
	}
	if math.Abs(found["Q = ∞, clipped"]) >= math.Abs(found["Q = ∞"]) {
		t.Error("clipping does not help at Q = ∞")
	}
}

// TestPaperClippingClaim22: for linear regression, f_i = ½‖A_i·x − b_i‖², a round of Q
// steps moves client i by −Λ_i∇f_i(x) with Λ_i = (I − (I − ηA_iᵀA_i)^Q)(A_iᵀA_i)⁻¹, so
// that clipped averaging is a gradient step on re-weighted, Huberised losses; with
// Q = 1 and η‖∇f_i(x*)‖ ≤ c for all i it reaches the optimum x* of Σf_i. The rate that
// is printed, 1/max‖∇f_i(x*)‖, is that for c = 1; it must be small enough for gradient
// descent besides.
func TestPaperClippingClaim22(t *testing.T) {
	const d, n = 3, 4
	rng := rand.New(rand.NewPCG(50, 7))
	clients := quadratics(rng, n, d)
	smooth := most(clients, objective.smooth)
	optimum := descent(clients, make([]float64, d), 1/smooth, 4000)
	steep := 0.0
	for _, f := range clients {
		steep = max(steep, length(f.gradient(optimum)))
	}
	if steep < 0.1 {
		t.Fatal("the clients agree on the optimum, which shows nothing")
	}
	for _, c := range []float64{0.03, 1, 30} {
		rate := min(c/steep, 1/smooth)
		x := plus(optimum, 1, draw(rng, d))
		for range 200000 {
			var updates [][]float64
			for _, f := range clients {
				moved, _, err := aggregation.Clip(plus(make([]float64, d), -rate, f.gradient(x)), c)
				updates = append(updates, must(moved, err))
			}
			next := plus(x, 1, mean(updates))
			if length(minus(next, x)) < 1e-14 {
				break
			}
			x = next
		}
		if off := length(minus(x, optimum)); off > 1e-6 {
			t.Errorf("c %v, rate %v: %v from the optimum", c, rate, off)
		}
	}

	const steps = 6
	rate := 0.5 / smooth
	x := draw(rng, d)
	for i, f := range clients {
		h := mat.NewDense(d, d, nil)
		for j, row := range f.(quadratic).h {
			h.SetRow(j, row)
		}
		identity := mat.NewDiagDense(d, []float64{1, 1, 1})
		var step, lambda mat.Dense
		step.Scale(rate, h)
		step.Sub(identity, &step)
		step.Pow(&step, steps)
		step.Sub(identity, &step)
		var inverse mat.Dense
		if err := inverse.Inverse(h); err != nil {
			t.Fatal(err)
		}
		lambda.Mul(&step, &inverse)
		var want mat.VecDense
		want.MulVec(&lambda, mat.NewVecDense(d, f.gradient(x)))
		moved := minus(train(f, x, rate, steps, nil), x)
		if off := length(plus(moved, 1, want.RawVector().Data)); off > 1e-12 {
			t.Errorf("client %d: %v from −Λ∇f", i, off)
		}
	}
}

// TestPaperClippingTheorem31 checks what of Theorem 3.1 can be computed: ᾱ, the spread
// of what clipping leaves, and the whole inequality on logistic losses with full
// batches and all clients (no local variance, α̃_i = α_i, no noise), under its
// conditions on the rates:
//
//	(1/T)Σ ᾱ‖∇f‖² ≤ 4(f(x₀)−f*)/(η_gη_lQT) + 75·η_l²LQ²σ_g²·γ₁
//	    + G²·(4/T)Σ_t mean|α_i−ᾱ| + η_gη_lLQG²·(6/T)Σ_t mean|α_i−ᾱ|²
//
// Without the last two terms, those of the spread, it would be false: on Table 1's
// problem clipped averaging stops where ∇f is not 0. By the corollary nothing is
// clipped at c = η_lQG.
func TestPaperClippingTheorem31(t *testing.T) {
	for _, c := range []struct {
		norms        []float64
		c            float64
		left, spread float64
	}{
		{[]float64{1, 1, 1}, 1, 1, 0},
		{[]float64{4, 4}, 1, 0.25, 0}, // equal norms: a shorter step, no spread
		{[]float64{0, 2, 4}, 1, 1.75 / 3, (1.25/3 + 0.25/3 + 1./3) / 3},
		{[]float64{1, 3}, 1, 2. / 3, 1. / 3},
	} {
		left, spread, err := aggregation.ClipSpread(c.norms, c.c)
		if err != nil || math.Abs(left-c.left) > 1e-15 || math.Abs(spread-c.spread) > 1e-15 {
			t.Errorf("%v clipped to %v: ᾱ %v, spread %v, %v; want %v, %v", c.norms, c.c, left, spread, err,
				c.left, c.spread)
		}
	}

	const d, n, steps, rounds = 5, 6, 4, 3000
	rng := rand.New(rand.NewPCG(51, 7))
	clients := logistics(rng, n, d)
	var smooth, steep float64
	for i, f := range clients {
		l := f.(logistic)
		l.model.Lambda = 0 // a bounded gradient
		for k := range l.data.X {
			l.data.X[k] *= math.Ldexp(1, i-3) // clients of unequal steepness
		}
		clients[i] = l
		smooth = max(smooth, l.smooth())
		steep = max(steep, l.moment(1))
	}
	optimum := descent(clients, make([]float64, d), 1/smooth, 20000)
	rate := 1 / (math.Sqrt(60) * steps * smooth)
	serverRate := min(float64(n)/(48*steps), n/(6*steps*smooth*(n-1))) / rate
	for _, c := range []float64{1e-4, 1e-2, rate * steps * steep} {
		server := aggregation.Optimizer{Rate: serverRate}
		x := make([]float64, d)
		start := meanValue(clients, x)
		var left, squares, spread, spread2, apart float64
		for range rounds {
			own, all := gradients(clients, x)
			var updates [][]float64
			var shares []float64
			for i, f := range clients {
				away := minus(own[i], all)
				apart = max(apart, dot(away, away))
				moved, norm, err := aggregation.Clip(minus(train(f, x, rate, steps, nil), x), c)
				updates = append(updates, must(moved, err))
				shares = append(shares, c/max(c, norm))
			}
			var a, s, s2 float64
			for _, share := range shares {
				a += share / n
			}
			for _, share := range shares {
				s += math.Abs(share-a) / n
				s2 += (share - a) * (share - a) / n
			}
			left += a / rounds
			squares += a * dot(all, all) / rounds
			spread += s / rounds
			spread2 += s2 / rounds
			x = must(server.Apply(x, mean(updates), nil))
		}
		descends := 4*(start-meanValue(clients, optimum))/(serverRate*rate*steps*rounds) +
			75*rate*rate*smooth*steps*steps*apart*left
		bias := 4*steep*steep*spread + 6*serverRate*rate*smooth*steps*steep*steep*spread2
		if squares > descends+bias {
			t.Errorf("c %v: mean of ᾱ‖∇f‖² is %v, bound %v + %v", c, squares, descends, bias)
		}
		if c == rate*steps*steep && (left < 1-1e-12 || spread > 1e-12) {
			t.Errorf("c = ηQG: ᾱ %v, spread %v", left, spread)
		}
		t.Logf("c %.3g: mean of ᾱ‖∇f‖² %.3g, bound %.3g and %.3g of the spread; ᾱ %.3g, spread %.3g", c,
			squares, descends, bias, left, spread)
	}

	// Table 1 at Q = 1 stays at ½, where for many rounds and small rates all that is
	// left of the bound is the spread.
	slopes := []float64{0.5 - 4, 4*0.5 - 2, 36*0.5 + 6}
	const small, curve = 1e-3, 36
	left, spread, err := aggregation.ClipSpread([]float64{3.5, 0, 24}, 1)
	slope := (slopes[0] + slopes[1] + slopes[2]) / 3
	apart := math.Pow(slopes[2]-slope, 2)
	if bound := 75 * small * small * curve * apart * left; err != nil || left*slope*slope < 10*bound ||
		spread < 0.3 {
		t.Errorf("at ½: ᾱ‖∇f‖² %v, without the spread's terms %v; spread %v, %v", left*slope*slope, bound,
			spread, err)
	}
}

// TestPaperClippingTheorem32: constants u and v exist such that with q = P/N, for
// ε ≤ u·q²·T, a multiplier of z = q·√(v·T·ln(1/δ))/ε is enough. The theorem names
// neither; with u = 1 and v = 4 the certified ε of Poisson-sampled Gaussian noise is
// within the claim all over the range, and the range is needed: far above it the same
// v is not enough.
func TestPaperClippingTheorem32(t *testing.T) {
	const clients, perRound, delta, v = 1920, 80, 1e-5, 4
	const q = float64(perRound) / clients
	certified := func(rounds int, epsilon float64) float64 {
		z := must(accounting.ClippingTheorem(clients, perRound, rounds, epsilon, delta, v))
		c := must(accounting.Compose(accounting.Step{
			Mechanism: accounting.Sampled{Mechanism: accounting.Gaussian{NoiseMultiplier: z}, Rate: q},
			Count:     rounds,
		}))
		return must(c.Epsilon(delta)).Upper
	}
	for _, rounds := range []int{500, 2000} {
		for _, share := range []float64{0.25, 0.5, 1} {
			epsilon := share * q * q * float64(rounds)
			got := certified(rounds, epsilon)
			t.Logf("T %d, ε = %.2f·q²T = %.3f: certified %.3f", rounds, share, epsilon, got)
			if got > epsilon {
				t.Errorf("T %d: ε %v is claimed, %v certified", rounds, epsilon, got)
			}
		}
	}
	const rounds = 200
	if epsilon := 100 * q * q * rounds; certified(rounds, epsilon) <= epsilon {
		t.Errorf("v = %v is enough at ε = %v, a hundred times q²T", v, epsilon)
	}
}
