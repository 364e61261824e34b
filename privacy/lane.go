package privacy

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/noise"
)

// Lane describes one vector of a submission in the ring: its bounds, and the noise of each of its
// coordinates.
type Lane struct {
	Sensitivity accounting.Sensitivity // of a sum, after rounding
	// Attained is a norm up to which integer vectors are inputs; 0: that of Sensitivity. See
	// accounting.Lane.
	Attained float64
	// Shares divides the noise. Its Law is that of MinHonest shares together.
	Shares noise.Shares

	table *noise.Table // of one party's share
}

// newLane divides noise of z times the sensitivity.
func newLane(
	family accounting.Family, p Promise, s accounting.Sensitivity, z float64,
) (Lane, error) {
	l := Lane{Sensitivity: s, Shares: noise.Shares{Parties: p.shares, MinHonest: p.honest}}
	stdDev := z * s.L2
	if stdDev*stdDev/float64(p.honest) < noise.MinScale {
		return Lane{}, &ConfigError{
			Field: "Noise.Multiplier",
			Reason: fmt.Sprintf("%v leaves %d parties next to no noise to share in whole numbers", z,
				p.honest),
			Advice: "use a larger multiplier, more bits, or no noise",
			Err:    errTooLittle,
		}
	}
	var err error
	if l.Shares.Law, err = lawOf(family, stdDev); err != nil {
		return Lane{}, unusable(stdDev, err)
	}
	return l, nil
}

// unusable says what is wrong with noise of the given standard deviation.
func unusable(stdDev float64, err error) error {
	if !errors.Is(err, noise.ErrTooLarge) {
		return because("Noise", err)
	}
	return &ConfigError{
		Field: "Noise.Bits",
		Reason: fmt.Sprintf("the noise is too wide to sample: its standard deviation is %.4g units",
			stdDev),
		Advice: "use fewer bits, or less noise",
		Err:    err,
	}
}

// SumStdDev returns the standard deviation of the sum of the given number of shares, in integers
// of the ring.
func (l *Lane) SumStdDev(shares int) float64 {
	return math.Sqrt(l.Shares.Law.Variance() * (float64(shares) / float64(l.Shares.MinHonest)))
}

// accounting is the lane as the accountant has it.
func (l *Lane) accounting() accounting.Lane {
	scale, _ := l.Shares.Law.Scale().Float64()
	const down = 1 - 0x1p-50 // no rounding may make the noise look larger
	honest := float64(l.Shares.MinHonest)
	out := accounting.Lane{Sensitivity: l.Sensitivity, Attained: l.Attained}
	switch l.Shares.Law.Family() {
	case accounting.FamilyDiscreteGaussian:
		out.ShareSigma = math.Sqrt(scale/honest) * down
	case accounting.FamilySkellam:
		out.ShareVariance = scale / honest * down
	default:
		out.SumScale = scale * down
	}
	return out
}

// samples is how many numbers all parties draw in one round.
func (l *Lane) samples() float64 {
	return float64(l.Shares.Parties) * float64(l.Sensitivity.Dimension)
}

// prepare makes the table.
func (l *Lane) prepare() error {
	own, err := l.Shares.Party()
	if err == nil {
		l.table, err = noise.NewTable(own)
	}
	if err != nil {
		return unusable(l.SumStdDev(l.Shares.MinHonest), err)
	}
	return nil
}

// share draws a party's share of the noise. The caller clears it.
func (l *Lane) share(random io.Reader) ([]int64, error) {
	share := make([]int64, l.Sensitivity.Dimension)
	if err := l.table.NewSampler(random).Fill(share); err != nil {
		return nil, err
	}
	return share, nil
}
