package drive_test

import (
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
)

// lossy returns how long messages take where half of all are lost, which is seen after 0.4 s.
func lossy(seed uint64) func(int) drive.Time {
	random := rand.New(rand.NewPCG(seed, 5))
	return func(int) drive.Time {
		took := 100*drive.Millisecond + drive.Time(random.Int64N(int64(100*drive.Millisecond)))
		for random.IntN(2) == 0 {
			took += 400 * drive.Millisecond
		}
		return took
	}
}

// Where half of all messages are lost, and StepTime is so short that in each step one or two of 40
// parties let it pass, each round has a sum: no session takes over with fewer parties than the one
// before, and rounds are held among more than the 24 that a sum takes. That the time is short is
// said once.
func TestLossy(t *testing.T) {
	for seed := range uint64(suite.Size(1, 1, 12, 100)) {
		w := jobtest.New(t, seed+1, jobtest.Options{Parties: 40, Survivors: 24, Rounds: 12,
			Curious: true, Hybrid: true, StepTime: 3 * drive.Second, Delay: lossy(seed + 1)})
		w.Resumes = true
		short := 0
		w.Heard = func(n drive.Notice) {
			switch {
			case n.Kind == drive.Short:
				short++
				t.Log(n.Err)
			case n.Kind == drive.Begun && len(n.Parties) < 27:
				t.Errorf("seed %d: round %d begins with %d parties", seed+1, n.Round, len(n.Parties))
			}
		}
		for _, p := range w.Parties {
			p.Start()
		}
		w.Run(w.Ended)
		if len(w.Sums) != 12 || short != 1 {
			t.Errorf("seed %d: %d of 12 rounds have sums; told %d times that StepTime is short",
				seed+1, len(w.Sums), short)
		}
	}
}
