package simulation

import (
	"math"
	"testing"
	"time"

	"github.com/hushsum/hushsum/drive"
)

// A party that always takes longer than a step, and never leaves, has a few of thirty rounds wait
// for it, fewer and fewer: what it has done is remembered.
func TestSlowAlways(t *testing.T) {
	s := smallJob()
	s.Rounds = 30
	s.Time.StepTime = 2 * time.Second
	s.Parties.DropOut, s.Sum.Adversary = 0.3, "curious"
	set(s, who{Name: "p", Place: "here", Count: 5},
		who{Name: "slow", Place: "here", Compute: ms(1000), Slow: 10, Straggle: 1})
	waited, in := 0, 0
	for _, r := range simulate(t, s, dataRows(t)).Rounds {
		if r.Lost != nil {
			t.Errorf("round %d: %s", r.Round, r.Lost)
		}
		if r.Took >= 2*time.Second {
			waited++
		}
		if r.Each[5].Included {
			in++
		}
	}
	if waited < 1 || waited > 4 || in > 0 {
		t.Errorf("%d rounds wait for it, and it is in %d", waited, in)
	}
}

// A scenario has no party that lies. Whoever adds up believes of numbers what more than
// parties.colluders say, and never one party alone, as everywhere.
func TestHubNumbers(t *testing.T) {
	rows := dataRows(t)
	for _, c := range []struct {
		colluders int
		least     []uint64
		want      uint64
	}{
		{1, []uint64{math.MaxUint64, 0, 0, 0, 0}, 1},
		{1, []uint64{math.MaxUint64, 5, 0, 0, 0}, 5},
		{0, []uint64{9, 0, 0, 0, 0}, 1},
		{0, []uint64{9, 9, 0, 0, 0}, 9},
	} {
		s := smallJob()
		s.Parties.DropOut, s.Sum.Adversary, s.Parties.Colluders = 0.3, "curious", c.colluders
		r, err := newRounds(t.Context(), s, rows)
		if err != nil {
			t.Fatal(err)
		}
		r.round = 1
		if err := r.makeGroups(); err != nil {
			t.Fatal(err)
		}
		g := r.groups[0]
		if err := g.settle(r.present()); err != nil {
			t.Fatal(err)
		}
		if err := g.open(nil, false); err != nil {
			t.Fatal(err)
		}
		h := g.hubs[0]
		for i, least := range c.least {
			h.server.Connected(r.now(), drive.Peer{Index: i}, drive.Hello{Least: least})
		}
		h.proceed()
		if at := h.server.Status(); at.Session != c.want || at.Next.Number == 0 || r.failure != nil {
			t.Errorf("%+v: session %d, %v", c, at.Session, r.failure)
		}
	}
}
