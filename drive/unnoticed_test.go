package drive_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// The tests of this file each fail for one small change to the code that no other test
// notices.

// Who is readmitted is in doubt no longer, and all other doubts remain; who is left out by an
// operator was not cleared of any.
func TestDoubtsOfReadmitted(t *testing.T) {
	server, _ := jobtest.Configs(t, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 3}, nil)
	key := &keyexchange.SealKey{7}
	s, err := drive.NewLead(server, 10)
	if err != nil {
		t.Fatal(err)
	}
	var saved savedServer
	save := func() {
		t.Helper()
		state, err := drive.StateOf(s, key)
		if err != nil {
			t.Fatal(err)
		}
		saved = savedServer{}
		fromGob(t, state, &saved)
	}
	save()
	saved.Faults[2] = savedFault{Excluded: true, Stalls: 3, Lapse: 8}
	saved.Doubts = [][2]int{{0, 2}, {1, 3}, {2, 3}}
	if s, err = drive.LoadLead(server, key, 10, gobOf(t, saved)); err != nil {
		t.Fatal(err)
	}
	s.Order(10, drive.Order{Do: drive.Exclude, Party: 1, Why: "by an operator"})
	s.Order(10, drive.Order{Do: drive.Readmit, Party: 2, Why: "by an operator"})
	save()
	if !slices.Equal(saved.Doubts, [][2]int{{1, 3}}) || saved.Faults[2] != (savedFault{}) {
		t.Errorf("doubts %v, faults %+v", saved.Doubts, saved.Faults)
	}
}

// Of what may leave at an instant nothing is left once it cannot, or has: neither of what a program
// has failed with, nor of zeros that a vector takes the place of, nor of the vector.
func TestInstantErased(t *testing.T) {
	var zeros, made []*masking.Vector
	b := newTable(t, func(c *drive.PartSettings) {
		c.After = 1
		c.Blank = func(_ uint64, v *masking.Vector) error {
			zeros = append(zeros, v)
			return v.Set([]uint64{5, 7})
		}
	})
	filled := func(v *masking.Vector) error {
		made = append(made, v)
		return full(v)
	}
	b.form(1)
	b.receive(0, b.begin(1, 1), 1)
	left := func(v *masking.Vector) bool {
		return slices.ContainsFunc(v.Values()[0], func(x uint64) bool { return x != 0 })
	}
	a := answer(drive.AskID{Session: 1, Round: 1}, 1)
	a.Fill = filled
	b.did(0, b.parties[0].Answer(a))
	if !left(zeros[0]) || left(made[0]) {
		t.Errorf("a failure leaves %v, and of zeros %v", made[0].Values(), zeros[0].Values())
	}
	a.Fill = func(v *masking.Vector) error { _ = filled(v); return nil }
	b.did(0, b.parties[0].Answer(a))
	if left(zeros[0]) || !left(made[1]) {
		t.Errorf("the vector is %v, and of zeros %v are left", made[1].Values(), zeros[0].Values())
	}
	b.did(0, b.parties[0].Instant(a))
	if len(zeros) != 1 || len(made) != 2 || left(made[1]) {
		t.Errorf("%d vectors of zeros, %d others, of the last %v are left", len(zeros), len(made),
			made[len(made)-1].Values())
	}
	// A round that is lost before the instant, and the next.
	b = newTable(t, func(c *drive.PartSettings) { c.After, c.Blank = 1, b.configs[0].Blank })
	b.form(1)
	b.receive(0, b.begin(1, 1), 1)
	b.did(0, b.parties[0].Answer(a))
	if err := b.servers[1].EndStep(); !errors.Is(err, protocol.ErrTooFew) {
		t.Fatal(err)
	}
	for i := range b.parties {
		for _, m := range b.servers[1].Pending(i) {
			b.receive(i, m, 0)
		}
	}
	b.receive(0, b.begin(1, 2), 2)
	if len(made) != 3 || left(made[2]) {
		t.Errorf("of %d vectors, the last is %v", len(made), made[len(made)-1].Values())
	}
}

// What leaves at instants is the vectors alone, though their room has been used before.
func TestInstantSums(t *testing.T) {
	b := newTable(t, func(c *drive.PartSettings) {
		c.After = 1
		c.Blank = func(_ uint64, v *masking.Vector) error { return v.Set([]uint64{5, 7}) }
	})
	b.form(1)
	for round := uint64(1); round <= 2; round++ {
		id := drive.AskID{Session: 1, Round: round}
		b.receive(0, b.begin(1, round), round)
		for i, p := range b.parties {
			if i > 0 {
				b.receive(i, b.servers[1].Pending(i)[0], round)
			}
			b.did(i, p.Answer(answer(id, round)))
		}
		b.did(0, b.parties[0].Instant(answer(id, round)))
		b.end(1)
		b.end(1)
		if sum, err := b.servers[1].Sum(); err != nil || !slices.Equal(sum[0], []uint64{3, 6}) {
			t.Fatalf("round %d: %v, %v", round, sum, err)
		}
	}
}

// Zeros with noise have nothing in them of what a program had begun to write.
func TestBlankFindsNothing(t *testing.T) {
	for name, fails := range failures {
		var found []uint64
		b := newTable(t, func(c *drive.PartSettings) {
			c.Blank = func(_ uint64, v *masking.Vector) error {
				found = v.Values()[0]
				return nil
			}
		})
		b.form(1)
		b.receive(0, b.begin(1, 1), 1)
		a := answer(drive.AskID{Session: 1, Round: 1}, 1)
		fails(&a)
		b.did(0, b.parties[0].Answer(a))
		if !slices.Equal(found, make([]uint64, 2)) {
			t.Errorf("%s: it finds %v", name, found)
		}
	}
}

// A party that was erased has nothing left to answer with.
func TestPartyErased(t *testing.T) {
	b := newTable(t, nil)
	b.form(1)
	b.receive(0, b.begin(1, 1), 1)
	b.parties[0].Erase()
	r, out := b.did(0, b.parties[0].Answer(answer(drive.AskID{Session: 1, Round: 1}, 1)))
	b.wantReport(r, drive.Late, nil)
	b.wantNothing(out)
}
