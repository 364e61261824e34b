package drive_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
)

// small is a job with a committee whose first round a test leads one party or member through.
var small = jobtest.CouncilOptions{Parties: 3, Members: 4, Survivors: 2, Faults: 1, Rounds: 3}

// openingOf returns the opening of the first round of a small job, and its broadcast.
func openingOf(t *testing.T) (opening []byte, broadcast [32]byte) {
	t.Helper()
	w, d := submitting(t, small, 0)
	tick(t, d, w.Now())
	for item := range d.Pending(aParty(0)) {
		opening = item.Own
	}
	broadcast, err := w.Hub.Config().Broadcast(1, d.Status().Fresh)
	if err != nil {
		t.Fatal(err)
	}
	return opening, broadcast
}

// senderOf makes the first party of a small job.
func senderOf(
	t *testing.T, change func(c *drive.PartSettings),
) (drive.Part, drive.PartSettings) {
	t.Helper()
	_, _, party := jobtest.CouncilConfigs(t, small, nil)
	c := party(0)
	change(&c)
	s, err := drive.NewPart(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// next is a carrier: it returns what is reported, and what leaves.
func next(s drive.Part) ([]drive.Report, drive.Out) {
	r, _ := s.Ready()
	return r.Reports, s.Advance()
}

// take has a part take an item.
func take(t *testing.T, p drive.Part, in drive.Item) {
	t.Helper()
	if err := p.Receive(in); err != nil {
		t.Fatal(err)
	}
}

func room(round uint64) drive.Item { return drive.Item{Kind: drive.Upload, Round: round} }

// valued is the answer of a program with values.
func valued(id drive.AskID, broadcast [32]byte, values []int64) drive.Answer {
	return drive.Answer{ID: id, Round: id.Round, Broadcast: broadcast,
		Fill: func(v *masking.Vector) error {
			var out []uint64
			for _, x := range values {
				out = append(out, uint64(x))
			}
			return v.Set(out)
		}}
}

// A party does not train for a round that its guard refuses, and says that it is not in it.
func TestSenderDeclines(t *testing.T) {
	opening, _ := openingOf(t)
	for _, x := range []struct {
		change func(c *drive.PartSettings)
		want   error
	}{
		{func(c *drive.PartSettings) { c.Spent = 1 }, drive.ErrRepeated},
		{func(c *drive.PartSettings) { c.Least = 2 }, drive.ErrRepeated},
	} {
		s, _ := senderOf(t, x.change)
		take(t, s, carried(opening, 0))
		reports, out := next(s)
		if len(reports) != 1 || reports[0].Kind != drive.Declined || !errors.Is(reports[0].Err, x.want) {
			t.Errorf("%v", reports)
		}
		if out.Ask != nil || !slices.Equal(out.Away, []drive.Absence{{Number: 1, Cause: drive.Guarded}}) {
			t.Errorf("%+v", out)
		}
	}
}

// What a party makes of an opening: one question, one submission, offered as often as it is asked,
// and nothing before that is durable.
func TestSenderSubmits(t *testing.T) {
	opening, broadcast := openingOf(t)
	s, c := senderOf(t, func(*drive.PartSettings) {})
	take(t, s, carried(opening, 0))
	if out := s.Advance(); out.Ask != nil {
		t.Fatal("it asks before Ready")
	}
	_, out := next(s)
	if out.Ask == nil || out.Ask.Round != 1 {
		t.Fatalf("%+v", out)
	}
	take(t, s, carried(opening, 0))
	if _, again := next(s); again.Ask == nil || again.Ask.ID != out.Ask.ID {
		t.Errorf("it is asked %+v, and then %+v", out.Ask, again.Ask)
	}
	values := []int64{1, 2, 3}
	if err := s.Answer(valued(drive.AskID{Round: 2}, broadcast, values)); err != nil {
		t.Fatal(err)
	}
	if reports, out := next(s); len(reports) != 1 || reports[0].Kind != drive.Late || out.Offer != 0 {
		t.Errorf("an answer to another question: %v, %+v", reports, out)
	}
	if err := s.Answer(valued(out.Ask.ID, broadcast, values)); err != nil {
		t.Fatal(err)
	}
	if out := s.Advance(); out.Offer != 0 {
		t.Error("it offers before it is saved")
	}
	if r, _ := s.Ready(); !r.Save {
		t.Error("it is not saved")
	}
	s.Connected() // an event between both: what leaves has to be asked for again
	if out := s.Advance(); out.Offer != 0 {
		t.Error("it offers what Ready has not shown")
	}
	for range 2 {
		if _, out := next(s); out.Offer != 1 {
			t.Errorf("it offers %d", out.Offer)
		}
		take(t, s, carried(opening, 0))
	}
	next(s)
	take(t, s, room(2))
	if _, out := next(s); out.Send != nil {
		t.Error("it uploads in another round")
	}
	take(t, s, room(1))
	if _, out := next(s); out.Send == nil {
		t.Error("it uploads nothing")
	}
	key := keyexchange.SealKey{1}
	kept, err := s.Save(&key)
	if err != nil {
		t.Fatal(err)
	}
	state := kept.State
	again, err := drive.LoadPart(c, &key, state)
	if err != nil {
		t.Fatal(err)
	}
	again.Connected()
	if _, out := next(again); out.Offer != 1 || again.Hello().Told != 1 {
		t.Errorf("after a crash it offers %d", out.Offer)
	}
	if guard := again.Guard(); guard.Last() != 1 || guard.Count() != 1 {
		t.Errorf("after a crash it knows of %d submissions up to round %d", guard.Count(), guard.Last())
	}
	c.Spent = 2
	again, err = drive.LoadPart(c, &key, state)
	if err != nil {
		t.Fatal(err)
	}
	if ready, _ := again.Ready(); !ready.Save || len(ready.Reports) != 1 ||
		ready.Reports[0].Kind != drive.CaughtUp || !errors.Is(ready.Reports[0].Err, drive.ErrLower) {
		t.Errorf("it says nothing of the round that it counts beyond its state: %+v", ready)
	}
	if guard := again.Guard(); guard.Last() != 2 || guard.Count() != 2 {
		t.Errorf("said to have spent 2, it counts %d up to round %d", guard.Count(), guard.Last())
	}
	c.Spent = 4
	if _, err := drive.LoadPart(c, &key, state); !errors.Is(err, drive.ErrRound) {
		t.Errorf("4 of 3 rounds: %v", err)
	}
}

// Whatever happens between Ready and Advance, nothing leaves: what follows from it may have to be
// durable first.
func TestNothingLeavesUnshown(t *testing.T) {
	opening, broadcast := openingOf(t)
	other := drive.AskID{Round: 2}
	for name, event := range map[string]func(s drive.Part){
		"Connected": func(s drive.Part) { s.Connected() },
		"Opening":   func(s drive.Part) { take(t, s, carried(opening, 0)) },
		"Absent":    func(s drive.Part) { s.Absent(other, 2, nil) },
		"Answer":    func(s drive.Part) { _ = s.Answer(valued(other, broadcast, nil)) },
		"Upload":    func(s drive.Part) { take(t, s, room(2)) },
		"Finished":  func(s drive.Part) { s.Finished(other) },
	} {
		s, _ := senderOf(t, func(*drive.PartSettings) {})
		take(t, s, carried(opening, 0))
		s.Ready()
		event(s)
		if out := s.Advance(); out.Ask != nil {
			t.Errorf("a party asks after %s", name)
		}
		if _, out := next(s); out.Ask == nil {
			t.Errorf("a party never asks after %s", name)
		}
	}
	server, member, _ := jobtest.CouncilConfigs(t, small, nil)
	asks, err := oneshot.NewServer(server.Sums, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, event := range map[string]func(m drive.Part){
		"Connected": func(m drive.Part) { m.Connected() },
		"Receive":   func(m drive.Part) { take(t, m, carried(nil, 0)) },
	} {
		m, err := drive.NewPart(member(0))
		if err != nil {
			t.Fatal(err)
		}
		take(t, m, carried(asks.Invite(), 0))
		m.Ready()
		event(m)
		if m.Advance().Send != nil {
			t.Errorf("a member sends after %s", name)
		}
		if m.Ready(); len(m.Advance().Send) != 1 {
			t.Errorf("a member sends not once after %s", name)
		}
	}
}

// A party that cannot submit says so: of a broadcast that is not the round's, of values that no sum
// takes, and of having none.
func TestSenderAway(t *testing.T) {
	opening, broadcast := openingOf(t)
	for _, x := range []struct {
		broadcast [32]byte
		values    []int64
		kind      drive.ReportKind
		why       drive.Cause
	}{
		{[32]byte{1}, []int64{1, 2, 3}, drive.Refused, drive.Guarded},
		{broadcast, []int64{1 << 40, 2, 3}, drive.Missed, drive.NoVector},
		{broadcast, []int64{1}, drive.Missed, drive.NoVector},
	} {
		s, _ := senderOf(t, func(*drive.PartSettings) {})
		take(t, s, carried(opening, 0))
		_, out := next(s)
		if err := s.Answer(valued(out.Ask.ID, x.broadcast, x.values)); err != nil {
			t.Fatal(err)
		}
		reports, out := next(s)
		if len(reports) != 1 || reports[0].Kind != x.kind ||
			!slices.Equal(out.Away, []drive.Absence{{Number: 1, Cause: x.why}}) {
			t.Errorf("%v: %v, %+v", x.values, reports, out)
		}
		if guard := s.Guard(); guard.Count() != 0 || s.Hello().Told != 0 {
			t.Error("it counts as a submission")
		}
	}
}

// A party that has no vector is not in the round; but with noise it submits zeros, which count,
// so that nobody learns of its absence.
func TestSenderNone(t *testing.T) {
	opening, broadcast := openingOf(t)
	for noisy, kind := range map[bool]drive.ReportKind{false: drive.Missed, true: drive.Blank} {
		s, _ := senderOf(t, func(c *drive.PartSettings) {
			if noisy {
				c.Blank = func(_ uint64, v *masking.Vector) error {
					v.Erase()
					return nil
				}
			}
		})
		take(t, s, carried(opening, 0))
		_, out := next(s)
		none := valued(out.Ask.ID, broadcast, nil)
		none.Err = errors.New("no rows")
		if err := s.Answer(none); err != nil {
			t.Fatal(err)
		}
		reports, out := next(s)
		guard := s.Guard()
		if len(reports) != 1 || reports[0].Kind != kind || (out.Offer == 1) != noisy ||
			(len(out.Away) == 0) != noisy || (guard.Count() == 1) != noisy {
			t.Errorf("with noise %v: %v, %+v, %d counted", noisy, reports, out, guard.Count())
		}
	}
}

// What a party of one-message sums encodes is erased once it is masked, whatever comes of it; what
// counts is shown, once.
func TestSenderErases(t *testing.T) {
	opening, broadcast := openingOf(t)
	var shown [][][]uint64
	s, _ := senderOf(t, func(c *drive.PartSettings) {
		c.Shown = func(round uint64, values [][]uint64) { shown = append(shown, values) }
	})
	take(t, s, carried(opening, 0))
	_, out := next(s)
	var filled *masking.Vector
	for _, x := range []struct {
		id     drive.AskID
		values []uint64
		shown  int
	}{{drive.AskID{Round: 2}, []uint64{1, 2, 3}, 0}, {out.Ask.ID, []uint64{1, 2, 3}, 1}} {
		err := s.Answer(drive.Answer{ID: x.id, Broadcast: broadcast,
			Fill: func(v *masking.Vector) error {
				filled = v
				return v.Set(x.values)
			}})
		if err != nil || len(shown) != x.shown {
			t.Errorf("%v; %v are shown", err, shown)
		}
	}
	if !slices.Equal(shown[0][0], []uint64{1, 2, 3}) {
		t.Errorf("%v is shown", shown)
	}
	if !slices.Equal(filled.Values()[0], make([]uint64, 3)) {
		t.Errorf("%v is left", filled.Values())
	}
}

// A state of another format is refused, and one of oneshot.Party alone.
func TestSenderOtherFormat(t *testing.T) {
	s, c := senderOf(t, func(*drive.PartSettings) {})
	key := keyexchange.SealKey{1}
	kept, err := s.Save(&key)
	if err != nil {
		t.Fatal(err)
	}
	state := kept.State
	var saved struct {
		Format int
		Guard  struct{ Last, Count uint64 }
		Party  []byte
	}
	fromGob(t, state, &saved)
	if _, err := drive.LoadPart(c, &key, saved.Party); !errors.Is(err, drive.ErrState) {
		t.Errorf("without a format: %v", err)
	}
	for _, saved.Format = range []int{0, 2} {
		if _, err := drive.LoadPart(c, &key, gobOf(t, saved)); !errors.Is(err, drive.ErrState) {
			t.Errorf("format %d: %v", saved.Format, err)
		}
	}
}

// What a member says, and when: nothing before it is saved, the last answer again where it is asked
// again, and nothing of rounds outside of the job, of those that are spent, or after the end.
func TestMemberAnswers(t *testing.T) {
	server, member, _ := jobtest.CouncilConfigs(t, small, nil)
	born := func(change func(c *drive.PartSettings)) drive.Part {
		c := member(0)
		change(&c)
		m, err := drive.NewPart(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	asks, err := oneshot.NewServer(server.Sums, 0)
	if err != nil {
		t.Fatal(err)
	}
	invite := asks.Invite()
	for _, x := range []struct {
		change func(c *drive.PartSettings)
		want   error
	}{
		{func(c *drive.PartSettings) { c.Limits.Rounds = 0 }, drive.ErrRound},
		{func(c *drive.PartSettings) { c.Spent = 1 }, drive.ErrRepeated},
	} {
		m := born(x.change)
		take(t, m, carried(invite, 0))
		reports, out := next(m)
		if len(reports) != 1 || !errors.Is(reports[0].Err, x.want) || out.Send != nil {
			t.Errorf("%v, %d messages; want %v", reports, len(out.Send), x.want)
		}
	}

	m := born(func(*drive.PartSettings) {})
	take(t, m, carried(invite, 0))
	if m.Advance().Send != nil {
		t.Error("it sends before Ready")
	}
	if r, _ := m.Ready(); !r.Save {
		t.Error("its key is not saved")
	}
	take(t, m, carried(invite, 0))
	if m.Advance().Send != nil {
		t.Error("it sends what Ready has not shown")
	}
	if _, out := next(m); len(out.Send) == 0 || m.Hello().Told != 0 {
		t.Errorf("%d messages, and round %d is told", len(out.Send), m.Hello().Told)
	}
	m.Connected()
	if _, out := next(m); len(out.Send) != 1 {
		t.Errorf("its key is sent again %d times", len(out.Send))
	}
	m.Connected() // it has something to send
	take(t, m, drive.Item{Kind: drive.Last})
	m.Connected()
	if r, _ := m.Ready(); !r.Save || m.Advance().Send != nil {
		t.Error("it goes on after the end")
	}
}

// A member that is handed everything twice answers twice, with the same bytes, and is of use in the
// round if only the second answers arrive.
func TestMemberHandedTwice(t *testing.T) {
	_, member, _ := jobtest.CouncilConfigs(t, small, nil)
	m, err := drive.NewPart(member(0))
	if err != nil {
		t.Fatal(err)
	}
	w := jobtest.NewCouncil(t, 1, small)
	d := w.Hub.Drive()
	w.Members[3].Away = true // the round needs all others
	startBut(w, 0)
	d.Connected(w.Now(), aMember(0), drive.Hello{})
	had := make(map[string]bool)
	w.Run(func() bool {
		for item := range d.Pending(aMember(0)) {
			if had[item.Name] {
				continue
			}
			had[item.Name] = true
			var answers [2][]byte
			for k := range answers {
				take(t, m, item)
				r, _ := m.Ready()
				if len(r.Reports) > 0 {
					t.Fatalf("%s is refused: %v", item.Name, r.Reports)
				}
				for _, b := range m.Advance().Send {
					answers[k] = b.Bytes
				}
			}
			if !bytes.Equal(answers[0], answers[1]) {
				t.Fatalf("%s has two answers", item.Name)
			}
			if answers[1] != nil {
				if err := receive(d, w, aMember(0), answers[1]); err != nil {
					t.Fatal(err)
				}
				w.Parties[0].Cut() // has the world go on
			}
		}
		return len(w.Sums) == 1
	})
	if w.Lost() > 0 || m.Hello().Told != 1 {
		w.Fatal("%d lost", w.Lost())
	}
}

// A member whose part of a party is no good, though the party is in the sum, is of no use in the
// round: that is no fault of what it is sent next, which it passes over in silence.
func TestMemberLost(t *testing.T) {
	more := small // parties, so that one member disputes more than it may
	more.Parties = 6
	_, member, _ := jobtest.CouncilConfigs(t, more, nil)
	m, err := drive.NewPart(member(0))
	if err != nil {
		t.Fatal(err)
	}
	figures, err := member(0).Sums.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	w := jobtest.NewCouncil(t, 1, more)
	d := w.Hub.Drive()
	startBut(w, 0)
	d.Connected(w.Now(), aMember(0), drive.Hello{})
	had, closed := make(map[string]bool), false
	w.Run(func() bool {
		for item := range d.Pending(aMember(0)) {
			if had[item.Name] {
				continue
			}
			had[item.Name] = true
			message := bytes.Clone(item.Own)
			if strings.HasPrefix(item.Name, "1.batch") {
				for at := len(message) - 1; at > figures.MemberDown/2; at -= figures.MemberDown {
					message[at] ^= 1 // in each box for this member
				}
			}
			take(t, m, carried(message, 0))
			closing := strings.HasPrefix(item.Name, "1.closing")
			r, _ := m.Ready()
			send := m.Advance().Send
			if len(r.Reports) > 0 || closing && (r.Save || len(send) > 0) {
				t.Fatalf("%s: %v, %d messages", item.Name, r.Reports, len(send))
			}
			closed = closed || closing
			for _, b := range send {
				err := receive(d, w, aMember(0), b.Bytes)
				if err != nil && !errors.Is(err, oneshot.ErrExcluded) { // it disputes everything
					t.Fatal(err)
				}
				w.Parties[0].Cut() // has the world go on
			}
		}
		return closed
	})
}

// startBut starts everybody but a member.
func startBut(w *jobtest.Council, member int) {
	for k, m := range w.Members {
		if k != member {
			m.Start()
		}
	}
	for _, p := range w.Parties {
		p.Start()
	}
}

// Members and parties that die when they save, or have sent, cost no round, and nothing but the
// time that it takes to come again.
func TestCommitteeDiesAtSaves(t *testing.T) {
	for _, place := range []string{"before", "after", "sent"} {
		for _, covered := range []bool{false, true} {
			o := small
			o.Covered = covered
			w := jobtest.NewCouncil(t, 1, o)
			for _, s := range slices.Concat(w.Members, w.Parties) {
				calls := 0
				s.Die = func(at string) bool {
					if at != place {
						return false
					}
					if calls++; calls&(calls-1) != 0 { // it comes further between two deaths
						return false
					}
					w.After(drive.Millisecond, s.Start)
					return true
				}
			}
			startAll(w)
			w.Run(w.Ended)
			if len(w.Sums) != 3 || w.Lost() > 0 || w.Now() > 20*drive.Second {
				w.Fatal("%s: %d sums, %d lost", place, len(w.Sums), w.Lost())
			}
			for round, who := range w.Sums {
				if len(who) != 3 {
					w.Fatal("%s: round %d has %v", place, round, who)
				}
			}
		}
	}
}
