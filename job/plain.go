package job

import (
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/masking"
)

// This file has fixed-point vectors that are too long to have a second copy of.

// plainBlock is how many coordinates are in memory as integers at once.
const plainBlock = 4096

// encodePlain writes a vector without noise, clipped where a clip is declared. v is zero after an
// error.
func encodePlain[F aggregation.Float](v *masking.Vector, s *Settled, vector []F) (err error) {
	defer func() {
		if err != nil {
			v.Erase()
		}
	}()
	if n := s.lanes.shape.Dimension; len(vector) != n {
		return fmt.Errorf("%w: %d coordinates, want %d", aggregation.ErrLength, len(vector), n)
	}
	number := func(x F) float64 { return float64(x) }
	if clip := s.job.Privacy.Clip; clip > 0 {
		if number, err = aggregation.Clipper(vector, clip); err != nil {
			return err
		}
	}
	o := &s.lanes.shape
	point := aggregation.FixedPoint{Range: o.Range, FractionBits: o.FractionBits}
	block := make([]float64, plainBlock)
	for from := 0; from < len(vector); from += plainBlock {
		part := block[:min(plainBlock, len(vector)-from)]
		for i := range part {
			part[i] = number(vector[from+i])
		}
		ring, err := point.Encode(part, s.layout[0].Bits)
		if err != nil {
			return err
		}
		if err := v.Store(0, from, ring); err != nil {
			return err
		}
	}
	return nil
}

// decodePlain writes the mean of vectors without noise, zero after an error.
func decodePlain[F aggregation.Float](
	mean []F, s *Settled, sum *masking.Vector, parties int,
) (err error) {
	defer func() {
		if err != nil {
			clear(mean)
		}
	}()
	o := s.lanes.shape
	ring := make([]uint64, plainBlock)
	for from := 0; from < len(mean); from += plainBlock {
		part := ring[:min(plainBlock, len(mean)-from)]
		if err := sum.Load(part, 0, from); err != nil {
			return err
		}
		// A block is a vector of its own: the mean checks what that many parties can make.
		lane := aggregation.Mean{Parties: o.Parties, Dimension: len(part), Range: o.Range,
			FractionBits: o.FractionBits}
		block, err := lane.Decode([][]uint64{part}, parties)
		if err != nil {
			return err
		}
		for i, x := range block {
			mean[from+i] = F(x)
		}
	}
	return nil
}
