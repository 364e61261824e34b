package aggregation_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

// objective is one client's loss, as far as the claims need it.
type objective interface {
	gradient(w []float64) []float64
	hessian(w, v []float64) []float64 // ∇²f(w)·v
}

// quadratic is ½(w−a)ᵀH(w−a).
type quadratic struct {
	h [][]float64
	a []float64
}

func (q quadratic) gradient(w []float64) []float64 {
	v := make([]float64, len(w))
	for i := range v {
		v[i] = w[i] - q.a[i]
	}
	return q.hessian(w, v)
}

func (q quadratic) hessian(_, v []float64) []float64 {
	out := make([]float64, len(v))
	for i, row := range q.h {
		out[i] = dot(row, v)
	}
	return out
}

// logistic is learning's regularised logistic regression on a client's rows.
type logistic struct {
	model learning.Logistic
	data  *learning.Dataset
}

func (l logistic) gradient(w []float64) []float64 {
	out := make([]float64, len(w))
	if err := l.model.Gradient(out, w, l.data); err != nil {
		panic(err)
	}
	return out
}

func (l logistic) hessian(w, v []float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = l.model.Lambda * v[i]
	}
	for k := range l.data.Len() {
		x := l.data.Row(k)
		p := 1 / (1 + math.Exp(-dot(x, w)))
		c := p * (1 - p) * dot(x, v) / float64(l.data.Len())
		for i := range out {
			out[i] += c * x[i]
		}
	}
	return out
}

func dot(x, y []float64) float64 {
	var sum float64
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func draw(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func quadratics(rng *rand.Rand, n, d int) []objective {
	clients := make([]objective, n)
	for k := range clients {
		q := quadratic{a: draw(rng, d)}
		factor := make([][]float64, d)
		for i := range factor {
			factor[i] = draw(rng, d)
		}
		for i := range factor { // AAᵀ/d + ½
			row := make([]float64, d)
			for j := range row {
				row[j] = dot(factor[i], factor[j]) / float64(d)
			}
			row[i] += 0.5
			q.h = append(q.h, row)
		}
		clients[k] = q
	}
	return clients
}

func logistics(rng *rand.Rand, n, d int) []objective {
	clients := make([]objective, n)
	for k := range clients {
		truth := draw(rng, d) // another for each client
		data := &learning.Dataset{Features: d}
		for range 40 {
			x := draw(rng, d)
			data.X = append(data.X, x...)
			y := 0
			if dot(x, truth)+rng.NormFloat64() > 0 {
				y = 1
			}
			data.Labels = append(data.Labels, y)
		}
		clients[k] = logistic{learning.Logistic{Features: d, Lambda: 0.1}, data}
	}
	return clients
}

func mean(vectors [][]float64) []float64 {
	out := make([]float64, len(vectors[0]))
	for _, v := range vectors {
		for i, x := range v {
			out[i] += x / float64(len(vectors))
		}
	}
	return out
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// train takes K plain steps from start.
func train(f objective, start []float64, rate float64, steps int, adjust aggregation.Adjust) []float64 {
	w := slices.Clone(start)
	for range steps {
		g := f.gradient(w)
		if adjust != nil {
			adjust(g, w)
		}
		for i := range w {
			w[i] -= rate * g[i]
		}
	}
	return w
}

// round is one round of a rule from w: each client trains, the server averages
// the differences.
func round(clients []objective, w []float64, client func(i int) []float64) []float64 {
	updates := make([][]float64, len(clients))
	for i := range clients {
		y := client(i)
		for j := range y {
			y[j] -= w[j]
		}
		updates[i] = y
	}
	var server aggregation.Optimizer
	return must(server.Apply(w, mean(updates), nil))
}

// TestAlignmentTheorems checks the leading terms behind Theorems 2 (GradAlign), 4
// (FedGA) and 5 (SCAFFOLD) of "Implicit Gradient Alignment in Distributed and
// Federated Learning". The terms are derived here, by Taylor expansion; the
// paper's own wording of them was not compared.
//
// Let g_i, H_i be the gradient and Hessian of client i at x, g the mean of g_i,
// and r = 1/(2n)·Σ‖∇f_i − ∇f‖². Then ∇r = 1/n·Σ (H_i − H)(g_i − g)
// = 1/n·Σ H_i(g_i − g), since the g_i − g add up to 0. α is the rate, K the steps.
//
//   - GradAlign, K = 1: a client's gradient at x + v_i with v_i = β(g_i − g) is
//     g_i + βH_i(g_i − g) + O(β²), so the round is a step of gradient descent and
//     −αβ∇r + O(αβ²). The O(αβ²) is of third order: it vanishes for quadratics.
//   - FedGA: the K gradients of a client each gain H_i·v_i + O(αβ + β²) over those
//     of federated averaging, and the v_i add up to 0: −αβK∇r + O(αβ(α+β)).
//   - SCAFFOLD with c_i = g_i, c = g: step k starts at x − αkg + O(α²) instead of
//     x − αkg_i + O(α²), where the gradient is larger by αkH_i(g_i − g), and the
//     corrections add up to 0: the sum over k < K gives −α²K(K−1)/2·∇r + O(α³)
//     from federated averaging.
//   - Federated averaging itself is +α²K(K−1)/2·∇r + O(α³) from K steps of
//     gradient descent, by the same sums; SCAFFOLD therefore is O(α³) from that,
//     as FedGA with β = α(K−1)/2 is.
//
// The relative distance to the leading term must fall like the rate: it halves
// with it, to within a tenth at the smallest rates, and ends below 1 %.
func TestAlignmentTheorems(t *testing.T) {
	const n, d, steps = 4, 6, 5
	rng := rand.New(rand.NewPCG(31, 7))
	for name, clients := range map[string][]objective{
		"quadratics": quadratics(rng, n, d),
		"logistic":   logistics(rng, n, d),
	} {
		x := draw(rng, d)
		grads := make([][]float64, n)
		for i, f := range clients {
			grads[i] = f.gradient(x)
		}
		g := mean(grads)
		align := make([][]float64, n) // H_i(g_i − g)
		for i, f := range clients {
			v := slices.Clone(grads[i])
			for j := range v {
				v[j] -= g[j]
			}
			align[i] = f.hessian(x, v)
		}
		gradR := mean(align)

		descent := func(rate float64, k int) []float64 {
			w := slices.Clone(x)
			for range k {
				all := make([][]float64, n)
				for i, f := range clients {
					all[i] = f.gradient(w)
				}
				for j, s := range mean(all) {
					w[j] -= rate * s
				}
			}
			return w
		}
		fedAvg := func(rate float64) []float64 {
			return round(clients, x, func(i int) []float64 { return train(clients[i], x, rate, steps, nil) })
		}
		fedGA := func(rate, beta float64, k int) []float64 {
			return round(clients, x, func(i int) []float64 {
				return train(clients[i], must(aggregation.Displace(x, g, grads[i], beta)), rate, k, nil)
			})
		}
		scaffold := func(rate float64) []float64 {
			return round(clients, x, func(i int) []float64 {
				adjust := must(aggregation.Scaffold{Server: g, Own: grads[i]}.Adjust())
				return train(clients[i], x, rate, steps, adjust)
			})
		}
		const drift = steps * (steps - 1) / 2
		for _, c := range []struct {
			claim    string
			from, to func(rate float64) []float64
			factor   func(rate float64) float64 // the leading term over ∇r; 0: there is none
			exact    bool                       // for quadratics
		}{
			{"GradAlign from gradient descent",
				func(a float64) []float64 { return descent(a, 1) },
				func(a float64) []float64 { return fedGA(a, 0.7*a, 1) },
				func(a float64) float64 { return -a * 0.7 * a }, true},
			{"FedGA from FedAvg", fedAvg,
				func(a float64) []float64 { return fedGA(a, 3*a, steps) },
				func(a float64) float64 { return -a * 3 * a * steps }, false},
			{"SCAFFOLD from FedAvg", fedAvg, scaffold,
				func(a float64) float64 { return -a * a * drift }, false},
			{"FedAvg from gradient descent",
				func(a float64) []float64 { return descent(a, steps) }, fedAvg,
				func(a float64) float64 { return a * a * drift }, false},
			{"SCAFFOLD from gradient descent",
				func(a float64) []float64 { return descent(a, steps) }, scaffold, nil, false},
			{"FedGA with β = α(K−1)/2 from gradient descent",
				func(a float64) []float64 { return descent(a, steps) },
				func(a float64) []float64 { return fedGA(a, a*(steps-1)/2, steps) }, nil, false},
		} {
			var last float64
			for e := 5; e <= 12; e++ {
				a := math.Ldexp(1, -e)
				from, to := c.from(a), c.to(a)
				// What has no term of its own is compared with that of the drift.
				factor, scale := 0.0, a*a*drift
				if c.factor != nil {
					factor = c.factor(a)
					scale = math.Abs(factor)
				}
				var off float64
				for j := range from {
					off = math.Hypot(off, to[j]-from[j]-factor*gradR[j])
				}
				off /= scale * math.Sqrt(dot(gradR, gradR))
				switch {
				case c.exact && name == "quadratics":
					if off > 1e-6 {
						t.Errorf("%s, %s: rate 2^-%d: off by %v, want exact", name, c.claim, e, off)
					}
				case e > 9 && math.Abs(last/off-2) > 0.2:
					t.Errorf("%s, %s: rate 2^-%d: off by %v after %v, want half", name, c.claim, e, off, last)
				case e == 12 && off > 0.01:
					t.Errorf("%s, %s: rate 2^-%d: off by %v", name, c.claim, e, off)
				}
				last = off
			}
			t.Logf("%s, %s: relative distance at the rate 2^-12: %.2g", name, c.claim, last)
		}
	}
}

// parabola is h/2·(x − a)², the clients of the clipping claims.
type parabola struct{ h, a float64 }

// local is the model after K steps from x; K = 0 stands for the minimum itself.
func (p parabola) local(x, rate float64, steps int) float64 {
	if steps == 0 {
		return p.a
	}
	return p.a + math.Pow(1-rate*p.h, float64(steps))*(x-p.a)
}

// settle runs rounds from x until the model stands still. submit turns a client's
// local model and the server's into what the server averages as Δ.
func settle(clients []parabola, x, rate float64, steps int, submit func(local, model float64) float64) float64 {
	server := aggregation.Optimizer{}
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

// TestModelClipping is Claim 2.1 of "Understanding Clipping for Federated
// Learning": for k > 4, model clipping with threshold c stops at λc/(3−2λ) and
// not at the optimum. The paper's problem was not compared; the one here is built
// to have that fixed point. Two clients have ½x², one ½(x − kc)²; with
// λ = (1 − η)^K, the first two come back with λx and the third, clipped, with c,
// so that x = (2λx + c)/3: the server settles at c/(3−2λ) and the first two
// clients at λc/(3−2λ), their model after training. The optimum is kc/3, out of
// reach of a mean of clipped models for k > 3, and so for k > 4. Difference
// clipping with the same c gets there when c is above the differences that are
// left at the optimum.
func TestModelClipping(t *testing.T) {
	for _, c := range []float64{0.01, 1, 30} {
		for _, k := range []float64{4.5, 10, 100} {
			for _, steps := range []int{1, 5, 20} {
				const rate = 0.1
				clients := []parabola{{1, 0}, {1, 0}, {1, k * c}}
				lambda := math.Pow(1-rate, float64(steps))
				optimum := k * c / 3
				for _, start := range []float64{0, optimum, -5 * c} {
					x := settle(clients, start, rate, steps, clipModel(c))
					if want := c / (3 - 2*lambda); math.Abs(x-want) > 1e-6*c {
						t.Errorf("c %v, k %v, %d steps: the server settles at %v, want %v", c, k, steps, x, want)
					}
					local := clients[0].local(x, rate, steps)
					if want := lambda * c / (3 - 2*lambda); math.Abs(local-want) > 1e-6*c {
						t.Errorf("c %v, k %v, %d steps: the clients settle at %v, want %v", c, k, steps, local, want)
					}
					if optimum-x < c/3 {
						t.Errorf("c %v, k %v, %d steps: %v is close to the optimum %v", c, k, steps, x, optimum)
					}
				}
				if left := (1 - lambda) * 2 * optimum; left < c {
					if x := settle(clients, 0, rate, steps, clipDifference(c)); math.Abs(x-optimum) > 1e-6*c {
						t.Errorf("c %v, k %v, %d steps: difference clipping settles at %v, want %v", c, k, steps, x, optimum)
					}
				}
			}
		}
	}
}

// TestStationaryPoints has the four stationary points of Table 1 of the same
// paper, 0, 13/9, 1/2 and 2/3. Its problem is not taken from the paper but found
// from these numbers, by a search over sums of three parabolas with small
// integers: (x+1)², x² and 5/2·(x−3)², with the threshold 2. Gradient descent
// finds 13/9 and, with each client's gradient clipped, 0; federated averaging with
// local minimisation finds 2/3 and, with differences clipped, 1/2. Clipping moves
// both, the second by less.
func TestStationaryPoints(t *testing.T) {
	clients := []parabola{{2, -1}, {2, 0}, {5, 3}}
	const c, rate = 2, 0.1
	whole := func(local, model float64) float64 { return local - model }
	for _, p := range []struct {
		name   string
		steps  int
		submit func(local, model float64) float64
		want   float64
	}{
		// One step is −η times the gradient, and the threshold scales with it.
		{"clipped gradient descent", 1, clipDifference(rate * c), 0},
		{"gradient descent", 1, whole, 13.0 / 9},
		{"clipped federated averaging", 0, clipDifference(c), 1.0 / 2},
		{"federated averaging", 0, whole, 2.0 / 3},
	} {
		for _, start := range []float64{-4, 0.3, 5} {
			if x := settle(clients, start, rate, p.steps, p.submit); math.Abs(x-p.want) > 1e-6 {
				t.Errorf("%s from %v: %v, want %v", p.name, start, x, p.want)
			}
		}
	}
}
