package drive_test

import (
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/wire"
)

// A job in which nothing goes wrong has all its rounds, with everybody in each.
func TestServerPlain(t *testing.T) {
	for _, o := range []jobtest.Options{
		{Parties: 3, Survivors: 2, Rounds: 3},
		{Parties: 4, Survivors: 3, Rounds: 3, Hybrid: true},
		{Parties: 5, Survivors: 4, Colluders: 1, Rounds: 4, Long: true},
		{Parties: 3, Survivors: 3, Rounds: 3, Whole: true},
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
		{Parties: 3, Survivors: 3, Rounds: 2, ComeBack: 2 * drive.Second, Whole: true},
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

// Without recovery a round is lost with whoever drops out of it, and no later one is.
func TestServerWhole(t *testing.T) {
	w := jobtest.New(t, 3, jobtest.Options{Parties: 3, Survivors: 3, Rounds: 3, Whole: true})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Parties[1].NoVector = func(round uint64) bool { return round == 2 }
	w.Run(w.Ended)
	if len(w.Sums) != 2 || w.Lost() != 1 || w.Sums[1].Round != 3 {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}
}

// Without recovery no round begins that one of the session is not here for: it would be lost.
func TestServerWholeAgain(t *testing.T) {
	w := jobtest.New(t, 3, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 3, Whole: true,
		Pace: drive.Minute})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return len(w.Sums) == 1 })
	w.Parties[2].Kill()
	w.Run(w.Ended)
	if len(w.Sums) != 3 || w.Lost() != 0 || len(w.Sums[1].Parties) != 2 {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}
}

// A party that is here and silent has let a step pass once, however often it asks meanwhile.
func TestStallCountsOnce(t *testing.T) {
	w := jobtest.New(t, 4, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 1})
	for _, p := range w.Parties {
		p.Start()
	}
	for _, p := range w.Parties[2:] { // too many for a session
		p.Silent = func(wire.Type) bool { return true }
	}
	for second := range drive.Time(60) {
		w.After(second*drive.Second, func() {
			w.Server.Drive().Connected(w.Now(), aParty(3), drive.Hello{Least: 1})
		})
	}
	w.RunFor(drive.Minute)
	stalls := 0
	for _, n := range w.Notices {
		if n.Kind == drive.Stall {
			stalls++
		}
	}
	if stalls != 2 {
		w.Fatal("%d stalls of two parties", stalls)
	}
}

// One that lies about the numbers it may use keeps the others from nothing, and uses none up: a
// number that the next session does not reach is no reason for another.
func TestServerNumbersTold(t *testing.T) {
	for _, told := range []uint64{2, 1 << 20, 1 << 21, 1 << 61, 1<<64 - 1} {
		w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 2})
		w.Parties[0].Least = func(uint64) uint64 { return told }
		for _, p := range w.Parties {
			p.Start()
		}
		w.Run(w.Ended)
		if len(w.Sums) != 2 {
			w.Fatal("%d sums", len(w.Sums))
		}
		forms := 0
		for _, n := range w.Notices {
			if n.Kind == drive.Forms {
				forms++
			}
		}
		if forms > 3 {
			w.Fatal("%d sessions form", forms)
		}
	}
}

// A party that has lost its state may not join the session that forms again. If that cannot form
// without it, the next one does.
func TestServerStateLost(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 4, Rounds: 1})
	lost := false
	p := w.Parties[1]
	p.Die = func(place string) bool {
		if lost || place != "after it saves" {
			return false
		}
		lost = true
		w.After(drive.Second, func() {
			p.Lose()
			p.Start()
		})
		return true
	}
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	if len(w.Sums) != 1 || !lost {
		w.Fatal("%d sums", len(w.Sums))
	}
}

// Parties may take longer to come back to a server that has died than a step takes: they have let
// nothing pass.
func TestServerLateBack(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 2,
		StepTime: drive.Second, Redial: 3 * drive.Second, ComeBack: 6 * drive.Second})
	deaths := 0
	w.Server.Die = func(place string) bool {
		if place != "after it saves" || w.Server.Status().Stage < drive.Submitting || deaths == 4 {
			return false
		}
		deaths++
		w.After(drive.Second/10, w.Server.Start)
		return true
	}
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	if len(w.Sums) != 2 || w.Lost() != 0 || deaths != 4 {
		w.Fatal("%d sums, %d lost, %d deaths", len(w.Sums), w.Lost(), deaths)
	}
}

// Who comes while a decision is saved is handed nothing, and told once it is durable, whatever
// the decision was.
func TestServerTells(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 1})
	w.Parties[0].Start()
	w.Parties[1].Start()
	s := w.Server.Drive()
	now := w.Server.Now()
	s.Order(now, drive.Order{Do: drive.Pause, Why: "lunch"})
	s.Connected(now, aParty(2), drive.Hello{})
	for item := range s.Pending(aParty(2)) {
		t.Errorf("%s before it is durable", item.Name)
	}
	if _, decided := s.Ready(); !decided {
		t.Error("nothing to save")
	}
	if !s.Advance(now).Tell {
		t.Error("nobody is told")
	}
	items := 0
	for range s.Pending(aParty(2)) {
		items++
	}
	if items != 1 {
		t.Errorf("%d items", items)
	}
}

// While the program applies a sum, a party's word that later rounds have begun is not looked at,
// and does not keep the server busy.
func TestServerToldOfLater(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 2,
		Apply: func() drive.Time { return drive.Second }})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return w.Server.Status().Stage == drive.Applying })
	s := w.Server.Drive()
	s.Said(w.Server.Now(), aParty(0), drive.Said{Told: 2})
	now := w.Server.Now()
	if err := s.Tick(now); err != nil {
		t.Fatal(err)
	}
	if wake := s.Wake(); wake <= now {
		t.Errorf("it wakes at %d, and now is %d", wake, now)
	}
	w.Run(w.Ended)
	if len(w.Sums) != 2 {
		w.Fatal("%d sums", len(w.Sums))
	}
}

// A party that came too late for the session waits for its turn only while rounds go on without
// it: not if one of those in the session answers nothing, and is needed.
func TestServerNeedsLate(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 2,
		Delay: func(int) drive.Time { return drive.Second / 10 }})
	w.Parties[3].Silent = func(kind wire.Type) bool { return kind == wire.TypeUpload }
	for _, p := range w.Parties[1:] {
		p.Start()
	}
	w.RunFor(drive.Second / 4) // the keys are in, and the material is not
	w.Parties[0].Start()
	w.Run(w.Ended)
	if len(w.Sums) != 2 {
		w.Fatal("%d sums", len(w.Sums))
	}
}

// A server without a time for steps waits for a party that is silent until that goes.
func TestServerPatient(t *testing.T) {
	w := jobtest.New(t, 4, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 2, StepTime: drive.Never})
	for _, p := range w.Parties {
		p.Start()
	}
	silent := w.Parties[2]
	silent.Silent = func(kind wire.Type) bool { return kind == wire.TypeMasked }
	w.RunFor(10_000_000 * drive.Second)
	if s := w.Server.Status(); s.Round != 1 || s.Stage != drive.Submitting {
		w.Fatal("%+v", s)
	}
	silent.Silent = nil
	silent.Cut()
	silent.Connect()
	w.Run(w.Ended)
	if len(w.Sums) != 2 || w.Lost() != 0 || len(w.Sums[0].Parties) != 2 {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}
}

// A server that was set back and has begun a round again, before it learns so, has lost that round
// too: there is a sum for each round that is begun and not lost.
func TestServerSetBackInRound(t *testing.T) {
	o := jobtest.Options{Parties: 4, Survivors: 3, Rounds: 6, StepTime: drive.Second}
	w := jobtest.New(t, 5, o)
	four := func(uint64) uint64 { return 4 }
	w.Parties[0].Told, w.Parties[1].Told = four, four
	for _, p := range w.Parties[2:] {
		p.Start()
	}
	w.Parties[0].Start()
	w.Run(func() bool { return w.Server.Status().Stage == drive.Submitting })
	w.Parties[1].Start()
	w.Run(w.Ended)
	s := w.Server.Status()
	if s.Lost != 4 || w.Lost() != 1 || s.Round != 6 || len(w.Sums) != 2 {
		w.Fatal("%+v, %d sums", s, len(w.Sums))
	}
}

// Nobody is told of as waited for who answers at once, however long the server has been there.
func TestServerAwaitsNobody(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 3})
	w.RunFor(drive.Minute)
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	for _, n := range w.Notices {
		if n.Kind == drive.Awaited || n.Kind == drive.Stall {
			w.Fatal("%v, %v", n.Kind, n.Parties)
		}
	}
}

// Nobody is said to be waited for when a step has just begun, at whatever time.
func TestServerTellsOfWaiting(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 3,
		Delay: func(int) drive.Time { return drive.Second / 2 }})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	for _, n := range w.Notices {
		if n.Kind == drive.Awaited {
			w.Fatal("%v are waited for", n.Parties)
		}
	}
}

// A step that was stuck for long is over soon after another party has come: how long it had
// waited says nothing of how long the others take.
func TestServerStuckForLong(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 5, Survivors: 3, Rounds: 1, Curious: true})
	w.Parties[2].Silent = func(kind wire.Type) bool { return kind == wire.TypeAnnounce }
	for _, p := range w.Parties[:3] {
		p.Start()
	}
	w.RunFor(1000 * drive.Minute)
	w.Parties[3].Start()
	begins := w.Now()
	w.Run(w.Ended)
	if len(w.Sums) != 1 || w.Now() > begins+10*drive.Second {
		w.Fatal("%d sums, after %d", len(w.Sums), w.Now()-begins)
	}
}

// A session that can hold no round any more, since parties have gone and are not expected, is
// followed by another among those who are here: without recovery after the first that goes, with
// it once fewer are left than its rounds take. No session is proposed to fewer than it takes.
func TestServerGoesOn(t *testing.T) {
	w := jobtest.New(t, 5, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 4, Whole: true})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return len(w.Sums) == 2 })
	w.Parties[0].Kill()
	w.Run(w.Ended)
	if len(w.Sums) != 3 || w.Lost() != 1 || !slices.Equal(w.Sums[2].Parties, []int{1, 2}) {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}

	w = jobtest.New(t, 6, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 4, Pace: drive.Minute,
		Members: func(number uint64) int { return 5 - int(min(number, 2)) }})
	for _, p := range w.Parties[:3] {
		p.Start()
	}
	w.RunFor(drive.Minute)
	if len(w.Notices) != 0 {
		w.Fatal("three of four: %v", w.Notices)
	}
	w.Parties[3].Start()
	w.Run(func() bool { return len(w.Sums) == 2 })
	w.Parties[3].Kill()
	w.Run(w.Ended)
	if len(w.Sums) != 4 || w.Lost() != 0 || len(w.Sums[1].Parties) != 4 ||
		!slices.Equal(w.Sums[3].Parties, []int{0, 1, 2}) {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}
}

// A session that waits for more parties than the next would take is given up for that.
func TestServerEased(t *testing.T) {
	after := uint64(3)
	w := jobtest.New(t, 9, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 2, Whole: true,
		Members: func(number uint64) int { return 3 - int(min(number/after, 1)) }})
	for _, p := range w.Parties {
		p.Silent = func(wire.Type) bool { return p == w.Parties[2] }
		p.Start()
	}
	w.RunFor(drive.Second)
	w.Parties[2].Kill()
	w.RunFor(drive.Minute)
	if s := w.Server.Status(); s.Session != 1 || s.Stage != drive.Announcing {
		w.Fatal("%+v", s)
	}
	after = 2
	w.Parties[0].Cut()
	w.Parties[0].Connect()
	w.Run(w.Ended)
	if len(w.Sums) != 2 || w.Lost() != 0 || len(w.Sums[0].Parties) != 2 {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}

	// One that has gone, and one that has come and may not join the session that forms.
	w = jobtest.New(t, 10, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 2, Whole: true})
	for _, p := range w.Parties[:3] {
		p.Silent = func(wire.Type) bool { return p == w.Parties[2] }
		p.Start()
	}
	w.RunFor(drive.Second)
	w.Parties[2].Kill()
	w.Parties[3].Least = func(uint64) uint64 { return 2 }
	w.Parties[3].Start()
	w.Run(w.Ended)
	if len(w.Sums) != 2 || w.Lost() != 0 || !slices.Equal(w.Sums[0].Parties, []int{0, 1, 3}) {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}
}

// On a sparse graph a session is among those whose graph it is, and its rounds go on without some
// of them.
func TestServerSparse(t *testing.T) {
	w := jobtest.New(t, 8, jobtest.Options{Parties: 8, Survivors: 6, Rounds: 4, Degree: 4,
		Members: func(uint64) int { return 8 }})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return len(w.Sums) == 1 })
	w.Parties[3].Kill()
	w.Run(w.Ended)
	if len(w.Sums) != 4 || w.Lost() != 0 || len(w.Sums[3].Parties) != 7 {
		w.Fatal("%v, %d lost", w.Sums, w.Lost())
	}
}

// Time counts from when parties know of a step, however late in the life of the clock that is:
// nobody who answers at once is reported as waited for.
func TestServerLateClock(t *testing.T) {
	w := jobtest.New(t, 7, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 2})
	w.RunFor(drive.Minute)
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	for _, n := range w.Notices {
		if n.Kind == drive.Awaited || n.Kind == drive.Stall {
			w.Fatal("%v of %v", n.Kind, n.Parties)
		}
	}
}

// A word of absence is good for the round that is open, while it takes submissions, and once.
func TestServerAbsent(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 2,
		Work: func(int) drive.Time { return drive.Second }})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return w.Server.Status().Stage == drive.Submitting })
	s := w.Server.Drive()
	for _, c := range []struct {
		round  uint64
		waited bool
	}{{0, false}, {2, false}, {1, true}, {1, false}} {
		if got := s.Said(w.Now(), aParty(3), drive.Said{Absent: c.round}); got != c.waited {
			t.Errorf("round %d: %v", c.round, got)
		}
	}
	w.Run(func() bool { return w.Server.Status().Stage == drive.Signing })
	if s.Said(w.Now(), aParty(2), drive.Said{Absent: 1}) {
		t.Error("round 1 waits for a submission once it takes none")
	}
	w.Run(w.Ended)
	if len(w.Sums) != 2 || len(w.Sums[1].Parties) != 4 {
		w.Fatal("%v", w.Sums)
	}
}

// Messages that come while a decision is saved are not in what is saved: they are saved later.
func TestServerKeeps(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 3, Rounds: 1,
		SaveTime: 10 * drive.Second, Delay: func(int) drive.Time { return drive.Second }})
	w.Parties[2].Silent = func(kind wire.Type) bool { return kind == wire.TypeAnnounce }
	for _, p := range w.Parties {
		p.Start()
	}
	w.RunFor(23 * drive.Second / 2) // they have been asked for keys
	w.Server.Do(func(d drive.Lead, now drive.Time) {
		d.Order(now, drive.Order{Do: drive.Pause, Why: "lunch"})
	})
	w.RunFor(12 * drive.Second)
	s := w.Server.Drive()
	s.Keep()
	if r, _ := s.Ready(); !r.Save {
		t.Error("keys that came during a save are not kept")
	}
}

// An answer for another round than the one that is applied is dropped. A job without a single sum
// has stalled.
func TestServerAnswers(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 1,
		Apply: func() drive.Time { return drive.Second }})
	w.Server.Fails = func() bool { return true }
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return w.Server.Status().Stage == drive.Applying })
	for _, round := range []uint64{0, 2} {
		w.Server.Do(func(d drive.Lead, now drive.Time) { d.Applied(now, round, nil) })
		if st := w.Server.Status(); st.Stage != drive.Applying {
			t.Fatalf("the answer for round %d was taken: %+v", round, st)
		}
	}
	w.Run(w.Ended)
	if st := w.Server.Status(); !st.Stalled || st.Lost != 1 {
		t.Errorf("%+v", st)
	}
}

// What more parties tell than may lie is believed up to the last round that there is, and rounds
// in between are lost.
func TestServerRoundsTold(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 4, SetBack: true})
	for _, p := range w.Parties[:2] {
		p.Told = func(uint64) uint64 { return 99 }
		p.Start()
	}
	w.Run(w.Ended)
	if st := w.Server.Status(); st.Round != 4 || st.Lost != 4 {
		t.Errorf("%+v", st)
	}
}

// Lost rounds end a job only if they follow each other.
func TestServerLosesSome(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 2, Rounds: 12})
	fails := 0
	w.Server.Fails = func() bool {
		fails++
		return fails%2 == 0
	}
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	if st := w.Server.Status(); st.Round != 12 || st.Lost != 6 || st.Stalled {
		t.Errorf("%+v", st)
	}
}

// A party that let a step pass once, and takes longer than the others, is waited for where a round
// cannot do without it.
func TestServerNeedsSlow(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 4, Rounds: 4,
		Work: func(party int) drive.Time { return drive.Time(1+party/3*200) * 10 * drive.Millisecond }})
	slow := w.Parties[3]
	slow.Silent = func(k wire.Type) bool {
		return k == wire.TypeSigned && w.Server.Status().Round == 1
	}
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	if len(w.Sums) != 4 || w.Lost() != 0 {
		w.Fatal("%d sums, %d lost", len(w.Sums), w.Lost())
	}
}

// Who comes once the announcements for a session are closed has not kept away from it, and has
// another session form at once.
func TestServerCameLate(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 5, Survivors: 3, Rounds: 6, Curious: true,
		Delay: func(int) drive.Time { return drive.Second / 10 },
		Work:  func(int) drive.Time { return drive.Second }})
	for _, p := range w.Parties[:3] {
		p.Start()
	}
	w.Run(func() bool { return len(w.Sums) == 1 })
	w.Parties[3].Start()
	closed := func(n drive.Notice) bool { return n.Kind == drive.Formed && n.Session == 2 }
	w.Run(func() bool { return slices.ContainsFunc(w.Notices, closed) })
	w.Parties[4].Start()
	w.Run(w.Ended)
	if len(w.Sums) != 6 || len(w.Sums[3].Parties) != 5 {
		w.Fatal("%v", w.Sums)
	}
}

// A server that hears of each party rarely, being busy with many, holds rounds among all of them,
// and its steps do not wait for those who have gone for as long as that.
func TestServerHeardRarely(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 4, Rounds: 1, Away: drive.Minute,
		ComeBack: 2 * drive.Second})
	s := w.Server.Drive()
	for i := range 4 { // each asks and is not heard of for ten seconds
		s.Connected(w.Now(), aParty(i), drive.Hello{})
		s.Gone(w.Now(), aParty(i))
		w.RunFor(10 * drive.Second)
	}
	if err := s.Tick(w.Now()); err != nil {
		t.Fatal(err)
	}
	if at := s.Status(); at.Stage != drive.Announcing {
		w.Fatal("no session forms: %+v", at)
	}
}
