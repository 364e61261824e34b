package noise

import (
	"fmt"
	"math"
	"math/big"
)

// maxParties bounds Shares.Parties.
const maxParties = 1 << 20

// Shares divides the noise of a sum among parties so that the shares of any MinHonest of them
// suffice: if m parties that nobody else controls answer, their shares alone add up to Law. With
// at least MinSurvivors answers of which c may come from colluders that subtract their own
// shares, m = MinSurvivors − c.
//
// The discrete Laplace law (Pólya differences of shape 1/m, as gamma differences are
// for the continuous one: Ács, Castelluccia 2011), Skellam (Agarwal, Kairouz, Liu
// 2021), Poisson and the Pólya laws are infinitely divisible: the sum follows Law
// exactly. A sum of discrete Gaussians is only close to one: see [Tau].
type Shares struct {
	Parties   int // parties that each add one share, 1 ≤ Parties ≤ 2^20
	MinHonest int // m, 1 ≤ m ≤ Parties
	Law       Law // what m shares add up to
}

// Sum is the law of a sum of shares.
type Sum struct {
	Law Law
	// Tau is 0 where Law is exact. For discrete Gaussian shares it is [Tau]:
	// the probabilities of the sum and of Law differ by a factor of at most
	// exp(±Tau).
	Tau float64
}

func (s Shares) check() error {
	if s.Law.family == 0 {
		return fmt.Errorf("%w (the zero Law)", ErrConfig)
	}
	if s.MinHonest < 1 || s.Parties < s.MinHonest {
		return fmt.Errorf("%w (need 1 ≤ MinHonest ≤ Parties; MinHonest = MinSurvivors − colluders)",
			ErrConfig)
	}
	if s.Parties > maxParties {
		return fmt.Errorf("%w (at most %d parties)", ErrTooLarge, maxParties)
	}
	return nil
}

// Party returns the law from which each party samples its share.
func (s Shares) Party() (Law, error) {
	if err := s.check(); err != nil {
		return Law{}, err
	}
	return s.Law.times(1, s.MinHonest)
}

// Sum returns the law of the sum of k independent shares, 1 ≤ k ≤ Parties. The accountant charges
// Sum(MinHonest): further shares are post-processing and never weaken it. Sum(k) for the k
// parties that did answer is the noise in the released sum, k/m times the variance of Law, for
// accuracy. Fewer shares than MinHonest have a law too, one that protects less.
func (s Shares) Sum(k int) (Sum, error) {
	if err := s.check(); err != nil {
		return Sum{}, err
	}
	if k < 1 || k > s.Parties {
		return Sum{}, fmt.Errorf("%w (shares in the sum: 1 to %d)", ErrConfig, s.Parties)
	}
	l, err := s.Law.times(k, s.MinHonest)
	if err != nil {
		return Sum{}, err
	}
	if l.family != FamilyDiscreteGaussian {
		return Sum{Law: l}, nil
	}
	share, err := s.Party()
	if err != nil {
		return Sum{}, err
	}
	tau, err := Tau(share.scale, k)
	if err != nil {
		return Sum{}, err
	}
	return Sum{l, tau}, nil
}

// times is the law of the sum of k shares if m shares sum to l.
func (l Law) times(k, m int) (Law, error) {
	f := big.NewRat(int64(k), int64(m))
	switch l.family {
	case FamilyDiscreteLaplace:
		if k == m {
			return l, nil
		}
		return PolyaDifference(f, l.scale)
	case FamilyPolyaDifference:
		return PolyaDifference(f.Mul(f, l.shape), l.scale)
	case FamilyPolya:
		return Polya(f.Mul(f, l.shape), l.scale)
	}
	top := maxLog2Scale
	if l.family == FamilyPoisson {
		top = maxLog2T
	}
	return newLaw(l.family, f.Mul(f, l.scale), nil, top)
}

// Tau returns the published bound on how far the sum of m discrete Gaussians of parameter sigma2
// each is from one of parameter m·sigma2 (Kairouz, Liu, Steinke 2021):
//
//	τ = 10·Σ_{k=1}^{m−1} exp(−2π²·σ²·k/(k+1)).
//
// For every x the two probabilities differ by a factor within exp(±τ). The result is
// rounded up; above 1 the bound says little. 1 ≤ m ≤ 2^20; sigma2 as for
// [DiscreteGaussian].
func Tau(sigma2 *big.Rat, m int) (float64, error) {
	if err := inLimits(sigma2, maxLog2Scale); err != nil {
		return 0, err
	}
	if m < 1 {
		return 0, fmt.Errorf("%w (number of shares)", ErrConfig)
	}
	if m > maxParties {
		return 0, fmt.Errorf("%w (at most %d shares)", ErrTooLarge, maxParties)
	}
	s, sum := ratFloat(sigma2), 0.0
	for k := m - 1; k >= 1; k-- {
		sum += math.Exp(-2 * math.Pi * math.Pi * s * float64(k) / float64(k+1))
	}
	if m == 1 {
		return 0, nil
	}
	// Rounding: the exponent is below 745 where it matters, its error below
	// 745·2^-50; the sum of at most 2^20 terms of one sign adds 2^-33.
	return math.Nextafter(10*sum*(1+1e-9), math.Inf(1)), nil
}
