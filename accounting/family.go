package accounting

import (
	"slices"

	"github.com/hushsum/hushsum/internal/family"
)

// Family is a kind of noise on the integers, of which parties add shares. It is the same type as
// noise.Family, and flags, files and all packages use one name for each family: its text, by
// String and MarshalText, is "discrete-laplace", "discrete-gaussian" or "skellam"; the zero
// Family is none.
type Family = family.Family

const (
	// FamilyDiscreteLaplace: P(k) ∝ exp(−|k|/t) (Ghosh, Roughgarden, Sundararajan 2009). Exactly m
	// shares, differences of Pólya variables of shape 1/m, add up to a discrete Laplace variable.
	FamilyDiscreteLaplace = family.DiscreteLaplace
	// FamilyDiscreteGaussian: P(k) ∝ exp(−k²/2σ²) (Canonne, Kamath, Steinke 2020). A sum of m shares
	// is close to a discrete Gaussian of parameter σ√m (Kairouz, Liu, Steinke 2021); the accountant
	// uses the exact distribution of the sum.
	FamilyDiscreteGaussian = family.DiscreteGaussian
	// FamilySkellam: differences of two Poisson variables (Agarwal, Kairouz, Liu
	// 2021). Sums of shares are exact.
	FamilySkellam = family.Skellam
)

// Families returns the families of noise that a [Round] can have.
func Families() []Family {
	return []Family{FamilyDiscreteLaplace, FamilyDiscreteGaussian, FamilySkellam}
}

// forRounds reports whether a round can have noise of the family.
func forRounds(f Family) bool { return slices.Contains(Families(), f) }
