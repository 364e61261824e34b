package page

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file makes the printable report on a federation for a data-protection officer.

// report holds the text and figures of a report.
type report struct {
	*runner.Status
	When      time.Time
	Meaning   []string
	Parties   []reported
	Committee []reported
	Log       tally
	Unread    error // why the audit log was not read to its end
	Digests   []digest
	Signer    string // operator's key, of a succession
}

// reported is a party or a member.
type reported struct {
	Name, Was, Key string
	Spent          *accounting.Claim // nil: not known, or no noise
}

type digest struct{ Of, Value string }

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// was maps a party's state to the words that a report uses for it.
var was = map[string]string{"here": "here", "late": "here", "gone": "here earlier",
	"never": "never here", "left out": "left out"}

// rosterOf lists the parties of a roster, with their states.
func rosterOf(roster *keyexchange.Roster, states []runner.PartyStatus) (out []reported) {
	for i := range roster.Len() {
		p := reported{Name: roster.Name(i), Was: "not known", Key: hexOf(roster.Key(i))}
		if i < len(states) {
			p.Was = was[states[i].State]
		}
		out = append(out, p)
	}
	return out
}

// newReport makes the report on a federation.
func newReport(status *runner.Status, known door.Known) *report {
	f := known.Federation
	out := &report{Status: status, When: time.Now(), Meaning: f.Meaning(),
		Parties: rosterOf(f.Settled.Roster(), status.Parties)}
	add := func(of, value string) {
		if value != "" {
			out.Digests = append(out.Digests, digest{of, value})
		}
	}
	ofFile := func(of string, b []byte) {
		if len(b) > 0 {
			d := sha256.Sum256(b)
			add(of, hexOf(d[:]))
		}
	}
	add("identifier: of the job, the roster and the first model", status.ID)
	add("the job that is declared", status.Job)
	add(fmt.Sprintf("root over all decisions, to number %d", status.Decisions), status.Head)
	ofFile("the job's file", known.Files.Text)
	roster := f.Settled.Roster().Digest()
	add("roster", hexOf(roster[:]))
	if one := f.Settled.Oneshot(); one != nil {
		out.Committee = rosterOf(one.Committee, status.Committee)
		d := one.Committee.Digest()
		add("roster of the committee", hexOf(d[:]))
	}
	ofFile("the first model's file", known.Files.Model)
	ofFile("what was spent earlier, in another federation", known.Files.Before)
	for _, p := range slices.Backward(status.History) {
		if p.Digest != "" {
			add("the last model", p.Digest)
			break
		}
	}
	if key, err := f.Signer(known.Files.Succession); err == nil {
		out.Signer = hexOf(key)
	}
	return out
}

// Made says of which lines of the audit log the report was made, and what it lacks.
func (r *report) Made() (list []string) {
	const day = "2006-01-02 15:04:05"
	say := func(format string, a ...any) { list = append(list, fmt.Sprintf(format, a...)) }
	l := &r.Log
	between := ""
	if !l.First.IsZero() {
		between = fmt.Sprintf(", from %s to %s UTC", l.First.UTC().Format(day), l.Last.UTC().Format(day))
	}
	lines := numbers.Plural(l.Read, "line")
	switch {
	case r.Unread != nil && l.Read == 0:
		say("The audit log cannot be read: %v. Orders, rounds and causes are missing here.", r.Unread)
		return list
	case r.Unread != nil:
		say("Made of the first %s of the audit log%s. The rest could not be read, and is missing here: "+
			"%v.", lines, between, r.Unread)
	case l.Read == 0:
		say("The audit log has no line.")
	default:
		say("Made of the whole audit log: %s%s, of %s.", lines, between,
			numbers.Plural(l.Entries, "decision"))
	}
	if l.Missing > 0 {
		say("Missing: %s, which no copy of the record has that this node knows.",
			numbers.Plural(l.Missing, "decision"))
	}
	if l.Unreadable > 0 {
		say("Erased or damaged, and listed as unreadable: %s.", numbers.Plural(l.Unreadable, "line"))
	}
	if !l.Declared {
		say("The line of the declaration is missing: others may be as well.")
	}
	if r.Unread == nil && l.All.Begun != r.Round {
		say("By the log %d rounds were begun, and by the newest state %d.", l.All.Begun, r.Round)
	}
	return list
}

func (s *site) report(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	known, found := s.Federations.Known(id)
	if !found {
		fail(w, r, record.ErrNone)
		return
	}
	status, err := s.Federations.Status(r.Context(), id)
	if err != nil {
		fail(w, r, err)
		return
	}
	out := newReport(status, known)
	if charges, err := s.Federations.Charges(r.Context(), id); err == nil {
		for i := range min(len(charges), len(out.Parties)) {
			out.Parties[i].Spent = &charges[i]
		}
	}
	out.Log.Log, err = s.Federations.AuditLog(r.Context(), id, 1, out.Log.add)
	out.Unread = err
	s.render(w, "report.html", out)
}
