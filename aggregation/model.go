package aggregation

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendModel appends the canonical bytes of a model to b: its weights in order,
// each a big-endian IEEE 754 float64, 8 bytes per weight. A server
// broadcasts it, and the parties compare digests of it. It fails with
// [ErrNotFinite], since NaN has many encodings and no use.
func AppendModel(b []byte, weights []float64) ([]byte, error) {
	for i, x := range weights {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%w: coordinate %d", ErrNotFinite, i)
		}
	}
	for _, x := range weights {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b, nil
}

// ParseModel reads a model of the given number of weights from what
// [AppendModel] wrote. It fails with [ErrLength] or [ErrNotFinite].
func ParseModel(b []byte, dimension int) ([]float64, error) {
	if dimension < 1 || len(b)%8 != 0 || len(b)/8 != dimension {
		return nil, fmt.Errorf("%w: %d bytes for a model of %d weights", ErrLength, len(b), dimension)
	}
	weights := make([]float64, dimension)
	for i := range weights {
		weights[i] = math.Float64frombits(binary.BigEndian.Uint64(b[8*i:]))
		if math.IsNaN(weights[i]) || math.IsInf(weights[i], 0) {
			return nil, fmt.Errorf("%w: coordinate %d", ErrNotFinite, i)
		}
	}
	return weights, nil
}
