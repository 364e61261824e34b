package runner

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/drive"
)

// The log says once that too few parties are here, and again when enough were here in between.
func TestLacksLogged(t *testing.T) {
	l := newLed(t, "")
	var log bytes.Buffer
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 2 {
		l.drive.Connected(l.now(), i, drive.Hello{})
	}
	lines := func(looks int) int {
		for range looks {
			l.lacks.next = 0
			if l.sayLacks(); l.lacks.since > 0 {
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
	l.drive.Connected(l.now(), 2, drive.Hello{})
	if n := lines(3); n != 1 {
		t.Errorf("%d lines when enough are here: %s", n, &log)
	}
	l.drive.Gone(l.now(), 2)
	l.drive.Exclude(l.now(), 2, "")
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
