package aggregation

import (
	"fmt"
	"io"
	"math"

	"github.com/hushsum/hushsum/masking"
)

// Float constrains the element type of an update and of a mean.
type Float interface{ float32 | float64 }

// Noise draws a party's share of the noise, as the samplers of package noise do.
type Noise interface {
	// Fill sets every element of dst to an independent sample.
	Fill(dst []int64) error
}

// Encode returns one party's submission in the form of [Encoder.Layout]. noise is
// the party's share, one integer for each of the layout's coordinates, drawn by
// the caller; it must be nil if NoiseStdDev is 0, and must not be otherwise, so
// that no noise is forgotten. random serves the rounding (nil: crypto/rand), with
// one byte per coordinate and try and a few more.
//
// It fails as [Encoder.Validate] does, with [ErrLength] if the update or the
// noise has the wrong length, with [ErrNotFinite], and with [ErrRandom] if random
// fails, or is so far from random that no rounding is within the bound (in all
// other cases that has a probability below 2^-100).
func (e Encoder) Encode(update []float64, noise []int64, random io.Reader) ([][]uint64, error) {
	p, err := e.coding()
	if err != nil {
		return nil, err
	}
	if err := checkUpdate(e, update); err != nil {
		return nil, err
	}
	want := 0
	if e.NoiseStdDev > 0 {
		want = e.Dimension
	}
	if len(noise) != want {
		return nil, fmt.Errorf("%w: noise for %d coordinates, want %d", ErrLength, len(noise), want)
	}
	out := make(valueRing, e.Dimension)
	if err := encode(p, out, update, random); err != nil {
		return nil, err
	}
	mask := p.ringMask()
	for i, x := range noise {
		out[i] = (out[i] + uint64(x)) & mask
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
	p, err := e.coding()
	if err != nil {
		return nil, err
	}
	if err := checkSegments(p.layout, sum); err != nil {
		return nil, err
	}
	mean := make([]float64, e.Dimension)
	if err := decode(e, p, mean, valueRing(sum[0]), survivors); err != nil {
		return nil, err
	}
	return mean, nil
}

// EncodeTo is [Encoder.Encode] for vectors too long for a second copy: it
// writes the submission to a segment of v, and draws the noise, from noise,
// as it goes. noise must be nil if e.NoiseStdDev is 0, and must not be otherwise. It
// takes some 16 MB on top of the update and v, whatever their length.
//
// It fails as Encode does, with [ErrConfig] if there is noise that is not declared, or noise is
// declared and there is none, with [ErrLength] if the segment is not that of [Encoder.Layout], and
// with the error of noise. v is zero after an error, in all segments, unless its layout was wrong.
func EncodeTo[F Float](
	v *masking.Vector, segment int, e Encoder, update []F, noise Noise, random io.Reader,
) error {
	p, err := e.coding()
	if err != nil {
		return err
	}
	out, err := p.segment(v, segment)
	if err != nil {
		return err
	}
	if err = checkUpdate(e, update); err == nil {
		err = checkNoise(e, noise)
	}
	if err == nil {
		err = encode(p, out, update, random)
	}
	if err == nil && noise != nil {
		err = addNoise(p, out, noise)
	}
	if err != nil {
		v.Erase()
	}
	return err
}

// DecodeTo is [Encoder.Decode] without a second copy: it reads the sum from a segment
// of v and writes the mean, of e.Dimension coordinates, to mean, which is zero after
// an error. It takes some 16 MB on top of them.
func DecodeTo[F Float](mean []F, e Encoder, sum *masking.Vector, segment, survivors int) error {
	p, err := e.coding()
	if err != nil {
		clear(mean)
		return err
	}
	in, err := p.segment(sum, segment)
	if err == nil && len(mean) != e.Dimension {
		err = fmt.Errorf("%w: room for %d coordinates, want %d", ErrLength, len(mean), e.Dimension)
	}
	if err == nil {
		err = decode(e, p, mean, in, survivors)
	}
	if err != nil {
		clear(mean)
	}
	return err
}

func checkUpdate[F Float](e Encoder, update []F) error {
	if len(update) != e.Dimension {
		return fmt.Errorf("%w: %d coordinates, want %d", ErrLength, len(update), e.Dimension)
	}
	if _, short := any(update).([]float32); short && e.Units > 0 {
		return fmt.Errorf("%w: a float32 loses more of a sum than Units allows for, use float64",
			ErrConfig)
	}
	return nil
}

func checkNoise(e Encoder, noise Noise) error {
	switch {
	case noise == nil && e.NoiseStdDev > 0:
		return fmt.Errorf("%w: NoiseStdDev is %v and there is no noise", ErrConfig, e.NoiseStdDev)
	case noise != nil && e.NoiseStdDev == 0:
		return fmt.Errorf("%w: there is noise, and NoiseStdDev is 0", ErrConfig)
	}
	return nil
}

// ring gives access to the elements of an encoded vector.
type ring interface {
	load(dst []uint64, from int) error
	store(from int, values []uint64) error
}

// valueRing has one element a word.
type valueRing []uint64

func (r valueRing) load(dst []uint64, from int) error {
	copy(dst, r[from:])
	return nil
}

func (r valueRing) store(from int, values []uint64) error {
	copy(r[from:], values)
	return nil
}

// segmentRing is a segment of a vector.
type segmentRing struct {
	vector  *masking.Vector
	segment int
}

func (r segmentRing) load(dst []uint64, from int) error {
	return r.vector.Load(dst, r.segment, from)
}

func (r segmentRing) store(from int, values []uint64) error {
	return r.vector.Store(r.segment, from, values)
}

// segment returns a segment of v as a ring, or [ErrLength] if it is not of p's layout.
func (p coding) segment(v *masking.Vector, segment int) (ring, error) {
	l := v.Layout()
	if segment < 0 || segment >= len(l) || l[segment] != p.layout[0] {
		return nil, fmt.Errorf("%w: segment %d is not that of the encoder, %d coordinates of %d bits",
			ErrLength, segment, p.layout[0].Length, p.layout[0].Bits)
	}
	return segmentRing{v, segment}, nil
}

// ringMask has ones for the b bits of a ring element: of an integer in two's
// complement they are the element.
func (p coding) ringMask() uint64 { return ^uint64(0) >> (64 - p.layout[0].Bits) }

// pieceLength is how many coordinates are rounded, or read from a ring, at a time.
const pieceLength = 4096

// encode clips, rotates and rounds, span by span and all again as often as the sum of
// the squares is too large.
func encode[F Float](p coding, out ring, update []F, random io.Reader) error {
	k, err := newClipping(update, p.clip)
	if err != nil {
		return err
	}
	v, piece := make([]float64, p.rotation.longest()), make([]uint64, pieceLength)
	mask := p.ringMask()
	round := func(source *byteSource) (sum uint64, err error) {
		for from, to := range p.rotation.spans() {
			span := v[:to-from]
			clipTo(span, update[from:to], k)
			p.rotation.forward(span, from)
			for len(span) > 0 {
				part := span[:min(pieceLength, len(span))]
				squares, err := roundOnce(piece, part, p.factor, source)
				if err != nil {
					return 0, err
				}
				sum += squares
				for i := range part {
					piece[i] &= mask
				}
				if err := out.store(from, piece[:len(part)]); err != nil {
					return 0, err
				}
				span, from = span[len(part):], from+len(part)
			}
		}
		return sum, nil
	}
	return roundConditionally(p.accepts, p.beta, random, round)
}

// addNoise adds a share of the noise to an encoded vector.
func addNoise(p coding, out ring, noise Noise) error {
	mask := p.ringMask()
	share, piece := make([]int64, pieceLength), make([]uint64, pieceLength)
	defer clear(share)
	for from := 0; from < p.rotation.dimension; from += pieceLength {
		n := min(pieceLength, p.rotation.dimension-from)
		if err := noise.Fill(share[:n]); err != nil {
			return fmt.Errorf("aggregation: noise: %w", err)
		}
		if err := out.load(piece[:n], from); err != nil {
			return err
		}
		for i, x := range share[:n] {
			piece[i] = (piece[i] + uint64(x)) & mask
		}
		if err := out.store(from, piece[:n]); err != nil {
			return err
		}
	}
	return nil
}

// decode writes the mean of a sum, span by span.
func decode[F Float](e Encoder, p coding, mean []F, in ring, survivors int) error {
	if err := checkSurvivors(survivors, e.Parties); err != nil {
		return err
	}
	divisor := e.Scale * float64(survivors)
	if e.Rotate != nil {
		divisor *= math.Sqrt(float64(p.rotation.block))
	}
	v, piece := make([]float64, p.rotation.longest()), make([]uint64, pieceLength)
	for from, to := range p.rotation.spans() {
		span := v[:to-from]
		for at := 0; at < len(span); at += pieceLength {
			part := span[at:min(at+pieceLength, len(span))]
			if err := in.load(piece[:len(part)], from+at); err != nil {
				return err
			}
			if err := p.integers(part, piece, from+at); err != nil {
				return err
			}
		}
		p.rotation.inverse(span, from) // exact for sums below 2^53/d, if there is one step
		for i, x := range span {
			mean[from+i] = F(x / divisor)
		}
	}
	return nil
}

// integers writes what ring elements stand for to dst. The first of them is that of
// the given coordinate.
func (p coding) integers(dst []float64, elements []uint64, from int) error {
	b := p.layout[0].Bits
	for i, x := range elements[:len(dst)] {
		if b < 64 && x>>b != 0 {
			return fmt.Errorf("%w: element %d of a ring of %d bits", ErrRing, from+i, b)
		}
		// Shift the sign bit to the top and back down, filling with it.
		integer := int64(x<<(64-b)) >> (64 - b)
		if integer < -p.bound || integer > p.bound {
			return fmt.Errorf("%w: coordinate %d is too large", ErrSum, from+i)
		}
		dst[i] = float64(integer)
	}
	return nil
}
