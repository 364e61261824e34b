package hushsum

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/hushsum/hushsum/drive"
)

// oftenJob has each of five parties in three of five rounds, three in each.
func oftenJob(participations string) string {
	return fmt.Sprintf(`name = "often"
rounds = 5
model.length = 40
parties = { count = 5, drop_out = 0.4, per_round = 3%s }
sum = { classical = true, adversary = "curious" }
privacy = { noise = "skellam", epsilon = 2.0, clip = 1000.0 }
`, participations)
}

// Parties that submit in three of five rounds are charged for three, with noise for three, and the
// coordinator has each in three: those of the fewest are next.
func TestParticipations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := declared(t, oftenJob(", participations = 3"), 5)
		all := declared(t, oftenJob(""), 5)
		less := math.Pow(g.settled.StdDev(3)/all.settled.StdDev(3), 2)
		if g.settled.Submissions() != 3 || all.settled.Submissions() != 5 || math.Abs(less-0.6) > 0.1 {
			t.Fatalf("%d and %d submissions, %v of the variance", g.settled.Submissions(),
				all.settled.Submissions(), less)
		}
		var parties []*Participant[float64]
		for i := range 5 {
			parties = append(parties, g.participant(i, new(MemoryStore)))
		}
		g.run(t.Context(), parties)
		g.check()
		counts := make([]int, 5)
		for _, r := range g.rounds {
			for _, i := range r.Parties {
				counts[i]++
			}
		}
		if len(g.rounds) != 5 || fmt.Sprint(counts) != "[3 3 3 3 3]" {
			t.Errorf("%d rounds, %v", len(g.rounds), counts)
		}
	})
}

// Agreed are three submissions, and a ledger for three: a party refuses the fourth for either
// reason.
func TestParticipationsLimits(t *testing.T) {
	g := declared(t, oftenJob(", participations = 3"), 5)
	limits, err := g.settled.Limits(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{drive.ErrOften, drive.ErrSpent} {
		guard, err := drive.NewGuard(limits, 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := guard.Charge(4); !errors.Is(err, want) {
			t.Errorf("a fourth submission: %v, want %v", err, want)
		}
		limits.Submissions = 0
	}
}
