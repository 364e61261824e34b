package simulation

import (
	"slices"
	"testing"

	"github.com/hushsum/hushsum/privacy"
)

// Who is in two of six rounds is charged for two: noise for two is enough, and of six parties two
// are in each round, those who were in the fewest.
func TestTrainingParticipations(t *testing.T) {
	x := noisyBrief()
	x.Rounds, x.Parties.PerRound, x.Parties.Participations = 6, 2, 2
	x.Privacy.Epsilon, x.Privacy.Multiplier = 2, 0
	s, _, err := x.settle()
	if err != nil {
		t.Fatal(err)
	}
	whole := x
	whole.Parties.Participations = 0
	all, _, err := whole.settle()
	if err != nil || s.Multiplier() > 0.65*all.Multiplier() {
		t.Errorf("multiplier %v for 2 of 6 rounds, %v for all (%v)", s.Multiplier(),
			all.Multiplier(), err)
	}
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
