package learning

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/hushsum/hushsum/internal/fault"
)

// maxParams bounds the size of a network: 2^28 parameters are 2 GB.
const maxParams = 1 << 28

// network holds what Softmax and MLP share: fully connected layers with ReLU
// between them and the softmax cross-entropy at the end. The parameters of a
// layer are its weights, in × out row-major, and then its out biases.
//
// A batch is kept by feature, without zeros. Forward, z += x_f·W_f, and backward,
// dW_f += x_f·δ, then go through each line W_f once, and a feature that is 0
// (four pixels of five in MNIST, about half of the hidden units) costs nothing. blas64.Gemm skips
// zeros as well, but for these shapes it starts goroutines and allocates; they
// would fight over the cores with the other parties' training.
type network struct {
	hidden            []int
	features, outputs int
	lambda            float64
}

func (n network) layers() int { return len(n.hidden) + 1 }

func (n network) in(layer int) int {
	if layer == 0 {
		return n.features
	}
	return n.hidden[layer-1]
}

func (n network) out(layer int) int {
	if layer == len(n.hidden) {
		return n.outputs
	}
	return n.hidden[layer]
}

// numParams is 0 when the sizes make no network.
func (n network) numParams() int {
	total := 0
	for l := range n.layers() {
		in, out := n.in(l), n.out(l)
		if in < 1 || out < 1 || in >= maxParams || out > (maxParams-total)/(in+1) {
			return 0
		}
		total += (in + 1) * out
	}
	return total
}

func (n network) check(w []float64, d *Dataset) error {
	size := n.numParams()
	if size == 0 {
		return fault.New(ErrShape, "",
			"a model with %d features, hidden layers %v and %d outputs; want sizes of at least 1 and at "+
				"most %d parameters",
			n.features, n.hidden, n.outputs, maxParams)
	}
	if n.outputs < 2 {
		return fault.New(ErrShape, "", "the model has %d outputs, want at least 2", n.outputs)
	}
	if err := checkParams(size, n.lambda, w); err != nil {
		return err
	}
	return d.check(n.features, n.outputs)
}

// forward leaves the scores of the named rows in the last output of ws.
func (n network) forward(ws *workspace, w []float64, d *Dataset, rows []int) []float64 {
	b := len(rows)
	ws.addLayers(n.layers())
	ws.load(d, rows)
	for l := range n.layers() {
		in, out := n.in(l), n.out(l)
		weights, bias := w[:in*out], w[in*out:(in+1)*out]
		w = w[(in+1)*out:]
		ws.outputs[l] = grown(ws.outputs[l], b*out)
		z := ws.outputs[l]
		for i := range b {
			copy(z[i*out:(i+1)*out], bias)
		}
		multiplyInto(z, &ws.inputs[l], weights, out)
		if l+1 < n.layers() {
			ws.inputs[l+1].rectify(z, b, out)
		}
	}
	return ws.outputs[n.layers()-1]
}

func (ws *workspace) addLayers(layers int) {
	for len(ws.inputs) < layers {
		ws.inputs = append(ws.inputs, columns{})
		ws.outputs = append(ws.outputs, nil)
	}
}

// rectify takes the entries above 0 of z (rows × out). NaN stays, so that an
// overflow is not taken for an inactive unit.
func (c *columns) rectify(z []float64, rows, out int) {
	c.reset(out, rows)
	n := 0
	for j := range out {
		c.start[j] = n
		for i := range rows {
			x := z[i*out+j]
			c.row[n], c.value[n] = int32(i), x
			if !(x <= 0) {
				n++
			}
		}
	}
	c.start[out] = n
}

// load takes the named rows into the first input.
func (ws *workspace) load(d *Dataset, rows []int) {
	f, n := d.Features, 0
	c := &ws.inputs[0]
	c.reset(f, len(rows))
	if d.Pixels != nil {
		ws.pixelRows = ws.pixelRows[:0]
		for _, r := range rows {
			ws.pixelRows = append(ws.pixelRows, d.Pixels[r*f:(r+1)*f])
		}
		for j := range f {
			c.start[j] = n
			for i, row := range ws.pixelRows {
				c.row[n], c.value[n] = int32(i), pixelValue[row[j]]
				if row[j] != 0 {
					n++
				}
			}
		}
		clear(ws.pixelRows) // a pooled workspace must not keep a data set alive
	} else {
		ws.valueRows = ws.valueRows[:0]
		for _, r := range rows {
			ws.valueRows = append(ws.valueRows, d.X[r*f:(r+1)*f])
		}
		for j := range f {
			c.start[j] = n
			for i, row := range ws.valueRows {
				c.row[n], c.value[n] = int32(i), row[j]
				if row[j] != 0 {
					n++
				}
			}
		}
		clear(ws.valueRows)
	}
	c.start[f] = n
}

// accumulate implements batchModel: one pass of backpropagation.
func (n network) accumulate(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64,
) {
	n.backward(ws, w, d, rows, alpha)
	n.descend(ws, dst, len(rows), beta)
}

// backward leaves alpha times the derivatives of the named rows' losses by what each layer puts
// out in its outputs.
func (n network) backward(
	ws *workspace, w []float64, d *Dataset, rows []int, alpha float64,
) {
	z := n.forward(ws, w, d, rows)
	lossSlopes(z, d, n.outputs, rows)
	blas64.Scal(alpha, vector(z))
	end := len(w)
	for l := n.layers() - 1; l > 0; l-- {
		in, out := n.in(l), n.out(l)
		lo := end - (in+1)*out
		back(ws.outputs[l-1], &ws.inputs[l], ws.outputs[l], w[lo:lo+in*out], out)
		end = lo
	}
}

// descend sets dst to beta·dst plus what backward found for the given number of rows.
func (n network) descend(ws *workspace, dst []float64, rows int, beta float64) {
	for l := range n.layers() {
		in, out := n.in(l), n.out(l)
		delta, part := ws.outputs[l], dst[:(in+1)*out]
		dst = dst[len(part):]
		rescale(part, beta)
		outerInto(part[:in*out], &ws.inputs[l], delta, out)
		bias := vector(part[in*out:])
		for i := range rows {
			blas64.Axpy(1, vector(delta[i*out:(i+1)*out]), bias)
		}
	}
}

func (n network) loss(w []float64, d *Dataset) (float64, error) {
	if err := n.check(w, d); err != nil {
		return 0, err
	}
	sum := lossSum(d, n.outputs,
		func(ws *workspace, rows []int) []float64 { return n.forward(ws, w, d, rows) })
	return sum/float64(d.Len()) + ridge(n.lambda, w), nil
}

// forwardFunc leaves the scores of the named rows in ws, and returns them.
type forwardFunc func(ws *workspace, rows []int) []float64

// lossSum is the sum of cross-entropies over all rows, in nats.
func lossSum(d *Dataset, outputs int, forward forwardFunc) (sum float64) {
	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	for rows := ws.rowOrder(d.Len()); len(rows) > 0; {
		b := min(chunkRows, len(rows))
		z := forward(ws, rows[:b])
		for i, r := range rows[:b] {
			row := z[i*outputs : (i+1)*outputs]
			y := row[d.Labels[r]]
			sum += softmax(row) - y
		}
		rows = rows[b:]
	}
	return sum
}

// lossSlopes turns scores into the derivatives of the cross-entropies by them.
func lossSlopes(z []float64, d *Dataset, outputs int, rows []int) {
	for i, r := range rows {
		row := z[i*outputs : (i+1)*outputs]
		softmax(row)
		row[d.Labels[r]]--
	}
}

// scoresInto writes the scores of all rows into dst, up to atOnce rows at a time.
func scoresInto(dst []float64, d *Dataset, atOnce int, forward forwardFunc) {
	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	for rows := ws.rowOrder(d.Len()); len(rows) > 0; {
		b := min(atOnce, len(rows))
		dst = dst[copy(dst, forward(ws, rows[:b])):]
		rows = rows[b:]
	}
}

func (n network) scores(dst, w []float64, d *Dataset) {
	scoresInto(dst, d, chunkRows,
		func(ws *workspace, rows []int) []float64 { return n.forward(ws, w, d, rows) })
}

// scoresOf and gradient serve the methods of m, which is Softmax or MLP; n is its
// network.
func scoresOf(m batchModel, n network, dst, w []float64, d *Dataset) error {
	if err := checkScores(m, dst, w, d); err != nil {
		return err
	}
	n.scores(dst, w, d)
	return nil
}

func gradient(m batchModel, dst, w []float64, d *Dataset) error {
	if err := checkGradient(m, dst, w, d); err != nil {
		return err
	}
	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	gradientOf(ws, m, dst, w, d, ws.rowOrder(d.Len()), m.penalty())
	return nil
}

// softmax turns scores into probabilities and returns log Σ exp of the scores,
// without overflow.
func softmax(z []float64) float64 {
	top := math.Inf(-1)
	for _, x := range z {
		top = max(top, x)
	}
	var sum float64
	for j, x := range z {
		z[j] = math.Exp(x - top)
		sum += z[j]
	}
	for j := range z {
		z[j] /= sum
	}
	return top + math.Log(sum)
}
