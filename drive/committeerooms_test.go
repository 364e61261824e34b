package drive_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
)

// submitting makes a world in whose first round some parties may submit that have no processes, and
// the test speaks for them.
func submitting(
	t *testing.T, o jobtest.CouncilOptions, parties ...int,
) (w *jobtest.Council, d drive.Lead) {
	t.Helper()
	o.Members, o.Faults = 4, 1
	w = jobtest.NewCouncil(t, 1, o)
	d = w.Hub.Drive()
	for _, m := range w.Members {
		m.Start()
	}
	for _, i := range parties {
		d.Connected(w.Now(), aParty(i), drive.Hello{})
	}
	w.Run(func() bool { return d.Status().Stage == drive.Submitting })
	return w, d
}

// uploads lists those of four parties that are told to upload, once what is due was decided.
func uploads(t *testing.T, w *jobtest.Council, d drive.Lead) (out []int) {
	t.Helper()
	tick(t, d, w.Now())
	for i := range 4 {
		for item := range d.Pending(aParty(i)) {
			if item.Kind == drive.Upload {
				out = append(out, i)
			}
		}
	}
	return out
}

// Room for uploads is given once to each that has offered, in the order in which they have, and is
// there again for the others when a party has no use for it.
func TestCommitteeRooms(t *testing.T) {
	all := []int{0, 1, 2, 3}
	for _, x := range []struct {
		name  string
		batch int
		do    func(w *jobtest.Council, d drive.Lead)
		want  []int
	}{
		{"there is room for one", 1, func(w *jobtest.Council, d drive.Lead) {
			d.Said(w.Now(), aParty(2), drive.Said{Offer: 1})
			d.Said(w.Now(), aParty(0), drive.Said{Offer: 1})
		}, []int{2}},
		{"one offers twice", 2, func(w *jobtest.Council, d drive.Lead) {
			d.Said(w.Now(), aParty(1), drive.Said{Offer: 1})
			d.Said(w.Now(), aParty(1), drive.Said{Offer: 1})
			d.Said(w.Now(), aParty(3), drive.Said{Offer: 1})
		}, []int{1, 3}},
		{"one offers for another round", 1, func(w *jobtest.Council, d drive.Lead) {
			d.Said(w.Now(), aParty(1), drive.Said{Offer: 2})
		}, nil},
		{"one is absent and offers", 1, func(w *jobtest.Council, d drive.Lead) {
			d.Said(w.Now(), aParty(1), drive.Said{Absent: 1})
			d.Said(w.Now(), aParty(1), drive.Said{Offer: 1})
			d.Said(w.Now(), aParty(2), drive.Said{Offer: 1})
		}, []int{2}},
		{"one goes and comes back between two decisions", 1,
			func(w *jobtest.Council, d drive.Lead) {
				d.Said(w.Now(), aParty(1), drive.Said{Offer: 1})
				uploads(t, w, d)
				d.Said(w.Now(), aParty(2), drive.Said{Offer: 1})
				d.Gone(w.Now(), aParty(1))
				d.Connected(w.Now(), aParty(1), drive.Hello{})
			}, []int{2}},
		{"one that waits for room goes", 1, func(w *jobtest.Council, d drive.Lead) {
			for _, i := range all[:3] {
				d.Said(w.Now(), aParty(i), drive.Said{Offer: 1})
			}
			uploads(t, w, d)
			d.Gone(w.Now(), aParty(1))
			d.Said(w.Now(), aParty(0), drive.Said{Absent: 1})
			if got := orders(t, w, d); !slices.Equal(got, []int{2}) {
				t.Errorf("%v are told", got)
			}
		}, []int{2}},
		{"one is absent in another round", 1, func(w *jobtest.Council, d drive.Lead) {
			absent := func(round uint64) bool {
				return d.Said(w.Now(), aParty(1), drive.Said{Absent: round})
			}
			if absent(2) || !absent(1) || absent(1) {
				t.Error("an absence counts in another round, or twice")
			}
			d.Said(w.Now(), aParty(2), drive.Said{Offer: 1})
		}, []int{2}},
	} {
		w, d := submitting(t, jobtest.CouncilOptions{Parties: 4, Survivors: 2, Rounds: 1,
			Batch: x.batch}, all...)
		x.do(w, d)
		if got := uploads(t, w, d); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v are told to upload, want %v", x.name, got, x.want)
		}
	}
}

// orders has a server decide, and returns whom its orders name.
func orders(t *testing.T, w *jobtest.Council, d drive.Lead) []int {
	t.Helper()
	if err := d.Tick(w.Now()); err != nil {
		t.Fatal(err)
	}
	d.Ready()
	return d.Advance(w.Now()).Upload
}

// Who waited for room, or had it, when a round was lost has to offer anew in the next.
func TestCommitteeRoomsAnew(t *testing.T) {
	w, d := submitting(t, jobtest.CouncilOptions{Parties: 4, Survivors: 2, Rounds: 9, Batch: 1},
		0, 1, 2, 3)
	for i := range 4 {
		d.Said(w.Now(), aParty(i), drive.Said{Offer: 1})
	}
	if got := uploads(t, w, d); !slices.Equal(got, []int{0}) {
		t.Fatalf("%v are told to upload", got)
	}
	for k := range 2 {
		d.Connected(w.Now(), aMember(k), drive.Hello{Told: 4})
	}
	tick(t, d, w.Now())
	for _, m := range w.Members {
		m.Cut() // has the world go on
	}
	w.Run(func() bool { return d.Status().Round == 5 })
	if got := uploads(t, w, d); got != nil {
		t.Errorf("%v are told to upload what they have not offered", got)
	}
	d.Said(w.Now(), aParty(3), drive.Said{Offer: 5})
	if got := uploads(t, w, d); !slices.Equal(got, []int{3}) {
		t.Errorf("%v are told to upload, want 3", got)
	}
}

// Who was told to upload, and finds its room taken by one that was not, is told again when there is
// room, and not before.
func TestCommitteeRoomTaken(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1, Batch: 1})
	submitted := make(map[int][]byte)
	for i, p := range w.Parties[:2] {
		p.Pushes = true
		p.Silent = func(b []byte) bool {
			submitted[i] = b
			return true
		}
	}
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return len(submitted) == 2 })
	d.Said(w.Now(), aParty(0), drive.Said{Offer: 1})
	if got := uploads(t, w, d); !slices.Equal(got, []int{0}) {
		t.Fatalf("%v are told to upload", got)
	}
	told := func() (name string) {
		for item := range d.Pending(aParty(0)) {
			name = item.Name
		}
		return name
	}
	first := told()
	if err := receive(d, w, aParty(1), submitted[1]); err != nil {
		t.Fatal(err)
	}
	if err := receive(d, w, aParty(0), submitted[0]); !errors.Is(err, oneshot.ErrFull) {
		t.Fatalf("there is room: %v", err)
	}
	for item := range d.Pending(aParty(0)) {
		if item.Kind == drive.Upload {
			t.Error("it is told to upload, and there is no room")
		}
	}
	if got := uploads(t, w, d); !slices.Equal(got, []int{0}) { // the batch is with the members
		t.Errorf("%v are told to upload", got)
	}
	if again := told(); again == first {
		t.Errorf("what it is told again is named %s as before", again)
	}
}

// A party that polls and is not heard of loses its room when steps do not wait for it any more,
// before it counts as gone.
func TestCommitteeRoomFades(t *testing.T) {
	w, d := submitting(t, jobtest.CouncilOptions{Parties: 4, Survivors: 2, Rounds: 1, Batch: 1,
		Away: 20 * drive.Second, StepTime: 100 * drive.Second}, 0, 1)
	d.Said(w.Now(), aParty(0), drive.Said{Offer: 1})
	d.Said(w.Now(), aParty(1), drive.Said{Offer: 1})
	d.Gone(w.Now(), aParty(0))
	if got := uploads(t, w, d); !slices.Equal(got, []int{0}) {
		t.Fatalf("%v are told to upload", got)
	}
	w.RunFor(4 * drive.Second)
	if got := uploads(t, w, d); !slices.Contains(got, 1) {
		t.Fatalf("after 4 s %v are told to upload", got)
	}
	if !d.At(aParty(0)).Here {
		t.Error("it counts as gone")
	}
	d.Heard(w.Now(), aParty(0))
	w.RunFor(19 * drive.Second)
	tick(t, d, w.Now())
	if !d.At(aParty(0)).Here {
		t.Error("who was heard of 19 s ago counts as gone")
	}
	d.Heard(w.Now(), aParty(3))
	if at := d.At(aParty(3)); at.Here || at.Ever {
		t.Error("who has only been heard of counts as here")
	}
}

// itemsOf lists what a member is handed, with its bytes.
func itemsOf(d drive.Lead, member int) map[string]string {
	out := make(map[string]string)
	for item := range d.Pending(aMember(member)) {
		out[item.Name] = string(item.Own)
	}
	return out
}

// At every instant of a job the server hands out, byte for byte, the items that it would hand out
// if it were started again: but for keys not yet opened with, and batches that were settled.
func TestCommitteeHandsOutWhatIsSaved(t *testing.T) {
	for _, o := range []jobtest.CouncilOptions{
		{Batch: 1},
		{Batch: 2, Covered: true},
		{Batch: 1, Buffer: 3, Stale: 1},
		{},
	} {
		o.Parties, o.Members, o.Survivors, o.Faults, o.Rounds = 5, 4, 2, 1, 2
		w := jobtest.NewCouncil(t, 1, o)
		w.Parties[4].Late = drive.Second // a batch was settled long before the round closes
		startAll(w)
		w.Run(func() bool {
			d := w.Hub.Drive()
			saves := w.Hub.Saves
			if saves == 0 || w.Ended() {
				return w.Ended()
			}
			kept, err := d.Save(&keyexchange.SealKey{7})
			if n := len(kept.Needed); err != nil || n > 1 && !o.Covered {
				w.Fatal("%d objects are kept", n)
			}
			again := w.Hub.Restored()
			for k := range 4 {
				had := itemsOf(again, k)
				for name, own := range itemsOf(d, k) {
					_, what, _ := strings.Cut(name, ".")
					number := 0
					if _, err := fmt.Sscanf(what, "batch%d", &number); err != nil {
						fmt.Sscanf(what, "settled%d", &number)
					}
					saved, found := had[name]
					if found && saved != own {
						w.Fatal("%+v: member %d is handed %s, and would be handed another", o, k, name)
					}
					batches := drive.Batches(d)
					if found || what == "invite" || number > 0 && number < batches {
						continue
					}
					if strings.HasPrefix(what, "batch") && had[fmt.Sprint(name[:2], "settled", number)] != "" {
						continue
					}
					w.Fatal("%+v: member %d is handed %s, which is not saved", o, k, name)
				}
			}
			return false
		})
		if w.Lost() > 0 {
			w.Fatal("%d lost", w.Lost())
		}
	}
}

// What members are sent of a batch is made again from what is saved of it, and is not saved twice.
func TestCommitteeSavesNoShares(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1})
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return drive.Batches(d) == 1 })
	state, err := drive.StateOf(d, &keyexchange.SealKey{1})
	if err != nil {
		t.Fatal(err)
	}
	for name, own := range itemsOf(d, 0) {
		if in := bytes.Contains(state, []byte(own)); in != (name == "1.opening") {
			t.Errorf("%s is saved: %v", name, in)
		}
	}
}

// Members may be a few batches behind, and are handed no more than these. Who has sent no key is
// handed nothing.
func TestCommitteeBatchesBehind(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 9, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1, Batch: 1})
	silent(typeKey, w.Members[3])
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return d.Status().Stage == drive.Signing })
	for name := range itemsOf(d, 3) {
		t.Errorf("a member without a key is handed %s", name)
	}
	var names []string
	for item := range d.Pending(aMember(0)) {
		names = append(names, item.Name)
	}
	want := []string{"1.opening", "1.batch6", "1.settled6", "1.batch7", "1.settled7", "1.batch8",
		"1.settled8", "1.batch9", "1.settled9", "1.closing"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// A round with a buffer goes to the members in batches that are full, and the last.
func TestBufferBatches(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 8, Members: 4, Survivors: 3,
		Faults: 1, Rounds: 6, Buffer: 5, Stale: 3, Batch: 3, Work: logNormal(1, drive.Second, 1)})
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool {
		if drive.Batches(d) > 2 {
			w.Fatal("round %d has %d batches", d.Status().Round, drive.Batches(d))
		}
		return w.Ended()
	})
	if len(w.Sums) != 6 {
		w.Fatal("%d sums", len(w.Sums))
	}
}

// A server takes nothing from a party that has spoilt a round, does not ask it, opens no round for
// it alone, and says once who it is. The rounds without it take no longer than others.
func TestCommitteeExcluded(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 5, Members: 4, Survivors: 3,
		Colluders: 1, Faults: 1, Rounds: 6, Covered: true})
	w.Parties[2].Rewrite = jobtest.BadCover(w, 2)
	startAll(w)
	w.Run(func() bool { return w.Lost() == 1 })
	d := w.Hub.Drive()
	w.Run(func() bool { return d.Status().Round == 2 })
	begun := w.Now()
	if err := receive(d, w, aParty(2), nil); !errors.Is(err, drive.ErrExcluded) {
		t.Errorf("Receive: %v", err)
	}
	for item := range d.Pending(aParty(2)) {
		t.Errorf("it is handed %s", item.Name)
	}
	w.Run(func() bool { return len(w.Sums) == 3 })
	if took := w.Now() - begun; took > drive.Second {
		w.Fatal("three rounds took %d ms", took/drive.Millisecond)
	}
	named := 0
	for _, n := range w.Notices {
		if n.Kind == drive.Spoiler {
			named++
		}
	}
	if named != 1 {
		t.Errorf("it is named %d times", named)
	}
	for i, p := range w.Parties {
		if i != 2 {
			p.Away = true
			p.Cut()
		}
	}
	round := d.Status().Round
	w.RunFor(60 * drive.Second)
	if s := d.Status(); s.Round != round {
		t.Errorf("round %d begins for it alone", s.Round)
	}
}

// Parts of members that do not fit together are waited on while more may come, and cost the round
// then, not the job.
func TestCommitteeWrongParts(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 3})
	w.Members[0].Rewrite = func(b []byte) []byte {
		if b = slices.Clone(b); typeOf(b) == typePart {
			b[len(b)-33] ^= 1
		}
		return b
	}
	silent(typePart, w.Members[1])
	startAll(w)
	w.Run(w.Ended)
	for _, n := range w.Notices {
		if n.Kind == drive.Lost && !errors.Is(n.Err, oneshot.ErrParts) {
			w.Fatal("round %d is lost to %v", n.Round, n.Err)
		}
	}
	if w.Lost() != 3 || len(w.Sums) != 0 {
		w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
	}
}
