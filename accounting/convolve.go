package accounting

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// composed is the law of the total loss under a tilt θ, on a window of the
// lattice: mass[k] at loss off + (start+k)·h, times e^{lnScale − θ·loss}.
type composed struct {
	off, h  float64
	start   int
	mass    []float64
	theta   float64
	lnScale float64
	// point bounds the error of one entry of mass; alias the tilted mass that
	// may have been folded into the window from outside.
	point, alias float64
	// extra is added to δ: infinite losses and mass above the window.
	extra float64
	// infinite is the part of extra that no window can avoid.
	infinite float64
	// shift bounds how far the total loss was moved by rounding.
	shift float64
	upper bool
}

// settings are how to compose: tilt, window and length.
type settings struct {
	saddle           saddle
	lo, hi           float64 // window of losses
	thetaLo, thetaHi float64
	n                int // transform length, a power of two
}

// convolve composes the spectra. The tilted masses of every part are at most 1
// in sum, so their transforms are at most 1 in modulus and every error below is
// small compared with the tilted law, whose bulk sits where δ is read off.
//
// Rounding of a transform of length N of masses of sum ≤ 1: every intermediate
// value of the fast algorithm is a sum of unimodular multiples of inputs, so each
// of its log₂N radix-2 stages adds at most 32u (twiddle factors are good to
// 19u, products and sums to 4u) to every coefficient.
func convolve(parts []*spectrum, p settings, upper bool) *composed {
	c := &composed{h: parts[0].h, theta: p.saddle.theta, upper: upper}
	total := 0.0
	for _, s := range parts {
		c.off += s.count * s.off
		c.shift += s.count * s.shift
		c.extra += s.count * s.inf
		total += s.count
		lnM := s.lnMoment(c.theta)
		if math.IsInf(lnM, -1) {
			// An empty lower law proves nothing, and says so.
			c.mass = make([]float64, 1)
			return c
		}
		c.lnScale += s.count * lnM
	}
	c.infinite = c.extra
	c.shift += 4 * unit * (math.Abs(c.off) + math.Abs(p.hi) + math.Abs(p.lo))
	if len(parts) == 1 && parts[0].count == 1 {
		s := parts[0]
		c.mass = make([]float64, len(s.ln))
		s.tilt(c.mass, c.theta, c.lnScale, upper)
		return c
	}
	n := p.n
	c.start = int(math.Floor((p.lo - c.off) / c.h))
	fft := fourier.NewFFT(n)
	x := make([]float64, n)
	coeff := make([]complex128, n/2+1)
	prod := make([]complex128, n/2+1)
	for i := range prod {
		prod[i] = 1
	}
	lnAbs := make([]float64, n/2+1) // Σ T·ln(|X|+e)
	errs := make([]float64, n/2+1)  // Σ T·(e/(|X|+e) + 8u)
	stage := 32 * unit * (math.Log2(float64(n)) + 1)
	for _, s := range parts {
		s.tilt(x, c.theta, s.lnMoment(c.theta), upper)
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		e := stage * sum
		coeff = fft.Coefficients(coeff, x)
		t := int(s.count)
		for i, v := range coeff {
			a := math.Hypot(real(v), imag(v)) + e
			lnAbs[i] += s.count * math.Log(a)
			errs[i] += s.count * (e/a + 8*unit)
			if lnAbs[i] < -90 {
				prod[i] = 0
				continue
			}
			prod[i] *= power(v, t)
		}
	}
	sumAbs, sumErr := 0.0, 0.0
	for i := range prod {
		a := math.Exp(math.Min(lnAbs[i], 1))
		w := 2.0
		if i == 0 || i == n/2 {
			w = 1
		}
		sumAbs += w * a
		if lnAbs[i] < -90 {
			prod[i] = 0
			sumErr += w * a
			continue
		}
		sumErr += w * a * errs[i]
	}
	y := fft.Sequence(x, prod)
	inv := 1 / float64(n)
	c.point = inv * (sumErr + stage*sumAbs) * (1 + 1e-9)
	c.mass = make([]float64, n)
	k := c.start % n
	if k < 0 {
		k += n
	}
	for i := range c.mass {
		if v := y[k] * inv; v > 0 {
			c.mass[i] = v
		}
		if k++; k == n {
			k = 0
		}
	}
	c.chargeTails(parts, p)
	return c
}

// chargeTails bounds what lies outside the window by Chernoff's inequality.
func (c *composed) chargeTails(parts []*spectrum, p settings) {
	top := c.off + float64(c.start+len(c.mass))*c.h
	bottom := c.off + float64(c.start)*c.h
	lnHi, lnLo, slack := 0.0, 0.0, 0.0
	for _, s := range parts {
		lnHi += s.count * s.lnMoment(p.thetaHi)
		lnLo += s.count * s.lnMoment(p.thetaLo)
		slack += s.momentSlack(p.thetaHi) + s.momentSlack(p.thetaLo) + s.momentSlack(c.theta)
	}
	slack += 64 * unit * (math.Abs(lnHi) + math.Abs(lnLo) + math.Abs(p.thetaHi*top) +
		math.Abs(p.thetaLo*bottom))
	if c.upper {
		// Untilted mass above the window; what folds in only adds.
		c.extra += math.Exp(lnHi - p.thetaHi*top + slack)
		return
	}
	above := math.Exp(lnHi - c.lnScale - (p.thetaHi-c.theta)*top + slack)
	below := math.Exp(lnLo - c.lnScale + (c.theta-p.thetaLo)*bottom + slack)
	c.alias = above + below
}

// power returns v^t by repeated squaring; its relative error is below 8·t·u.
func power(v complex128, t int) complex128 {
	out := complex(1, 0)
	for {
		if t&1 == 1 {
			out *= v
		}
		if t >>= 1; t == 0 {
			return out
		}
		v *= v
	}
}
