package party

import (
	"context"
	"crypto/rand"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// slow is a source of randomness that takes longer than an instant after the trainer has ended.
type slow struct {
	trained atomic.Bool
	wait    time.Duration
}

func (s *slow) Read(b []byte) (int, error) {
	if s.trained.Swap(false) {
		time.Sleep(s.wait)
	}
	return rand.Read(b)
}

// Submitted shows of a round the vector that is in the sum, also where an update is encoded only
// after the instant, at which zeros with noise have left.
func TestSubmittedAtInstant(t *testing.T) {
	f := fewOf(t, fewText+noise+"\nsubmit_after = \"100ms\"\n")
	for _, random := range []*slow{{wait: 200 * time.Millisecond}, {}} {
		c := newCheat(f, join(1), round(1), round(2))
		shown := make(map[uint64][][]uint64)
		c.play(t, func(p *Party) {
			p.random = random
			p.Trainer = TrainerFunc(func(_ context.Context, w *Work) (*Update, error) {
				random.trained.Store(true)
				return &Update{Vector: slices.Repeat([]float64{0.5}, len(w.Model))}, nil
			})
			p.Submitted = func(round int, values [][]uint64) { shown[uint64(round)] = values }
		}, nil)
		c.check(t)
		for r := uint64(1); r <= 2; r++ { // the other parties submit zeros without noise
			if len(c.sums[r]) != 1 || !slices.EqualFunc(c.sums[r][0], shown[r], slices.Equal) {
				t.Errorf("after %v: round %d has the sums %v, shown was %v", random.wait, r, c.sums[r],
					shown[r])
			}
		}
	}
}
