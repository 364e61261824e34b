package model

import (
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/privacy"
)

// newRelease works out private sums of updates of norm 1 with discrete Gaussian noise of
// multiplier 1, in rings of the given bits. The shares of all parties but the colluders
// are enough.
func newRelease(parties, colluders, dimension, bits int) (*privacy.Mechanism, error) {
	release := privacy.Release{
		Promise: privacy.Assumed(parties, parties-colluders),
		Noise: privacy.Noise{
			Family:     accounting.FamilyDiscreteGaussian,
			Multiplier: 1,
			Clip:       1,
			Bits:       bits,
		},
		Dimension: dimension,
	}
	return release.Mechanism()
}
