package aggregation

import (
	"fmt"
	"math"
)

// Limits of a clipping norm. Within them no product on the way to the ring
// overflows, and what underflows is far below one unit in the last place.
const (
	minClip = 0x1p-500
	maxClip = 0x1p500
)

// slack is the margin that Clip leaves between a norm and its limit for float64 arithmetic:
// each of its steps, and the rotation and scaling of an Encoder, is off by less
// than a tenth of that, relative to the result.
const slack = 0x1p-44

// Clip returns the update scaled down to an L2 norm of at most c, or a copy of it if its norm is at
// most c already, and the norm that it had. This is the clipping of differences (McMahan 2018,
// "Learning Differentially Private Recurrent Language Models", §2): the update is a difference of
// models, and its direction stays. The CE-FedAvg of "Understanding Clipping for Federated Learning"
// has this form and another, model clipping, where each party sends Clip(weights, c) and the mean
// of those is the next model: an [Optimizer] with rate 1 gets mean − w. Model clipping keeps every
// model in a ball around zero, wherever the optimum is; it is here for comparison.
//
// The norm of the result is at most c exactly, as a real number, whatever the rounding on the way:
// the norm is computed to 46 bits, and an update whose norm is above c·(1 − 2^-44) is brought to
// c·(1 − 2^-44), less at most as much again. The norm returned is the computed one; it is +Inf when
// it is beyond float64, and the result is right even then. The norm says something about the update
// and is as secret.
//
// Clip fails with [ErrConfig] if c is not between 2^-500 and 2^500, and with
// [ErrNotFinite].
func Clip(update []float64, c float64) (clipped []float64, norm float64, err error) {
	if err := checkClip(c); err != nil {
		return nil, 0, err
	}
	clipped = make([]float64, len(update))
	norm, err = clipInto(clipped, update, c)
	if err != nil {
		return nil, 0, err
	}
	return clipped, norm, nil
}

// Clipper is [Clip] for an update too long for a second copy: it returns a function that gives
// each coordinate's clipped value.
func Clipper[F Float](update []F, c float64) (clipped func(x F) float64, err error) {
	if err := checkClip(c); err != nil {
		return nil, err
	}
	k, err := newClipping(update, c)
	return func(x F) float64 { return float64(x) * k.down * k.rest * k.factor }, err
}

func checkClip(c float64) error {
	if !(c >= minClip && c <= maxClip) {
		return fmt.Errorf("%w: the clipping norm is %v, want 2^-500 to 2^500", ErrConfig, c)
	}
	return nil
}

// clipInto writes update to the first places of dst, with a norm of at most
// c·(1 − slack/2). On an error dst holds nothing of use.
func clipInto(dst, update []float64, c float64) (norm float64, err error) {
	k, err := newClipping(update, c)
	if err != nil {
		return 0, err
	}
	clipTo(dst, update, k)
	return k.norm, nil
}

// clipping brings an update to a norm of at most c·(1 − slack/2): a product of
// three factors, of which two are powers of two. All are 1 where the update is short
// enough, so that multiplying takes as long and changes nothing.
type clipping struct {
	norm               float64 // of the update, as computed
	down, rest, factor float64
}

func newClipping[F Float](update []F, c float64) (clipping, error) {
	var top float64
	for i, x := range update {
		a := math.Abs(float64(x))
		if !(a <= math.MaxFloat64) {
			return clipping{}, fmt.Errorf("%w: coordinate %d", ErrNotFinite, i)
		}
		top = max(top, a)
	}
	if top == 0 {
		return clipping{down: 1, rest: 1, factor: 1}, nil
	}
	// Divide by a power of two so that the largest magnitude is in [1/2, 1): no
	// square overflows, and those that underflow are below 2^-1000 of the sum.
	// One power may be out of range, two halves are not.
	_, e := math.Frexp(top)
	half := e / 2
	k := clipping{down: math.Ldexp(1, -half), rest: math.Ldexp(1, half-e)}
	var sum float64
	if e > -1000 && e < 1000 {
		unit := math.Ldexp(1, -e)
		sum = sumSquares(update, unit, 1)
	} else {
		sum = sumSquares(update, k.down, k.rest)
	}
	scaledNorm := math.Sqrt(sum)
	k.norm = math.Ldexp(scaledNorm, e)
	limit := c * (1 - slack)
	if k.norm <= limit {
		return clipping{norm: k.norm, down: 1, rest: 1, factor: 1}, nil
	}
	// A norm of c·(1 − slack) as computed, where the true one may be as much as
	// slack/4 away.
	k.factor = limit / scaledNorm
	return k, nil
}

// clipTo writes a part of the update that k was made for to the first places of dst.
func clipTo[F Float](dst []float64, update []F, k clipping) {
	dst = dst[:len(update)]
	for i, x := range update {
		dst[i] = float64(x) * k.down * k.rest * k.factor
	}
}

// sumSquares returns Σ (x·s·t)², relative error below 2^-46. Blocks of 256 in
// four lanes add up 64 rounding errors of 2^-53; the sum over the blocks is
// compensated and adds two more however many there are.
func sumSquares[F Float](v []F, s, t float64) float64 {
	var sum, lost float64
	for len(v) > 0 {
		block := v[:min(256, len(v))]
		v = v[len(block):]
		var a0, a1, a2, a3 float64
		for len(block) >= 4 {
			x0, x1, x2, x3 := float64(block[0])*s*t, float64(block[1])*s*t, float64(block[2])*s*t,
				float64(block[3])*s*t
			a0 += x0 * x0
			a1 += x1 * x1
			a2 += x2 * x2
			a3 += x3 * x3
			block = block[4:]
		}
		for _, x := range block {
			x0 := float64(x) * s * t
			a0 += x0 * x0
		}
		next := (a0 + a1) + (a2 + a3)
		// Neumaier's compensation: what the addition loses, exactly.
		total := sum + next
		if sum >= next {
			lost += (sum - total) + next
		} else {
			lost += (next - total) + sum
		}
		sum = total
	}
	return sum + lost
}
