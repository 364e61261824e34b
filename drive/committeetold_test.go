package drive_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/keyexchange"
)

// tick has a committee's server decide what is due, as its carrier does, and returns its notices.
func tick(t *testing.T, d drive.Lead, now drive.Time) (out []drive.Notice) {
	t.Helper()
	for {
		if err := d.Tick(now); err != nil {
			t.Fatal(err)
		}
		p, decided := d.Ready()
		if !decided {
			return out
		}
		out = append(out, p.Notices...)
		d.Advance(now)
	}
}

// A server believes that it was set back once one more than may lie say so, of the members or of
// the parties, and goes no further than the least of them says, nor than the job.
func TestCommitteeToldBeyond(t *testing.T) {
	for _, x := range []struct {
		parties, members []uint64
		want             uint64
	}{
		{nil, []uint64{5}, 0},
		{nil, []uint64{5, 3}, 3},
		{[]uint64{5}, nil, 0},
		{[]uint64{5, 3}, nil, 3},
		{[]uint64{5}, []uint64{5}, 0}, // each is one of those that may lie
		{nil, []uint64{1 << 63, 1<<64 - 1}, 9},
		{[]uint64{2, 2}, []uint64{4, 4}, 4},
	} {
		t.Run(fmt.Sprint(x), func(t *testing.T) {
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
				Faults: 1, Rounds: 9})
			d := w.Hub.Drive()
			for i, told := range x.members {
				d.Connected(1, aMember(i), drive.Hello{Told: told})
			}
			for i, told := range x.parties {
				d.Connected(1, aParty(i), drive.Hello{Told: told})
			}
			tick(t, d, 1)
			if s := d.Status(); s.Round != x.want || s.Lost != x.want {
				t.Fatalf("round %d, %d lost; want %d", s.Round, s.Lost, x.want)
			}
		})
	}
}

// A server that learns within a round that it was set back has lost that round too, with what the
// members were about to check, and goes on.
func TestCommitteeToldWithinRound(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 9})
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return drive.Batches(d) == 1 })
	for k := range 2 {
		d.Connected(w.Now(), aMember(k), drive.Hello{Told: 4})
	}
	tick(t, d, w.Now())
	if s := d.Status(); s.Round != 4 || s.Lost != 4 {
		t.Fatalf("round %d, %d lost", s.Round, s.Lost)
	}
	for _, m := range w.Members {
		m.Cut() // has the world go on
	}
	w.Run(func() bool {
		w.Hub.Restored()
		return w.Ended()
	})
	if len(w.Sums) != 5 {
		w.Fatal("%d sums", len(w.Sums))
	}
}

// A job that is paused while members make keys opens no round until it goes on.
func TestCommitteePausedBeforeOpening(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1})
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return d.Status().Stage == drive.Announcing })
	d.Order(w.Now(), drive.Order{Do: drive.Pause, Why: "maintenance"})
	w.RunFor(30 * drive.Second)
	if s := d.Status(); s.Round != 0 || s.Lost != 0 {
		t.Fatalf("round %d, %d lost", s.Round, s.Lost)
	}
	d.Order(w.Now(), drive.Order{Do: drive.Resume, Why: "done"})
	tick(t, d, w.Now())
	w.Parties[0].Cut() // has the world go on
	w.Run(w.Ended)
	if len(w.Sums) != 1 || w.Lost() != 0 {
		w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
	}
}

// A job spends what its rounds cost, those that were skipped too, and ends when no more may be.
func TestCommitteeBudget(t *testing.T) {
	for _, skipped := range []uint64{0, 2, 3, 4} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
			Faults: 1, Rounds: 9, Budget: 3})
		d := w.Hub.Drive()
		if skipped > 0 {
			for k := range 2 {
				d.Connected(0, aMember(k), drive.Hello{Told: skipped})
				d.Gone(0, aMember(k))
			}
			tick(t, d, 0)
		}
		startAll(w)
		w.Run(func() bool { return w.Ended() || len(w.Sums) > 0 })
		if !w.Ended() {
			w.Hub.Kill() // who is started again knows what was spent
			w.Hub.Start()
			w.Run(w.Ended)
		}
		if s := w.Hub.Drive().Status(); s.Ended != drive.BudgetSpent {
			t.Fatalf("%d skipped: it ended with %q", skipped, s.Ended)
		}
		want := 3 - int(skipped)
		if skipped > 3 { // they cannot be charged, and the job ends
			want = 0
		}
		if len(w.Sums) != want {
			w.Fatal("%d skipped: %d sums, want %d", skipped, len(w.Sums), want)
		}
	}
}

// Nothing that follows from a decision is given out before it is durable.
func TestCommitteeSavesFirst(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1})
	d := w.Hub.Drive()
	d.Connected(1, aMember(0), drive.Hello{})
	d.Connected(1, aParty(0), drive.Hello{})
	count := func() (member, party int) {
		for range d.Pending(aMember(0)) {
			member++
		}
		for range d.Pending(aParty(0)) {
			party++
		}
		return member, party
	}
	tick(t, d, 1)
	if m, p := count(); m != 1 || p != 0 {
		t.Errorf("%d items of a member and %d of a party", m, p)
	}
	d.Order(2, drive.Order{Do: drive.End, Why: "enough"})
	if m, p := count(); m != 0 || p != 0 {
		t.Error("the end is told before it is saved")
	}
	tick(t, d, 2)
	if m, p := count(); m != 1 || p != 1 {
		t.Errorf("%d items of a member and %d of a party", m, p)
	}
}

// The time of who is waited for counts from when the question is durable, however long that takes.
func TestCommitteeSavesSlowly(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1})
	w.Parties[2].Tease()
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return drive.Has(d, 0) && drive.Has(d, 1) })
	now := w.Now() + drive.Second
	if err := d.Tick(now); err != nil || drive.Batches(d) != 1 {
		t.Fatalf("%v, %d batches", err, drive.Batches(d))
	}
	d.Ready()
	now += 60 * drive.Second
	d.Advance(now)
	for _, n := range tick(t, d, now+9*drive.Second) {
		if n.Kind == drive.Stall && n.Member {
			t.Errorf("member %d had no time", n.Party)
		}
	}
}

// A state of another format, or in no stage that is saved, is refused by name.
func TestCommitteeOtherFormat(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, small)
	for want, in := range map[string]struct {
		Format int
		Stage  drive.Stage
	}{"format 2": {2, drive.Announcing}, "format 0": {0, drive.Announcing}, "format 1": {1, 0}} {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(in); err != nil {
			t.Fatal(err)
		}
		_, err := drive.LoadLead(w.Hub.Config(), &keyexchange.SealKey{1}, 0, b.Bytes())
		if !errors.Is(err, drive.ErrState) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
