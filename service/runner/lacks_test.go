package runner

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/protocol"
)

// The log says once that too few parties are here, and again when enough were here in between.
func TestLacksLogged(t *testing.T) {
	l := newLed(t, "")
	var log bytes.Buffer
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 2 {
		l.drive.Connected(l.now(), Peer{Index: i}, drive.Hello{})
	}
	lines := func(looks int) int {
		for range looks {
			l.lacks.next = 0
			if l.goes(); l.lacks.since > 0 {
				l.lacks.since -= lacksLonger
			}
		}
		return strings.Count(log.String(), "too few parties are here")
	}
	const want = "waits for: p2 (never here), p3 (never here), p4 (never here); a sum needs 3 of 5 " +
		"parties, and 2 are here"
	if n := lines(1); n != 0 {
		t.Errorf("%d lines at once: %s", n, &log)
	}
	if n := lines(3); n != 1 || !strings.Contains(log.String(), want) {
		t.Errorf("%d lines, want one that says %s: %s", n, want, &log)
	}
	l.drive.Connected(l.now(), Peer{Index: 2}, drive.Hello{})
	if n := lines(3); n != 1 {
		t.Errorf("%d lines when enough are here: %s", n, &log)
	}
	l.drive.Gone(l.now(), Peer{Index: 2})
	l.drive.Order(l.now(), drive.Order{Do: drive.Exclude, Party: 2, Why: ""})
	if n := lines(3); n != 2 {
		t.Errorf("%d lines after it: %s", n, &log)
	}
}

// Of thousands of parties that are missing a few are named.
func TestLacksNames(t *testing.T) {
	s := &Status{State: "running", Least: 5000}
	for i := range 10_000 {
		s.Parties = append(s.Parties, PartyStatus{Name: fmt.Sprint("p", i), State: "gone"})
	}
	if said := s.Lacks(); len(said) > 400 || !strings.Contains(said, "p19 (gone), 9980 more; a sum") {
		t.Error(said)
	}
}

// Why a round was lost has one number of a round, the federation's, and names all who were not in
// the sum: those who did not answer, and those whom the round was not for.
func TestLostNames(t *testing.T) {
	l := newLed(t, "")
	missing := &protocol.MissingError{Round: 10, Parties: []int{3}, Names: []string{"p3"},
		Did: "submitted in", Have: 2, Need: 3}
	lines := l.note([]drive.Notice{
		{Kind: drive.Begun, Session: 2, Round: 10, Parties: []int{0, 1, 3}},
		{Kind: drive.Lost, Session: 2, Round: 10, Err: missing},
	})
	const want = "protocol: too few parties: 2 parties submitted in round 10, 3 are needed; " +
		"missing: p3; not in the round from its start: p2, p4"
	if l.why != "round 10 was lost: "+want || lines[1].Note != want || l.history[0].Lost != want {
		t.Errorf("%s\n%s", l.why, lines[1].Note)
	}
}

// After the end nobody is looked for, and nobody counts as here for ever.
func TestEndedPresence(t *testing.T) {
	l := newLed(t, "")
	l.drive.Connected(l.now(), Peer{Index: 0}, drive.Hello{})
	if err := l.EndNow(t.Context(), By{Who: "ann"}); err != nil {
		t.Fatal(err)
	}
	s, err := l.Status(t.Context())
	if err != nil || s.Parties[0].State != "gone" || s.Parties[1].State != "never" {
		t.Errorf("%+v, %v", s, err)
	}
}

// Lines of the log name the federation, and those whom they are about, and have no number that an
// event lacks. A round that was lost is a warning.
func TestEventsLogged(t *testing.T) {
	l := newLed(t, "")
	var log bytes.Buffer
	o := l.Options
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	r, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range r.note([]drive.Notice{
		{Kind: drive.Formed, Session: 2, Parties: []int{0, 1, 3}},
		{Kind: drive.Awaited, Session: 2, Round: 7, Parties: []int{0, 3}},
		{Kind: drive.Stall, Session: 2, Round: 7, Party: 3},
		{Kind: drive.SetBack, Round: 9, Skipped: 2},
		{Kind: drive.Lost, Session: 2, Round: 10, Err: drive.ErrSetBack},
	}) {
		r.say(line)
	}
	for _, want := range []string{
		"level=INFO msg=formed federation=led session=2 parties=3\n",
		"level=INFO msg=waiting federation=led session=2 round=7 parties=2 names=\"p0, p3\"\n",
		"level=INFO msg=stalled federation=led session=2 round=7 names=p3\n",
		"level=WARN msg=\"the record was set back\" federation=led round=9 note=",
		"level=WARN msg=lost federation=led round=10 note=\"drive: parties know of later rounds\"\n",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
}
