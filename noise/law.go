package noise

import (
	"fmt"
	"math"
	"math/big"

	"github.com/hushsum/hushsum/internal/family"
)

// Family is a kind of law. It is the same type as accounting.Family. Its text, by String and
// MarshalText, is "discrete-laplace", "polya-difference" and so on; the zero Family is none.
type Family = family.Family

// The families of laws on the integers. p stands for exp(−1/t).
const (
	// FamilyDiscreteLaplace has P(k) = (1−p)/(1+p)·p^|k|.
	FamilyDiscreteLaplace = family.DiscreteLaplace
	// FamilyDiscreteGaussian has P(k) ∝ exp(−k²/2σ²).
	FamilyDiscreteGaussian = family.DiscreteGaussian
	// FamilySkellam is the difference of two independent Poisson variables of
	// mean variance/2 each.
	FamilySkellam = family.Skellam
	// FamilyPoisson has P(k) = e^−λ·λ^k/k!, k ≥ 0.
	FamilyPoisson = family.Poisson
	// FamilyPolya is the negative binomial with real shape r:
	// P(k) = Γ(k+r)/(k!·Γ(r))·p^k·(1−p)^r, k ≥ 0.
	FamilyPolya = family.Polya
	// FamilyPolyaDifference is the difference of two independent Pólya
	// variables of the same r and t.
	FamilyPolyaDifference = family.PolyaDifference
)

// Limits of the parameters. Every scale (t, σ², a variance, a mean) and every
// shape lies in [2^-20, 2^80], t at most 2^40, and is a fraction whose numerator
// and denominator have at most 256 bits, so that samples fit an int64 with room
// for sums and exponentials stay within the range of math/big.
const (
	// MinScale is the least scale and shape of a law.
	MinScale = 0x1p-20

	minLog2Scale = -20
	maxLog2T     = 40
	maxLog2Scale = 80
	maxRatBits   = 256
)

// Law is a probability law on the integers with rational parameters. It is immutable and safe for
// concurrent use. The zero Law is no law: everything that takes it fails with [ErrConfig].
type Law struct {
	family Family
	scale  *big.Rat // t, σ², variance or mean
	shape  *big.Rat // r of the Pólya laws, else nil
}

// DiscreteLaplace returns the law P(k) ∝ exp(−|k|/t). With sensitivity Δ it is Δ/t-differentially
// private (Ghosh, Roughgarden, Sundararajan 2009). 2^-20 ≤ t ≤ 2^40.
func DiscreteLaplace(t *big.Rat) (Law, error) {
	return newLaw(FamilyDiscreteLaplace, t, nil, maxLog2T)
}

// DiscreteGaussian returns the law P(k) ∝ exp(−k²/2σ²) (Canonne, Kamath, Steinke 2020). The
// parameter is σ², in squared integer units, 2^-20 ≤ σ² ≤ 2^80.
func DiscreteGaussian(sigma2 *big.Rat) (Law, error) {
	return newLaw(FamilyDiscreteGaussian, sigma2, nil, maxLog2Scale)
}

// Skellam returns the symmetric Skellam law of the given total variance (Agarwal, Kairouz, Liu
// 2021): Poisson(variance/2) − Poisson(variance/2).
func Skellam(variance *big.Rat) (Law, error) {
	return newLaw(FamilySkellam, variance, nil, maxLog2Scale)
}

// Poisson returns the Poisson law of the given mean.
func Poisson(mean *big.Rat) (Law, error) { return newLaw(FamilyPoisson, mean, nil, maxLog2T) }

// Polya returns the negative binomial law of real shape r and p = exp(−1/t).
func Polya(r, t *big.Rat) (Law, error) {
	if r == nil {
		return Law{}, fmt.Errorf("%w (shape)", ErrConfig)
	}
	return newLaw(FamilyPolya, t, r, maxLog2T)
}

// PolyaDifference returns the law of X−Y for independent X, Y ~ Polya(r, t). Sums of independent
// ones add their shapes; at r = 1 it is DiscreteLaplace(t) (the generalised discrete Laplace law
// of Harrison, Manurangsi 2025).
func PolyaDifference(r, t *big.Rat) (Law, error) {
	if r == nil {
		return Law{}, fmt.Errorf("%w (shape)", ErrConfig)
	}
	return newLaw(FamilyPolyaDifference, t, r, maxLog2T)
}

// Rational returns the exact value of x, for parameters given as floats. It refuses NaN and the
// infinities with [ErrConfig].
func Rational(x float64) (*big.Rat, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("%w (not finite)", ErrConfig)
	}
	return new(big.Rat).SetFloat64(x), nil
}

func newLaw(f Family, scale, shape *big.Rat, top int) (Law, error) {
	if err := inLimits(scale, top); err != nil {
		return Law{}, fmt.Errorf("%w (%v)", err, f)
	}
	l := Law{family: f, scale: new(big.Rat).Set(scale)}
	if shape != nil {
		if err := inLimits(shape, maxLog2T); err != nil {
			return Law{}, fmt.Errorf("%w (%v, shape)", err, f)
		}
		l.shape = new(big.Rat).Set(shape)
	}
	return l, nil
}

func inLimits(x *big.Rat, top int) error {
	if x == nil || x.Sign() <= 0 {
		return ErrConfig
	}
	if x.Num().BitLen() > maxRatBits || x.Denom().BitLen() > maxRatBits {
		return ErrTooLarge
	}
	one := big.NewInt(1)
	if x.Cmp(new(big.Rat).SetInt(new(big.Int).Lsh(one, uint(top)))) > 0 ||
		x.Cmp(new(big.Rat).SetFrac(one, new(big.Int).Lsh(one, -minLog2Scale))) < 0 {
		return ErrTooLarge
	}
	return nil
}

// Family returns the law's family; 0 for the zero Law.
func (l Law) Family() Family { return l.family }

// Scale returns a copy of the scale parameter: t for discrete Laplace and the
// Pólya laws, σ² for the discrete Gaussian, the variance for Skellam, the mean
// for Poisson. It is nil for the zero Law.
func (l Law) Scale() *big.Rat {
	if l.scale == nil {
		return nil
	}
	return new(big.Rat).Set(l.scale)
}

// Shape returns a copy of r for the Pólya laws and nil for the others.
func (l Law) Shape() *big.Rat {
	if l.shape == nil {
		return nil
	}
	return new(big.Rat).Set(l.shape)
}

func (l Law) String() string {
	switch {
	case l.scale == nil:
		return l.family.String()
	case l.shape != nil:
		return fmt.Sprintf("%v(%s, %s)", l.family, l.shape.RatString(), l.scale.RatString())
	}
	return fmt.Sprintf("%v(%s)", l.family, l.scale.RatString())
}

// symmetric tells whether P(k) = P(−k).
func (l Law) symmetric() bool { return l.family != FamilyPoisson && l.family != FamilyPolya }

// Mean returns the exact mean, rounded to float64. NaN for the zero Law.
func (l Law) Mean() float64 {
	switch l.family {
	case 0:
		return math.NaN()
	case FamilyPoisson:
		return ratFloat(l.scale)
	case FamilyPolya:
		return ratFloat(l.shape) / math.Expm1(1/ratFloat(l.scale))
	}
	return 0
}

// Variance returns the variance to about 1e-14 relative. For the discrete Gaussian it lies
// slightly below the parameter σ², by 2·10^-7 relative at σ = 1.
func (l Law) Variance() float64 {
	s := ratFloat(l.scale)
	switch l.family {
	case 0:
		return math.NaN()
	case FamilySkellam, FamilyPoisson:
		return s
	case FamilyDiscreteGaussian:
		if s > 16 {
			return s // the difference is below 10^-134 relative
		}
		var sum, second float64
		for k := 60.0; k >= 1; k-- {
			w := 2 * math.Exp(-k*k/(2*s))
			sum += w
			second += w * k * k
		}
		return second / (sum + 1)
	}
	h := math.Sinh(1 / (2 * s))
	v := 1 / (4 * h * h) // p/(1−p)²
	if l.family != FamilyPolya {
		v *= 2
	}
	if l.shape != nil {
		v *= ratFloat(l.shape)
	}
	return v
}

func ratFloat(x *big.Rat) float64 {
	if x == nil {
		return math.NaN()
	}
	f, _ := x.Float64()
	return f
}
