package privacy

import (
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// wide is a release whose noise is far wider than its units, so that its figures are those of a
// continuous Gaussian.
func wide(rate float64) *Release {
	return &Release{
		Promise: Assumed(10, 7),
		Noise: Noise{Family: accounting.FamilyDiscreteGaussian, Clip: 1, Bits: 32,
			Multiplier: 1.13},
		Dimension: 40,
		Rate:      rate,
	}
}

// near reports whether a figure is another within 1 %.
func near(got, want float64) bool { return math.Abs(got/want-1) < 0.01 }

// Who submits in k rounds has noise for k, whoever picks the rounds. Multipliers for ε = 8 at
// δ = 1e-5, by the profile of one Gaussian of k rounds (Balle, Wang 2018).
func TestParticipationFigures(t *testing.T) {
	for k, want := range map[int]float64{20: 2.684, 10: 1.898, 2: 0.849} {
		got, err := wide(0).Calibrate(Budget{Epsilon: 8}, k)
		if err != nil || !near(got, want) {
			t.Errorf("%d submissions: multiplier %v, want %v (%v)", k, got, want, err)
		}
	}
}

// Over 200 rounds secret coins cost a third of what a schedule does that the server knows, with as
// many rounds of a party as it expects; a round that is held again has a fresh coin and counts.
func TestHiddenFigures(t *testing.T) {
	for name, c := range map[string]struct {
		rate   float64
		rounds int
		want   float64
	}{
		"20 rounds, visible":  {0, 20, 24.0},
		"coins":               {0.1, 200, 8.00},
		"coins, 20 once more": {0.1, 220, 8.41},
	} {
		round, err := wide(c.rate).Round()
		if err != nil {
			t.Fatal(err)
		}
		spent, err := round.Spent(accounting.ServerView, c.rounds, DefaultDelta)
		if err != nil || !near(spent.Bare().Upper, c.want) {
			t.Errorf("%s: %v, want %v (%v)", name, spent, c.want, err)
		}
	}
	for rate, want := range map[float64][2]float64{0.05: {0.787, 1.898}, 0.1: {1.131, 2.684},
		0.2: {1.887, 3.796}, 0.5: {4.33, 6.00}} {
		hidden, err := wide(rate).Calibrate(Budget{Epsilon: 8}, 200)
		if err != nil || !near(hidden, want[0]) {
			t.Errorf("coins of %v: multiplier %v, want %v (%v)", rate, hidden, want[0], err)
		}
		k := int(math.Round(200 * rate))
		if visible, err := wide(0).Calibrate(Budget{Epsilon: 8}, k); err != nil ||
			!near(visible, want[1]) {
			t.Errorf("%d rounds: multiplier %v, want %v (%v)", k, visible, want[1], err)
		}
	}
}
