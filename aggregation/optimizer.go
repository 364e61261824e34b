package aggregation

import (
	"fmt"
	"math"
)

// Rule says which step an [Optimizer] makes of the mean update Δ.
type Rule int

const (
	RuleFedAvg     Rule = iota // Δ itself (McMahan 2017)
	RuleMomentum               // m ← β₁m + Δ, step m (Hsu 2019, FedAvgM)
	RuleFedAdagrad             // v ← v + Δ² (Reddi 2021, Algorithm 2)
	RuleFedAdam                // v ← β₂v + (1−β₂)Δ²
	RuleFedYogi                // v ← v − (1−β₂)·Δ²·sign(v − Δ²)
)

// Values of an [Optimizer] that leaves the field at 0.
const (
	defaultOptimizerRate = 1
	defaultBeta2         = 0.99
	defaultTau           = 1e-3
)

// Optimizer turns mean updates into models, one call of [Optimizer.Apply] per round:
//
//	w ← w + η_g·mask⊙step(Δ)
//
// where Δ is the mean of w_client − w over the clients of the round, so that the
// sign is a plus. (One of the papers prints a minus with the same Δ; that would
// climb where its clients descend.) The adaptive rules are those of "Adaptive
// Federated Optimization" (Reddi 2021, Algorithm 2), without bias correction:
//
//	m ← β₁m + (1−β₁)Δ,   step = m / (√v + τ),   m = 0 and v = τ² at first
//
// "Gradient Masked Averaging" prints the constant under the root instead, m/√(v + τ), which is
// TauInside: with that paper's rate of 0.05 and τ = 1e-3 no step is then longer than 1.6·|m|, and
// the two forms differ much. RuleMomentum with Rate τ′ and Beta1 (1−τ′)λ is the accelerated
// aggregation of FedLTN, θ ← τ′·θ̄ + (1−τ′)(θ − λΔ), where Δ is minus the last step.
//
// All rules work coordinate by coordinate. The mask is applied last, to the step: masked
// coordinates still enter m and v, so that a mask affects its own round only.
//
// The zero value is plain federated averaging with rate 1. Fields must not change
// once Apply has been called. An Optimizer is not safe for concurrent use.
type Optimizer struct {
	Rule  Rule
	Rate  float64 // η_g, above 0; 0: defaultOptimizerRate
	Beta1 float64 // β₁, at least 0 and below 1; 0: no momentum. Not for RuleFedAvg
	Beta2 float64 // β₂, above 0 and below 1; 0: defaultBeta2. FedAdam and FedYogi
	Tau   float64 // τ, above 0: the degree of adaptivity; 0: defaultTau. Adaptive rules

	TauInside bool // τ is under the root. Adaptive rules

	weights int // 0 before the first Apply
	m, v    []float64
}

func (o *Optimizer) settings() (rate, beta2, tau float64, err error) {
	pick := func(x, preset float64) float64 {
		if x == 0 {
			return preset
		}
		return x
	}
	rate, beta2, tau = pick(o.Rate, defaultOptimizerRate), pick(o.Beta2, defaultBeta2),
		pick(o.Tau, defaultTau)
	switch {
	case o.Rule < RuleFedAvg || o.Rule > RuleFedYogi:
		err = fmt.Errorf("%w: Rule is %d, want one of the constants", ErrConfig, o.Rule)
	case !(rate > 0 && rate <= math.MaxFloat64):
		err = fmt.Errorf("%w: Rate is %v, want a finite number above 0", ErrConfig, o.Rate)
	case !(o.Beta1 >= 0 && o.Beta1 < 1):
		err = fmt.Errorf("%w: Beta1 is %v, want 0 to below 1", ErrConfig, o.Beta1)
	case !(beta2 > 0 && beta2 < 1):
		err = fmt.Errorf("%w: Beta2 is %v, want above 0 and below 1", ErrConfig, o.Beta2)
	// τ² must be a normal number, and v with it.
	case !(tau >= minClip && tau <= maxClip):
		err = fmt.Errorf("%w: Tau is %v, want 2^-500 to 2^500", ErrConfig, o.Tau)
	}
	return rate, beta2, tau, err
}

// Validate returns [ErrConfig] if a field is outside its range.
func (o *Optimizer) Validate() error {
	_, _, _, err := o.settings()
	return err
}

// Apply returns the next model after w, given the mean update and a mask of
// factors of 0 or more, as [GradientMask.Weights] gives it (nil: all ones). None of
// the three is changed. The first call fixes the number of weights.
//
// It fails with [ErrConfig] if a field or a mask factor is outside its range,
// [ErrLength], and [ErrNotFinite] if an input or the result is. After an error
// the state is as before.
func (o *Optimizer) Apply(w, update, mask []float64) ([]float64, error) {
	rate, beta2, tau, err := o.settings()
	if err != nil {
		return nil, err
	}
	switch {
	case len(w) == 0 || len(update) != len(w):
		return nil, fmt.Errorf("%w: an update of %d coordinates for %d weights", ErrLength, len(update),
			len(w))
	case mask != nil && len(mask) != len(w):
		return nil, fmt.Errorf("%w: a mask of %d coordinates for %d weights", ErrLength, len(mask),
			len(w))
	case o.weights > 0 && o.weights != len(w):
		return nil, fmt.Errorf("%w: %d weights, and %d before", ErrLength, len(w), o.weights)
	}
	var m, v []float64
	next := make([]float64, len(w))
	if o.Rule != RuleFedAvg { // which remembers nothing
		m, v = make([]float64, len(w)), make([]float64, len(w))
	}
	for i, d := range update {
		oldM, oldV := 0.0, tau*tau
		if o.m != nil {
			oldM, oldV = o.m[i], o.v[i]
		}
		step, newM, newV := o.step(d, oldM, oldV, beta2, tau)
		if m != nil {
			m[i], v[i] = newM, newV
		}
		if mask != nil {
			if !(mask[i] >= 0 && finite(mask[i])) {
				return nil, fmt.Errorf("%w: factor %d of the mask is not a finite number of 0 or more",
					ErrConfig, i)
			}
			step *= mask[i]
		}
		next[i] = w[i] + float64(rate*step)
		// An infinite v would hide behind a step of 0. An infinite m cannot: a mask
		// of 0 makes it NaN.
		if !finite(next[i]) || !finite(newV) {
			return nil, fmt.Errorf("%w: coordinate %d of the model, the update or the step", ErrNotFinite, i)
		}
	}
	o.weights, o.m, o.v = len(w), m, v
	return next, nil
}

// step is one coordinate of the rule. Conversions keep products from being fused
// with sums, so that all machines find the same model.
func (o *Optimizer) step(d, m, v, beta2, tau float64) (step, nextM, nextV float64) {
	square := float64(d * d)
	switch o.Rule {
	case RuleFedAvg:
		return d, m, v
	case RuleMomentum:
		m = float64(o.Beta1*m) + d
		return m, m, v
	case RuleFedAdagrad:
		v += square
	case RuleFedAdam:
		v = float64(beta2*v) + float64((1-beta2)*square)
	case RuleFedYogi:
		change := float64((1 - beta2) * square)
		switch {
		case v > square:
			v -= change
		case v < square:
			v += change
		}
	}
	m = float64(o.Beta1*m) + float64((1-o.Beta1)*d)
	if o.TauInside {
		return m / math.Sqrt(v+tau), m, v
	}
	return m / (math.Sqrt(v) + tau), m, v
}

// Moments returns the rule's state m and v, for a program that is to go on in another process; the
// caller must not change them. They are nil before the first Apply and with RuleFedAvg.
func (o *Optimizer) Moments() [][]float64 {
	if o.m == nil {
		return nil
	}
	return [][]float64{o.m, o.v}
}

// Resume restores the state that [Optimizer.Moments] returned, in an Optimizer with the same
// fields. It fails with [ErrLength] and [ErrNotFinite], and with [ErrConfig] if v has a negative
// coordinate.
func (o *Optimizer) Resume(moments [][]float64) error {
	if len(moments) == 0 {
		o.weights, o.m, o.v = 0, nil, nil
		return nil
	}
	if len(moments) != 2 {
		return fmt.Errorf("%w: %d moments, want 2", ErrLength, len(moments))
	}
	if err := checkVectors(moments...); err != nil {
		return err
	}
	for i, v := range moments[1] {
		if v < 0 {
			return fmt.Errorf("%w: coordinate %d of v is negative", ErrConfig, i)
		}
	}
	o.weights = len(moments[0])
	if o.Rule != RuleFedAvg {
		o.m, o.v = moments[0], moments[1]
	}
	return nil
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// checkVectors fails with ErrLength unless all vectors have the length of the
// first, at least 1, and with ErrNotFinite.
func checkVectors(vectors ...[]float64) error {
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return fmt.Errorf("%w: vectors of %d and %d coordinates", ErrLength, len(vectors[0]), len(v))
		}
		for i, x := range v {
			if !finite(x) {
				return fmt.Errorf("%w: coordinate %d", ErrNotFinite, i)
			}
		}
	}
	return nil
}
