package hushsum

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
)

// TestGroups: with groups a party whose vector is as long as its clip allows does not move the
// mean of the others, who agree. In one sum it does.
func TestGroups(t *testing.T) {
	const n = 9
	for _, groups := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			plan := oneshotJob()
			plan.Rounds, plan.Sum.Groups, plan.Parties.DropOut = 2, groups, 0
			j := newCommitteeJob(t, plan, n, 5)
			var wait sync.WaitGroup
			defer wait.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), jobTime)
			defer cancel()
			coordinator := j.coordinator(nil)
			coordinator.StepTime = jobTime
			all := j.gathered(coordinator)
			for i := range j.signers {
				p := j.participant(i, nil)
				p.Work = vectors(func(_ context.Context, _ uint64, model []float64) ([]float64, error) {
					vector := make([]float64, len(model))
					for k := range vector {
						if vector[k] = 1; i == 0 {
							vector[k] = -40
						}
					}
					return vector, nil
				})
				wait.Go(func() {
					if _, err := p.Run(ctx); err != nil {
						t.Errorf("party %d: %v", i, err)
					}
				})
			}
			j.help(ctx, &wait, all)
			result, err := coordinator.Run(ctx)
			if err != nil || result.Lost != 0 {
				t.Fatal(err, result, j.events)
			}
			want := (n - 1 - 40) / float64(n)
			if groups > 0 {
				want = 1
			}
			for _, r := range j.rounds {
				if math.Abs(r.Mean[0]-want) > 1e-3 || len(r.Parties) != n {
					t.Errorf("%d groups, round %d: mean %v of %d, want %v", groups, r.Number, r.Mean[0],
						len(r.Parties), want)
				}
			}
			if len(j.rounds) != plan.Rounds {
				t.Errorf("%d rounds", len(j.rounds))
			}
		})
	}
}
