package hushsum

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// With fewer than the plan takes there, the job waits, and goes on once they are back.
func TestCoordinatorWaits(t *testing.T) {
	plan := testPlan()
	plan.Rounds, plan.Classical, plan.DropOut = 3, true, .25
	j := newJob(t, plan, 4)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	stores := make([]MemoryStore, 4)
	stops := make([]context.CancelFunc, 4)
	ended := make([]chan struct{}, 4)
	var wait sync.WaitGroup
	start := func(i int) {
		one, stop := context.WithCancel(ctx)
		stops[i], ended[i] = stop, make(chan struct{})
		gone := ended[i]
		p := j.participant(i, &stores[i])
		work := p.Work
		p.Work = func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
			if i == 1 && round == 2 { // so that it has to be asked for material
				return nil, errors.New("no data")
			}
			return work(ctx, round, model)
		}
		wait.Go(func() {
			defer close(gone)
			if _, err := p.Run(one); err != nil && one.Err() == nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	for i := range stores {
		start(i)
	}
	c := j.coordinator(nil)
	report, left, back := c.Progress, false, false
	c.Progress = func(e Event) {
		report(e)
		switch {
		case e.Kind == Summed && !left:
			left = true
			stops[2]()
			stops[3]()
		case e.Kind == Lost && !back:
			// Now two are there of three that a round takes.
			back = true
			wait.Go(func() {
				for i := 2; i < 4; i++ {
					<-ended[i]
				}
				time.Sleep(5 * tick) // so that it has to wait
				start(2)
				start(3)
			})
		}
	}
	result, err := c.Run(ctx)
	if err != nil || result.Rounds != 3 || !back {
		t.Errorf("%+v, %v\n%v", result, err, j.events)
	}
	cancel()
	wait.Wait()
	j.check()
}
