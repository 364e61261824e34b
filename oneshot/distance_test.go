package oneshot

import (
	"math"
	"math/big"
	"testing"

	"github.com/hushsum/hushsum/noise"
)

// All that honest dealers draw counts, and silence of each where norms are proved.
func TestDistance(t *testing.T) {
	law, err := noise.DiscreteGaussian(big.NewRat(1e8, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, terms := range []Terms{
		{Length: 5, Bits: 12, MinSurvivors: 10, Faults: 1, Noise: law},
		{Length: 5, Bits: 12, MinSurvivors: 10, Faults: 1, Noise: law, Norm: 1000, Colluders: 2},
		{Length: 900, Bits: 12, MinSurvivors: 1000, Faults: 3},
	} {
		d, err := derive(1000, 13, &terms)
		if err != nil {
			t.Fatal(err)
		}
		drawn := 1013 * float64(degree+terms.Length+d.Spare) * noise.MaxTableDistance
		if d.Spare > besides || Distance(1000, 13, terms.Length, false) < drawn {
			t.Errorf("%+v: %d spare coordinates, distance %g of %g", terms, d.Spare,
				Distance(1000, 13, terms.Length, false), drawn)
		}
	}
	if got := Distance(1000, 13, 5, true); !(got >= 1013*math.Exp2(-57) && got < 1014*0x1p-57) {
		t.Errorf("with proofs %g", got)
	}
}
