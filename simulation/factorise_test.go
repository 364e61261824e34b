package simulation

import (
	"math"
	"testing"

	"github.com/hushsum/hushsum/privacy"
)

// Where six parties take turns over six rounds, three at a time in two cohorts, they are charged
// for three turns, and a mean is of those who made something.
func TestTrainingByTurns(t *testing.T) {
	x := noisyBrief()
	x.Rounds, x.Privacy.Factorise = 6, 2
	x.Privacy.Epsilon, x.Privacy.Multiplier = 4, 0
	out := train(t, x)
	m := mechanism(t, x)
	for i, r := range out.Rounds {
		want, _, err := m.Round().Views(i/2+1, privacy.DefaultDelta)
		if err != nil {
			t.Fatal(err)
		}
		if r.Server.Bare() != want.Bare() || len(r.Norms) != 3 || len(r.Included) != 6 {
			t.Errorf("round %d: %d updates of %d parties, spent %+v, want %+v", r.Round, len(r.Norms),
				len(r.Included), r.Server, want)
		}
	}
	if len(out.Rounds) != 6 || out.Server.Bare().Upper > 4 || out.Stopped != nil {
		t.Errorf("%d rounds, %+v", len(out.Rounds), out.Server)
	}
	// With next to no noise it is the training in the clear.
	x.Privacy.Multiplier, x.Privacy.Bits, x.Privacy.Epsilon, x.World.SkipClear = 1e-6, 54, 0, false
	for _, r := range train(t, x).Rounds {
		if r.MaxAbsDiff > 1e-4 {
			t.Errorf("round %d is off by %v", r.Round, r.MaxAbsDiff)
		}
	}
}

// What noise is next to a first update is judged by what it leaves in sums of rounds, since later
// rounds take correlated noise back: as much as independent noise of that size in each round.
func TestSignalOfTurns(t *testing.T) {
	x := noisyBrief()
	x.Rounds, x.Privacy.Factorise, x.Privacy.Multiplier = 24, 5, 1
	s, w, err := x.settle()
	if err != nil {
		t.Fatal(err)
	}
	got, err := SignalOf(t.Context(), s, w)
	if err != nil {
		t.Fatal(err)
	}
	m := s.Mechanism()
	b, d := m.Band(), s.Length()
	// Noise of each round is one coordinate, so that squares of what is decoded are variances.
	var earlier []privacy.Decoded
	total, prefix := 0.0, make([]float64, x.Rounds)
	for r := range x.Rounds {
		sum := make([]float64, x.Rounds)
		sum[r] = m.StdDev(len(x.rows))
		decoded := b.Decode(uint64(r+1), sum, earlier)
		earlier = append(earlier, privacy.Decoded{Round: uint64(r + 1), Sum: decoded})
		for i, y := range decoded {
			prefix[i] += y
			total += prefix[i] * prefix[i]
		}
	}
	cohort := float64(len(x.rows) / x.Privacy.Factorise)
	apart := math.Sqrt(float64(d)*total/float64(x.Rounds)) / cohort
	if want := apart / math.Sqrt(float64(x.Rounds+1)/2); math.Abs(got.Noise/want-1) > 1e-9 {
		t.Errorf("%v, want %v", got.Noise, want)
	}
	// Of one round alone it is more than twice as much, which is no reason to warn.
	if one := m.StdDev(len(x.rows)) * math.Sqrt(float64(d)) / cohort / b[0]; one < 2*got.Noise {
		t.Errorf("%v in one round, %v in all", one, got.Noise)
	}
	if got.Update <= 0 || got.Update > got.Clip || got.Clip != x.Privacy.Clip {
		t.Errorf("%+v", got)
	}
}
