package learning

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// maps are square planes of many images: plane c of image i is at c·plane + i·image.
type maps struct {
	data         []float64
	plane, image int
}

func (m maps) of(c, i int) []float64 { return m.data[c*m.plane+i*m.image:] }

// mapSpace holds what one convolution leaves for the way back. Values are map after map,
// in each image after image.
type mapSpace struct {
	values  []float64 // after the convolution and its normalisation; then derivatives
	pooled  []float64 // after pooling and ReLU; then derivatives
	largest []uint8   // which of four pixels is the largest; atRest for none
	unit    []float64 // normalised to mean 0 and variance 1
	moments []float64 // mean and variance of every map over the batch
	panels  []panel   // of the batch
}

const atRest = 4

func matrixOf(data []float64, rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// Gemm computes up to three blocks of 64 × 64 without starting goroutines, which would
// fight over the cores with other parties' training.
const (
	blockSide   = 64
	panelLength = 3 * blockSide
)

// product sets c to op(a)·op(b) + beta·c, in panels that Gemm computes at once.
func product(ta, tb blas.Transpose, a, b blas64.General, beta float64, c blas64.General) {
	rows := blockSide
	if c.Cols <= blockSide {
		rows = panelLength
	}
	for i := 0; i < c.Rows; i += rows {
		h := min(rows, c.Rows-i)
		for j := 0; j < c.Cols; j += panelLength {
			w := min(panelLength, c.Cols-j)
			partA, partB := a, b
			if ta == blas.NoTrans {
				partA.Rows, partA.Data = h, a.Data[i*a.Stride:]
			} else {
				partA.Cols, partA.Data = h, a.Data[i:]
			}
			if tb == blas.NoTrans {
				partB.Cols, partB.Data = w, b.Data[j:]
			} else {
				partB.Rows, partB.Data = w, b.Data[j*b.Stride:]
			}
			part := blas64.General{Rows: h, Cols: w, Stride: c.Stride, Data: c.Data[i*c.Stride+j:]}
			blas64.Gemm(ta, tb, 1, partA, partB, beta, part)
		}
	}
}

// panel is a part of a convolution's output that is no longer than panelLength if it can
// be: some rows of one image, or some whole images.
type panel struct{ image, images, row, rows int }

// panels appends those of b images.
func (c convolution) panels(all []panel, b int) []panel {
	out := c.out()
	images, rows := max(1, panelLength/(out*out)), min(out, max(1, panelLength/out))
	for i := 0; i < b; i += images {
		for y := 0; y < out; y += rows {
			all = append(all, panel{i, min(images, b-i), y, min(rows, out-y)})
		}
	}
	return all
}

// columns returns where a panel is in each map's values, and how long.
func (c convolution) columns(p panel) (from, width int) {
	out := c.out()
	return (p.image*out + p.row) * out, p.images * p.rows * out
}

// lines calls f with each line of a panel's patches, patch × width, and the pixels that
// it stands for.
func (c convolution) lines(in maps, p panel, patches []float64, f func(line, pixels []float64)) {
	out := c.out()
	for plane := range c.planes {
		for dy := range kernel {
			for dx := range kernel {
				for i := range p.images {
					image := in.of(plane, p.image+i)
					at := (p.row+dy)*c.side + dx
					for range p.rows {
						f(patches[:out], image[at:at+out])
						patches, at = patches[out:], at+c.side
					}
				}
			}
		}
	}
}

// patches returns those that go into a panel.
func (c convolution) patches(in maps, p panel, into *[]float64) blas64.General {
	_, width := c.columns(p)
	*into = grown(*into, c.patch()*width)
	c.lines(in, p, *into, func(line, pixels []float64) { copy(line, pixels) })
	return matrixOf(*into, c.patch(), width)
}

// part is a panel of values, maps × width.
func (s *mapSpace) part(c convolution, p panel, b int) blas64.General {
	from, width := c.columns(p)
	return blas64.General{
		Rows:   c.maps,
		Cols:   width,
		Stride: b * c.out() * c.out(),
		Data:   s.values[from:],
	}
}

// convolve computes the convolution of b images.
func (s *mapSpace) convolve(c convolution, w []float64, in maps, b int, patches *[]float64) {
	area := c.out() * c.out()
	s.values = grown(s.values, c.maps*b*area)
	for k, x := range c.bias(w) {
		part := s.values[k*b*area : (k+1)*b*area]
		for j := range part {
			part[j] = x
		}
	}
	filters := matrixOf(c.weights(w), c.maps, c.patch())
	s.panels = c.panels(s.panels[:0], b)
	for _, p := range s.panels {
		product(blas.NoTrans, blas.NoTrans, filters, c.patches(in, p, patches), 1, s.part(c, p, b))
	}
}

// unconvolve takes the derivatives in values to the parameters in dst and, if down is
// not nil, adds those of the input to it.
func (s *mapSpace) unconvolve(
	c convolution, dst, w []float64, in maps, down *maps, b int, beta float64, ws *workspace,
) {
	area := c.out() * c.out()
	filters := matrixOf(c.weights(w), c.maps, c.patch())
	ws.filters = grown(ws.filters, c.filters())
	clear(ws.filters)
	sum := matrixOf(ws.filters, c.maps, c.patch())
	for _, p := range s.panels {
		delta, patches := s.part(c, p, b), c.patches(in, p, &ws.patches)
		product(blas.NoTrans, blas.Trans, delta, patches, 1, sum)
		if down != nil {
			product(blas.Trans, blas.NoTrans, filters, delta, 0, patches)
			c.lines(*down, p, patches.Data, func(line, pixels []float64) { axpy(1, line, pixels) })
		}
	}
	rescale(c.weights(dst), beta)
	axpy(1, ws.filters, c.weights(dst))
	bias := c.bias(dst)
	rescale(bias, beta)
	for k := range bias {
		for _, x := range s.values[k*b*area : (k+1)*b*area] {
			bias[k] += x
		}
	}
}

// pool takes the largest of each four pixels, and 0 if that is less.
func (s *mapSpace) pool(c convolution, b int) {
	out, half := c.out(), c.pooled()
	n := c.maps * b * half * half
	s.pooled, s.largest = grown(s.pooled, n), grown(s.largest, n)
	at := 0
	for image := range c.maps * b {
		for y := range half {
			upper := s.values[(image*out+2*y)*out:][:out]
			lower := s.values[(image*out+2*y+1)*out:][:out]
			for x := range half {
				v, which := upper[2*x], uint8(0)
				for k, other := range [3]float64{upper[2*x+1], lower[2*x], lower[2*x+1]} {
					if other > v || other != other { // NaN stays
						v, which = other, uint8(k+1)
					}
				}
				if v <= 0 {
					v, which = 0, atRest
				}
				s.pooled[at], s.largest[at] = v, which
				at++
			}
		}
	}
}

// unpool takes the derivatives in pooled back to values.
func (s *mapSpace) unpool(c convolution, b int) {
	out, half := c.out(), c.pooled()
	clear(s.values)
	at := 0
	for image := range c.maps * b {
		for y := range half {
			corner := (image*out + 2*y) * out
			for x := range half {
				if k := int(s.largest[at]); k != atRest {
					s.values[corner+2*x+k&1+(k>>1)*out] = s.pooled[at]
				}
				at++
			}
		}
	}
}

// normalEpsilon keeps a map that never changes from a division by 0.
const normalEpsilon = 1e-5

// normalise brings every map to mean 0 and variance 1, of the batch or of what is in
// w, and then to the scale and shift in w.
func (s *mapSpace) normalise(c convolution, w []float64, b int, batch bool) {
	n := b * c.out() * c.out()
	params := c.normal(w)
	s.unit = grown(s.unit, len(s.values))
	s.moments = grown(s.moments, 2*c.maps)
	for k := range c.maps {
		values, unit := s.values[k*n:(k+1)*n], s.unit[k*n:(k+1)*n]
		mean, variance := params[2*c.maps+k], params[3*c.maps+k]
		if batch {
			mean, variance = moments(values)
		}
		s.moments[k], s.moments[c.maps+k] = mean, variance
		inverse := 1 / math.Sqrt(max(variance, 0)+normalEpsilon)
		scale, shift := params[k], params[c.maps+k]
		for j, x := range values {
			u := (x - mean) * inverse
			unit[j] = u
			values[j] = scale*u + shift
		}
	}
}

func moments(values []float64) (mean, variance float64) {
	n := float64(len(values))
	for _, x := range values {
		mean += x
	}
	mean /= n
	for _, x := range values {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / n
}

// unnormalise takes the derivatives in values through normalise with batch.
func (s *mapSpace) unnormalise(c convolution, dst, w []float64, b int, beta float64) {
	n := b * c.out() * c.out()
	params, out := c.normal(w), c.normal(dst)
	scales := append([]float64(nil), params[:c.maps]...) // dst may be w
	rescale(out, beta)
	for k := range c.maps {
		delta, unit := s.values[k*n:(k+1)*n], s.unit[k*n:(k+1)*n]
		var sum, along float64
		for j, x := range delta {
			sum += x
			along += x * unit[j]
		}
		out[k] += along
		out[c.maps+k] += sum
		factor := scales[k] / math.Sqrt(s.moments[c.maps+k]+normalEpsilon)
		sum, along = sum/float64(n), along/float64(n)
		for j, x := range delta {
			delta[j] = factor * (x - sum - unit[j]*along)
		}
	}
}
