package falsify

import (
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

// source gives noise and dithers from streams of their own, so that two vectors have equal shares
// of the noise and, coordinate by coordinate, equal dithers: who reads is found in the stack.
type source struct{ noise, dither io.Reader }

// sourceOf is a source of seeds.
func sourceOf(noise, dither uint64) source {
	stream := func(seed uint64, of byte) io.Reader {
		var key [32]byte
		key[0] = of
		for i := range 8 {
			key[1+i] = byte(seed >> (8 * i))
		}
		return rand.NewChaCha8(key)
	}
	return source{stream(noise, 1), stream(dither, 2)}
}

func (s source) Read(b []byte) (int, error) {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		switch {
		case strings.Contains(frame.Function, "byteSource).below"):
			// Of those coordinates whose first byte decides nothing, which are others in another
			// vector: each has the same further bytes.
			for i := range b {
				b[i] = 0x5a
			}
			return len(b), nil
		case strings.Contains(frame.Function, "/aggregation."):
			return s.dither.Read(b)
		case strings.Contains(frame.Function, "/noise."):
			return s.noise.Read(b)
		case !more:
			return 0, fmt.Errorf("falsify: nobody known reads randomness, but %s", frame.Function)
		}
	}
}

// moved has by how much a unit moves what leaves: integers, by lane.
type moved [][]int64

// minus subtracts one submission from another, in their rings.
func minus(a, b [][]uint64, layout masking.Layout) (out moved) {
	for s, segment := range layout {
		lane, shift := make([]int64, segment.Length), 64-segment.Bits
		for i := range lane {
			lane[i] = int64((a[s][i]-b[s][i])<<shift) >> shift
		}
		out = append(out, lane)
	}
	return out
}

// squares adds up the squares of a lane.
func squares(v []int64) *big.Int {
	sum, one := new(big.Int), new(big.Int)
	for _, x := range v {
		sum.Add(sum, one.Mul(one.SetInt64(x), one))
	}
	return sum
}

func magnitudes(v []int64) *big.Int {
	sum, one := new(big.Int), new(big.Int)
	for _, x := range v {
		sum.Add(sum, one.Abs(one.SetInt64(x)))
	}
	return sum
}

// charged are the bounds on each lane of a round that the accountant has.
func charged(r accounting.Round) (out []accounting.Sensitivity) {
	out = append(out, r.Update.Sensitivity)
	if r.Signs != nil {
		out = append(out, r.Signs.Sensitivity)
	}
	return out
}

// exceeds compares the square of an L2 norm with a bound, exactly.
func exceeds(square *big.Int, norm float64) bool {
	bound := new(big.Float).SetPrec(300).SetFloat64(norm)
	bound.Mul(bound, bound)
	return new(big.Float).SetPrec(300).SetInt(square).Cmp(bound) > 0
}

// within holds what a unit moved against what is charged for.
func within(m moved, r accounting.Round) error {
	bounds := charged(r)
	if len(m) != len(bounds) {
		return fmt.Errorf("%d lanes leave, and %d are charged", len(m), len(bounds))
	}
	for lane, s := range bounds {
		if exceeds(squares(m[lane]), s.L2) {
			return fmt.Errorf("a unit moves lane %d by √%v, and %v is charged", lane, squares(m[lane]), s.L2)
		}
		if s.L1 > 0 && new(big.Float).SetInt(magnitudes(m[lane])).Cmp(big.NewFloat(s.L1)) > 0 {
			return fmt.Errorf("a unit moves lane %d by %v in L1 norm, and %v is charged", lane,
				magnitudes(m[lane]), s.L1)
		}
		if r.Family != accounting.FamilyDiscreteLaplace && r.Messages == 0 &&
			len(m[lane]) != s.Dimension {
			return fmt.Errorf("lane %d has %d coordinates, and %d are charged", lane, len(m[lane]),
				s.Dimension)
		}
	}
	return nil
}

// blank makes the submission of a party that has nothing.
func blank(s *job.Settled, random io.Reader) ([][]uint64, error) {
	v, err := masking.NewVector(s.Layout())
	if err == nil {
		err = s.Blank(v, random)
	}
	if err != nil {
		return nil, err
	}
	return v.Values(), nil
}

// encodeTo makes a submission of a program's vector in place.
func encodeTo[F float32 | float64](
	s *job.Settled, broadcast [32]byte, vector []F, random io.Reader,
) ([][]uint64, error) {
	v, err := masking.NewVector(s.Layout())
	if err == nil {
		err = job.EncodeTo(v, s, broadcast, job.Update[F]{Vector: vector, Samples: 1}, random)
	}
	if err != nil {
		return nil, err
	}
	return v.Values(), nil
}
