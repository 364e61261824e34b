package drive_test

import (
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
)

// A party whose training hangs in every round, while its program says that it is there, costs a
// step's time once: then rounds wait for it for four times as long as the others take, and that in
// few rounds, ever fewer. Times are the world's.
func TestHanging(t *testing.T) {
	const rounds, usual, step = 64, 400 * drive.Second / 1000, 20 * drive.Second
	var waits []uint64 // rounds that took longer than without it
	var total drive.Time
	w := jobtest.New(t, 1, jobtest.Options{Parties: 6, Survivors: 4, Rounds: rounds, StepTime: step,
		Work: func(i int) drive.Time {
			if i == 5 {
				return 600 * drive.Second
			}
			return usual
		}})
	w.Heard = func(n drive.Notice) {
		if n.Kind != drive.Summed {
			return
		}
		took := w.Now() - total
		total = w.Now()
		switch {
		case took <= usual:
			return
		case n.Round == 1 && took > step, n.Round > 1 && took > 4*usual:
			t.Errorf("round %d takes %.1f s", n.Round, float64(took)/float64(drive.Second))
		}
		waits = append(waits, n.Round)
	}
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	if len(w.Sums) != rounds || len(waits) > 7 {
		t.Errorf("%d sums, rounds %v wait", len(w.Sums), waits)
	}
	t.Logf("%.1f s in all; rounds %v wait", float64(total)/float64(drive.Second), waits)
}
