package drive_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
)

var (
	seeds = flag.Uint64("seeds", 0, "run this many worlds; 0: as many as the form of the tests has")
	first = flag.Uint64("first", 0, "the seed of the first world")
)

// Jobs in which everything that can goes wrong: each seed chooses a job, its faults and its lies.
// Package jobtest has what must hold in each.
func TestWorlds(t *testing.T) {
	count := *seeds
	if count == 0 {
		count = uint64(suite.Size(50, 50, 2000, 100_000))
	}
	var all total
	for seed := *first; seed < *first+count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := play(t, seed)
			if seed%100 == 0 && w.trace != play(t, seed).trace {
				t.Error("the same seed gives another job")
			}
			all.add(w.Outcome)
		})
	}
	for mode, x := range all {
		t.Logf("%v: %d jobs, %d ended, %d stalled; %d sessions, %d sums, %d rounds lost, %d saves",
			jobtest.Mode(mode), x.jobs, x.ended, x.stalled, x.Sessions, x.Sums, x.Lost, x.Saves)
	}
}

// played is a job that was run.
type played struct {
	jobtest.Outcome
	trace string
}

func play(t *testing.T, seed uint64) played {
	cryptotest.SetGlobalRandom(t, seed)
	w := jobtest.NewSwarm(t, seed, rand.New(rand.NewPCG(seed, 4)))
	out := w.Play()
	if testing.Verbose() && *seeds == 1 {
		for line := range slices.Values(w.Log) {
			t.Log(line)
		}
	}
	return played{out, w.Trace()}
}

// total holds what happened in the jobs of each mode.
type total [jobtest.Rough + 1]struct {
	jobs, ended, stalled, Sessions, Sums, Lost, Saves int
}

func (a *total) add(o jobtest.Outcome) {
	x := &a[o.Mode]
	x.jobs++
	if o.Ended {
		x.ended++
	}
	if o.Stalled {
		x.stalled++
	}
	x.Sessions, x.Sums, x.Lost = x.Sessions+o.Sessions, x.Sums+o.Sums, x.Lost+o.Lost
	x.Saves += o.Saves
}
