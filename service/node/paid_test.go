package node_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Each way to have epsilon cost less holds over HTTP, with a node that is stopped and started again
// on the way: the federation ends, nobody submits more often than was agreed, nobody is left out
// but who was late, and epsilon stays within what was declared.
func TestWaysToPayLess(t *testing.T) {
	inTurn(t)
	const parties, rounds = 5, 6
	own, test := census(t, parties)
	for _, c := range []struct {
		name, who, privacy, training string
		each, most                   int // parties of a sum; sums that one may be in
	}{
		{"records", ", drop_out = 0.2", `unit = "record", records = 300, submit_after = "200ms", clip = 0.5`,
			"batch = 60", parties, rounds},
		{"hidden", ", hidden = 0.5, drop_out = 0.2", `submit_after = "200ms", clip = 0.5`, "steps = 2", parties, rounds},
		{"participations", ", per_round = 4, participations = 5, drop_out = 0.2", "clip = 0.5",
			"steps = 2", 4, 5},
		{"factorise", ", drop_out = 0.2", "factorise = 2, clip = 0.5", "steps = 2", parties, rounds},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf(`name = "training"
rounds = %d
seed = 7
parties = { roster = "roster.txt"%s }
model = { name = "logistic", features = %d, classes = 2 }
training = { %s }
privacy = { noise = "discrete-gaussian", epsilon = 8.0, %s }
`, rounds, c.who, test.Features, c.training, c.privacy)
			out := trainBetweenMachines(t, text, own, 2)
			s := out.status
			// Who was late on a slow machine has submitted as often as the others, and may have none left.
			used := c.most < rounds && strings.Contains(s.Why, "as often as they agreed to")
			if s.State != "ended" || s.Round != rounds && !used {
				t.Errorf("%s after round %d, %d lost: %s", s.State, s.Round, s.Lost, s.Why)
			}
			if !(epsilonOf(s) <= 8) || !(epsilonOf(s) > 0) {
				t.Errorf("epsilon is %v", epsilonOf(s))
			}
			sums := make([]int, parties)
			for round, who := range out.included {
				if len(who) > c.each { // who is late on a slow machine is not in it
					t.Errorf("sum %d is of %v", round+1, who)
				}
				for _, i := range who {
					sums[i]++
				}
			}
			if most := slices.Max(sums); len(out.included) != s.Round-s.Lost || most > c.most {
				t.Errorf("%d sums, one party in %d", len(out.included), most)
			}
			for _, w := range out.model {
				if math.IsNaN(w) || math.IsInf(w, 0) {
					t.Fatalf("a weight is %v", w)
				}
			}
			t.Logf("epsilon %.4f, sums by party %v, %d lost", epsilonOf(s), sums, s.Lost)
		})
	}
}
