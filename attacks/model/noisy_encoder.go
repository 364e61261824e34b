package model

import (
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/noise"
)

// noisyEncoder completes an encoder of updates of norm 1 for discrete Gaussian noise
// of multiplier 1, and returns it with the law of what that many honest parties'
// shares add to.
func noisyEncoder(e aggregation.Encoder, honest int) (aggregation.Encoder, noise.Law, error) {
	e.Clip, e.NoiseFamily = 1, noise.FamilyDiscreteGaussian
	e, err := e.ChooseScale(1, honest)
	if err != nil {
		return e, noise.Law{}, err
	}
	sensitivity, err := e.Sensitivity()
	if err != nil {
		return e, noise.Law{}, err
	}
	variance, err := noise.Rational(sensitivity.L2 * sensitivity.L2)
	if err != nil {
		return e, noise.Law{}, err
	}
	law, err := noise.DiscreteGaussian(variance)
	return e, law, err
}
