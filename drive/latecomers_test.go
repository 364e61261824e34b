package drive_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
)

// late starts parties, each so long after the first; nobody for a negative time.
func late(after func(drive.Time, func()), start func(i int), times []drive.Time) {
	for i, at := range times {
		if at >= 0 {
			after(at, func() { start(i) })
		}
	}
}

// The first round of a job waits for parties that come one after the other, and StepTime, 10 s,
// for one that never comes. A job that says how many its first round begins with waits for these
// for as long as it takes, and for no others.
func TestLatecomers(t *testing.T) {
	const s, never = drive.Second, drive.Time(-1)
	for _, c := range []struct {
		with      int // the first round begins
		come      []drive.Time
		in        []int
		from, end drive.Time // when there is a sum
	}{
		{0, []drive.Time{0, 4 * s, 15 * s, 24 * s}, []int{0, 1, 2, 3}, 24 * s, 25 * s},
		{0, []drive.Time{0, 0, 0, 0}, []int{0, 1, 2, 3}, 0, s},
		{0, []drive.Time{0, 4 * s, 15 * s, never}, []int{0, 1, 2}, 25 * s, 26 * s},
		{0, []drive.Time{0, 4 * s, 15 * s, 27 * s}, []int{0, 1, 2}, 25 * s, 26 * s},
		{4, []drive.Time{0, 4 * s, 15 * s, 900 * s}, []int{0, 1, 2, 3}, 900 * s, 901 * s},
		{3, []drive.Time{0, 4 * s, 15 * s, 24 * s}, []int{0, 1, 2}, 15 * s, 17 * s},
	} {
		t.Run(fmt.Sprint("pairwise ", c.with, c.come), func(t *testing.T) {
			w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 2, ComeBack: 2 * s,
				BeginWith: c.with})
			late(w.After, func(i int) { w.Parties[i].Start() }, c.come)
			w.Run(func() bool { return len(w.Sums) > 0 })
			if got := w.Sums[0].Parties; !slices.Equal(got, c.in) || w.Now() < c.from || w.Now() > c.end {
				t.Errorf("%v are in it at %v", got, w.Now())
			}
		})
		t.Run(fmt.Sprint("committee ", c.with, c.come), func(t *testing.T) {
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 3,
				Colluders: 1, Faults: 1, Rounds: 2, ComeBack: 2 * s, BeginWith: c.with})
			for _, m := range w.Members {
				m.Start()
			}
			late(w.After, func(i int) { w.Parties[i].Start() }, c.come)
			w.Run(func() bool { return w.Sums[1] != nil })
			if got := w.Sums[1]; !slices.Equal(got, c.in) || w.Now() < c.from || w.Now() > c.end {
				t.Errorf("%v are in it at %v", got, w.Now())
			}
		})
	}
}

// A server that waits for parties that have not come says until when, also one that was killed
// meanwhile.
func TestLatecomersShown(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 1})
	for _, p := range w.Parties[:3] {
		p.Start()
	}
	w.RunFor(drive.Second)
	d := w.Server.Drive()
	since, until := d.Status().Since, d.Until()
	if wait := until - since; wait < 9*drive.Second || wait > 10*drive.Second || !d.At(aParty(3)).Due {
		t.Errorf("of %d it waits until %d, for the last: %v", since, until, d.At(aParty(3)).Due)
	}
	w.Server.Kill()
	w.Server.Start()
	w.RunFor(5 * drive.Second)
	w.Parties[3].Start()
	w.Run(w.Ended)
	if got := w.Sums[0].Parties; len(got) != 4 {
		t.Errorf("%v are in it", got)
	}
}
