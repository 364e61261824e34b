package learning

import (
	"math"
	"math/rand/v2"
)

// MLP is a fully connected network with ReLU after every hidden layer, softmax
// cross-entropy at the end and L2 regularisation Lambda/2 · ‖w‖².
//
// Features is the length of a row, Hidden the widths of the hidden layers, each
// at least 1, and Outputs ≥ 2 the number of classes. The parameters are, layer
// by layer, the weights, in × out row-major, and then the out biases, all of
// them regularised. Features 784, Hidden {200} and Outputs 10 have 159,010.
// Without hidden layers it is Softmax with another start.
type MLP struct {
	Features int
	Hidden   []int
	Outputs  int
	Lambda   float64
}

func (m MLP) network() network {
	return network{hidden: m.Hidden, features: m.Features, outputs: m.Outputs, lambda: m.Lambda}
}

// NumParams returns the sum over layers of (in + 1)·out, and 0 when the sizes make no
// model.
func (m MLP) NumParams() int { return m.network().numParams() }

// Classes returns Outputs.
func (m MLP) Classes() int { return m.Outputs }

// Init draws every weight from a normal law with mean 0 and variance 2/in (He
// 2015 §2.2) and sets the biases to 0. All parties of an experiment start from
// one such vector.
func (m MLP) Init(seed uint64) []float64 {
	w := make([]float64, m.NumParams())
	if len(w) == 0 {
		return w
	}
	rng := rand.New(rand.NewPCG(seed, streamInit))
	n, rest := m.network(), w
	for l := range n.layers() {
		in, out := n.in(l), n.out(l)
		sd := math.Sqrt(2 / float64(in))
		for j := range in * out {
			rest[j] = sd * rng.NormFloat64()
		}
		rest = rest[(in+1)*out:]
	}
	return w
}

// Loss returns the mean cross-entropy on d, in nats, plus the regularisation term.
func (m MLP) Loss(w []float64, d *Dataset) (float64, error) { return m.network().loss(w, d) }

// Gradient writes the gradient of Loss at w over all rows of d into dst, which
// may be w itself. Where a hidden unit is exactly at its kink, its derivative
// counts as 0.
func (m MLP) Gradient(dst, w []float64, d *Dataset) error { return gradient(m, dst, w, d) }

// Scores writes the logits of every row, d.Len() × Outputs, into dst.
func (m MLP) Scores(dst, w []float64, d *Dataset) error {
	return scoresOf(m, m.network(), dst, w, d)
}

func (m MLP) check(w []float64, d *Dataset) error { return m.network().check(w, d) }
func (m MLP) penalty() float64                    { return m.Lambda }

func (m MLP) accumulate(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64,
) {
	m.network().accumulate(ws, dst, w, d, rows, alpha, beta)
}
