package hushsum

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hushsum/hushsum/host"
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
	synctest.Test(t, func(t *testing.T) {
		const fails, overruns = 3, 4
		g := declared(t, hiddenJob, 5)
		var asked, missed [5]atomic.Int64 // rounds, as bits
		boom := errors.New("no rows")
		var parties []*Participant[float64]
		for i := range 5 {
			p := g.participant(i, new(MemoryStore))
			work := bare(p.Work)
			p.Work = vectors(func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
				asked[i].Add(1 << round)
				switch i {
				case fails:
					return nil, boom
				case overruns:
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return work(ctx, round, model)
			})
			p.Progress = func(e Event) {
				if e.Kind == host.Absent && (errors.Is(e.Err, boom) || errors.Is(e.Err, instant.ErrOverrun)) {
					missed[i].Add(1 << e.Round)
				}
			}
			parties = append(parties, p)
		}
		_, ends := g.runAll(t.Context(), parties)
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
		for i, err := range ends { // a machine may be too slow for the others
			all := asked[i].Load() != 0 && asked[i].Load() == missed[i].Load()
			if errors.Is(err, ErrAbsent) != all || !all && err != nil {
				t.Errorf("party %d ends with %v; with luck in %b, and missed %b", i, err, asked[i].Load(),
					missed[i].Load())
			}
		}
		if q := g.settled.Round().SecretRate; q != 0.5 {
			t.Errorf("the accountant has %v", q)
		}
	})
}

// A party whose program has nothing at any instant ends with an error, since all that left were
// zeros with noise; with one vector of three it does not. Where the unit is a record it hears each
// time that nothing is proved, and else never.
func TestMissedInAllRounds(t *testing.T) {
	for _, unit := range []string{"",
		"training.batch = 50\nprivacy = { unit = \"record\", records = 100, "} {
		synctest.Test(t, func(t *testing.T) { missedInAllRounds(t, unit) })
	}
}

func missedInAllRounds(t *testing.T, unit string) {
	text := `name = "missed"
rounds = 3
model.length = 4
parties.count = 4
sum = { classical = true, recovery = true }
privacy = { noise = "discrete-gaussian", multiplier = 0.001, clip = 100.0, submit_after = "150ms" }
`
	if unit != "" {
		text = strings.Replace(text, "privacy = { ", unit, 1)
	}
	g := declared(t, text, 4)
	boom := errors.New("no rows")
	var missed [4]atomic.Int64
	var parties []*Participant[float64]
	for i := range 4 {
		p := g.participant(i, nil)
		work := bare(p.Work)
		p.Work = vectors(func(ctx context.Context, round uint64, model []float64) ([]float64, error) {
			switch {
			case i == 0, i == 1 && round < 3:
				return nil, boom
			case i == 2:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return work(ctx, round, model)
		})
		p.Progress = func(e Event) {
			if e.Kind == host.Absent {
				missed[i].Add(1)
			}
			if told := errors.Is(e.Err, ErrUnproved); told != (e.Kind == host.Absent && unit != "") {
				t.Errorf("%v", e)
			}
		}
		parties = append(parties, p)
	}
	_, ends := g.runAll(t.Context(), parties)
	if len(g.rounds) != 3 {
		t.Fatalf("%d rounds", len(g.rounds))
	}
	for i, want := range []error{boom, nil, instant.ErrOverrun, nil} {
		err := ends[i]
		switch {
		case want == nil && missed[i].Load() < 3 && err != nil: // a machine may be too slow for them
			t.Errorf("party %d: %v", i, err)
		case want != nil && (!errors.Is(err, ErrAbsent) || !errors.Is(err, want)):
			t.Errorf("party %d: %v, want %v for all rounds", i, err, want)
		}
	}
}
