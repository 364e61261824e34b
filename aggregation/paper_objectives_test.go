package aggregation_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/learning"
)

// objective is one client's loss, as far as the papers' statements need it.
type objective interface {
	value(w []float64) float64
	gradient(w []float64) []float64
	hessian(w, v []float64) []float64 // ∇²f(w)·v
	// smooth bounds the norm of the Hessian, bend its Lipschitz constant ρ.
	smooth() float64
	bend() float64
}

// quadratic is ½(w−a)ᵀH(w−a).
type quadratic struct {
	h [][]float64
	a []float64
}

func (q quadratic) value(w []float64) float64 {
	return dot(minus(w, q.a), q.gradient(w)) / 2
}

func (q quadratic) gradient(w []float64) []float64 { return q.hessian(w, minus(w, q.a)) }

func (q quadratic) hessian(_, v []float64) []float64 {
	out := make([]float64, len(v))
	for i, row := range q.h {
		out[i] = dot(row, v)
	}
	return out
}

// smooth is the trace, which no eigenvalue exceeds.
func (q quadratic) smooth() float64 {
	var trace float64
	for i := range q.h {
		trace += q.h[i][i]
	}
	return trace
}

func (q quadratic) bend() float64 { return 0 }

// logistic is learning's regularised logistic regression on a client's rows.
type logistic struct {
	model learning.Logistic
	data  *learning.Dataset
}

func (l logistic) value(w []float64) float64 { return must(l.model.Loss(w, l.data)) }

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

// moment is the mean over rows of ‖x‖^k.
func (l logistic) moment(k int) float64 {
	var sum float64
	for i := range l.data.Len() {
		sum += math.Pow(length(l.data.Row(i)), float64(k)) / float64(l.data.Len())
	}
	return sum
}

// The first derivative of the sigmoid is at most 1/4, the second at most 1/(6√3).
func (l logistic) smooth() float64 { return l.moment(2)/4 + l.model.Lambda }
func (l logistic) bend() float64   { return l.moment(3) / (6 * math.Sqrt(3)) }

func dot(x, y []float64) float64 {
	var sum float64
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func length(x []float64) float64 { return math.Sqrt(dot(x, x)) }

func minus(x, y []float64) []float64 { return plus(x, -1, y) }

// plus is x + a·y.
func plus(x []float64, a float64, y []float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] += a * y[i]
	}
	return out
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

// bothKinds are n clients of each kind in d dimensions, from a seed.
func bothKinds(seed uint64, n, d int) map[string][]objective {
	rng := rand.New(rand.NewPCG(seed, 7))
	return map[string][]objective{"quadratics": quadratics(rng, n, d),
		"logistic": logistics(rng, n, d)}
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

// gradients returns those of all clients at x, and their mean.
func gradients(clients []objective, x []float64) (own [][]float64, all []float64) {
	for _, f := range clients {
		own = append(own, f.gradient(x))
	}
	return own, mean(own)
}

// meanValue is f(x), the mean of the clients' losses.
func meanValue(clients []objective, x []float64) float64 {
	var sum float64
	for _, f := range clients {
		sum += f.value(x) / float64(len(clients))
	}
	return sum
}

// misalignment is r(x) = 1/(2n)·Σ‖∇f_i − ∇f‖², and its gradient 1/n·Σ H_i(g_i − g).
func misalignment(clients []objective, x []float64) (r float64, gradient []float64) {
	own, all := gradients(clients, x)
	var parts [][]float64
	for i, f := range clients {
		away := minus(own[i], all)
		r += dot(away, away) / float64(2*len(clients))
		parts = append(parts, f.hessian(x, away))
	}
	return r, mean(parts)
}

// most is the largest value of a bound over the clients.
func most(clients []objective, bound func(objective) float64) float64 {
	var top float64
	for _, f := range clients {
		top = max(top, bound(f))
	}
	return top
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// train takes K plain steps from start.
func train(
	f objective, start []float64, rate float64, steps int, adjust aggregation.Adjust,
) []float64 {
	w := slices.Clone(start)
	for range steps {
		g := f.gradient(w)
		if adjust != nil {
			adjust(g, w)
		}
		w = plus(w, -rate, g)
	}
	return w
}

// descent takes K steps of gradient descent on the clients' mean loss.
func descent(clients []objective, x []float64, rate float64, steps int) []float64 {
	for range steps {
		_, all := gradients(clients, x)
		x = plus(x, -rate, all)
	}
	return x
}

// round is one round of a rule from w: each client trains, the server averages
// the differences.
func round(clients []objective, w []float64, client func(i int) []float64) []float64 {
	updates := make([][]float64, len(clients))
	for i := range clients {
		updates[i] = minus(client(i), w)
	}
	var server aggregation.Optimizer
	return must(server.Apply(w, mean(updates), nil))
}

// fedGA is a round of FedGA from x; with one step it is GradAlign.
func fedGA(clients []objective, x []float64, rate, beta float64, steps int) []float64 {
	own, all := gradients(clients, x)
	return round(clients, x, func(i int) []float64 {
		return train(clients[i], must(aggregation.Displace(x, all, own[i], beta)), rate, steps, nil)
	})
}
