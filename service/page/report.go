package page

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file makes the printable report on a federation for a data-protection officer.

// report holds the text and figures of a report.
type report struct {
	*runner.Status
	When        time.Time
	First, Last *time.Time // rounds of the history began
	Forgotten   bool       // earlier rounds are not in the history
	Fewest      int        // parties in a sum of the history; 0: there is none
	Most        int
	Meaning     []string
	Parties     []reported
	Committee   []reported
	Events      []record.Line
	Lines       int // of the audit log that were looked at
	Unread      string
	Digests     []digest
	Signer      string // operator's key, of a succession
}

// reported is a party or a member.
type reported struct{ Name, Was, Key string }

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

// ordered lists the events of the audit log that people order, or should know of.
var ordered = []string{"created", "paused", "resumed", "left out", "readmitted", "ended",
	"set back", "restored"}

// newReport makes the report on a federation.
func newReport(status *runner.Status, known door.Known) *report {
	f := known.Federation
	out := &report{Status: status, When: time.Now(), Meaning: f.Meaning(),
		Parties: rosterOf(f.Settled.Roster(), status.Parties)}
	if h := status.History; len(h) > 0 {
		out.First, out.Last, out.Forgotten = &h[0].Began, &h[len(h)-1].Began, h[0].Round > 1
	}
	for _, p := range status.History {
		if p.Parties == 0 {
			continue
		}
		if out.Fewest == 0 || p.Parties < out.Fewest {
			out.Fewest = p.Parties
		}
		out.Most = max(out.Most, p.Parties)
	}
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
	lines, err := s.Federations.AuditLog(r.Context(), id)
	if err != nil {
		out.Unread = err.Error()
	}
	out.Lines = len(lines)
	for _, line := range lines {
		if slices.Contains(ordered, line.Event) {
			out.Events = append(out.Events, line)
		}
	}
	s.render(w, "report.html", out)
}
