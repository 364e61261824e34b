// Package family names the families of noise on the integers, once for all packages:
// noise and accounting both have this type under a name of their own.
package family

import (
	"errors"
	"fmt"
	"slices"
)

// Family is a kind of law. The zero Family is none. p stands for exp(−1/t).
type Family uint8

const (
	// DiscreteLaplace has P(k) = (1−p)/(1+p)·p^|k|.
	DiscreteLaplace Family = iota + 1
	// DiscreteGaussian has P(k) ∝ exp(−k²/2σ²).
	DiscreteGaussian
	// Skellam is the difference of two independent Poisson variables of mean
	// variance/2 each.
	Skellam
	// Poisson has P(k) = e^−λ·λ^k/k!, k ≥ 0.
	Poisson
	// Polya is the negative binomial with real shape r:
	// P(k) = Γ(k+r)/(k!·Γ(r))·p^k·(1−p)^r, k ≥ 0.
	Polya
	// PolyaDifference is the difference of two independent Pólya variables of the
	// same r and t.
	PolyaDifference
)

var names = []string{
	DiscreteLaplace:  "discrete-laplace",
	DiscreteGaussian: "discrete-gaussian",
	Skellam:          "skellam",
	Poisson:          "poisson",
	Polya:            "polya",
	PolyaDifference:  "polya-difference",
}

// ErrUnknown: there is no family of that name or number.
var ErrUnknown = errors.New("unknown family of noise")

// String returns the family's name, and "none" for the zero Family.
func (f Family) String() string {
	switch {
	case f == 0:
		return "none"
	case int(f) < len(names):
		return names[f]
	}
	return fmt.Sprintf("family(%d)", int(f))
}

// MarshalText returns the String of a known family. It fails with ErrUnknown.
func (f Family) MarshalText() ([]byte, error) {
	if f == 0 || int(f) >= len(names) {
		return nil, fmt.Errorf("%w: %v", ErrUnknown, f)
	}
	return []byte(names[f]), nil
}

// UnmarshalText takes what MarshalText gives. On error, which is ErrUnknown, f is left
// as it was.
func (f *Family) UnmarshalText(text []byte) error {
	i := slices.Index(names, string(text))
	if i < 1 {
		return fmt.Errorf("%w: %q", ErrUnknown, text)
	}
	*f = Family(i)
	return nil
}
