package page

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file counts what a federation's whole audit log says, for the report. It keeps orders and
// incidents, and figures of the rest.

// tally counts lines of an audit log.
type tally struct {
	record.Log
	Read        int // lines
	First, Last time.Time
	Unreadable  int
	Declared    bool // there is the line of the declaration, which begins the log
	Events      []record.Line
	Months      []*month
	All         month
	Causes      []*cause // of lost rounds
}

// month has the rounds of a calendar month, in UTC.
type month struct {
	Name                string
	Begun, Summed, Lost int
	Fewest, Most        int               // parties in a sum; 0: there is none
	Spent               *accounting.Claim // at its end, by the party with most; nil: no line says it
}

// cause has the lost rounds of one cause.
type cause struct {
	Of          string
	Rounds      int
	First, Last int // such rounds
}

// mostCauses is how many causes are counted, each apart from the others.
const mostCauses = 20

// add counts a line.
func (t *tally) add(line record.Line) bool {
	t.Read++
	if line.Event == record.EventUnreadable {
		t.Unreadable++
	} else {
		if t.First.IsZero() {
			t.First = line.Time
		}
		t.Last = line.Time
	}
	t.Declared = t.Declared || line.Event == record.EventCreated
	switch line.Kind() {
	case record.KindOrder, record.KindIncident:
		t.Events = append(t.Events, line)
	}
	if line.Kind() != record.KindRound && line.Spent == nil {
		return true
	}
	name := line.Time.UTC().Format("2006-01")
	i := slices.IndexFunc(t.Months, func(m *month) bool { return m.Name >= name })
	if i < 0 {
		i = len(t.Months)
	}
	if i == len(t.Months) || t.Months[i].Name != name { // clocks of nodes differ
		t.Months = slices.Insert(t.Months, i, &month{Name: name})
	}
	t.Months[i].add(line)
	t.All.add(line)
	if line.Event == "lost" {
		t.lost(line)
	}
	return true
}

// add counts a line.
func (m *month) add(line record.Line) {
	switch line.Event {
	case "begun":
		m.Begun++
	case "lost":
		m.Lost++
	case "summed":
		m.Summed++
		if m.Fewest == 0 || line.Parties < m.Fewest {
			m.Fewest = line.Parties
		}
		m.Most = max(m.Most, line.Parties)
	}
	if line.Spent != nil {
		m.Spent = line.Spent
	}
}

// lost counts a lost round.
func (t *tally) lost(line record.Line) {
	of := causeOf(line.Note)
	i := slices.IndexFunc(t.Causes, func(c *cause) bool { return c.Of == of })
	if i < 0 && len(t.Causes) > mostCauses {
		i = mostCauses
	}
	if i < 0 {
		if i = len(t.Causes); i == mostCauses {
			of = "other causes"
		}
		t.Causes = append(t.Causes, &cause{Of: of, First: line.Round})
	}
	t.Causes[i].Rounds++
	t.Causes[i].Last = line.Round
}

var digits = regexp.MustCompile(`[0-9]+`)

// causeOf returns why a round was lost, without the numbers and names of this one.
func causeOf(note string) string {
	of, more, _ := strings.Cut(note, ";")
	parts := strings.Split(of, ": ")
	if len(parts) > 1 && !strings.Contains(parts[0], " ") { // a package
		parts = parts[1:]
	}
	of = digits.ReplaceAllString(parts[0], "…")
	if of == "" {
		of = "no cause is given"
	}
	if strings.Contains(more, runner.Away) {
		of += "; " + runner.Away
	}
	return of
}
