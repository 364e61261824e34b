package drive_test

import (
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// shut has a party deal shares of its secrets that nobody can open.
func shut(w *jobtest.World, size, near int) func(h wire.Header, message []byte) []byte {
	return func(h wire.Header, message []byte) []byte {
		if h.Type != wire.TypeMasked {
			return message
		}
		m, err := wire.ParseMasked(message[wire.HeaderSize:], size, near, near)
		if err != nil {
			return message
		}
		for i := range m.Shares {
			m.Shares[i][len(m.Shares[i])-1] ^= 1
		}
		return m.Append(message[:wire.HeaderSize:wire.HeaderSize])
	}
}

// What one party can do to many rounds: a spoiler, which comes again with fresh keys after
// each round, loses one and is named; one that is silent at the end of rounds, or always, loses
// none and costs a step or two; without a fault none is lost, and nobody is waited for.
func TestManyRounds(t *testing.T) {
	rounds := suite.Size(30, 30, 100, 100)
	const step = 10 * drive.Second
	for _, c := range []struct {
		about string
		bad   func(w *jobtest.World, p *jobtest.Party)
		lost  int
		steps drive.Time // of which the time is lost
		named bool
	}{
		{"nobody", func(*jobtest.World, *jobtest.Party) {}, 0, 0, false},
		{"spoiler", func(w *jobtest.World, p *jobtest.Party) {
			p.Rewrite = shut(w, 3*2, 5)
			w.Heard = func(n drive.Notice) {
				if n.Kind == drive.Lost || n.Kind == drive.Summed {
					w.After(drive.Second/2, func() { p.Lose(); p.Start() })
				}
			}
		}, 1, 0, true},
		{"silent at the end", func(_ *jobtest.World, p *jobtest.Party) {
			p.Silent = func(k wire.Type) bool { return k == wire.TypeSigned || k == wire.TypeReveal }
		}, 0, 2, false},
		{"silent", func(_ *jobtest.World, p *jobtest.Party) {
			p.Silent = func(wire.Type) bool { return true }
		}, 0, 2, false},
	} {
		t.Run(c.about, func(t *testing.T) {
			w := jobtest.New(t, 9, jobtest.Options{Parties: 6, Survivors: 4,
				Rounds: uint64(rounds), Curious: true,
				StepTime: step, ComeBack: drive.Second,
				Work: func(int) drive.Time { return drive.Second }})
			for _, p := range w.Parties {
				p.Start()
			}
			c.bad(w, w.Parties[5])
			w.Run(w.Ended)
			named := false
			for _, n := range w.Notices {
				named = named || n.Kind == drive.Spoiler && n.Party == 5
			}
			t.Logf("%d sums, %d lost, %.1f s", len(w.Sums), w.Lost(),
				float64(w.Now())/float64(drive.Second))
			// A round takes a little over a second.
			ends := drive.Time(rounds)*drive.Second*11/10 + c.steps*step
			if int(w.Lost()) > c.lost || len(w.Sums)+int(w.Lost()) != rounds || named != c.named ||
				w.Now() > ends {
				w.Fatal("%d sums, %d lost, named %v", len(w.Sums), w.Lost(), named)
			}
		})
	}
}

// A party that sessions form for again and again waits twice as long for each, until it has behaved
// for that long.
func TestCaused(t *testing.T) {
	for _, c := range []struct {
		rounds []uint64
		want   uint64
	}{
		{[]uint64{10}, 10},
		{[]uint64{10, 11}, 12},
		{[]uint64{10, 11, 13}, 16},
		{[]uint64{10, 11, 16}, 19},
		{[]uint64{10, 11, 17}, 17},
	} {
		if got := drive.Until(c.rounds...); got != c.want {
			t.Errorf("%d: until %d, want %d", c.rounds, got, c.want)
		}
	}
}

// What is held against a party, and does not name it yet, goes on to a session that is set up while
// the round is open.
func TestDoubtsGoOn(t *testing.T) {
	w := jobtest.New(t, 9, jobtest.Options{Parties: 7, Survivors: 4, Rounds: 3, Curious: true,
		Work: func(int) drive.Time { return drive.Second }})
	told := false
	w.Parties[3].Rewrite = func(h wire.Header, b []byte) []byte {
		if told || h.Type != wire.TypeReveal {
			return b
		}
		told = true
		shares, err := wire.ParseReveal(b[wire.HeaderSize:], 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		shares[0].Share[0] ^= 1
		return shares.Append(h.Append(nil))
	}
	for _, p := range w.Parties[:6] {
		p.Start()
	}
	w.Run(func() bool { return w.Server.Status().Round == 1 })
	w.Parties[6].Start()
	w.Run(w.Ended)
	state, err := drive.StateOf(w.Server.Drive(), &keyexchange.SealKey{7})
	if err != nil {
		t.Fatal(err)
	}
	var saved struct{ Doubts [][2]int }
	fromGob(t, state, &saved)
	if !told || len(saved.Doubts) != 1 || !slices.Contains(saved.Doubts[0][:], 3) {
		w.Fatal("told %v, %v", told, saved.Doubts)
	}
}
