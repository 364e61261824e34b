package learning

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/cmplx"
	"sync"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/internal/recent"
)

// Scattering is a softmax on features of images that depend on no data: two layers of fixed
// wavelets (Mallat 2012, Bruna 2013), in the form with which Tramèr 2021 trains on records under
// noise. For a linear model the noise in a score grows with the norm of a row of features, and not
// with their number, so that many good ones cost nothing.
//
// Rows are square images of one plane, of 8 pixels a side or more. An image is padded by
// reflection, 4 pixels and what makes its side a multiple of 4. Features are local means of the
// image, of the moduli of its 8 + 8 wavelet transforms of scales 1 and 2, and of those of scale 2
// of the moduli of scale 1: 81 maps, every fourth pixel of each without the border. Each three maps
// are shifted and scaled to a mean of 0 and a variance of 1, or less where they hardly vary, and
// all divided so that the norm of a row is at most 1: 3,969 numbers of 28 × 28 pixels. Each row's
// are a function of its own pixels and of constants, to the last bit, in one order of operations;
// they are held as float32.
//
// The parameters are those of [Softmax] of the features.
type Scattering struct {
	Side, Outputs int
	Lambda        float64
	Standard      *Standard // nil: features are as they are
}

// The constants of the transform.
const (
	scatterAngles = 8
	scatterMaps   = 1 + 2*scatterAngles + scatterAngles*scatterAngles
	scatterGroup  = 3    // maps that are normalised together
	scatterLeast  = 1e-5 // added to their variance
	scatterMargin = 4
	// mostSide bounds an image: its transforms take time and memory as its pixels do.
	mostSide = 256
)

// ScatteringFor returns the model for rows of the given number of features; false if they are no
// square images that it takes.
func ScatteringFor(features, outputs int) (m Scattering, ok bool) {
	m = Scattering{Side: int(math.Round(math.Sqrt(float64(features)))), Outputs: outputs}
	return m, m.Side*m.Side == features && m.Side >= 8 && m.Side <= mostSide
}

// padded is the side of a padded image, and local that of a map of features.
func (m Scattering) padded() int { return (m.Side + 2*scatterMargin + 3) / 4 * 4 }
func (m Scattering) local() int  { return m.padded()/4 - 2 }

// numFeatures returns how many numbers a row has for the softmax.
func (m Scattering) numFeatures() int { return scatterMaps * m.local() * m.local() }

// padding is how many numbers a row of features takes.
func (m Scattering) padding() int {
	return (m.numFeatures() + productLanes - 1) / productLanes * productLanes
}

// NumParams returns (numFeatures() + 1)·Outputs.
func (m Scattering) NumParams() int { return m.softmax().NumParams() }

func (m Scattering) softmax() Softmax {
	return Softmax{Features: m.numFeatures(), Outputs: m.Outputs, Lambda: m.Lambda}
}

// Classes returns Outputs.
func (m Scattering) Classes() int { return m.Outputs }

// Init returns the zero vector, as [Softmax.Init] does.
func (m Scattering) Init(uint64) []float64 { return make([]float64, m.NumParams()) }

func (m Scattering) check(w []float64, d *Dataset) error {
	if m.Side < 8 || m.Side > mostSide {
		return fault.New(ErrShape, "", "images of %d pixels a side; want 8 to %d", m.Side, mostSide)
	}
	if n := m.numFeatures(); m.Standard != nil && len(m.Standard.mean) != n {
		return fault.New(ErrShape, "", "a standard of %d features for rows of %d",
			len(m.Standard.mean), n)
	}
	if err := m.softmax().check(w, &Dataset{Features: m.numFeatures(),
		X: make([]float64, m.numFeatures()), Labels: []int{0}}); err != nil {
		return err
	}
	return d.check(m.Side*m.Side, m.Outputs)
}

func (m Scattering) penalty() float64 { return m.Lambda }

// scatterBatch holds rows of features while they are multiplied, and the weights as lines.
type scatterBatch struct {
	rows           [][]float32 // padded
	mean, scale    []float64   // of a standard, or 0 and 1
	lines, slopes  []float64   // classes × padding
	scores         []float64   // rows × classes, padded to productClasses
	shrinks, norms []float64   // of each row: what a standard clips it by, and its squared norm
	shifts         []float64   // of each class: what the mean adds to a score
	outputs        []float64   // rows × Outputs
}

// wide is how many classes are worked on.
func (m Scattering) wide() int {
	return (m.Outputs + productClasses - 1) / productClasses * productClasses
}

// begin takes weights apart.
func (s *scatterBatch) begin(m Scattering, w []float64) {
	n, padding := m.numFeatures(), m.padding()
	s.mean, s.scale = grown(s.mean, padding), grown(s.scale, padding)
	clear(s.mean)
	for j := range s.scale {
		s.scale[j] = 1
	}
	if m.Standard != nil {
		copy(s.mean, m.Standard.mean)
		copy(s.scale, m.Standard.scale)
	}
	s.lines = grown(s.lines, m.wide()*padding)
	s.shifts = grown(s.shifts, m.wide())
	clear(s.lines)
	for k := range m.Outputs {
		line, shift := s.lines[k*padding:][:n], 0.0
		for j := range line {
			line[j] = w[j*m.Outputs+k] * s.scale[j]
			shift += line[j] * s.mean[j]
		}
		s.shifts[k] = shift
	}
}

// forward returns the scores of the named rows.
func (m Scattering) forward(ws *workspace, w []float64, d *Dataset, rows []int) []float64 {
	s, transform := &ws.scatter, scatterOf(m.Side)
	wide := m.wide()
	s.begin(m, w)
	s.rows = s.rows[:0]
	for _, row := range rows {
		s.rows = append(s.rows, transform.features(ws, d, row))
	}
	s.scores = grown(s.scores, len(rows)*wide)
	s.norms, s.shrinks = grown(s.norms, len(rows)), grown(s.shrinks, len(rows))
	s.outputs = grown(s.outputs, len(rows)*m.Outputs)
	multiply.scoresOf(s.scores, s.norms, s.rows, s.lines, s.mean, s.scale, wide)
	bias := w[m.numFeatures()*m.Outputs:]
	for i := range s.rows {
		s.shrinks[i] = 1
		if m.Standard != nil && s.norms[i] > 1 {
			s.shrinks[i] = 1 / math.Sqrt(s.norms[i])
			s.norms[i] = 1
		}
		for k, b := range bias {
			s.outputs[i*m.Outputs+k] = s.shrinks[i]*(s.scores[i*wide+k]-s.shifts[k]) + b
		}
	}
	return s.outputs
}

// descend sets dst to beta·dst plus the gradient whose derivatives by the scores are in s.outputs.
func (m Scattering) descend(s *scatterBatch, dst []float64, beta float64) {
	n, padding, wide := m.numFeatures(), m.padding(), m.wide()
	s.slopes = grown(s.slopes, wide*padding)
	clear(s.slopes)
	clear(s.scores)
	clear(s.shifts)
	rescale(dst, beta)
	bias := dst[n*m.Outputs:]
	for i := range s.rows {
		for k, slope := range s.outputs[i*m.Outputs : (i+1)*m.Outputs] {
			bias[k] += slope
			slope *= s.shrinks[i]
			s.scores[i*wide+k] = slope
			s.shifts[k] += slope
		}
	}
	multiply.addTo(s.slopes, s.rows, s.scores, padding, wide)
	for k := range m.Outputs {
		line := s.slopes[k*padding:][:n]
		for j, g := range line {
			dst[j*m.Outputs+k] += (g - s.shifts[k]*s.mean[j]) * s.scale[j]
		}
	}
	clear(s.rows) // a pooled workspace must not keep features alive
}

func (m Scattering) accumulate(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64,
) {
	z := m.forward(ws, w, d, rows)
	lossSlopes(z, d, m.Outputs, rows)
	blas64.Scal(alpha, vector(z))
	m.descend(&ws.scatter, dst, beta)
}

// addClipped implements rowClipper: a row's gradient is the product of its slopes and of its
// features with a 1 for the bias.
func (m Scattering) addClipped(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, clip float64,
) bool {
	z := m.forward(ws, w, d, rows)
	lossSlopes(z, d, m.Outputs, rows)
	s := &ws.scatter
	for i := range rows {
		slopes := z[i*m.Outputs : (i+1)*m.Outputs]
		s.norms[i] = (s.norms[i] + 1) * dot(slopes, slopes)
	}
	if !shrinks(s.norms, clip) {
		return false
	}
	for i, factor := range s.norms {
		blas64.Scal(factor, vector(z[i*m.Outputs:(i+1)*m.Outputs]))
	}
	m.descend(&ws.scatter, dst, 1)
	return true
}

// Loss returns that of the softmax on d, in nats.
func (m Scattering) Loss(w []float64, d *Dataset) (float64, error) {
	if err := m.check(w, d); err != nil {
		return 0, err
	}
	sum := lossSum(d, m.Outputs,
		func(ws *workspace, rows []int) []float64 { return m.forward(ws, w, d, rows) })
	return sum/float64(d.Len()) + ridge(m.Lambda, w), nil
}

// Gradient writes the gradient of Loss at w over all rows of d into dst, which may be w itself.
func (m Scattering) Gradient(dst, w []float64, d *Dataset) error { return gradient(m, dst, w, d) }

// Scores writes the scores of every row, d.Len() × Outputs, into dst.
func (m Scattering) Scores(dst, w []float64, d *Dataset) error {
	if err := checkScores(m, dst, w, d); err != nil {
		return err
	}
	scoresInto(dst, d, chunkRows,
		func(ws *workspace, rows []int) []float64 { return m.forward(ws, w, d, rows) })
	return nil
}

// mostRemembered is how many numbers of features are kept, 1 GiB: a training meets each row in many
// rounds, and its transform takes as long as hundreds of steps.
const mostRemembered = 1 << 28

// features returns those of a row, padded, which are known if it was met not long ago.
func (s *scatter) features(ws *workspace, d *Dataset, row int) []float32 {
	text := ws.text[:0]
	if d.Pixels != nil {
		text = append(text, d.Pixels[row*d.Features:(row+1)*d.Features]...)
	} else {
		for _, x := range d.X[row*d.Features : (row+1)*d.Features] {
			text = binary.LittleEndian.AppendUint64(text, math.Float64bits(x))
		}
	}
	ws.text = text
	found, _ := s.known.Get(sha256.Sum256(text), func() ([]float32, error) {
		pixels := make([]float64, d.Features)
		d.values(pixels, row)
		return s.transform(pixels), nil
	})
	return found
}

// scatter holds the constants of the transform of images of one side.
type scatter struct {
	side, padded, local int
	// The wavelets' Fourier transforms, which are real: of scale 1 and of scale 2.
	first, second [scatterAngles][]float64
	low           [2][]float64 // local means: from a padded side, or half of it, to local
	pool          sync.Pool    // of *scatterSpace
	known         *recent.Answers[[sha256.Size]byte, []float32]
}

var scatters sync.Map // of *scatter, by side

func scatterOf(side int) *scatter {
	if s, ok := scatters.Load(side); ok {
		return s.(*scatter)
	}
	s, _ := scatters.LoadOrStore(side, newScatter(side))
	return s.(*scatter)
}

func newScatter(side int) *scatter {
	m := Scattering{Side: side}
	s := &scatter{side: side, padded: m.padded(), local: m.local(),
		known: recent.New[[sha256.Size]byte, []float32](mostRemembered / m.padding())}
	for t := range scatterAngles {
		angle := float64(scatterAngles/2-1-t) * math.Pi / scatterAngles
		s.first[t] = morlet(s.padded, 0.8, angle, 3*math.Pi/4)
		s.second[t] = morlet(s.padded, 1.6, angle, 3*math.Pi/8)
		for i := range s.first[t] { // an inverse is divided by the number of pixels, here
			s.first[t][i] /= float64(s.padded * s.padded)
			s.second[t][i] /= float64(s.padded * s.padded) // 4 of them are added for each of a fourth
		}
	}
	for half := range s.low {
		s.low[half] = lowPass(s.padded, s.padded>>half, s.local)
	}
	s.pool.New = func() any { return newScatterSpace(s.padded) }
	return s
}

// wave returns a plane wave of a frequency along an angle under a Gaussian of deviation sigma, and
// twice that across the angle if slanted, on a torus: summed over 5 × 5 copies of it.
func wave(n int, sigma, angle, frequency, slant float64) []complex128 {
	c, s := math.Cos(angle), math.Sin(angle)
	// The exponent's quadratic form: R·diag(1, slant²)·Rᵀ / 2σ².
	xx := (c*c + slant*slant*s*s) / (2 * sigma * sigma)
	xy := (c*s - slant*slant*c*s) / (2 * sigma * sigma)
	yy := (s*s + slant*slant*c*c) / (2 * sigma * sigma)
	out := make([]complex128, n*n)
	for ex := -2; ex <= 2; ex++ {
		for ey := -2; ey <= 2; ey++ {
			for i := range n {
				for j := range n {
					x, y := float64(ex*n+i), float64(ey*n+j)
					size := math.Exp(-(xx*x*x + 2*xy*x*y + yy*y*y))
					out[i*n+j] += cmplx.Rect(size, frequency*(x*c+y*s))
				}
			}
		}
	}
	area := complex(2*math.Pi*sigma*sigma/slant, 0)
	for i := range out {
		out[i] /= area
	}
	return out
}

// morlet returns the Fourier transform of a wavelet without a mean.
func morlet(n int, sigma, angle, frequency float64) []float64 {
	const slant = 4. / scatterAngles
	w, g := wave(n, sigma, angle, frequency, slant), wave(n, sigma, angle, 0, slant)
	var sumW, sumG complex128
	for i := range w {
		sumW += w[i]
		sumG += g[i]
	}
	for i := range w {
		w[i] -= sumW / sumG * g[i]
	}
	space := newScatterSpace(n)
	space.full.transform(w, false)
	out := make([]float64, n*n)
	for i, z := range w {
		out[i] = real(z)
	}
	return out
}

// lowPass returns the matrix, local × from, of means under a Gaussian of deviation 1.6 pixels of an
// image of side n, of which every pixel is there, or every second.
func lowPass(n, from, local int) []float64 {
	g := wave(n, 0.8*2, 0, 0, 1)
	// The Gaussian is separable: its sums over lines are those of one dimension, on the torus.
	line, sum := make([]float64, n), 0.0
	for i := range n {
		for j := range n {
			line[i] += real(g[i*n+j])
		}
	}
	step := n / from
	for i := 0; i < n; i += step {
		sum += line[i]
	}
	out := make([]float64, local*from)
	for i := range local {
		at := 4 / step * (i + 1)
		for k := range from {
			out[i*from+k] = line[((at-k)%from+from)%from*step] / sum
		}
	}
	return out
}

// scatterSpace holds what the transform of an image needs.
type scatterSpace struct {
	full, half  *plane
	image       []complex128
	work, small []complex128
	modulus     []float64
	rows        []float64
	maps        []float64
}

func newScatterSpace(n int) *scatterSpace {
	return &scatterSpace{full: newPlane(n), half: newPlane(n / 2), image: make([]complex128, n*n),
		work: make([]complex128, n*n), small: make([]complex128, n*n/4),
		modulus: make([]float64, n*n), rows: make([]float64, n*n)}
}

// transform returns the features of an image.
func (s *scatter) transform(pixels []float64) []float32 {
	w := s.pool.Get().(*scatterSpace)
	defer s.pool.Put(w)
	n := s.padded
	w.maps = grown(w.maps, scatterMaps*s.local*s.local)
	next := w.maps
	low := func(of []float64, half int) {
		s.mean(w, next[:s.local*s.local], of, half)
		next = next[s.local*s.local:]
	}
	image := w.modulus
	for i := range n {
		for j := range n {
			image[i*n+j] = pixels[s.mirror(i)*s.side+s.mirror(j)]
			w.image[i*n+j] = complex(image[i*n+j], 0)
		}
	}
	low(image, 0)
	w.full.transform(w.image, false)
	first := make([][]float64, scatterAngles)
	for t := range scatterAngles {
		psi := s.first[t]
		for i, z := range w.image {
			w.work[i] = complex(real(z)*psi[i], imag(z)*psi[i])
		}
		w.full.transform(w.work, true)
		first[t] = make([]float64, n*n)
		for i, z := range w.work {
			first[t][i] = math.Sqrt(real(z)*real(z) + imag(z)*imag(z))
		}
		low(first[t], 0)
	}
	for t := range scatterAngles {
		s.halved(w, w.image, t)
		low(w.modulus[:n*n/4], 1)
	}
	for t := range scatterAngles {
		for i, x := range first[t] {
			w.work[i] = complex(x, 0)
		}
		w.full.transform(w.work, false)
		for u := range scatterAngles {
			s.halved(w, w.work, u)
			low(w.modulus[:n*n/4], 1)
		}
	}
	return s.normalised(w.maps)
}

// halved leaves the modulus of a wavelet transform of scale 2, of every second pixel, in w.modulus:
// what that does to a Fourier transform is a mean over its quarters.
func (s *scatter) halved(w *scatterSpace, z []complex128, t int) {
	n, h := s.padded, s.padded/2
	psi := s.second[t]
	for i := range h {
		for j := range h {
			re, im := 0.0, 0.0
			for _, at := range [4]int{i*n + j, (i+h)*n + j, i*n + j + h, (i+h)*n + j + h} {
				re += real(z[at]) * psi[at]
				im += imag(z[at]) * psi[at]
			}
			w.small[i*h+j] = complex(re, im)
		}
	}
	w.half.transform(w.small, true)
	for i, z := range w.small {
		w.modulus[i] = math.Sqrt(real(z)*real(z) + imag(z)*imag(z))
	}
}

// mirror returns the pixel of an image that is at a place of the padded one.
func (s *scatter) mirror(at int) int {
	at -= scatterMargin
	if at < 0 {
		at = -at
	}
	if last := s.side - 1; at > last {
		at = 2*last - at
	}
	return at
}

// mean writes local means of a map.
func (s *scatter) mean(w *scatterSpace, dst, of []float64, half int) {
	from, matrix := s.padded>>half, s.low[half]
	for i := range s.local {
		rows := w.rows[i*from : (i+1)*from]
		clear(rows)
		for k := range from {
			by, line := matrix[i*from+k], of[k*from:(k+1)*from]
			for j, x := range line[:len(rows)] {
				rows[j] += by * x
			}
		}
	}
	for i := range s.local {
		for j := range s.local {
			sum := 0.0
			for k := range from {
				sum += w.rows[i*from+k] * matrix[j*from+k]
			}
			dst[i*s.local+j] = sum
		}
	}
}

// normalised shifts and scales each few maps, so that the norm of all is at most 1.
func (s *scatter) normalised(maps []float64) []float32 {
	size := scatterGroup * s.local * s.local
	out := make([]float32, (len(maps)+productLanes-1)/productLanes*productLanes)
	whole := math.Sqrt(float64(len(maps)))
	for from := 0; from < len(maps); from += size {
		group := maps[from : from+size]
		mean, variance := 0.0, 0.0
		for _, x := range group {
			mean += x
		}
		mean /= float64(size)
		for _, x := range group {
			variance += (x - mean) * (x - mean)
		}
		variance /= float64(size)
		scale := 1 / math.Sqrt(variance+scatterLeast) / whole
		for i, x := range group {
			out[from+i] = float32((x - mean) * scale)
		}
	}
	return out
}
