package hushsum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/suite"
)

// changes has parties of a job come and go at moments that its events choose.
type changes struct {
	*group
	ctx    context.Context
	random *rand.Rand
	wait   sync.WaitGroup
	mutex  sync.Mutex
	stores []*MemoryStore
	stop   []context.CancelFunc
	gone   []chan struct{} // closed when a party's Run has returned
	failed []error
	away   int // the party that has left, -1: none
	spare  int // how many may leave the session
	began  time.Time
	log    []string
}

func (c *changes) note(format string, a ...any) {
	line := fmt.Sprintf("%6.2f s  ", time.Since(c.began).Seconds()) + fmt.Sprintf(format, a...)
	c.log = append(c.log, line)
}

// start has a party take part, with the state that it has.
func (c *changes) start(i int) {
	ctx, cancel := context.WithCancel(c.ctx)
	c.stop[i], c.gone[i] = cancel, make(chan struct{})
	p, gone := c.participant(i, c.stores[i]), c.gone[i]
	c.wait.Go(func() {
		defer close(gone)
		if _, err := p.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.failed = append(c.failed, fmt.Errorf("party %d: %w", i, err))
		}
	})
}

// change does something to one party.
func (c *changes) change() {
	newcomer := len(c.signers) - 1
	switch {
	case c.stop[newcomer] == nil && c.random.IntN(2) == 0:
		c.note("the newcomer joins")
		c.start(newcomer)
	case c.away >= 0:
		i := c.away
		c.away = -1
		<-c.gone[i]
		if c.random.IntN(2) == 0 {
			// It is in the next session again.
			c.note("party %d comes back without its state", i)
			c.stores[i] = new(MemoryStore)
		} else {
			c.note("party %d comes back", i)
			c.spare++
		}
		c.start(i)
	case c.spare > 0:
		c.spare--
		c.away = c.random.IntN(newcomer)
		c.note("party %d leaves", c.away)
		c.stop[c.away]()
	}
}

// Joining, leaving, losing the state and coming back, at any step of a session or a round, cost no
// round, as long as enough stay, and nobody waits for StepTime: nobody is at fault. Every sum is
// exact.
func TestChanges(t *testing.T) {
	seeds := suite.Size(4, 8, 200, 1000)
	room := make(chan struct{}, 16)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			room <- struct{}{}
			defer func() { <-room }()
			changesOf(t, seed)
		})
	}
}

func changesOf(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		plan := testJob()
		plan.Rounds, plan.Parties.DropOut = 5, 0.4
		plan.Sum.Classical = true
		plan.Time.BeginWith = 12 // the newcomer comes in a later round
		j := newJob(t, plan, 13)
		c := &changes{
			group:  j,
			random: rand.New(rand.NewPCG(seed, 9)),
			began:  time.Now(),
			away:   -1,
		}
		ctx, cancel := context.WithTimeout(t.Context(), jobTime)
		defer cancel()
		c.ctx = ctx
		n := len(c.signers)
		c.stop, c.gone = make([]context.CancelFunc, n), make([]chan struct{}, n)
		for range n {
			c.stores = append(c.stores, new(MemoryStore))
		}
		for i := range n - 1 {
			c.start(i)
		}
		coordinator := c.coordinator(nil)
		report := coordinator.Progress
		coordinator.StepTime = time.Hour // longer than the job may take
		coordinator.Progress = func(e Event) {
			report(e)
			if ctx.Err() != nil {
				return
			}
			c.note("%v", e)
			switch e.Kind {
			case host.Connected, host.Disconnected:
			case host.TookOver:
				// One may be away, and another has lost its state since the session began to form.
				c.spare = len(e.Parties) - j.settled.MinSurvivors() - 2
				fallthrough
			default:
				if c.random.IntN(3) == 0 {
					c.change()
				}
			}
		}
		result, err := coordinator.Run(ctx)
		cancel()
		c.wait.Wait()
		if err != nil || result.Lost != 0 || result.Rounds != plan.Rounds || len(c.failed) > 0 {
			t.Errorf("%+v, %v, %v", result, err, c.failed)
			for _, line := range c.log {
				t.Log(line)
			}
		}
		c.check()
	})
}
