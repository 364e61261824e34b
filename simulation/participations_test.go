package simulation

import (
	"slices"
	"testing"

	"github.com/hushsum/hushsum/privacy"
)

// Who is in two of six rounds is charged for two: noise for two is enough, and of six parties two
// are in each round, those who were in the fewest.
func TestTrainingParticipations(t *testing.T) {
	var n privacy.Noise
	x := noisyBrief(&n)
	x.Rounds, x.PerRound, x.Participations = 6, 2, 2
	x.Budget = privacy.Budget{Epsilon: 2}
	z, err := x.Calibrate()
	if err != nil {
		t.Fatal(err)
	}
	whole := x
	whole.Participations = 0
	all, err := whole.Calibrate()
	if err != nil || z > 0.65*all {
		t.Errorf("multiplier %v for 2 of 6 rounds, %v for all (%v)", z, all, err)
	}
	n.Multiplier = z
	out := train(t, x)
	counts := make([]int, 6)
	for _, r := range out.Rounds {
		for _, i := range r.Included {
			counts[i]++
		}
	}
	two, _, err := mechanism(t, x).Round().Views(2, privacy.DefaultDelta)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Rounds) != 6 || slices.Max(counts) != 2 || slices.Min(counts) != 2 ||
		out.Server.Bare() != two.Bare() || out.Stopped != nil {
		t.Errorf("%d rounds, %v, spent %v, want %v", len(out.Rounds), counts, out.Server, two)
	}
}
