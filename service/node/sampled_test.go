package node_test

import (
	"fmt"
	"math"
	"testing"
)

// Thirty parties train over HTTP, six in each round, with a node that is stopped and started again
// on the way: sums are of five or six, which could hold both colluders, nobody submits more often
// than was agreed, and the noise is that of three.
func TestSampledBetweenMachines(t *testing.T) {
	inTurn(t)
	const parties, rounds = 30, 6
	own, test := census(t, parties)
	text := fmt.Sprintf(`name = "training"
rounds = %d
seed = 7
parties = { roster = "roster.txt", per_round = 6, participations = 2, drop_out = 0.16, colluders = 2 }
sum = { adversary = "semi-malicious", recovery = true }
model = { name = "logistic", features = %d, classes = 2 }
training = { steps = 2 }
privacy = { noise = "discrete-gaussian", epsilon = 8.0, clip = 0.5 }
`, rounds, test.Features)
	out := trainBetweenMachines(t, text, own, 2)
	s := out.status
	if s.State != "ended" || s.Round != rounds || !(epsilonOf(s) > 0 && epsilonOf(s) <= 8) {
		t.Errorf("%s after round %d, %d lost, epsilon %v", s.State, s.Round, s.Lost, epsilonOf(s))
	}
	settled := out.fed.Settled
	if shares := settled.Round().Shares; settled.MinSurvivors() < 5 ||
		shares != settled.MinSurvivors()-2 {
		t.Errorf("noise of %d, of %d in a sum at least", shares, settled.MinSurvivors())
	}
	sums := make([]int, parties)
	for round, who := range out.included {
		if len(who) > 6 || len(who) < settled.MinSurvivors() {
			t.Errorf("sum %d is of %v", round+1, who)
		}
		for _, i := range who {
			if sums[i]++; sums[i] > 2 {
				t.Errorf("party %d is in %d sums", i, sums[i])
			}
		}
	}
	for _, w := range out.model {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			t.Fatalf("a weight is %v", w)
		}
	}
	t.Logf("epsilon %.4f, sums by party %v, %d lost", epsilonOf(s), sums, s.Lost)
}
