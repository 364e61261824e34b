package hushsum

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/hushsum/hushsum/internal/instant"
)

const hiddenJob = `name = "hidden"
rounds = 8
model.length = 40
parties = { count = 5, hidden = 0.5 }
sum = { classical = true, recovery = true }
privacy = { noise = "discrete-gaussian", multiplier = 0.001, clip = 100.0, submit_after = "150ms" }
`

// In a job with secret coins all parties are in every sum: one with luck sends its vector, one
// without, and one whose program fails or is not done by the instant, zeros with noise. Means are
// over those that are expected to have luck. Without luck nobody asks the program.
func TestHidden(t *testing.T) {
	const fails, overruns = 3, 4
	g := declared(t, hiddenJob, 5)
	var asked, missed [5]atomic.Int64 // rounds, as bits
	boom := errors.New("no rows")
	var parties []*Participant
	for i := range 5 {
		p := g.participant(i, FileStore(filepath.Join(t.TempDir(), "party")))
		work := p.Work
		p.Work = func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
			asked[i].Add(1 << round)
			switch i {
			case fails:
				return nil, boom
			case overruns:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return work(ctx, round, model)
		}
		p.Progress = func(e Event) {
			if e.Kind == Absent && (errors.Is(e.Err, boom) || errors.Is(e.Err, instant.ErrOverrun)) {
				missed[i].Add(1 << e.Round)
			}
		}
		parties = append(parties, p)
	}
	g.run(t.Context(), parties)
	g.check()
	if len(g.rounds) != 8 {
		t.Fatalf("%d rounds", len(g.rounds))
	}
	luck, unlucky := 0, 0
	for _, r := range g.rounds {
		want := 0.0
		for i := range 5 {
			had, none := asked[i].Load()>>r.Number&1 > 0, missed[i].Load()>>r.Number&1 > 0
			if !had {
				unlucky++
			} else if luck++; !none {
				want += float64(i+1) / 2.5
			}
			if i >= fails && had != none {
				t.Errorf("round %d: party %d is asked: %v, and misses it: %v", r.Number, i, had, none)
			}
		}
		if len(r.Parties) != 5 || math.Abs(r.Mean[7]-want) > 10*g.settled.StdDev(5)+0.01 {
			t.Errorf("round %d: %v, mean %v, want %v", r.Number, r.Parties, r.Mean[7], want)
		}
	}
	// Each of 40 coins is even: either side has none with probability 2^-40.
	if luck == 0 || unlucky == 0 {
		t.Errorf("%d with luck, %d without", luck, unlucky)
	}
	if q := g.settled.Round().SecretRate; q != 0.5 {
		t.Errorf("the accountant has %v", q)
	}
}
