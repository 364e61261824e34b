package drive_test

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
)

// mostDelay returns for how long one peer can delay a job, by SECURITY.md: 1 + log₂ of the rounds
// in StepTimes, and in each step what anybody may take, of which these peers take little.
func mostDelay(rounds uint64, step drive.Time) drive.Time {
	return drive.Time(bits.Len64(rounds)) * step
}

// A party that answers just before StepTime, or is gone by then, or does now this and now that, has
// used up its patience soon: see mostDelay.
func TestLastMoment(t *testing.T) {
	const rounds, step = 32, 2 * drive.Second
	for name, late := range map[string]func(r *rand.Rand) drive.Time{
		"nobody":      nil,
		"just before": func(*rand.Rand) drive.Time { return step/2 - 100*drive.Millisecond },
		"at times":    func(r *rand.Rand) drive.Time { return drive.Time(r.Int64N(int64(step))) / 2 },
		"or gone":     func(r *rand.Rand) drive.Time { return drive.Time(r.Int64N(int64(step))) },
	} {
		t.Run(name, func(t *testing.T) {
			var w *jobtest.World
			random := rand.New(rand.NewPCG(1, 1))
			begun := func() bool { return w != nil && w.Server.Status().Round > 0 }
			w = jobtest.New(t, 1, jobtest.Options{Parties: 6, Survivors: 4, Rounds: rounds, Curious: true,
				StepTime: step, Floor: drive.Millisecond, ComeBack: 10 * drive.Millisecond,
				Delay: func(party int) drive.Time {
					if party != 5 || late == nil || !begun() {
						return 5 * drive.Millisecond
					}
					return late(random)
				}})
			for _, p := range w.Parties {
				p.Start()
			}
			if name == "or gone" {
				var leave func()
				leave = func() {
					w.Parties[5].Cut()
					w.After(drive.Millisecond, w.Parties[5].Connect)
					w.After(step-drive.Time(random.IntN(100))*drive.Millisecond, leave)
				}
				w.After(step, leave)
			}
			w.Run(w.Ended)
			usual := rounds * 40 * drive.Millisecond
			t.Logf("%d sums, %d lost, %.1f s", len(w.Sums), w.Lost(), float64(w.Now())/1e9)
			if len(w.Sums) != rounds || w.Now() > usual+mostDelay(rounds, step) {
				t.Errorf("%d sums, %d ms", len(w.Sums), w.Now()/drive.Millisecond)
			}
		})
	}
}

// Likewise a member of a committee.
func TestLastMomentOfMember(t *testing.T) {
	const rounds, step = 32, 10 * drive.Second
	for name, late := range map[string]func(r *rand.Rand) drive.Time{
		"just before": func(*rand.Rand) drive.Time { return step - drive.Second },
		"at times":    func(r *rand.Rand) drive.Time { return drive.Time(r.Int64N(int64(step))) },
	} {
		t.Run(name, func(t *testing.T) {
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 5, Survivors: 2,
				Faults: 1, Rounds: rounds, Batch: 2})
			random, slow := rand.New(rand.NewPCG(1, 1)), w.Members[1]
			slow.Silent = func([]byte) bool { slow.Late = late(random); return false }
			startAll(w)
			w.Run(w.Ended)
			usual := rounds * 151 * drive.Millisecond
			t.Logf("%d sums, %d lost, %.1f s", len(w.Sums), w.Lost(), float64(w.Now())/1e9)
			if len(w.Sums) != rounds || w.Now() > usual+mostDelay(rounds, step) {
				t.Errorf("%d sums, %d ms", len(w.Sums), w.Now()/drive.Millisecond)
			}
		})
	}
}
