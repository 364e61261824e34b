package learning

import (
	"math"
	"math/rand/v2"

	"github.com/hushsum/hushsum/internal/fault"
)

// censusFeatures is the number of columns that Census makes, the constant one
// included.
const censusFeatures = 40

// maxCensusRows bounds what Census will allocate (1.3 GB of features).
const maxCensusRows = 1 << 22

// Columns of Census: six numbers, then the one-hot groups, then the constant.
const (
	censusAge = iota
	censusEducation
	censusHours
	censusGain
	censusLoss
	censusNoise // takes no part in the label, like fnlwgt in Adult
	censusNumeric
)

const (
	censusWork       = censusNumeric         // 5 kinds of employer
	censusMarital    = censusWork + 5        // 5: married, never married, divorced, separated, widowed
	censusOccupation = censusMarital + 5     // 10, roughly by the schooling they ask for
	censusHousehold  = censusOccupation + 10 // 4 positions in the household
	censusRegion     = censusHousehold + 4   // 7 regions
	censusSex        = censusRegion + 7      // 2
	censusConstant   = censusSex + 2
)

// censusWeights is the weight vector behind every label. Rows have norm 1 before
// the constant is added, so the weights are larger than those of a model on
// unscaled columns would be.
var censusWeights = [censusFeatures]float64{
	censusAge: 4, censusEducation: 10, censusHours: 5, censusGain: 14, censusLoss: 4, censusNoise: 0,

	censusWork: 0.4, 0.9, -0.6, 0.2, -0.9,
	censusMarital: 5, -2.6, -1.5, -1.8, -1.2,
	censusOccupation: -3, -2.2, -1.6, -0.9, -0.3, 0.4, 0.9, 1.6, 2.3, 2.8,
	censusHousehold: 1.2, -0.6, -1.6, 0.4,
	censusRegion: 0.6, -0.5, 0.2, 0, -0.2, 0.4, -0.7,
	censusSex: 0.7, -0.7,
	censusConstant: -6.3,
}

// Census makes a synthetic table of the same flavour as Adult, for examples and
// experiments without data files, together with the weights that are behind its
// labels. rows must be in 1..4,194,304 (ErrValue).
//
// A row has 40 columns: six numbers in [0, 1] (age, schooling,
// hours, capital gain and loss, and one that does not matter), six one-hot
// groups of 5, 5, 10, 4, 7 and 2 levels, and a constant 1 for the intercept. The
// numbers and groups depend on each other as in a census: older people are more
// often married, schooling shifts the occupation. As in ReadAdult the row
// without the constant is divided by its norm when that exceeds 1.
//
// The label of a row x is 1 with probability sigmoid(x·w) for the returned w, a
// copy that the caller may change; it is the same w for every seed and size.
// About 25 % of the labels are 1, and predicting with w itself, the best that any
// model can do, has an MCC of about 0.57 and an accuracy of about 0.84.
//
// The rows depend on the seed only, and a shorter table is a prefix of a longer
// one with the same seed.
func Census(rows int, seed uint64) (*Dataset, []float64, error) {
	if rows < 1 || rows > maxCensusRows {
		return nil, nil, fault.New(ErrValue, "", "%d census rows, want 1..%d", rows, maxCensusRows)
	}
	d := &Dataset{
		X:        make([]float64, rows*censusFeatures),
		Features: censusFeatures,
		Labels:   make([]int, rows),
	}
	rng := rand.New(rand.NewPCG(seed, streamCensus))
	for i := range rows {
		x := d.Row(i)
		censusRow(x, rng)
		var score float64
		for j, v := range x {
			// The explicit conversion forbids fused multiply-add, whose other
			// rounding could flip a label on some processors.
			score += float64(v * censusWeights[j])
		}
		if rng.Float64() < sigmoid(score) {
			d.Labels[i] = 1
		}
	}
	return d, append([]float64(nil), censusWeights[:]...), nil
}

// censusRow fills x, which is all zero.
func censusRow(x []float64, rng *rand.Rand) {
	unit := func(mean, sd float64) float64 {
		return max(0, min(1, mean+float64(sd*rng.NormFloat64())))
	}
	// Ages thin out towards the end, as the smaller of two uniforms does.
	age := min(rng.Float64(), rng.Float64())
	education := unit(0.55, 0.18)
	x[censusAge] = age
	x[censusEducation] = education
	x[censusHours] = unit(0.4+float64(0.1*education), 0.12)
	if rng.Float64() < 0.08 {
		x[censusGain] = unit(0.1+float64(0.3*education), 0.15)
	} else if rng.Float64() < 0.05 {
		x[censusLoss] = unit(0.4, 0.1)
	}
	x[censusNoise] = unit(0.2, 0.1)

	choose := func(first int, weights ...float64) {
		var total float64
		for _, w := range weights {
			total += w
		}
		u := rng.Float64() * total
		last := len(weights) - 1
		k := 0
		for k < last && u >= weights[k] {
			u -= weights[k]
			k++
		}
		x[first+k] = 1
	}
	choose(censusWork, 74, 8, 7, 7, 4)
	married := math.Min(0.75, 0.05+float64(1.6*age))
	choose(censusMarital, married, (1-married)*(1-age), 0.15+float64(0.2*age), 0.03,
		float64(0.15*age*age))
	centre := 9 * education
	var occupation [10]float64
	for k := range occupation {
		// A Cauchy bump: every occupation stays possible at every schooling.
		gap := float64(k) - centre
		occupation[k] = 1 / (1 + float64(gap*gap)/4)
	}
	choose(censusOccupation, occupation[:]...)
	if x[censusMarital] == 1 {
		choose(censusHousehold, 85, 5, 2, 8)
	} else {
		choose(censusHousehold, 3, 52, 27, 18)
	}
	choose(censusRegion, 30, 20, 15, 12, 10, 8, 5)
	choose(censusSex, 67, 33)

	scaleToUnitBall(x[:censusConstant])
	x[censusConstant] = 1
}
