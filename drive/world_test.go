package drive_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/drive/partytest"
	"github.com/hushsum/hushsum/internal/suite"
)

// Whatever a coordinator does, and wherever parties are killed: what each party has let go is
// no more than what it has counted, and that no more than its job and its budget allow.
func TestGuardCheated(t *testing.T) {
	jobs := suite.Size(15, 15, 300, 100_000)
	var all partytest.Seen
	for seed := range uint64(jobs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := partytest.New(t, rand.New(rand.NewPCG(seed, 1)), seed, 4)
			w.Cheat(250, func() bool { return true })
			all.Add(w.Seen())
		})
	}
	t.Logf("%d jobs: %+v", jobs, all)
}

// The guard refuses nothing that it should not: where the coordinator is honest all rounds have
// sums, and exact ones, however often parties are killed.
func TestGuardHonest(t *testing.T) {
	jobs := suite.Size(10, 10, 150, 100_000)
	var all partytest.Seen
	for seed := range uint64(jobs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := partytest.New(t, rand.New(rand.NewPCG(seed, 2)), seed, 4)
			w.Honest(int(seed % 24))
			all.Add(w.Seen())
		})
	}
	t.Logf("%d jobs: %+v", jobs, all)
}
