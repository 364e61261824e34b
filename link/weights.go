package link

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/hushsum/hushsum/aggregation"
)

// Weights are the weights of a model, held as float32 or float64. In either case, on links, in
// stores and under hashes they are binary64, the bytes of aggregation.AppendModel.
type Weights interface {
	// WriteTo writes the bytes, in pieces. It fails with aggregation.ErrNotFinite.
	io.WriterTo
	// Count returns how many there are.
	Count() int
	// take gives weights, from the given one on, the values of as many eight bytes, rounded to
	// the nearest that they can hold. It fails with [ErrFrame] for what is not a number then.
	take(from int, words []byte) error
}

// Floats are weights held as F.
type Floats[F aggregation.Float] []F

// FloatsOf returns weights as the numbers that they are held as, nil if those are others.
func FloatsOf[F aggregation.Float](w Weights) []F {
	v, _ := w.(Floats[F])
	return v
}

// pieceWeights is how many weights are converted at a time, to 64 KiB.
const pieceWeights = 8 << 10

// Count returns how many there are.
func (v Floats[F]) Count() int { return len(v) }

// WriteTo writes their bytes, in pieces. It fails with aggregation.ErrNotFinite.
func (v Floats[F]) WriteTo(w io.Writer) (written int64, err error) {
	wide := make([]float64, min(len(v), pieceWeights))
	piece := make([]byte, 0, 8*len(wide))
	for len(v) > 0 {
		n := min(len(v), len(wide))
		for i, x := range v[:n] {
			wide[i] = float64(x)
		}
		if piece, err = aggregation.AppendModel(piece[:0], wide[:n]); err != nil {
			return written, err
		}
		sent, err := w.Write(piece)
		if written += int64(sent); err != nil {
			return written, err
		}
		v = v[n:]
	}
	return written, nil
}

func (v Floats[F]) take(from int, words []byte) error {
	to := v[from:][:len(words)/8]
	for i := range to {
		to[i] = F(math.Float64frombits(binary.BigEndian.Uint64(words[8*i:])))
		if x := float64(to[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: weight %d is not a number, or too large for %T", ErrFrame, from+i, to[i])
		}
	}
	return nil
}

// weightsReader takes the bytes of as many weights as there is room for.
type weightsReader struct {
	weights Weights
	done    int
	rest    []byte // of the next weight
}

func newWeightsReader(room Weights) *weightsReader {
	return &weightsReader{weights: room, rest: make([]byte, 0, 8)}
}

// Write takes the next bytes. It fails with [ErrFrame] if they are too many or no weights.
func (r *weightsReader) Write(b []byte) (int, error) {
	taken, length := len(b), r.weights.Count()
	if len(r.rest)+len(b) > 8*(length-r.done) {
		return 0, fmt.Errorf("%w: a model of more than %d weights", ErrFrame, length)
	}
	if len(r.rest) > 0 {
		n := min(8-len(r.rest), len(b))
		r.rest, b = append(r.rest, b[:n]...), b[n:]
		if len(r.rest) < 8 {
			return taken, nil
		}
		if err := r.take(r.rest); err != nil {
			return 0, err
		}
		r.rest = r.rest[:0]
	}
	whole := len(b) / 8 * 8
	if err := r.take(b[:whole]); err != nil {
		return 0, err
	}
	r.rest = append(r.rest, b[whole:]...)
	return taken, nil
}

func (r *weightsReader) take(words []byte) error {
	err := r.weights.take(r.done, words)
	r.done += len(words) / 8
	return err
}

// end returns the weights, if all have come.
func (r *weightsReader) end() (Weights, error) {
	if length := r.weights.Count(); r.done < length || len(r.rest) > 0 {
		return nil, fmt.Errorf("%w: %d weights of %d", ErrFrame, r.done, length)
	}
	return r.weights, nil
}

// ReadWeights reads as many weights as there is room for; nothing may follow them. It fails with
// [ErrFrame] and errors of from.
func ReadWeights(from io.Reader, room Weights) error {
	r := newWeightsReader(room)
	if _, err := io.Copy(r, from); err != nil {
		return err
	}
	_, err := r.end()
	return err
}
