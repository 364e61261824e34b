// Package continuous holds the continuous laws of the papers, sampled in floating
// point. They exist to reproduce published figures and to be attacked; none may
// protect a release: the possible outputs of a float sampler depend on what the
// noise is added to (Mironov 2012), and math/rand is predictable. Releases take
// their noise from package noise.
package continuous

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrConfig: a parameter is not positive and finite, or there is no source.
var ErrConfig = errors.New("continuous: parameter out of its domain; give a positive finite number")

// Laplace is the Laplace law of the given scale b > 0, density
// exp(−|x|/b)/2b, sampled the textbook way, ±b·ln U with U a multiple of 2^-53 in
// (0, 1]. NOT for releases.
type Laplace struct{ Scale float64 }

// Sample draws one value from src; [ErrConfig] for a scale that is not
// positive and finite, or a nil src.
func (l Laplace) Sample(src rand.Source) (float64, error) {
	if err := check(src, l.Scale); err != nil {
		return 0, err
	}
	w := src.Uint64()
	x := l.Scale * math.Log(float64(w>>11+1)/(1<<53))
	if w&1 == 0 {
		return x, nil
	}
	return -x, nil
}

// Gaussian is the normal law of mean 0 and standard deviation Sigma > 0
// (gonum's float sampler). NOT for releases.
type Gaussian struct{ Sigma float64 }

// Sample draws one value from src; errors as [Laplace.Sample].
func (g Gaussian) Sample(src rand.Source) (float64, error) {
	if err := check(src, g.Sigma); err != nil {
		return 0, err
	}
	return distuv.Normal{Sigma: g.Sigma, Src: src}.Rand(), nil
}

// Variance returns Sigma².
func (g Gaussian) Variance() float64 { return g.Sigma * g.Sigma }

// GammaDifference is the law of X−Y for independent X, Y ~ Gamma(Shape,
// scale Scale): with Shape = 1/n one party's share of a Laplace variable, the
// sum of n being Laplace(Scale) (Ács, Castelluccia 2011). Variance 2·Shape·Scale².
// NOT for releases.
type GammaDifference struct{ Shape, Scale float64 }

// Sample draws one value from src; errors as [Laplace.Sample].
func (g GammaDifference) Sample(src rand.Source) (float64, error) {
	if err := check(src, g.Shape, g.Scale); err != nil {
		return 0, err
	}
	d := distuv.Gamma{Alpha: g.Shape, Beta: 1 / g.Scale, Src: src}
	return d.Rand() - d.Rand(), nil
}

// Variance returns the law's variance.
func (g GammaDifference) Variance() float64 { return 2 * g.Shape * g.Scale * g.Scale }

// Staircase is the staircase law of (Geng, Viswanath 2014) for privacy
// Epsilon > 0, sensitivity Sensitivity > 0 and step shape 0 < Gamma < 1: a density
// constant on steps, falling by exp(−Epsilon) per Sensitivity. Gamma =
// 1/(1+exp(Epsilon/2)) has the least mean absolute value. NOT for releases.
type Staircase struct{ Epsilon, Sensitivity, Gamma float64 }

// Sample draws one value from src; errors as [Laplace.Sample], also
// for a Gamma outside (0, 1).
func (s Staircase) Sample(src rand.Source) (float64, error) {
	if err := check(src, s.Epsilon, s.Sensitivity, s.Gamma, 1-s.Gamma); err != nil {
		return 0, err
	}
	r := rand.New(src)
	b := math.Exp(-s.Epsilon)
	steps := math.Floor(math.Log(1-r.Float64()) / -s.Epsilon) // geometric with ratio b
	u, x := r.Float64(), 0.0
	if r.Float64() < s.Gamma/(s.Gamma+(1-s.Gamma)*b) {
		x = steps + s.Gamma*u
	} else {
		x = steps + s.Gamma + (1-s.Gamma)*u
	}
	if r.Uint64()&1 == 0 {
		x = -x
	}
	return x * s.Sensitivity, nil
}

// Variance returns the law's variance, with its steps as Sample draws them: a geometric number
// of whole ones, then a place in the wide or the narrow part of one.
func (s Staircase) Variance() float64 {
	b, g := math.Exp(-s.Epsilon), s.Gamma
	first := g / (g + (1-g)*b)
	mean, square := b/(1-b), b*(1+b)/((1-b)*(1-b)) // of the whole steps
	near, far := mean*g+g*g/3, mean*(1+g)+(1+g+g*g)/3
	return s.Sensitivity * s.Sensitivity * (square + first*near + (1-first)*far)
}

func check(src rand.Source, positive ...float64) error {
	if src == nil {
		return fmt.Errorf("%w (a nil source)", ErrConfig)
	}
	for _, x := range positive {
		if !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("%w (continuous law)", ErrConfig)
		}
	}
	return nil
}
