package job

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
)

// keyed settles the encoding of sums whose only noise is what hides keys: a clip is long in units
// against that noise and its own rounding.
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
	// A party's share deviates by 6.4.
	honest := int64(t.MinSurvivors - t.Colluders)
	if t.Noise, err = noise.DiscreteGaussian(big.NewRat(1024*honest, 25)); err != nil {
		return err
	}
	norm := int64(math.Ceil(s.L2 * (1 + 0x1p-50)))
	t.Length, t.Bits = x.encoder.Dimension, bits.Len64(uint64(norm))+1
	if x.Sum.Bounded {
		t.Norm = norm
	}
	return nil
}

// sayKeyed says what noise of keys alone is and is not.
func (s *Settled) sayKeyed() string {
	text := "The only noise is what hides the parties' keys: it protects no party and no record, sums may " +
		"reveal something about a party, and no epsilon holds"
	if s == nil || s.lanes.keyed == nil {
		return text + "."
	}
	e := s.lanes.keyed
	return text + ". It moves a sum of all parties by " +
		strconv.FormatFloat(e.NoiseStdDev*math.Sqrt(float64(e.Dimension))/(e.Scale*e.Clip), 'g', 2, 64) + " clips in L2 norm."
}
