package accounting

import (
	"math"

	"github.com/hushsum/hushsum/internal/fault"
)

// A Mechanism is one randomised step: the laws of its output with and without
// one client. The mechanisms are the exported structs of this package
// ([Gaussian], [Laplace], [DiscreteLaplace], [DiscreteGaussian], [Skellam],
// [Binomial], [RandomisedResponse], [Pair]) and what wraps them ([Sampled], [ReplaceOne]).
type Mechanism interface {
	// law returns the privacy-loss law of one step, or an error that wraps
	// ErrConfig, ErrUnsupported or ErrTooLarge.
	law() (law, error)
	// key identifies the mechanism with its parameters; equal keys mean equal
	// laws. Composition sorts by it, so that order never matters.
	key() string
}

// A law tells the discretisation what it needs to know of one step.
type law interface {
	// guide returns points (loss, ln P, ln Q) that approximate the law; they
	// choose tilt, window and step and carry no guarantee.
	guide() []point
	// span returns losses outside which P and Q have mass at most tail each.
	span(tail float64) (lo, hi float64)
	// fill adds the law to g.
	fill(g *lattice)
	// pure returns the largest loss in each direction, +Inf if unbounded.
	pure() (remove, add float64)
	// symmetric reports whether both directions have the same law.
	symmetric() bool
	// lattice returns offset and step of the lattice on which all losses lie,
	// or step 0.
	lattice() (off, step float64)
	// exact reports that every loss lies on that lattice, so that its step is
	// fine enough.
	exact() bool
}

type point struct{ l, lp, lq float64 }

// A base is the unsampled pair: Q1 without the client, P1 with it, in terms of
// the loss ℓ = ln(P1/Q1).
type base interface {
	// atoms returns the discrete part.
	atoms() []atom
	// rel bounds the relative error of the atoms' masses.
	rel() float64
	// lost bounds the masses under P1 and Q1 that atoms leaves out.
	lost() (p, q float64)
	// tails returns the continuous part's masses beyond loss ℓ under Q1 and P1,
	// and a bound on the error of the place of ℓ in units of loss; zeros if there
	// is no continuous part.
	tails(l float64) (a, b tail, place float64)
	continuous() bool
	span(tail float64) (lo, hi float64)
	guide() []point
	pure() (p, q float64)
	lattice() (off, step float64)
}

// An atom is a point mass at loss l with P-mass p and Q-mass q. l may be ±Inf.
type atom struct{ l, p, q float64 }

// A tail is the mass above (or below) a point, with an absolute error bound.
type tail struct {
	v, err float64
	upper  bool
}

// between returns the mass between two points from their tails.
func between(a, b tail) (mass, err float64) {
	err = a.err + b.err + unit*(a.v+b.v)
	switch {
	case a.upper && b.upper:
		mass = a.v - b.v
	case !a.upper && !b.upper:
		mass = b.v - a.v
	default:
		mass = 1 - a.v - b.v
		err += unit
	}
	return math.Max(mass, 0), err
}

func checkPositive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return configError("%s is %v, want a positive finite number", name, v)
	}
	return nil
}

func checkRate(q float64) error {
	if !(q > 0 && q <= 1) {
		return configError("sampling rate is %v, want 0 < rate ≤ 1", q)
	}
	return nil
}

func checkSensitivity(s int) error {
	if s < 1 || s > 1<<30 {
		return configError("integer sensitivity is %d, want 1 to 2^30", s)
	}
	return nil
}

// maxAtoms is the largest table of a discrete law.
const maxAtoms = 1 << 22

func checkAtoms(n float64) error {
	if !(n <= maxAtoms) {
		return fault.New(ErrTooLarge, "", "about %.3g points, at most %d", n, maxAtoms)
	}
	return nil
}

// baser is a mechanism with an unsampled pair, which Sampled can wrap.
type baser interface {
	Mechanism
	base() (base, error)
}

// plainLaw is the law of an unsampled mechanism.
func plainLaw(m baser) (law, error) {
	b, err := m.base()
	if err != nil {
		return nil, err
	}
	return &sampledLaw{base: b, q: 1}, nil
}
