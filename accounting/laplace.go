package accounting

import (
	"fmt"
	"math"
)

// Laplace is the continuous Laplace mechanism: density ∝ e^{−|x|/b} with
// b = Scale times the L1 sensitivity.
type Laplace struct {
	Scale float64 // b/Δ₁, positive
}

func (m Laplace) key() string { return fmt.Sprintf("laplace %x", m.Scale) }

func (m Laplace) law() (law, error) { return plainLaw(m) }

func (m Laplace) base() (base, error) {
	if err := checkPositive("Laplace scale", m.Scale); err != nil {
		return nil, err
	}
	if tooLoud(1 / m.Scale) {
		return lostTable(), nil
	}
	return laplaceBase{b: m.Scale}, nil
}

// laplaceBase is Laplace(0, b) against Laplace(1, b): atoms at ℓ = ±1/b and a
// continuous part for outputs between 0 and 1.
type laplaceBase struct{ b float64 }

func (laplaceBase) rel() float64         { return 8 * unit }
func (laplaceBase) lost() (p, q float64) { return 0, 0 }
func (laplaceBase) continuous() bool     { return true }

func (m laplaceBase) pure() (p, q float64) { return 1 / m.b, 1 / m.b }

func (m laplaceBase) lattice() (off, step float64) { return -1 / m.b, 2 / m.b }

func (m laplaceBase) atoms() []atom {
	far := math.Exp(-1/m.b) / 2
	return []atom{{-1 / m.b, far, 0.5}, {1 / m.b, 0.5, far}}
}

func (m laplaceBase) tails(l float64) (q, p tail, place float64) {
	x := math.Min(math.Max((m.b*l+1)/2, 0), 1)
	// The mass of (x, 1) under Q1 and of (0, x) under P1: the continuous part.
	q = tail{v: math.Exp(-x/m.b) * -math.Expm1((x-1)/m.b) / 2, upper: true}
	p = tail{v: math.Exp((x-1)/m.b) * -math.Expm1(-x/m.b) / 2}
	q.err, p.err = 8*unit*q.v*(1+1/m.b), 8*unit*p.v*(1+1/m.b)
	return q, p, 8 * unit * (math.Abs(l) + 1/m.b)
}

func (m laplaceBase) span(float64) (lo, hi float64) { return -1 / m.b, 1 / m.b }

func (m laplaceBase) guide() []point {
	const n = 400
	out := make([]point, 0, n+2)
	for _, a := range m.atoms() {
		out = append(out, point{a.l, math.Log(a.p), math.Log(a.q)})
	}
	lnW := -math.Log(2 * m.b * n)
	for i := range n {
		x := (float64(i) + 0.5) / n
		out = append(out, point{(2*x - 1) / m.b, lnW - (1-x)/m.b, lnW - x/m.b})
	}
	return out
}
