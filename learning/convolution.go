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

// mapSpace is what one convolution leaves for the way back. Values are map after map,
// in each image after image.
type mapSpace struct {
	values  []float64 // after the convolution and its normalisation; then derivatives
	pooled  []float64 // after pooling and ReLU; then derivatives
	largest []uint8   // which of four pixels is the largest; atRest for none
	unit    []float64 // normalised to mean 0 and variance 1
	moments []float64 // mean and variance of every map over the batch
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

// panels calls f for parts of an image's output whose rows are together no longer than
// a panel, with the patches that go in: patch × width, column after column of output.
func (c convolution) panels(
	in maps, i int, patches *[]float64, f func(from, width int, patches []float64),
) {
	out := c.out()
	most := max(1, panelLength/out)
	*patches = grown(*patches, c.patch()*most*out)
	for y := 0; y < out; y += most {
		rows := min(most, out-y)
		width := rows * out
		p := (*patches)[:c.patch()*width]
		line := p
		for plane := range c.planes {
			image := in.of(plane, i)
			for dy := range kernel {
				for dx := range kernel {
					at := (y+dy)*c.side + dx
					for range rows {
						copy(line[:out], image[at:at+out])
						line, at = line[out:], at+c.side
					}
				}
			}
		}
		f(y*out, width, p)
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
	for i := range b {
		c.panels(in, i, patches, func(from, width int, p []float64) {
			z := blas64.General{Rows: c.maps, Cols: width, Stride: b * area, Data: s.values[i*area+from:]}
			product(blas.NoTrans, blas.NoTrans, filters, matrixOf(p, c.patch(), width), 1, z)
		})
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
	for i := range b {
		c.panels(in, i, &ws.patches, func(from, width int, p []float64) {
			delta := blas64.General{
				Rows:   c.maps,
				Cols:   width,
				Stride: b * area,
				Data:   s.values[i*area+from:],
			}
			product(blas.NoTrans, blas.Trans, delta, matrixOf(p, c.patch(), width), 1, sum)
			if down != nil {
				product(blas.Trans, blas.NoTrans, filters, delta, 0, matrixOf(p, c.patch(), width))
				c.scatter(*down, i, from, width, p)
			}
		})
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

// scatter adds patches to where panels took them from.
func (c convolution) scatter(in maps, i, from, width int, line []float64) {
	out := c.out()
	for plane := range c.planes {
		image := in.of(plane, i)
		for dy := range kernel {
			for dx := range kernel {
				at := (from/out+dy)*c.side + dx
				for range width / out {
					axpy(1, line[:out], image[at:at+out])
					line, at = line[out:], at+c.side
				}
			}
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
