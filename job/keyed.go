package job

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/oneshot"
)

// keyed settles the encoding of sums whose only noise hides keys: a clip is long in units against
// that noise and its own rounding.
func (x *settling) keyed() {
	counted := x.Parties.Count
	units := math.Max(math.Exp2(leastUnits), unitsByRoot*math.Sqrt(float64(x.length())))
	if x.weights != nil { // the least of them is to be long enough
		counted = sum(x.weights)
		units = math.Max(1, units/float64(slices.Min(x.weights)))
	}
	x.encoder = &aggregation.Encoder{
		Parties:     counted,
		Dimension:   x.length(),
		Clip:        x.Privacy.Clip,
		Scale:       math.Exp2(math.Ceil(math.Log2(units))) / x.Privacy.Clip,
		Rotate:      new([32]byte),
		NoiseStdDev: keyNoise * math.Sqrt(float64(x.Parties.Count)),
		NoiseFamily: accounting.FamilyDiscreteGaussian,
	}
}

// fillKeyed is [Fill] for such sums.
func (x *settling) fillKeyed(c *oneshot.Config) error {
	t := &c.Terms
	s, err := x.encoder.Sensitivity()
	if err != nil {
		return err
	}
	t.Noise = oneshot.KeyNoise(t.MinSurvivors - t.Colluders)
	norm := int64(math.Ceil(s.L2 * (1 + 0x1p-50)))
	t.Length, t.Bits = x.encoder.Dimension, bits.Len64(uint64(norm))+1
	if x.Sum.Bounded {
		t.Norm = norm
	}
	return nil
}

// sayKeyed says what noise of keys alone protects.
func (s *Settled) sayKeyed() string {
	text := "The only noise hides the parties' keys: it protects no party and no record, sums may " +
		"reveal something about a party, and no epsilon holds"
	if s == nil || s.lanes.keyed == nil {
		return text + "."
	}
	e := s.lanes.keyed
	moves := e.NoiseStdDev * math.Sqrt(float64(e.Dimension)) / (e.Scale * e.Clip)
	return fmt.Sprintf("%s. It moves a sum of all parties by %.2g clips in L2 norm.", text, moves)
}
