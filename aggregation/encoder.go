package aggregation

import (
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
)

// Limits of an Encoder: the norm in integer units, Clip·Scale, and σ.
const (
	minUnits  = 1
	maxUnits  = 1 << 30
	maxStdDev = 1 << 60
)

// Encoder takes an update to integers of bounded norm, with noise, in a ring,
// and the sum of all parties back to their mean (Kairouz, Liu, Steinke 2021,
// Algorithms 1 and 2): clip to L2 norm Clip, rotate, multiply by Scale, round
// stochastically on the condition that the norm stays below a bound, add noise.
// That bound, [Encoder.Sensitivity], is what privacy accounting needs.
//
// All parties and whoever decodes must use the same values. Rounding is always
// stochastic: to the nearest, the errors of the parties would not average out,
// and the bound would not be the one stated. [FixedPoint] rounds to the nearest
// and bounds no norm, so noise on top of it protects nothing that is calibrated:
// it is for sums without differential privacy.
//
// # Rotation
//
// With Rotate, the update is padded with zeros to a power of two d′ and
// multiplied by H·D/√d′: D has signs from the seed, H is the Walsh–Hadamard
// matrix in natural order. All coordinates become about equally large, and a
// ring of fewer bits does. The seed is public but must be drawn independently of
// the updates, best anew for each round. Sign k is −1 if bit k of SHA-256(
// "hushsum/1 rotation" ‖ seed ‖ 0) ‖ SHA-256(… ‖ 1) ‖ … is 1, the numbers being
// 32-bit big-endian and the bits counted from the lowest of the first byte.
//
// # Wrapping
//
// The sum of Parties vectors is in (−2^(b−1), 2^(b−1)) in all coordinates at once
// with probability 1 − 2^-40 at least, over noise of standard deviation
// NoiseStdDev and the signs of the rotation; without either it is certain.
// No coordinate of a party is above M = min{⌊Δ₂⌋, ⌈Clip·Scale⌉}, so that the sum
// is at most Parties·M. With a rotation it is also at most
// Parties·(Clip·Scale·√(2·ln(2^42·d′)/d′) + 1) but for 2^-41 (Hoeffding), and
// the smaller bound counts. To that comes the tail of the noise, 2^-41 over all
// d′ coordinates. A wrap harms accuracy, never privacy.
//
// # Bias
//
// A coordinate rounds up with exactly the probability of its fraction, without
// bias. The condition brings some in: the mean of an encoded vector is within
// β/(1−β)·√d′ of the vector that was rounded, in L2 norm and integer units,
// because unconditional rounding has no bias and is refused with probability β at
// most. A smaller Beta means less of it and a larger Δ₂. Clipping is a bias of its
// own.
type Encoder struct {
	Parties   int     // most parties in a sum, at least 1
	Dimension int     // coordinates of an update, at least 1
	Clip      float64 // L2 norm that an update is clipped to, 2^-500 to 2^500
	Scale     float64 // integers per 1.0; Clip·Scale must be 1 to 2^30
	Bits      int     // b, 1 to 64; 0: the fewest that fit

	Beta   float64   // most of the roundings that are refused, up to 0.99; 0: DefaultBeta
	Rotate *[32]byte // seed of the rotation, public; nil: no rotation

	// The noise in the sum of Parties encoded vectors: its standard deviation,
	// in integer units and not of one party's share but of all together, and its
	// family. 0: no noise.
	NoiseStdDev float64
	NoiseFamily accounting.Family // 0: any of them, with room for the widest tail
}

// plan is what follows from the fields of an Encoder.
type plan struct {
	padded int     // d′
	factor float64 // what clipped and rotated coordinates are multiplied by
	beta   float64
	limit  uint64 // Δ₂²
	layout masking.Layout
	bound  int64 // largest magnitude in a sum, but for 2^-40
}

func (e Encoder) plan() (plan, error) {
	var p plan
	lane := noisyLane{e.Parties, e.Dimension, e.Bits, e.NoiseStdDev, e.NoiseFamily}
	if err := lane.check(); err != nil {
		return p, err
	}
	if !(e.Beta >= 0 && e.Beta <= maxBeta) {
		return p, fmt.Errorf("%w: Beta is %v, want 0 to %v", ErrConfig, e.Beta, maxBeta)
	}
	if err := checkClip(e.Clip); err != nil {
		return p, err
	}
	units := e.Clip * e.Scale
	if math.FMA(e.Clip, e.Scale, -units) > 0 {
		units = math.Nextafter(units, math.Inf(1)) // the product was rounded down
	}
	if !(units >= minUnits && units <= maxUnits) {
		return p, fmt.Errorf("%w: Clip·Scale is %v, want %d to 2^30 integer units", ErrConfig, units, minUnits)
	}

	p.padded, p.factor, p.beta = e.Dimension, e.Scale, e.Beta
	if e.Rotate != nil {
		p.padded = paddedLength(e.Dimension)
		p.factor = e.Scale / math.Sqrt(float64(p.padded))
	}
	if p.beta == 0 {
		p.beta = DefaultBeta
	}
	p.limit = integerNormBound(units, p.padded, p.beta)
	lane.dimension = p.padded
	var err error
	p.layout, p.bound, err = lane.fit(e.clearBound(units, p.limit, lane))
	return p, err
}

// clearBound is the bound that Encoder describes under Wrapping, without noise, or
// 2^62 if it is more.
func (e Encoder) clearBound(units float64, limit uint64, lane noisyLane) uint64 {
	const tooMuch = 1 << 62
	peak := min(productRoot(limit, 1), uint64(math.Ceil(units)))
	hi, sum := bits.Mul64(peak, uint64(e.Parties))
	if hi != 0 || sum > tooMuch {
		sum = tooMuch
	}
	if e.Rotate != nil {
		spread := units*math.Sqrt(2*lane.tailExponent()/float64(lane.dimension)) + 1
		if rotated := float64(e.Parties) * spread * guard; rotated < float64(sum) {
			sum = uint64(rotated) // integers below it are at most its floor
		}
	}
	return sum
}

// Validate returns [ErrConfig] if a field is outside its range, and [ErrBits] if
// a sum and its noise could leave the ring with a probability above 2^-40.
func (e Encoder) Validate() error {
	_, err := e.plan()
	return err
}

// Layout returns the one segment of an encoded vector: Dimension coordinates, or
// with Rotate the next power of two, of Bits bits, or the fewest that fit if
// that is 0. It fails as [Encoder.Validate] does.
func (e Encoder) Layout() (masking.Layout, error) {
	p, err := e.plan()
	return p.layout, err
}

// Sensitivity returns the bounds on a party's encoded vector, before noise. It
// fails as [Encoder.Validate] does.
func (e Encoder) Sensitivity() (accounting.Sensitivity, error) {
	p, err := e.plan()
	if err != nil {
		return accounting.Sensitivity{}, err
	}
	return p.sensitivity(), nil
}

func (p plan) sensitivity() accounting.Sensitivity {
	l1 := productRoot(p.limit, uint64(p.padded))
	return accounting.Sensitivity{
		L2:        rootUp(p.limit),
		L1:        float64(min(l1, p.limit)), // integers: |x| ≤ x²
		Dimension: p.padded,
	}
}

// rootUp is √x, the next float64 or so above it unless it is an integer.
func rootUp(x uint64) float64 {
	if r := productRoot(x, 1); r*r == x {
		return float64(r)
	}
	up := math.Inf(1)
	// One step for the square root, one for the conversion of x.
	return math.Nextafter(math.Nextafter(math.Sqrt(float64(x)), up), up)
}

// Encode returns one party's submission in the form of [Encoder.Layout]. noise is
// the party's share, one integer for each of the layout's coordinates, drawn by
// the caller; it must be nil if NoiseStdDev is 0, and must not be otherwise, so
// that no noise is forgotten. random serves the rounding (nil: crypto/rand), with
// one byte per coordinate and try and few more.
//
// It fails as [Encoder.Validate] does, with [ErrLength] if the update or the
// noise has the wrong length, with [ErrNotFinite], and with [ErrRandom] if random
// fails, or is so far from random that no rounding is within the bound (in all
// other cases that has a probability below 2^-100).
func (e Encoder) Encode(update []float64, noise []int64, random io.Reader) ([][]uint64, error) {
	p, err := e.plan()
	if err != nil {
		return nil, err
	}
	if len(update) != e.Dimension {
		return nil, fmt.Errorf("%w: %d coordinates, want %d", ErrLength, len(update), e.Dimension)
	}
	want := 0
	if e.NoiseStdDev > 0 {
		want = p.padded
	}
	if len(noise) != want {
		return nil, fmt.Errorf("%w: noise for %d coordinates, want %d", ErrLength, len(noise), want)
	}

	v := make([]float64, p.padded)
	if _, err := clipInto(v, update, e.Clip); err != nil {
		return nil, err
	}
	if e.Rotate != nil {
		flipSigns(v[:e.Dimension], e.Rotate) // the rest is 0
		hadamard(v)
	}
	out := make([]uint64, p.padded)
	if err := roundConditionally(out, v, p.factor, p.limit, p.beta, random); err != nil {
		return nil, err
	}
	mask := ^uint64(0) >> (64 - p.layout[0].Bits)
	for i, x := range noise {
		out[i] += uint64(x)
	}
	for i := range out { // two's complement: the low b bits are the ring element
		out[i] &= mask
	}
	return [][]uint64{out}, nil
}

// Decode turns a sum of encoded vectors, in the form of [Encoder.Layout], into
// the mean of the given number of survivors, those whose vectors are in the sum;
// with survivors 1 it is the sum itself. [Integers] of the sum is the sum of the
// rounded inputs and the noise bit for bit, unless it wrapped; Decode divides
// that by Scale and the survivors and undoes the rotation in float64.
//
// It fails as [Encoder.Validate] does, with [ErrConfig] if survivors is not
// between 1 and Parties, with [ErrLength], with [ErrRing], and with [ErrSum] if a
// coordinate is further out than the noise ever is, with the probability given
// for wrapping: a party's masks were wrong, or it used other parameters.
func (e Encoder) Decode(sum [][]uint64, survivors int) ([]float64, error) {
	p, err := e.plan()
	if err != nil {
		return nil, err
	}
	if err := checkSurvivors(survivors, e.Parties); err != nil {
		return nil, err
	}
	integers, err := decodeSum(p.layout, sum, p.bound)
	if err != nil {
		return nil, err
	}
	v := make([]float64, p.padded)
	for i, x := range integers {
		v[i] = float64(x)
	}
	divisor := e.Scale * float64(survivors)
	if e.Rotate != nil {
		hadamard(v) // exact for sums below 2^53/d′
		divisor *= math.Sqrt(float64(p.padded))
	}
	v = v[:e.Dimension:e.Dimension]
	for i := range v {
		v[i] /= divisor
	}
	if e.Rotate != nil {
		flipSigns(v, e.Rotate)
	}
	return v, nil
}
