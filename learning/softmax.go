package learning

// Softmax is multinomial logistic regression with L2 regularisation:
//
//	P(label k | x) = exp(z_k) / Σ_j exp(z_j),  z = x·W + b
//	F(w) = mean over rows of −log P(label) + Lambda/2 · ‖w‖²
//
// Features is the length of a row, Outputs ≥ 2 the number of classes. The
// parameters are W, Features × Outputs row-major, and then the Outputs biases,
// all of them regularised; 784 features and 10 outputs have 7,850. Lambda must
// be finite and not negative. F is convex. W and b are more than the model
// needs (adding a constant to all classes changes no probability), so without
// regularisation the optimum is not unique.
type Softmax struct {
	Features, Outputs int
	Lambda            float64
}

func (m Softmax) network() network {
	return network{features: m.Features, outputs: m.Outputs, lambda: m.Lambda}
}

// NumParams returns (Features + 1)·Outputs, and 0 when the sizes make no model.
func (m Softmax) NumParams() int { return m.network().numParams() }

// Classes returns Outputs.
func (m Softmax) Classes() int { return m.Outputs }

// Init returns the zero vector: F is convex, so the start does not decide.
func (m Softmax) Init(uint64) []float64 { return make([]float64, m.NumParams()) }

// Loss returns F(w) on d, in nats.
func (m Softmax) Loss(w []float64, d *Dataset) (float64, error) { return m.network().loss(w, d) }

// Gradient writes the gradient of F at w over all rows of d into dst, which may
// be w itself.
func (m Softmax) Gradient(dst, w []float64, d *Dataset) error { return gradient(m, dst, w, d) }

// Scores writes z of every row, d.Len() × Outputs, into dst.
func (m Softmax) Scores(dst, w []float64, d *Dataset) error {
	return scoresOf(m, m.network(), dst, w, d)
}

func (m Softmax) check(w []float64, d *Dataset) error { return m.network().check(w, d) }
func (m Softmax) penalty() float64                    { return m.Lambda }

func (m Softmax) accumulate(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64,
) {
	m.network().accumulate(ws, dst, w, d, rows, alpha, beta)
}
