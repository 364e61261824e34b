package aggregation

import (
	"fmt"
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

// MaxUnits is the most Units of an [Encoder].
const MaxUnits = 1 << 20

// Encoder takes an update to integers of bounded norm, with noise, in a ring,
// and the sum of all parties back to their mean (Kairouz, Liu, Steinke 2021,
// Algorithms 1 and 2): clip to L2 norm Clip, rotate, multiply by Scale, round
// stochastically on the condition that the norm stays below a bound, add noise.
// That bound, [Encoder.Sensitivity], enters privacy accounting.
//
// All parties and the decoder must use the same values. Rounding is always stochastic: to the
// nearest, the errors of the parties would not average out, and the bound would not be the one
// stated. [FixedPoint] rounds to the nearest and bounds no norm, so noise added to its sums has no
// calibrated guarantee: use it for sums without differential privacy.
//
// # Rotation
//
// With Rotate, the update is multiplied by a random orthogonal matrix. All coordinates become about
// equally large, so that a ring of fewer bits is enough. The seed is public but must be drawn
// independently of the updates, best anew for each round.
//
// The matrix mixes blocks of L coordinates, L being the largest power of two that is
// at most d = Dimension and 2^20. Each block from the first on is multiplied by
// H·D/√L: D has signs, H is the Walsh–Hadamard matrix in natural order. If d is not
// a multiple of L, the last L coordinates are then multiplied by H·D′/√L, whether
// they are in a block already or not. Both steps are orthogonal, so that norms, and
// with them the sensitivity, are unchanged, and nothing is padded: d numbers go
// in and d come out.
//
// The sign of coordinate k in D is −1 if bit k of SHA-256("hushsum/1 rotation signs" ‖
// seed ‖ 0) ‖ SHA-256(… ‖ 1) ‖ … is 1, the numbers being 32-bit big-endian and the
// bits counted from the lowest of the first byte; those in D′ are the next L bits
// from a multiple of 256 on, the first that is at least d.
//
// # Wrapping
//
// The sum of Parties vectors is in (−2^(b−1), 2^(b−1)) in all coordinates at once with probability
// 1 − 2^-40 at least, over noise of standard deviation NoiseStdDev and the signs of the rotation;
// without either it is certain. No coordinate of a party is above M = min{⌊Δ₂⌋, ⌈Clip·Scale⌉}, so
// that the sum is at most Parties·M. With a rotation it is also at most
// Parties·(Clip·Scale·√(2·ln(2^42·d)/L) + 1) but for 2^-41, and the smaller bound counts: whatever
// signs the first step had, the last step that a coordinate goes through makes it the sum of L
// numbers with signs of their own, over √L, and the squares of those numbers sum to at most
// (Parties·Clip·Scale)² (Hoeffding). The tail of the noise adds 2^-41 over all coordinates. A wrap
// harms accuracy, never privacy.
//
// One block for all d would give 1/√d in place of 1/√L: a factor below √2 up to
// 2,000,000 coordinates, and 4.9 at 25,000,000. It takes bits where the noise does
// not, that is, if Parties·√(93/L), 1/106 of Parties for the longest blocks, is more
// than some nine times NoiseStdDev/(Clip·Scale).
//
// # Units of a sum
//
// A condition on the rounding of a sum would bound the sum, but not how much one of its vectors
// changes it: the two neighbours are rounded to different corners. With Units there is no such
// condition. Every coordinate goes up with the probability of its fraction, whatever happens to the
// others, which is the law of ⌊x + u⌋ for u uniform in [0, 1); and for each u, a vector g that is
// added moves a coordinate by ⌊g⌋ or ⌈g⌉. So it moves the encoded update by at most Clip·Scale +
// √d, and no mixture over u tells more than one u. Of almost all u it moves the update by less, as
// rounding lengthens a vector: see [Encoder.Overlong]. A little is added for the float64 arithmetic
// by which the sum was made: see unitSquare. The update is clipped only to the norm of all Units
// together.
//
// # Bias
//
// A coordinate rounds up with exactly the probability of its fraction, without bias. The condition
// introduces some bias: the mean of an encoded vector is within β/(1−β)·√d of the vector that was
// rounded, in L2 norm and integer units, because unconditional rounding has no bias and is refused
// with probability β at most. A smaller Beta means less bias and a larger Δ₂. Clipping has a bias
// of its own.
type Encoder struct {
	Parties   int     // most parties in a sum, at least 1
	Dimension int     // coordinates of an update, at least 1
	Clip      float64 // L2 norm that an update is clipped to, 2^-500 to 2^500
	// Units, above 0, is the most vectors of norm Clip each that an update is the sum of, up to
	// MaxUnits; Sensitivity is then the sensitivity to one of these vectors, and not to the update:
	// see Units of a sum.
	Units int
	Scale float64 // integers per 1.0; Clip·Scale must be 1 to 2^30
	Bits  int     // b, 1 to 64; 0: the fewest that fit

	Beta   float64   // most of the roundings that are refused, up to 0.99; 0: e^(−1/2)
	Rotate *[32]byte // seed of the rotation, public; nil: no rotation

	// The noise in the sum of Parties encoded vectors: its standard deviation,
	// in integer units and not of one party's share but of all together, and its
	// family. 0: no noise.
	NoiseStdDev float64
	NoiseFamily accounting.Family // 0: any of them, with room for the widest tail
}

// coding holds the numbers that an Encoder works with, all from its fields.
type coding struct {
	rotation rotation
	clip     float64 // the norm of an update
	factor   float64 // what clipped and rotated coordinates are multiplied by
	beta     float64
	limit    uint64 // Δ₂²
	rare     bool   // limit is exceeded with probability overlong
	attained float64
	accepts  uint64 // most of the squared norm of what is rounded
	layout   masking.Layout
	bound    int64 // largest magnitude in a sum, but for 2^-40
}

func (e Encoder) coding() (coding, error) {
	var p coding
	lane := noisyLane{e.Parties, e.Dimension, e.Bits, e.NoiseStdDev, e.NoiseFamily}
	if err := lane.check(); err != nil {
		return coding{}, err
	}
	if !(e.Beta >= 0 && e.Beta <= maxBeta) {
		return coding{}, fmt.Errorf("%w: Beta is %v, want 0 to %v", ErrConfig, e.Beta, maxBeta)
	}
	if err := checkClip(e.Clip); err != nil {
		return coding{}, err
	}
	if e.Units < 0 || e.Units > MaxUnits {
		return coding{}, fmt.Errorf("%w: Units is %d, want 0 to %d", ErrConfig, e.Units, MaxUnits)
	}
	units := e.Clip * e.Scale
	if math.FMA(e.Clip, e.Scale, -units) > 0 {
		units = math.Nextafter(units, math.Inf(1)) // the product was rounded down
	}
	if !(units >= minUnits && units <= maxUnits) {
		return coding{}, fmt.Errorf("%w: Clip·Scale is %v, want %d to 2^30 integer units", ErrConfig,
			units, minUnits)
	}

	p.rotation = newRotation(e.Rotate, e.Dimension)
	p.clip, p.factor, p.beta = e.Clip, e.Scale, e.Beta
	if e.Rotate != nil {
		p.factor /= math.Sqrt(float64(p.rotation.block))
	}
	if p.beta == 0 {
		p.beta = defaultBeta
	}
	p.attained = units * (1 - aside)
	p.limit = integerNormBound(units, e.Dimension, p.beta)
	p.accepts = p.limit
	if e.Units > 0 {
		square, rare := unitSquare(units, e.Units, e.Dimension)
		p.limit, p.rare, p.accepts = uint64(square*guard), rare, math.MaxUint64
		p.clip = e.Clip * float64(e.Units)
		units *= float64(e.Units)
	}
	var err error
	if p.layout, p.bound, err = lane.fit(e.clearBound(units, p, lane)); err != nil {
		return coding{}, err
	}
	return p, nil
}

// clearBound is the bound that Encoder describes under Wrapping, without noise, or
// 2^62 if it is more.
func (e Encoder) clearBound(units float64, p coding, lane noisyLane) uint64 {
	const tooMuch = 1 << 62
	// What is clipped stays below units by slack/4 at least: see slack.
	peak := uint64(math.Ceil(units * (1 - slack/4)))
	if e.Units == 0 {
		peak = min(productRoot(p.limit, 1), peak)
	}
	hi, sum := bits.Mul64(peak, uint64(e.Parties))
	if hi != 0 || sum > tooMuch {
		sum = tooMuch
	}
	if e.Rotate != nil {
		spread := units*math.Sqrt(2*lane.tailExponent()/float64(p.rotation.block)) + 1
		if rotated := float64(e.Parties) * spread * guard; rotated < float64(sum) {
			sum = uint64(rotated) // integers below it are at most its floor
		}
	}
	return sum
}

// Validate returns [ErrConfig] if a field is outside its range, and [ErrBits] if
// a sum and its noise could leave the ring with a probability above 2^-40.
func (e Encoder) Validate() error {
	_, err := e.coding()
	return err
}

// Layout returns the one segment of an encoded vector: Dimension coordinates of Bits
// bits, or the fewest that fit if that is 0. It fails as [Encoder.Validate] does.
func (e Encoder) Layout() (masking.Layout, error) {
	p, err := e.coding()
	return p.layout, err
}

// Sensitivity returns the bounds on a party's encoded vector, before noise. It
// fails as [Encoder.Validate] does.
func (e Encoder) Sensitivity() (accounting.Sensitivity, error) {
	p, err := e.coding()
	if err != nil {
		return accounting.Sensitivity{}, err
	}
	return p.sensitivity(), nil
}

// Overlong bounds the probability, over its dither, that the rounding of one submission lets a
// vector move the submission by more than [Encoder.Sensitivity]: 0 without Units, and wherever
// Clip·Scale + √d is less than the bound
//
//	√(c² + d/4 + √(2·ln(1/p))·(c + √d/2)), c = Clip·Scale,
//
// that holds with probability 1 − p (docs/privacy-proofs.md). It fails as [Encoder.Validate] does.
func (e Encoder) Overlong() (float64, error) {
	p, err := e.coding()
	if err != nil || !p.rare {
		return 0, err
	}
	return overlong, nil
}

// Attained returns an L2 norm in integer units such that to every vector of integers up to it some
// update is rounded, alone in its sum and whatever the dither: the rotation undone, each
// of the integers that are not 0 a little larger, so that no arithmetic leaves it below. The norm
// is Clip·Scale less a part in 2^31. It fails as [Encoder.Validate] does.
func (e Encoder) Attained() (float64, error) {
	p, err := e.coding()
	return p.attained, err
}

// aside leaves room for what makes integers a little larger: see Attained.
const aside = 0x1p-31

func (p coding) sensitivity() accounting.Sensitivity {
	d := p.rotation.dimension
	l1 := productRoot(p.limit, uint64(d))
	return accounting.Sensitivity{
		L2:        rootUp(p.limit),
		L1:        float64(min(l1, p.limit)), // integers: |x| ≤ x²
		Dimension: d,
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
