package observation

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/masking"
)

var snooping = attacks.Attack{
	Name:      "Snooping",
	Adversary: "curious server",
	About: "regress masked values on inputs that became known, compare coordinates, " +
		"count bytes",
	Defence: "a mask of its own for every coordinate",
	Run:     runSnooping,
}

// snooped holds what a server learns from one masked vector whose input it has come to
// know: how the masks relate to the input.
type snooped struct {
	correlation float64 // of masked values and inputs, coordinate by coordinate
	// bit is the largest correlation, in absolute value, of a bit of the inputs and the same bit of
	// masked values: low bits without a mask hardly show in that of the values.
	bit float64
	// differences is the share of coordinates for which the difference to the first
	// one, in the ring, is that of the inputs.
	differences float64
	// excess is how many standard deviations χ² of the packed bytes is above its
	// mean: 255 degrees of freedom have mean 255 and variance 510.
	excess float64
	bytes  int // of the packed vector
}

// snoop compares a masked vector with the input under the mask, both of one segment
// of the given bits.
func snoop(input, masked []uint64, bits int) (snooped, error) {
	layout := masking.Layout{{Length: len(input), Bits: bits}}
	vector, err := masking.FromValues(layout, masked)
	if err != nil {
		return snooped{}, err
	}
	ring, same := ^uint64(0)>>(64-bits), 0
	x, y := make([]float64, len(input)), make([]float64, len(input))
	for i := range input {
		x[i], y[i] = float64(input[i]), float64(masked[i])
		if i > 0 && (masked[i]-masked[0])&ring == (input[i]-input[0])&ring {
			same++
		}
	}
	packed := vector.AppendPacked(nil)
	correlation, bit := attacks.Correlation(x, y), 0.0
	for b := range inputBits {
		for i := range input {
			x[i], y[i] = float64(input[i]>>b&1), float64(masked[i]>>b&1)
		}
		bit = max(bit, math.Abs(attacks.Correlation(x, y)))
	}
	return snooped{
		correlation: correlation,
		bit:         bit,
		differences: float64(same) / float64(len(input)-1),
		excess:      byteExcess(packed),
		bytes:       len(packed),
	}, nil
}

// byteExcess returns χ² of the counts of byte values, in standard deviations above its
// mean.
func byteExcess(packed []byte) float64 {
	observed, expected := make([]float64, 256), make([]float64, 256)
	for _, b := range packed {
		observed[b]++
	}
	for i := range expected {
		expected[i] = float64(len(packed)) / 256
	}
	return (stat.ChiSquare(observed, expected) - 255) / math.Sqrt(510)
}

// inputBits is how many bits the inputs have.
const inputBits = 16

// snoopOn masks inputs of inputBits in a ring of 32, by one scalar or by the
// masks of package masking, and compares.
func snoopOn(length int, scalar bool, r *rand.Rand) (snooped, error) {
	const bits = 32
	input, masked := make([]uint64, length), make([]uint64, length)
	mask := r.Uint64N(1 << 31) // the top bit unset: the regression is not disturbed by a wrap
	for i := range input {
		input[i] = r.Uint64N(1 << inputBits)
		masked[i] = (input[i] + mask) & (1<<bits - 1)
	}
	if !scalar {
		vector, err := masking.FromValues(masking.Layout{{Length: length, Bits: bits}}, input)
		if err != nil {
			return snooped{}, err
		}
		var seed masking.Seed
		draw.Bytes(seed[:], r)
		vector.AddMask(&seed)
		masked = vector.Values()[0]
	}
	return snoop(input, masked, bits)
}

func runSnooping(_ context.Context, o attacks.Options) (*attacks.Report, error) {
	length := 1 << 16
	if o.Long {
		length <<= 4
	}
	undefended, err := snoopOn(length, true, o.Rand(partScalarMask))
	if err != nil {
		return nil, err
	}
	defended, err := snoopOn(length, false, o.Rand(partVectorMask))
	if err != nil {
		return nil, err
	}
	// Each coordinate agrees by chance with probability 2^-32.
	chance := 2 / float64(length)
	// Of 16 correlations one is as far out with a probability of 3e-8.
	limit := attacks.Sigmas / math.Sqrt(float64(length))
	return &attacks.Report{Rows: []attacks.Row{{
		Case:       "known inputs",
		Metric:     "correlation with masked values",
		Undefended: attacks.Correlated(undefended.correlation, length).Within(1-1e-9, 1),
		Defended:   attacks.Uncorrelated(defended.correlation, length),
		Note:       "undefended: one scalar masks the vector",
	}, {
		Case:       "known inputs",
		Metric:     "largest correlation of a bit",
		Undefended: attacks.Correlated(undefended.bit, length).Within(1-1e-9, 1+1e-9),
		Defended:   attacks.Correlated(defended.bit, length).Within(0, limit),
	}, {
		Case:       "unknown inputs",
		Metric:     "differences of coordinates",
		Undefended: attacks.Exactly(undefended.differences, length-1, 1),
		Defended:   attacks.Exactly(defended.differences, length-1, 0).Within(0, chance),
	}, {
		Case:   "bytes",
		Metric: "χ² above its mean, in σ",
		// Of 32 masked bits the upper half of every packed value is the same two bytes, so
		// that χ² is about as large as the number of bytes.
		Undefended: attacks.Between(undefended.excess, 1, undefended.bytes, 1000, math.Inf(1)),
		Defended:   attacks.Near(defended.excess, 1, defended.bytes, 0),
	}}}, nil
}
