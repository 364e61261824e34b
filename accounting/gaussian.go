package accounting

import (
	"fmt"
	"math"
)

// Gaussian is the Gaussian mechanism: noise of standard deviation
// NoiseMultiplier times the L2 sensitivity. Its worst case over vectors is
// one-dimensional, so it serves vectors of any length.
type Gaussian struct {
	NoiseMultiplier float64 // σ/Δ₂, positive
}

func (m Gaussian) key() string { return fmt.Sprintf("gaussian %x", m.NoiseMultiplier) }

func (m Gaussian) law() (law, error) { return plainLaw(m) }

func (m Gaussian) base() (base, error) {
	if err := checkPositive("noise multiplier", m.NoiseMultiplier); err != nil {
		return nil, err
	}
	return gaussianBase{mu: 1 / m.NoiseMultiplier}, nil
}

// gaussianBase is N(0,1) against N(mu,1): ℓ = mu·t − mu²/2.
type gaussianBase struct{ mu float64 }

func (gaussianBase) atoms() []atom                { return nil }
func (gaussianBase) rel() float64                 { return 0 }
func (gaussianBase) lost() (p, q float64)         { return 0, 0 }
func (gaussianBase) continuous() bool             { return true }
func (gaussianBase) pure() (p, q float64)         { return math.Inf(1), math.Inf(1) }
func (gaussianBase) lattice() (off, step float64) { return 0, 0 }

func (b gaussianBase) tails(l float64) (q, p tail, place float64) {
	t := l/b.mu + b.mu/2
	return normalTail(t), normalTail(t - b.mu),
		16 * unit * (math.Abs(l) + b.mu*math.Abs(t) + b.mu*b.mu)
}

// normalTail returns the smaller tail of N(0,1) at t.
func normalTail(t float64) tail {
	if math.IsInf(t, -1) {
		return tail{}
	}
	a := math.Abs(t)
	v := math.Erfc(a*invSqrt2) / 2
	// Erfc is good to about an ulp; rounding of its argument costs 2a²·u.
	return tail{v: v, err: v * unit * (6 + 4*a*a), upper: t > 0}
}

const invSqrt2 = 0.70710678118654752440

func (b gaussianBase) span(tail float64) (lo, hi float64) {
	t := normalQuantile(tail)
	return -b.mu*t - b.mu*b.mu/2, b.mu*t + b.mu*b.mu/2
}

// normalQuantile returns t ≥ 0 with Φ(−t) ≤ p, close to equality.
func normalQuantile(p float64) float64 {
	if p >= 0.5 {
		return 0
	}
	lo, hi := 0.0, 40.0
	for range 60 {
		mid := (lo + hi) / 2
		if math.Erfc(mid*invSqrt2)/2 > p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

func (b gaussianBase) guide() []point {
	const span, n = 38, 900
	step := (2*span + b.mu) / n
	lnStep := math.Log(step) - 0.5*math.Log(2*math.Pi)
	out := make([]point, n+1)
	for i := range out {
		t := -span + float64(i)*step
		u := t - b.mu
		out[i] = point{b.mu*t - b.mu*b.mu/2, lnStep - u*u/2, lnStep - t*t/2}
	}
	return out
}
