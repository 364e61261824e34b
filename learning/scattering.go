package learning

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/cmplx"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"

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

func (m Scattering) softmax() Softmax {
	return Softmax{Features: m.numFeatures(), Outputs: m.Outputs, Lambda: m.Lambda}
}

// NumParams returns (numFeatures() + 1)·Outputs.
func (m Scattering) NumParams() int { return m.softmax().NumParams() }

// Classes returns Outputs.
func (m Scattering) Classes() int { return m.Outputs }

// Init returns the zero vector, as [Softmax.Init] does.
func (m Scattering) Init(uint64) []float64 { return make([]float64, m.NumParams()) }

func (m Scattering) check(w []float64, d *Dataset) error {
	if m.Side < 8 || m.Side > mostSide {
		return fault.New(ErrShape, "", "images of %d pixels a side; want 8 to %d", m.Side, mostSide)
	}
	if err := m.softmax().check(w, &Dataset{Features: m.numFeatures(),
		X: make([]float64, m.numFeatures()), Labels: []int{0}}); err != nil {
		return err
	}
	return d.check(m.Side*m.Side, m.Outputs)
}

func (m Scattering) penalty() float64 { return m.Lambda }

// features returns a data set of the features of rows.
func (m Scattering) features(d *Dataset, rows []int) *Dataset {
	n := m.numFeatures()
	out := &Dataset{Features: n, X: make([]float64, n*len(rows)), Labels: make([]int, len(rows))}
	pixels, transform := make([]float64, d.Features), scatterOf(m.Side)
	for i, row := range rows {
		d.values(pixels, row)
		x := out.X[i*n : (i+1)*n]
		for j, v := range transform.features(pixels) {
			x[j] = float64(v)
		}
		out.Labels[i] = d.Labels[row]
	}
	return out
}

func (m Scattering) accumulate(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, alpha, beta float64,
) {
	own := m.features(d, rows)
	m.softmax().accumulate(ws, dst, w, own, first(len(rows)), alpha, beta)
}

func (m Scattering) addClipped(
	ws *workspace, dst, w []float64, d *Dataset, rows []int, clip float64,
) bool {
	return m.softmax().addClipped(ws, dst, w, m.features(d, rows), first(len(rows)), clip)
}

// first returns 0..n-1.
func first(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Loss returns that of the softmax on d, in nats.
func (m Scattering) Loss(w []float64, d *Dataset) (float64, error) {
	if err := m.check(w, d); err != nil {
		return 0, err
	}
	sum := 0.0
	bare := m.softmax()
	bare.Lambda = 0
	for lo := 0; lo < d.Len(); lo += chunkRows {
		part := d.view(lo, min(lo+chunkRows, d.Len()))
		mean, err := bare.Loss(w, m.features(part, first(part.Len())))
		if err != nil {
			return 0, err
		}
		sum += mean * float64(part.Len())
	}
	squares := 0.0
	for _, x := range w {
		squares += x * x
	}
	return sum/float64(d.Len()) + m.Lambda/2*squares, nil
}

// Gradient writes the gradient of Loss at w over all rows of d into dst, which may be w itself.
func (m Scattering) Gradient(dst, w []float64, d *Dataset) error { return gradient(m, dst, w, d) }

// Scores writes the scores of every row, d.Len() × Outputs, into dst.
func (m Scattering) Scores(dst, w []float64, d *Dataset) error {
	if err := checkScores(m, dst, w, d); err != nil {
		return err
	}
	for lo := 0; lo < d.Len(); lo += chunkRows {
		part := d.view(lo, min(lo+chunkRows, d.Len()))
		err := m.softmax().Scores(dst[lo*m.Outputs:(lo+part.Len())*m.Outputs], w,
			m.features(part, first(part.Len())))
		if err != nil {
			return err
		}
	}
	return nil
}

// mostRemembered is how many numbers of features are kept, 1 GiB: a training meets each row in many
// rounds, and its transform takes as long as hundreds of steps.
const mostRemembered = 1 << 28

// features returns those of an image, which are known if it was met not long ago.
func (s *scatter) features(pixels []float64) []float32 {
	text := make([]byte, 0, 8*len(pixels))
	for _, x := range pixels {
		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(x))
	}
	found, _ := s.known.Get(sha256.Sum256(text), func() ([]float32, error) {
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
		known: recent.New[[sha256.Size]byte, []float32](mostRemembered / m.numFeatures())}
	for t := range scatterAngles {
		angle := float64(scatterAngles/2-1-t) * math.Pi / scatterAngles
		s.first[t] = morlet(s.padded, 0.8, angle, 3*math.Pi/4)
		s.second[t] = morlet(s.padded, 1.6, angle, 3*math.Pi/8)
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

// plane is a Fourier transform in two dimensions.
type plane struct {
	n      int
	line   *fourier.CmplxFFT
	column []complex128
	done   []complex128
}

func newPlane(n int) *plane {
	return &plane{n, fourier.NewCmplxFFT(n), make([]complex128, n), make([]complex128, n)}
}

// transform replaces z by its transform, or by the inverse of that.
func (p *plane) transform(z []complex128, inverse bool) {
	n := p.n
	one := func(x []complex128) []complex128 {
		if inverse {
			return p.line.Sequence(p.done, x)
		}
		return p.line.Coefficients(p.done, x)
	}
	for i := range n {
		copy(z[i*n:(i+1)*n], one(z[i*n:(i+1)*n]))
	}
	for j := range n {
		for i := range n {
			p.column[i] = z[i*n+j]
		}
		for i, v := range one(p.column) {
			z[i*n+j] = v
		}
	}
	if inverse {
		scale := complex(1/float64(n*n), 0)
		for i := range z {
			z[i] *= scale
		}
	}
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
		for i, z := range w.image {
			w.work[i] = z * complex(s.first[t][i], 0)
		}
		w.full.transform(w.work, true)
		first[t] = make([]float64, n*n)
		for i, z := range w.work {
			first[t][i] = math.Hypot(real(z), imag(z))
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
			sum := complex128(0)
			for _, at := range [4]int{i*n + j, (i+h)*n + j, i*n + j + h, (i+h)*n + j + h} {
				sum += z[at] * complex(psi[at], 0)
			}
			w.small[i*h+j] = sum / 4
		}
	}
	w.half.transform(w.small, true)
	for i, z := range w.small {
		w.modulus[i] = math.Hypot(real(z), imag(z))
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
		for j := range from {
			sum := 0.0
			for k := range from {
				sum += matrix[i*from+k] * of[k*from+j]
			}
			w.rows[i*from+j] = sum
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
	out := make([]float32, len(maps))
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
