package learning

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/hushsum/hushsum/internal/fault"
)

// Sizes of LeNet, after (LeCun 1998 §II.B).
const (
	lenetMaps1, lenetMaps2   = 6, 16
	lenetDense1, lenetDense2 = 120, 84
)

// LeNet is a convolutional network for square images: two convolutions of 5×5
// with 6 and 16 maps, each followed by 2×2 max pooling and ReLU, and dense layers of
// 120, 84 and Outputs units; softmax cross-entropy at the end and L2 regularisation
// Lambda/2 · ‖w‖². It is LeNet-5 as it is used today: (LeCun 1998) has 32×32 images,
// means in place of maxima, sigmoids, and a sparse second convolution.
//
// A row of data is Planes planes (0 means 1; colour has 3) of Side × Side pixels;
// Side must be a multiple of 4, 16 to 256. The parameters are those of the
// convolutions and then of the dense layers, in order. A convolution has its
// weights, maps × (Planes or 6)·25 row-major, its biases, and with BatchNorm what
// [LeNet.Normalisation] describes; a dense layer has its weights, in × out row-major,
// and its biases. All are regularised. Side 28 and Outputs 10 have 44,426 parameters.
//
// # Batch norm
//
// With BatchNorm every map is normalised between convolution and pooling (Ioffe and
// Szegedy 2015). Loss and Gradient, and so training, normalise by mean and variance
// over the rows at hand, at most 256 at a time. Scores uses means and variances that
// are parameters: SGD.Train leaves there, at its end, those over all of its rows, and
// their gradient is 0. So a model with BatchNorm depends on whose rows it was trained
// on last, which is why a federation may keep those parameters local (Li 2021,
// "FedBN").
type LeNet struct {
	Side, Planes, Outputs int
	BatchNorm             bool
	Lambda                float64
}

// Span is the parameters From to To−1 of a flat vector.
type Span struct{ From, To int }

// convolution is one convolution with its pooling: what goes in, and where its
// parameters are.
type convolution struct {
	planes, side int // of what goes in
	maps         int
	at           int // of the first parameter
	norm         bool
}

const kernel = 5 // side of a filter

func (c convolution) patch() int   { return c.planes * kernel * kernel }
func (c convolution) out() int     { return c.side - kernel + 1 }
func (c convolution) pooled() int  { return c.out() / 2 }
func (c convolution) filters() int { return c.maps * c.patch() }

// end is the parameter after the last.
func (c convolution) end() int {
	n := c.at + c.filters() + c.maps
	if c.norm {
		n += 4 * c.maps
	}
	return n
}

func (c convolution) weights(w []float64) []float64 { return w[c.at : c.at+c.filters()] }
func (c convolution) bias(w []float64) []float64 {
	return w[c.at+c.filters() : c.at+c.filters()+c.maps]
}

// normal is scale, shift, mean and variance of every map, one after the other.
func (c convolution) normal(w []float64) []float64 { return w[c.at+c.filters()+c.maps : c.end()] }

// dense is one dense layer and where its parameters are.
type dense struct{ in, out, at int }

func (l dense) end() int                      { return l.at + (l.in+1)*l.out }
func (l dense) weights(w []float64) []float64 { return w[l.at : l.at+l.in*l.out] }
func (l dense) bias(w []float64) []float64    { return w[l.at+l.in*l.out : l.end()] }

func (m LeNet) planes() int { return max(1, m.Planes) }

// layers needs valid sizes.
func (m LeNet) layers() (conv [2]convolution, top [3]dense) {
	conv[0] = convolution{planes: m.planes(), side: m.Side, maps: lenetMaps1, norm: m.BatchNorm}
	conv[1] = convolution{
		planes: lenetMaps1,
		side:   conv[0].pooled(),
		maps:   lenetMaps2,
		at:     conv[0].end(),
		norm:   m.BatchNorm,
	}
	side := conv[1].pooled()
	at, in := conv[1].end(), lenetMaps2*side*side
	for i, out := range [3]int{lenetDense1, lenetDense2, m.Outputs} {
		top[i] = dense{in, out, at}
		at, in = top[i].end(), out
	}
	return conv, top
}

// NumParams returns the length of the parameter vector, and 0 when the sizes make no
// model.
func (m LeNet) NumParams() int {
	if m.Side < 16 || m.Side > 256 || m.Side%4 != 0 || m.Planes < 0 || m.Planes > 64 ||
		m.Outputs < 1 || m.Outputs > maxParams/(lenetDense2+1)/2 {
		return 0
	}
	_, top := m.layers()
	return top[2].end()
}

// LeNetFor returns the LeNet for rows of that many features: one plane of pixels or
// three. ok is false if no LeNet takes such rows.
func LeNetFor(features, outputs int) (m LeNet, ok bool) {
	for _, planes := range []int{1, 3} {
		side := int(math.Round(math.Sqrt(float64(features / planes))))
		m = LeNet{Side: side, Planes: planes, Outputs: outputs}
		if planes*side*side == features && m.NumParams() > 0 {
			return m, true
		}
	}
	return LeNet{}, false
}

// Classes returns Outputs.
func (m LeNet) Classes() int { return m.Outputs }

// Normalisation returns where the parameters of batch norm are, for each convolution
// the scale and shift of every map, 1 and 0 at first, and then the mean and the
// variance; nil without BatchNorm or when the sizes make no model.
func (m LeNet) Normalisation() []Span {
	if !m.BatchNorm || m.NumParams() == 0 {
		return nil
	}
	var spans []Span
	conv, _ := m.layers()
	for _, c := range conv {
		spans = append(spans, Span{c.end() - 4*c.maps, c.end()})
	}
	return spans
}

// Init draws every weight from a normal law with mean 0 and variance 2/in, with in
// the numbers that enter one unit (He 2015 §2.2), and sets the biases to 0.
func (m LeNet) Init(seed uint64) []float64 {
	w := make([]float64, m.NumParams())
	if len(w) == 0 {
		return w
	}
	rng := rand.New(rand.NewPCG(seed, streamInit))
	fill := func(weights []float64, in int) {
		sd := math.Sqrt(2 / float64(in))
		for j := range weights {
			weights[j] = sd * rng.NormFloat64()
		}
	}
	conv, top := m.layers()
	for _, c := range conv {
		fill(c.weights(w), c.patch())
		if m.BatchNorm {
			n := c.normal(w)
			for j := range c.maps {
				n[j], n[3*c.maps+j] = 1, 1
			}
		}
	}
	for _, l := range top {
		fill(l.weights(w), l.in)
	}
	return w
}

func (m LeNet) check(w []float64, d *Dataset) error {
	if m.NumParams() == 0 {
		return fault.New(ErrShape, "",
			"a LeNet for images of %d × %d pixels in %d planes and %d outputs; want a side that "+
				"is a multiple of 4, 16 to 256",
			m.Side, m.Side, m.planes(), m.Outputs)
	}
	if m.Outputs < 2 {
		return fault.New(ErrShape, "", "the model has %d outputs, want at least 2", m.Outputs)
	}
	if err := checkParams(m.NumParams(), m.Lambda, w); err != nil {
		return err
	}
	return d.check(m.planes()*m.Side*m.Side, m.Outputs)
}

func (m LeNet) penalty() float64 { return m.Lambda }

// Loss returns the mean cross-entropy on d, in nats, plus the regularisation term.
func (m LeNet) Loss(w []float64, d *Dataset) (float64, error) {
	if err := m.check(w, d); err != nil {
		return 0, err
	}
	sum := lossSum(d, m.Outputs, func(ws *workspace, rows []int) []float64 {
		return m.forward(ws, w, d, rows, m.BatchNorm)
	})
	return sum/float64(d.Len()) + ridge(m.Lambda, w), nil
}

// Gradient writes the gradient of Loss at w over all rows of d into dst, which may
// be w itself. Where a unit is exactly at its kink, its derivative counts as 0; of
// equal pixels the first is the largest.
func (m LeNet) Gradient(dst, w []float64, d *Dataset) error { return gradient(m, dst, w, d) }

// Scores writes the logits of every row, d.Len() × Outputs, into dst.
func (m LeNet) Scores(dst, w []float64, d *Dataset) error {
	if err := checkScores(m, dst, w, d); err != nil {
		return err
	}
	scoresInto(dst, d, imagesAtOnce, func(ws *workspace, rows []int) []float64 {
		return m.forward(ws, w, d, rows, false)
	})
	return nil
}

// imagesAtOnce keeps what does not need a whole batch inside the cache.
const imagesAtOnce = 32

// forward leaves the scores of the named rows in the last output of ws. With batch
// it normalises by the rows' own means and variances.
func (m LeNet) forward(ws *workspace, w []float64, d *Dataset, rows []int, batch bool) []float64 {
	conv, top := m.layers()
	b := len(rows)
	ws.addLayers(len(top))
	f := d.Features
	ws.images = grown(ws.images, b*f)
	for i, r := range rows {
		d.values(ws.images[i*f:(i+1)*f], r)
	}
	in := maps{ws.images, m.Side * m.Side, f} // image after image
	for k, c := range conv {
		s := &ws.maps[k]
		s.convolve(c, w, in, b, &ws.patches)
		if c.norm {
			s.normalise(c, w, b, batch)
		}
		s.pool(c, b)
		area := c.pooled() * c.pooled()
		in = maps{s.pooled, b * area, area} // map after map
	}
	area := conv[1].pooled() * conv[1].pooled()
	ws.flat = grown(ws.flat, b*top[0].in)
	for c := range lenetMaps2 {
		for i := range b {
			copy(ws.flat[i*top[0].in+c*area:], in.of(c, i)[:area])
		}
	}
	x := ws.flat
	for k, l := range top {
		ws.outputs[k] = grown(ws.outputs[k], b*l.out)
		z := ws.outputs[k]
		for i := range b {
			copy(z[i*l.out:], l.bias(w))
		}
		weights := matrixOf(l.weights(w), l.in, l.out)
		product(blas.NoTrans, blas.NoTrans, matrixOf(x, b, l.in), weights, 1, matrixOf(z, b, l.out))
		if k+1 < len(top) {
			for i, v := range z {
				if v <= 0 { // NaN stays
					z[i] = 0
				}
			}
		}
		x = z
	}
	return x
}

// accumulate implements batchModel: one pass of backpropagation.
func (m LeNet) accumulate(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64,
) {
	conv, top := m.layers()
	b := len(rows)
	z := m.forward(ws, w, d, rows, m.BatchNorm)
	lossSlopes(z, d, m.Outputs, rows)
	blas64.Scal(alpha, vector(z))
	// From the top down, each time first what goes down and then the parameters: dst
	// may be w.
	for k := len(top) - 1; k >= 0; k-- {
		l, delta := top[k], ws.outputs[k]
		x := ws.flat
		if k > 0 {
			x = ws.outputs[k-1]
		}
		ws.below = grown(ws.below, len(x))
		slopes := matrixOf(delta, b, l.out)
		weights, trained := matrixOf(l.weights(w), l.in, l.out), matrixOf(l.weights(dst), l.in, l.out)
		product(blas.NoTrans, blas.Trans, slopes, weights, 0, matrixOf(ws.below, b, l.in))
		product(blas.Trans, blas.NoTrans, matrixOf(x, b, l.in), slopes, beta, trained)
		bias := l.bias(dst)
		rescale(bias, beta)
		for i := range b {
			axpy(1, delta[i*l.out:(i+1)*l.out], bias)
		}
		if k == 0 {
			break // the pooling below looks after itself
		}
		// What is behind a unit at rest changes nothing.
		for i, v := range x {
			if v <= 0 {
				ws.below[i] = 0
			}
		}
		copy(x, ws.below)
	}
	area := conv[1].pooled() * conv[1].pooled()
	last := &ws.maps[1]
	for c := range lenetMaps2 {
		for i := range b {
			at := (c*b + i) * area
			copy(last.pooled[at:at+area], ws.below[i*top[0].in+c*area:])
		}
	}
	for k := 1; k >= 0; k-- {
		c, s := conv[k], &ws.maps[k]
		s.unpool(c, b)
		if c.norm {
			s.unnormalise(c, dst, w, b, beta)
		}
		in := maps{ws.images, m.Side * m.Side, d.Features}
		var down *maps
		if k == 1 {
			area := conv[0].pooled() * conv[0].pooled()
			in = maps{ws.maps[0].pooled, b * area, area}
			ws.under = grown(ws.under, len(ws.maps[0].pooled))
			clear(ws.under)
			down = &maps{ws.under, b * area, area}
		}
		s.unconvolve(c, dst, w, in, down, b, beta, ws)
		if k == 1 {
			copy(ws.maps[0].pooled, ws.under)
		}
	}
}

// settle leaves the means and variances over the rows of d in w; over more than
// chunkRows of them, the means of those of each chunk.
func (m LeNet) settle(ws *workspace, w []float64, d *Dataset) {
	if !m.BatchNorm {
		return
	}
	conv, _ := m.layers()
	rows := ws.rowOrder(d.Len())
	var sums [2][]float64
	for k, c := range conv {
		sums[k] = make([]float64, 2*c.maps)
	}
	for len(rows) > 0 {
		b := min(chunkRows, len(rows))
		m.forward(ws, w, d, rows[:b], true)
		for k := range conv {
			blas64.Axpy(float64(b)/float64(d.Len()), vector(ws.maps[k].moments), vector(sums[k]))
		}
		rows = rows[b:]
	}
	for k, c := range conv {
		copy(c.normal(w)[2*c.maps:], sums[k])
	}
}

// rescale multiplies v by beta, which makes 0 of NaN if it is 0.
func rescale(v []float64, beta float64) {
	switch beta {
	case 0:
		clear(v)
	case 1:
	default:
		blas64.Scal(beta, vector(v))
	}
}
