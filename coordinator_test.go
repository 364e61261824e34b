package hushsum

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
)

// With fewer than the job takes there, the job waits, and goes on once they are back.
func TestCoordinatorWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := testJob()
		plan.Rounds, plan.Sum.Classical, plan.Parties.DropOut = 3, true, 0.25
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
			work := bare(p.Work)
			p.Work = vectors(func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
				if i == 1 && round == 2 { // so that it has to be asked for material
					return nil, errors.New("no data")
				}
				return work(ctx, round, model)
			})
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
			case e.Kind == host.Summed && !left:
				left = true
				stops[2]()
				stops[3]()
			case e.Kind == host.Lost && !back:
				// Now two are there of three that a round takes.
				back = true
				wait.Go(func() {
					for i := 2; i < 4; i++ {
						<-ended[i]
					}
					time.Sleep(5 * 20 * time.Millisecond) // so that it has to wait
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
	})
}

// What a coordinator has saved it comes back with: rounds, numbers, what was lost, and what every
// party of a round has spent.
func TestCoordinatorState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := testJob()
		plan.Privacy.Noise, plan.Privacy.Epsilon, plan.Rounds = "discrete-gaussian", 8, 2
		j := newJob(t, plan, 4)
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		defer cancel()
		store := new(MemoryStore)
		var parties []*Participant[float64]
		for i := range j.signers {
			parties = append(parties, j.participant(i, nil))
		}
		var wait sync.WaitGroup
		for _, p := range parties {
			wait.Go(func() { _, _ = p.Run(ctx) })
		}
		result, err := j.coordinator(store).Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		lead := loaded(t, j.coordinator(store))
		status, ledger := lead.Status(), lead.Ledger()
		if status.Ended != drive.AllHeld || status.Round != 2 {
			t.Errorf("%+v", status)
		}
		if clients := ledger.Clients(); len(clients) != len(j.signers) {
			t.Errorf("%v have spent something", clients)
		}
		for _, client := range ledger.Clients() {
			if spent, err := ledger.Spent(client); err != nil ||
				spent.Bare().Upper != result.Spent.Bare().Upper {
				t.Errorf("%s has spent %v, %v, want %v", client, spent.Bare().Upper, err,
					result.Spent.Bare().Upper)
			}
		}
		// Whoever comes now is told the end, also by a coordinator that was started again.
		again, err := j.coordinator(store).Run(ctx)
		if err != nil || again.Rounds != 2 || again.Spent.Bare().Upper != result.Spent.Bare().Upper {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// loaded is the lead that a coordinator has loaded. Its store is free again.
func loaded(t *testing.T, of *Coordinator[float64]) drive.Lead {
	t.Helper()
	c := newCoordinator(of)
	lead, err := c.load()
	if err != nil {
		t.Fatal(err)
	}
	c.vault.Close()
	return lead
}

// A party's word that it is absent is for the round that goes on, and for that alone.
func TestCoordinatorAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := testJob()
		plan.Rounds, plan.Sum.Classical, plan.Parties.DropOut = 2, true, 0.25
		j := newJob(t, plan, 4)
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		defer cancel()
		submitted := make(chan int, 8)
		for i := range j.signers {
			p := j.participant(i, nil)
			work := bare(p.Work)
			p.Work = vectors(func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
				switch {
				case i == 1 && round == 1:
					return nil, errors.New("no data")
				case i == 1:
					for range 3 {
						<-submitted
					}
					time.Sleep(5 * 20 * time.Millisecond) // so that it has to be waited for
				}
				return work(ctx, round, model)
			})
			tell := p.Progress
			p.Progress = func(e Event) {
				if tell != nil {
					tell(e)
				}
				if e.Kind == host.Submitted && e.Round == 2 && i != 1 {
					submitted <- i
				}
			}
			go func() { _, _ = p.Run(ctx) }()
		}
		result, err := j.coordinator(nil).Run(ctx)
		if err != nil || len(j.rounds) != 2 || len(j.rounds[0].Parties) != 3 ||
			len(j.rounds[1].Parties) != 4 {
			t.Errorf("%+v, %v\n%v", result, err, j.events)
		}
		j.check()
	})
}
