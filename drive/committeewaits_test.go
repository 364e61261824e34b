package drive_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/wire"
)

// The types of a member's messages, and of a party's (SPEC-ONESHOT.md §6).
const (
	typeKey        wire.Type = 65
	typeSubmission wire.Type = 67
	typeDisputes   wire.Type = 69
	typeSigned     wire.Type = 72
	typePart       wire.Type = 74
)

func typeOf(message []byte) wire.Type {
	h, _, _ := wire.ParseHeader(message)
	return h.Type
}

// silent has seats keep messages of a type.
func silent(kind wire.Type, seats ...*jobtest.Seat) {
	for _, s := range seats {
		s.Silent = func(b []byte) bool { return typeOf(b) == kind }
	}
}

// leaves has seats go in place of a message of a type, and not come back.
func leaves(kind wire.Type, seats ...*jobtest.Seat) {
	for _, s := range seats {
		s.Silent = func(b []byte) bool {
			if typeOf(b) != kind {
				return false
			}
			s.Away = true
			s.Cut()
			return true
		}
	}
}

// slow has messages of a type arrive after 12 s, when they had their time.
func slow(kind wire.Type, seats ...*jobtest.Seat) {
	for _, s := range seats {
		s.Silent = func(b []byte) bool {
			s.Late = 0
			if typeOf(b) == kind {
				s.Late = 12 * drive.Second
			}
			return false
		}
	}
}

// How long rounds take, to the millisecond of virtual time, where somebody keeps silent or is gone.
// A hop takes 10 ms, as training does, and a program 1 ms to apply a sum: a round of which nobody
// is missing ends 151 ms after the one before. StepTime is 10 s.
func TestCommitteeWaits(t *testing.T) {
	type council = jobtest.Council
	for _, x := range []struct {
		name string
		set  func(w *council)
		sums []int // milliseconds at which rounds have their sums, negative if they are lost
		ends bool  // the job
	}{
		{"nobody is missing", func(w *council) {}, []int{161, 312, 463}, true},
		// Who is here and silent has a StepTime once, and then the Floor, or four medians.
		{"a member keeps its keys",
			func(w *council) { silent(typeKey, w.Members[1]) }, []int{10141, 10392, 10603}, true},
		{"a member keeps its word on batches",
			func(w *council) { silent(typeDisputes, w.Members[1]) }, []int{10141, 10352, 10563}, true},
		{"a member keeps its signatures",
			func(w *council) { silent(typeSigned, w.Members[1]) }, []int{10141, 10352, 10563}, true},
		{"a member keeps its parts",
			func(w *council) { silent(typePart, w.Members[1]) }, []int{10141, 10352, 10563}, true},
		{"a member says nothing from a batch on", func(w *council) {
			w.Members[1].Silent = func(b []byte) bool { return typeOf(b) > typeKey }
		}, []int{10141, 10352, 10563}, true},
		{"a party keeps its submissions",
			func(w *council) { silent(typeSubmission, w.Parties[1]) }, []int{10101, 10692, 11283}, true},
		// Who is gone may come back within a second, ten times less than a StepTime.
		{"a member goes in place of a key",
			func(w *council) { leaves(typeKey, w.Members[1]) }, []int{1161, 1362, 1563}, true},
		{"a member goes in place of its word on a batch",
			func(w *council) { leaves(typeDisputes, w.Members[1]) }, []int{1311, 1512, 1713}, true},
		{"a member goes in place of a signature",
			func(w *council) { leaves(typeSigned, w.Members[1]) }, []int{1211, 1412, 1613}, true},
		{"a member goes in place of a part",
			func(w *council) { leaves(typePart, w.Members[1]) }, []int{1161, 1362, 1563}, true},
		{"a party goes in place of a submission",
			func(w *council) { leaves(typeSubmission, w.Parties[1]) }, []int{1121, 1322, 1523}, true},
		{"a member never comes",
			func(w *council) { w.Members[1].Away = true }, []int{1131, 1332, 1533}, true},
		// The first round has a StepTime for those that have not come yet.
		{"a party never comes",
			func(w *council) { w.Parties[1].Away = true }, []int{10051, 10252, 10453}, true},
		// Two are more than may be missing: rounds are lost once they have had their StepTime, and the
		// next begin 1 and 2 s later.
		{"two members keep their keys",
			func(w *council) { silent(typeKey, w.Members[1:3]...) }, nil, false},
		{"two members keep their word on batches",
			func(w *council) { silent(typeDisputes, w.Members[1:3]...) }, []int{20121, 40232, 60343}, true},
		{"two members keep their signatures",
			func(w *council) { silent(typeSigned, w.Members[1:3]...) }, []int{-10120, -21230, -33340}, true},
		{"two members keep their parts",
			func(w *council) { silent(typePart, w.Members[1:3]...) }, []int{-10140, -21270, -33400}, true},
		{"two members go in place of signatures",
			func(w *council) { leaves(typeSigned, w.Members[1:3]...) }, []int{-10120}, false},
		{"two members go in place of parts",
			func(w *council) { leaves(typePart, w.Members[1:3]...) }, []int{-10140}, false},
		{"three parties go in place of submissions",
			func(w *council) { leaves(typeSubmission, w.Parties[1:4]...) }, nil, false},
		// Who is slow is waited for.
		{"two members' keys take 12 s",
			func(w *council) { slow(typeKey, w.Members[1:3]...) }, []int{12161, 24312, 36463}, true},
		{"two parties have nothing, and one comes after 30 s", func(w *council) {
			late := w.Parties[1]
			late.Away = true
			w.After(30*drive.Second, func() {
				late.Away = false
				late.Connect()
			})
			for _, p := range w.Parties[2:] {
				p.NoVector = func(uint64) bool { return true }
			}
		}, []int{30121, 30252, 30383}, true},
		{"two parties never come, and one takes 12 s", func(w *council) {
			slow(typeSubmission, w.Parties[1])
			for _, p := range w.Parties[2:] {
				p.Away = true
			}
		}, []int{13391, 38772, 64153}, true},
		// Those without whom there is no sum have their StepTime again and again.
		{"three parties keep their first submissions, and one takes 5 s later", func(w *council) {
			for i, p := range w.Parties[1:] {
				p.Silent = func(b []byte) bool {
					if i == 0 && w.Lost() > 0 {
						p.Late = 5 * drive.Second
					}
					return i > 0 || w.Lost() == 0
				}
			}
		}, []int{-20060, 26191, 41322}, true},
		// Who uploads without having been told to is told when there is room.
		{"everybody uploads at once", func(w *council) {
			for _, p := range w.Parties {
				p.Pushes = true
			}
		}, []int{141, 272, 403}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 5, Survivors: 2,
				Faults: 1, Rounds: 3, Batch: 2})
			x.set(w)
			startAll(w)
			var got []int
			for seen := 0; w.Now() < 100*drive.Second && !w.Ended() && w.Step(); {
				for ; seen < len(w.Notices); seen++ {
					switch at := int(w.Now() / drive.Millisecond); w.Notices[seen].Kind {
					case drive.Summed:
						got = append(got, at)
					case drive.Lost:
						got = append(got, -at)
					}
				}
			}
			if !slices.Equal(got, x.sums) || w.Ended() != x.ends {
				w.Fatal("%q: %s, %v; want %v", x.name, fmt.Sprint(got), w.Ended(), x.sums)
			}
		})
	}
}

// A server that is started again knows who has let steps pass, and how long they take: it waits for
// those who may come back, and not for a StepTime again.
func TestCommitteeWaitsOn(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 5, Survivors: 2,
			Faults: 1, Rounds: 2})
		if late {
			silent(typeSubmission, w.Parties[1])
		} else {
			silent(typeDisputes, w.Members[1])
		}
		startAll(w)
		w.Run(func() bool { return len(w.Sums) == 1 })
		w.Hub.Kill()
		w.Hub.Start()
		again := w.Now()
		w.Run(w.Ended)
		if took := w.Now() - again; took > 3*drive.Second || len(w.Sums) != 2 {
			w.Fatal("%d sums, the second after %d ms", len(w.Sums), took/drive.Millisecond)
		}
	}
}

// A round opens with the keys of those who may come back, since it bears more faults then. Later it
// is not held up for them where enough have answered.
func TestCommitteeWaitsForKeys(t *testing.T) {
	for kind, waits := range map[wire.Type]bool{typeKey: true, typeSigned: false, typePart: false} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
			Faults: 1, Rounds: 1, StepTime: 100 * drive.Second, ComeBack: 5 * drive.Second})
		leaves(kind, w.Members[1])
		startAll(w)
		w.Run(w.Ended)
		if len(w.Sums) != 1 || w.Now() > 5*drive.Second != waits {
			w.Fatal("who goes in place of message %d: %d sums at %d ms", kind, len(w.Sums),
				w.Now()/drive.Millisecond)
		}
	}
}

// A server that is started again long after a round began does not count that time against those
// who have to come back first.
func TestCommitteeLoadedLate(t *testing.T) {
	for _, stage := range []drive.Stage{drive.Signing, drive.Revealing} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 5, Survivors: 2,
			Faults: 1, Rounds: 1})
		silent(typeSubmission, w.Parties[1]) // for a StepTime
		startAll(w)
		w.Run(func() bool { return w.Hub.Drive().Status().Stage == stage })
		w.Hub.Kill()
		w.Hub.Start()
		w.Run(w.Ended)
		if w.Lost() > 0 || w.Now() < 10*drive.Second {
			w.Fatal("%d lost", w.Lost())
		}
	}
}

// While what is durable is out of reach nobody lets a step pass: in whichever stage that is, waits
// begin anew when it is back, and no round is lost.
func TestCommitteeCutOff(t *testing.T) {
	for stage := drive.Announcing; stage <= drive.Revealing; stage++ {
		if stage > drive.Announcing && stage < drive.Submitting {
			continue // of sessions
		}
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 5, Survivors: 3,
			Faults: 1, Rounds: 2, Work: func() drive.Time { return drive.Second }})
		startAll(w)
		d := w.Hub.Drive()
		w.Run(func() bool { return d.Status().Stage == stage })
		w.Hub.CutOff()
		w.RunFor(drive.Minute)
		w.Hub.Reach()
		w.Run(w.Ended)
		if w.Lost() > 0 || len(w.Sums) != 2 || len(w.Sums[1]) != 4 {
			w.Fatal("cut off while %v: %v, %d lost", stage, w.Sums, w.Lost())
		}
		for _, n := range w.Notices {
			if n.Kind == drive.Stall {
				w.Fatal("cut off while %v: %v %d", stage, n.Kind, n.Party)
			}
		}
	}
}

// By an operator's order a party is in no more sums, also after a restart, until another readmits
// it; an order that changes nothing says nothing, nor does one after the end.
func TestCommitteeOrders(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 6})
	startAll(w)
	at := func(sums int) drive.Lead {
		w.Run(func() bool { return len(w.Sums) == sums })
		return w.Hub.Drive()
	}
	said := func(kind drive.NoticeKind) (n int) {
		for _, x := range w.Notices {
			if x.Kind == kind {
				n++
			}
		}
		return n
	}
	d := at(2)
	for range 2 {
		d.Order(w.Now(), drive.Order{Do: drive.Exclude, Party: 1, Why: "by ann"})
	}
	d.Order(w.Now(), drive.Order{Do: drive.Readmit, Party: 2, Why: "by ann"})
	at(3)
	w.Hub.Kill()
	w.Hub.Start()
	if d = at(4); !d.At(aParty(1)).Excluded || d.At(aParty(2)).Excluded {
		t.Errorf("excluded: %v, %v", d.At(aParty(1)).Excluded, d.At(aParty(2)).Excluded)
	}
	for range 2 {
		d.Order(w.Now(), drive.Order{Do: drive.Readmit, Party: 1, Why: "by ann"})
	}
	w.Run(w.Ended)
	d.Order(w.Now(), drive.Order{Do: drive.Exclude, Party: 3, Why: "by ann"})
	for round, want := range [][]int{1: {0, 1, 2, 3}, 2: {0, 1, 2, 3}, 3: {0, 2, 3}, 4: {0, 2, 3},
		5: {0, 1, 2, 3}, 6: {0, 1, 2, 3}} {
		if got := w.Sums[uint64(round)]; !slices.Equal(got, want) {
			t.Errorf("round %d has %v, want %v", round, got, want)
		}
	}
	if d.At(aParty(3)).Excluded || said(drive.Excluded) != 1 || said(drive.Readmitted) != 1 {
		t.Errorf("%d and %d notices", said(drive.Excluded), said(drive.Readmitted))
	}
}
