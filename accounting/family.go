package accounting

import (
	"slices"

	"github.com/hushsum/hushsum/internal/family"
)

// Family is a kind of noise on the integers, of which parties add shares. It is one
// type with noise.Family, and the one name that flags, files and every package has for
// them: its text, by String and MarshalText, is "discrete-laplace",
// "discrete-gaussian" or "skellam"; the zero Family is none.
type Family = family.Family

const (
	// FamilyDiscreteLaplace: P(k) ∝ exp(−|k|/t) (Ghosh, Roughgarden, Sundararajan
	// 2009). Exactly m shares, differences of Pólya variables of shape 1/m, add up to
	// one.
	FamilyDiscreteLaplace = family.DiscreteLaplace
	// FamilyDiscreteGaussian: P(k) ∝ exp(−k²/2σ²) (Canonne, Kamath, Steinke 2020). A
	// sum of m shares is close to one of σ√m (Kairouz, Liu, Steinke 2021), and accounted for
	// as what it is.
	FamilyDiscreteGaussian = family.DiscreteGaussian
	// FamilySkellam: differences of two Poisson variables (Agarwal, Kairouz, Liu
	// 2021). Sums of shares are exact.
	FamilySkellam = family.Skellam
)

// Families returns the families of which a [Round] can have noise.
func Families() []Family {
	return []Family{FamilyDiscreteLaplace, FamilyDiscreteGaussian, FamilySkellam}
}

// forRounds reports whether a round can have noise of the family.
func forRounds(f Family) bool { return slices.Contains(Families(), f) }
