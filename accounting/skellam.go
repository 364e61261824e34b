package accounting

import (
	"fmt"
	"math"
)

// Skellam is the difference of two Poisson variables of mean Variance/2 each,
// added to an integer that one client changes by at most Sensitivity.
type Skellam struct {
	Variance    float64 // total variance μ, positive
	Sensitivity int     // at least 1
}

func (m Skellam) key() string {
	return fmt.Sprintf("skellam %x %d", m.Variance, m.Sensitivity)
}

func (m Skellam) law() (law, error)   { return plainLaw(m) }
func (m Skellam) base() (base, error) { return shifted(m) }
func (m Skellam) sensitivity() int    { return m.Sensitivity }

// mass tabulates P(k) = e^{−μ} I_k(μ) by Miller's backward recurrence
// I_{k−1} = I_{k+1} + (2k/μ)·I_k, which only adds positive terms, normalised by
// e^μ = I_0 + 2·Σ I_k.
func (m Skellam) mass() (masses, error) {
	mu := m.Variance
	if err := checkPositive("Skellam variance", mu); err != nil {
		return masses{}, err
	}
	// Cut where the Chernoff bound of the Skellam tail passes e^{−140}.
	reach := 1.0
	for chernoffSkellam(mu, reach) > -140 {
		reach *= 1.2
	}
	reach += float64(max(m.Sensitivity, 0))
	if err := checkAtoms(2 * reach); err != nil {
		return masses{}, err
	}
	n := int(reach) + 2
	start := n + 40 + int(6*math.Sqrt(reach))
	out := masses{half: make([]float64, n), relative: 8 * unit * float64(start)}
	above, here, sum := 0.0, 1e-300, 0.0
	for k := start; k >= 0; k-- {
		if k < n {
			out.half[k] = here
		}
		if k == 0 {
			sum += here
			break
		}
		sum += 2 * here
		above, here = here, above+2*float64(k)/mu*here
		if here > 1e250 {
			// Rescale the run, so that entries keep their ratio. What underflows is
			// below 1e-300 of the peak.
			const s = 1e-200
			above, here, sum = above*s, here*s, sum*s
			for j := k; j < n; j++ {
				out.half[j] *= s
			}
		}
	}
	for k := range out.half {
		out.half[k] /= sum
	}
	out.lost = 2 * math.Exp(chernoffSkellam(mu, float64(n)))
	return out, nil
}

// chernoffSkellam returns the logarithm of the Chernoff bound of P(X ≥ k):
// min over s of μ(cosh s − 1) − s·k, at sinh s = k/μ.
func chernoffSkellam(mu, k float64) float64 {
	s := math.Asinh(k / mu)
	h := math.Sinh(s / 2)
	return 2*mu*h*h - s*k
}
