package drive_test

import (
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/jobtest"
)

// A job in which nothing goes wrong has all its rounds, with everybody in each.
func TestServerPlain(t *testing.T) {
	for _, o := range []jobtest.Options{
		{Parties: 3, Survivors: 2, Rounds: 3},
		{Parties: 4, Survivors: 3, Rounds: 3, Hybrid: true},
		{Parties: 5, Survivors: 4, Colluders: 1, Rounds: 4, Long: true},
	} {
		w := jobtest.New(t, 1, o)
		for _, p := range w.Parties {
			p.Start()
		}
		w.Run(w.Ended)
		if len(w.Sums) != int(o.Rounds) || w.Lost() != 0 {
			w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
		}
		for _, sum := range w.Sums {
			if len(sum.Parties) != o.Parties {
				w.Fatal("round %d has %v", sum.Round, sum.Parties)
			}
		}
		if w.Now() > drive.Second {
			w.Fatal("it took %d ns", w.Now())
		}
		t.Logf("%+v: %d saves", o, w.Server.Saves())
	}
}

// Wherever the server dies, before or after it saves or once it has sent, no round is lost and no
// sum is wrong: it goes on from what it saved, and is sent again what it held.
func TestServerDies(t *testing.T) {
	for _, o := range []jobtest.Options{
		{Parties: 3, Survivors: 2, Rounds: 2, ComeBack: 2 * drive.Second},
		{Parties: 4, Survivors: 3, Rounds: 2, ComeBack: 2 * drive.Second, Long: true},
	} {
		deaths := 0
		for at := 0; ; at++ {
			w := jobtest.New(t, uint64(at), o)
			places, died := 0, false
			w.Server.Die = func(string) bool {
				places++
				if places-1 != at {
					return false
				}
				died = true
				w.After(drive.Second/10, w.Server.Start)
				return true
			}
			for _, p := range w.Parties {
				p.Start()
			}
			w.Run(w.Ended)
			if len(w.Sums) != int(o.Rounds) || w.Lost() != 0 {
				w.Fatal("it died at place %d: %d sums, %d lost", at, len(w.Sums), w.Lost())
			}
			if !died {
				break
			}
			deaths++
		}
		t.Logf("%d deaths", deaths)
	}
}
