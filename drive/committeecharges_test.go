package drive_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/oneshot"
)

// spent returns what a party has spent, by the server's ledger.
func spent(t *testing.T, w *jobtest.Council, party int) float64 {
	t.Helper()
	s, err := w.Hub.Drive().Ledger().Spent(w.Name(party))
	if err != nil {
		t.Fatal(err)
	}
	return s.Bare().Upper
}

// In a round with a buffer whoever has submitted is charged, however the round ends: for want of
// others, with a server that was set back, or with the job.
func TestBufferChargedHowever(t *testing.T) {
	for _, x := range []struct {
		name  string
		ends  func(w *jobtest.Council)
		whole int // rounds that all are charged for besides
	}{
		{"others are missing", func(w *jobtest.Council) {
			w.Run(func() bool { return w.Lost() == 1 })
		}, 0},
		{"the server was set back", func(w *jobtest.Council) {
			for k := range 2 {
				w.Hub.Drive().Connected(w.Now(), aMember(k), drive.Hello{Told: 3})
			}
			tick(t, w.Hub.Drive(), w.Now())
		}, 2},
		{"the job ends", func(w *jobtest.Council) {
			w.Hub.Drive().Order(w.Now(), drive.Order{Do: drive.End, Why: "enough"})
		}, 0},
	} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 3,
			Faults: 1, Rounds: 9, Buffer: 3, Stale: 2, Budget: 9})
		for _, p := range w.Parties[1:] {
			p.Tease()
		}
		startAll(w)
		w.Run(func() bool { return drive.Has(w.Hub.Drive(), 0) })
		x.ends(w)
		costs := func(rounds int) float64 {
			if rounds == 0 {
				return 0
			}
			s, err := w.Hub.Config().Cost.Spent(w.Hub.Drive().Ledger().View(), rounds, 1e-5)
			if err != nil {
				t.Fatal(err)
			}
			return s.Bare().Upper
		}
		if got, want := spent(t, w, 0), costs(x.whole+1); got != want {
			t.Errorf("%s: who has submitted has spent %v, want %v", x.name, got, want)
		}
		if got, want := spent(t, w, 1), costs(x.whole); got != want {
			t.Errorf("%s: who has not has spent %v, want %v", x.name, got, want)
		}
	}
}

// Who was charged when a round with a buffer closed is not charged again when the job ends before
// its sum.
func TestBufferChargedOnce(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 3,
		Faults: 1, Rounds: 9, Buffer: 3, Stale: 2, Budget: 9})
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return d.Status().Stage == drive.Signing })
	before := spent(t, w, 0)
	d.Order(w.Now(), drive.Order{Do: drive.End, Why: "enough"})
	if after := spent(t, w, 0); before == 0 || after != before {
		t.Errorf("%v was spent, and then %v", before, after)
	}
}

// A buffer that is full takes no more while its batch is with the members, also from one that was
// told to upload.
func TestBufferFull(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 1, Buffer: 2, Stale: 2})
	var late []byte
	w.Parties[0].Silent = func(b []byte) bool {
		late = b
		return true
	}
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return drive.Has(d, 1) && drive.Has(d, 2) })
	if err := receive(d, w, aParty(0), late); !errors.Is(err, oneshot.ErrFull) {
		t.Errorf("a third submission: %v", err)
	}
	d.Said(w.Now(), aParty(0), drive.Said{Absent: 1})
	if err := receive(d, w, aParty(0), late); !errors.Is(err, oneshot.ErrFull) {
		t.Errorf("a third submission, of a party that has said it has none: %v", err)
	}
	w.Run(w.Ended)
	if got := w.Sums[1]; !slices.Equal(got, []int{1, 2}) {
		t.Errorf("the round has %v", got)
	}
}

// A party that has submitted as often as was agreed, or as its budget allows, is refused when it
// uploads unasked: it is in no more sums, is not charged for more, and takes nobody's room.
func TestBufferOften(t *testing.T) {
	for _, o := range []jobtest.CouncilOptions{{Submissions: 2}, {Budget: 2}} {
		o.Parties, o.Members, o.Survivors, o.Faults = 7, 4, 3, 1
		o.Rounds, o.Buffer, o.Stale = 9, 3, 2
		w := jobtest.NewCouncil(t, 1, o)
		greedy := w.Parties[0]
		greedy.Often, greedy.Pushes = true, true
		sent := make(map[uint64][]byte)
		greedy.Rewrite = func(b []byte) []byte {
			sent[w.Hub.Drive().Status().Round] = bytes.Clone(b)
			return b
		}
		startAll(w)
		d := w.Hub.Drive()
		w.Run(func() bool { return w.Ended() || len(w.Sums) == 3 && len(sent) > 2 })
		if !w.Logged("server refuses party 0: " + drive.ErrOften.Error()) {
			w.Fatal("it was not refused: %d rounds, %+v", len(sent), d.Status())
		}
		if err := receive(d, w, aParty(0), sent[1]); !errors.Is(err, oneshot.ErrPhase) {
			w.Fatal("a copy of what it sent before: %v", err)
		}
		w.Run(w.Ended)
		in := 0
		for round, who := range w.Sums {
			if len(who) != o.Buffer {
				w.Fatal("round %d has %v", round, who)
			}
			if slices.Contains(who, 0) {
				in++
			}
		}
		if in != 2 {
			w.Fatal("it is in %d sums", in)
		}
		if o.Budget > 0 {
			if got, allowed := spent(t, w, 0), d.Ledger().Budget(w.Name(0)).Target().Epsilon; got > allowed {
				w.Fatal("it has spent %v of %v", got, allowed)
			}
		}
	}
}

// What parties have spent in earlier jobs, each something else, bounds how often each may submit:
// a party that uploads unasked is refused beyond it, and a job of parties that have nothing left is
// over before its first round.
func TestBufferBefore(t *testing.T) {
	for _, before := range [][]int{{0, 1, 2, 3, 1}, {3, 1, 1, 0, 3}, {3, 3, 3, 3, 3}} {
		o := jobtest.CouncilOptions{Parties: 5, Members: 4, Survivors: 2, Faults: 1, Rounds: 9,
			Buffer: 2, Stale: 2, Budget: 3, Before: before}
		w := jobtest.NewCouncil(t, 1, o)
		for _, p := range w.Parties {
			p.Often, p.Pushes = true, true
		}
		startAll(w)
		w.Run(func() bool { return w.Ended() || len(w.Sums) == 1 })
		w.Hub.Kill()
		w.Hub.Start()
		w.Run(w.Ended)
		in := make([]int, o.Parties)
		for _, who := range w.Sums {
			for _, i := range who {
				in[i]++
			}
		}
		left, spare := 0, 0
		for i, n := range before {
			if in[i] > 3-n {
				w.Fatal("party %d has spent %d rounds before, and is in %d sums", i, n, in[i])
			}
			if in[i] < 3-n {
				left++
			}
			spare += 3 - n
		}
		s := w.Hub.Drive().Status()
		if s.Ended != drive.BudgetSpent || left >= o.Survivors || (len(w.Sums) == 0) != (spare == 0) {
			w.Fatal("%v: %d sums, %d may submit yet: %+v", before, len(w.Sums), left, s)
		}
		for i := range before {
			if got, most := spent(t, w, i),
				w.Hub.Config().Ledger.Budget(w.Name(i)).Target().Epsilon; got > most {
				w.Fatal("party %d has spent %v of %v", i, got, most)
			}
		}
	}
}

// Rounds that a server has skipped count as if everybody had submitted, also where parties have
// agreed to that many submissions, and have no budget.
func TestBufferSkippedCount(t *testing.T) {
	for _, told := range []uint64{2, 3} {
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 3,
			Faults: 1, Rounds: 9, Buffer: 3, Stale: 2, Submissions: 3})
		d := w.Hub.Drive()
		for k := range 2 {
			d.Connected(0, aMember(k), drive.Hello{Told: told})
			d.Gone(0, aMember(k))
		}
		tick(t, d, 0)
		startAll(w)
		w.Run(w.Ended)
		s := d.Status()
		if s.Ended != drive.BudgetSpent || len(w.Sums) != int(3-told) {
			t.Errorf("%d skipped: %d sums, %+v", told, len(w.Sums), s)
		}
	}
}

// A buffer takes no more than it holds from parties that upload without having been told to, and
// whoever is in it is not told to send the same again.
func TestBufferPushed(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 6, Members: 4, Survivors: 3,
		Faults: 1, Rounds: 3, Buffer: 3, Stale: 2})
	submitted := make(map[int][]byte)
	for i, p := range w.Parties {
		p.Rewrite = func(b []byte) []byte {
			submitted[i] = b
			return b
		}
	}
	startAll(w)
	d := w.Hub.Drive()
	first := 0
	w.Run(func() bool {
		for i := range submitted {
			if first = i; drive.Has(d, i) {
				return true
			}
		}
		return false
	})
	for i := range w.Parties { // all at once, from one that has room on
		if b := submitted[i]; b != nil {
			_ = receive(d, w, aParty(i), b)
		}
	}
	for item := range d.Pending(aParty(first)) {
		t.Errorf("who is in is handed %s", item.Name)
	}
	if err := receive(d, w, aParty(first), submitted[first]); !errors.Is(err, oneshot.ErrDuplicate) {
		t.Errorf("a copy: %v", err)
	}
	w.Run(w.Ended)
	for round, who := range w.Sums {
		if len(who) != 3 {
			t.Errorf("round %d has %v", round, who)
		}
	}
}

// A submission of a round that is over, which comes again, is refused, and its party is waited for
// as before.
func TestCommitteeOldSubmission(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 4, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 2})
	var old, key []byte
	w.Parties[3].Rewrite = func(b []byte) []byte {
		if old == nil {
			old = bytes.Clone(b)
		}
		return b
	}
	w.Members[3].Rewrite = func(b []byte) []byte {
		key = bytes.Clone(b)
		return b
	}
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return d.Status().Round == 2 })
	w.Parties[3].Late = drive.Second
	if err := receive(d, w, aParty(3), old); !errors.Is(err, oneshot.ErrPhase) {
		t.Errorf("an old submission: %v", err)
	}
	if err := receive(d, w, aParty(2), old); err == nil || errors.Is(err, oneshot.ErrPhase) {
		t.Errorf("as another party: %v", err)
	}
	if err := receive(d, w, aMember(2), key); err == nil || errors.Is(err, oneshot.ErrPhase) {
		t.Errorf("as another member: %v", err)
	}
	w.Run(func() bool { return d.Status().Stage == drive.Signing })
	if d.Said(w.Now(), aParty(3), drive.Said{Absent: 2}) || d.At(aParty(3)).Due {
		t.Error("a party is waited for that has submitted")
	}
	w.Run(w.Ended)
	if got := w.Sums[2]; !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("round 2 has %v", got)
	}
	if err := receive(d, w, aParty(3), old); err != drive.ErrEnded {
		t.Errorf("a submission after the end: %v", err)
	}
	if err := receive(d, w, aMember(3), key); err != drive.ErrEnded {
		t.Errorf("a member's message after the end: %v", err)
	}
}

// The answer about a sum counts for its round, once. What members tell meanwhile waits for it.
func TestCommitteeApplied(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 9})
	startAll(w)
	d := w.Hub.Drive()
	w.Run(func() bool { return d.Status().Stage == drive.Applying })
	d.Applied(w.Now(), 2, nil)
	d.Applied(w.Now(), 0, errors.New("of another round"))
	for k := range 2 {
		d.Connected(w.Now(), aMember(k), drive.Hello{Told: 4})
	}
	tick(t, d, w.Now())
	if s := d.Status(); s.Stage != drive.Applying || s.Round != 1 || s.Lost != 0 {
		t.Fatalf("%+v", s)
	}
	d.Applied(w.Now(), 1, nil)
	d.Ready()
	if err := d.Tick(w.Now()); err != nil || d.Status().Round != 1 {
		t.Fatalf("it decides before what was decided is durable: %v, %+v", err, d.Status())
	}
	tick(t, d, w.Now())
	if s := d.Status(); s.Round != 4 || s.Lost != 3 {
		t.Fatalf("%+v", s)
	}
	d.Applied(w.Now(), 4, errors.New("nobody has asked"))
	if s := d.Status(); s.Lost != 3 {
		t.Fatalf("%+v", s)
	}
}

// A job pauses when five rounds in a row were lost, whatever was lost before the last sum, and
// whoever leads it.
func TestCommitteeLostInRow(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 20})
	startAll(w)
	d := w.Hub.Drive()
	answered, again := uint64(0), false
	w.Run(func() bool {
		if s := d.Status(); s.Stage == drive.Applying && s.Round > answered {
			answered = s.Round
			if s.Round != 4 {
				d.Applied(w.Now(), s.Round, errors.New("no room"))
			}
		} else if s.Stage == drive.Submitting && s.Round == 7 && !again {
			again = true
			w.Hub.Kill()
			w.Hub.Start()
			d = w.Hub.Drive()
		}
		return d.Status().Paused
	})
	if s := d.Status(); s.Round != 9 || s.Lost != 8 || s.Ended != "" {
		t.Errorf("%+v", s)
	}
}

// After lost rounds the members are asked for the next round's keys 1, 2, 4 … s later, up to
// StepTime, and after a sum at once.
func TestCommitteeBacksOff(t *testing.T) {
	w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
		Faults: 1, Rounds: 6, StepTime: 3 * drive.Second})
	startAll(w)
	d := w.Hub.Drive()
	var over drive.Time // the round before
	var waited []int
	seen, answered := 0, uint64(0)
	w.Run(func() bool {
		if s := d.Status(); s.Stage == drive.Applying && s.Round > answered && s.Round < 5 {
			answered = s.Round
			d.Applied(w.Now(), s.Round, errors.New("no room"))
		}
		for ; seen < len(w.Notices); seen++ {
			switch w.Notices[seen].Kind {
			case drive.Begun:
				waited = append(waited, int((w.Now()-over)/drive.Second))
			case drive.Lost, drive.Summed:
				over = w.Now()
			}
		}
		return w.Ended()
	})
	if !slices.Equal(waited, []int{0, 1, 2, 3, 3, 0}) {
		t.Errorf("rounds begin after %d s", waited)
	}
}

// A round in which nobody submits though enough are here pauses the job; one in which somebody
// submits does not.
func TestCommitteeNobodySubmits(t *testing.T) {
	for submits, pauses := range []bool{true, false} { // by how many do
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2,
			Faults: 1, Rounds: 9})
		for i, p := range w.Parties {
			p.NoVector = func(uint64) bool { return i >= submits }
		}
		startAll(w)
		d := w.Hub.Drive()
		w.Run(func() bool { return d.Status().Lost == 1 })
		if s := d.Status(); s.Paused != pauses {
			t.Errorf("%d submit: %+v", submits, s)
		}
	}
}

// Rounds begin a while apart, for somebody, and not during a pause, of which a server knows that is
// started again.
func TestCommitteeBegins(t *testing.T) {
	o := jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2, Faults: 1, Rounds: 3,
		Pace: 7 * drive.Second}
	w := jobtest.NewCouncil(t, 1, o)
	for _, m := range w.Members {
		m.Start()
	}
	w.RunFor(30 * drive.Second)
	if s := w.Hub.Drive().Status(); s.Round != 0 || s.Stage != drive.Announcing {
		t.Fatalf("nobody is here: %+v", s)
	}
	for name := range itemsOf(w.Hub.Drive(), 0) {
		t.Errorf("a member that has sent its key is handed %s", name)
	}
	startAll(w)
	w.RunFor(drive.Second)
	if len(w.Sums) != 1 {
		t.Fatalf("%d sums", len(w.Sums))
	}
	if s := w.Hub.Restored().Status(); s.Stage != drive.Resting {
		t.Fatalf("started again between rounds: %+v", s)
	}
	w.RunFor(5 * drive.Second)
	if s := w.Hub.Drive().Status(); s.Round != 1 || s.Stage != drive.Resting {
		t.Fatalf("after 6 s of 7: %+v", s)
	}
	w.Hub.Drive().Order(w.Now(), drive.Order{Do: drive.Pause, Why: "maintenance"})
	w.Parties[0].Cut() // has the world go on
	w.RunFor(20 * drive.Second)
	w.Hub.Kill()
	w.Hub.Start()
	for _, m := range w.Members {
		m.Cut()
	}
	w.RunFor(20 * drive.Second)
	if s := w.Hub.Drive().Status(); s.Round != 1 || s.Stage != drive.Resting {
		t.Fatalf("in a pause: %+v", s)
	}
	for range itemsOf(w.Hub.Drive(), 0) {
		t.Error("in a pause members are handed something")
	}
	w.Hub.Drive().Order(w.Now(), drive.Order{Do: drive.Resume, Why: "done"})
	tick(t, w.Hub.Drive(), w.Now())
	for _, m := range w.Members {
		m.Cut()
	}
	w.Run(w.Ended)
	if len(w.Sums) != 3 {
		t.Errorf("%d sums", len(w.Sums))
	}
}
