package page

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// This file serves the whole audit log of a federation, page by page.

// ErrAddress: a parameter of a request's address is unknown, given twice, or has no such value.
var ErrAddress = errors.New("page: the parameters of the address are invalid")

// AuditPage is a page of a federation's audit log.
type AuditPage struct {
	Lines []record.Line `json:"lines"`
	// Next is the number of the line to go on from; 0: the log ends with this page.
	Next int `json:"next,omitempty"`
	// Missing is how many decisions, with their lines, are in no copy that the node has.
	Missing int `json:"missing,omitempty"`
}

// Headers of a page of an audit log, in either format.
const (
	headerNextLine = "Hushsum-Next-Line"
	headerMissing  = "Hushsum-Missing-Decisions"
)

// Lines of a page of an audit log.
const (
	usualLines = 1000
	mostLogged = 10_000
)

// auditQuery holds what a request asks of an audit log.
type auditQuery struct {
	from, limit int
	kind        string // empty: all lines
	csv         bool
}

// parseAudit reads the parameters of a request for an audit log. It fails with [ErrAddress].
func parseAudit(r *http.Request) (q auditQuery, err error) {
	q = auditQuery{from: 1, limit: usualLines, csv: prefersCSV(r.Header.Get("Accept"))}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, fmt.Errorf("%w: they cannot be read as name=value&name=value", ErrAddress)
	}
	number := func(name, value string, most int) (n int, err error) {
		if n, err = strconv.Atoi(value); err != nil || n < 1 || n > most || strconv.Itoa(n) != value {
			err = fmt.Errorf("%w: %s=%.20s; use a whole number from 1 to %d", ErrAddress, name, value,
				most)
		}
		return n, err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list := values[name]
		if len(list) > 1 {
			return q, fmt.Errorf("%w: %.20s is given %d times; give it once", ErrAddress, name, len(list))
		}
		value := list[0]
		switch name {
		case "from":
			q.from, err = number(name, value, 1<<31-1)
		case "limit":
			q.limit, err = number(name, value, mostLogged)
		case "kind":
			if q.kind = value; !slices.Contains(record.Kinds, value) {
				err = fmt.Errorf("%w: kind=%.20s; use one of %s", ErrAddress, value,
					strings.Join(record.Kinds, ", "))
			}
		case "format":
			if q.csv = value == "csv"; !q.csv && value != "json" {
				err = fmt.Errorf("%w: format=%.20s; use json or csv", ErrAddress, value)
			}
		default:
			err = fmt.Errorf("%w: there is no %.20q; use from, limit, kind and format", ErrAddress, name)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

// prefersCSV reports whether a header Accept names CSV, and JSON not before it.
func prefersCSV(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		media, _, _ := strings.Cut(item, ";")
		switch strings.TrimSpace(media) {
		case "text/csv":
			return true
		case "application/json":
			return false
		}
	}
	return false
}

// audit serves a page of an audit log.
func (s *site) audit(w http.ResponseWriter, r *http.Request) {
	q, err := parseAudit(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	out := AuditPage{Lines: []record.Line{}}
	last := 0
	log, err := s.Federations.AuditLog(r.Context(), r.PathValue("id"), q.from,
		func(line record.Line) bool {
			last = line.Number
			if q.kind == "" || line.Kind() == q.kind {
				out.Lines = append(out.Lines, line)
			}
			return len(out.Lines) < q.limit
		})
	if err != nil {
		fail(w, r, err)
		return
	}
	full := len(out.Lines) == q.limit
	if out.Missing = log.Missing; full && last < log.Lines {
		out.Next = last + 1
		w.Header().Set(headerNextLine, strconv.Itoa(out.Next))
	}
	if out.Missing > 0 {
		w.Header().Set(headerMissing, strconv.Itoa(out.Missing))
	}
	if !q.csv {
		answer(w, out)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	_ = WriteAudit(w, out.Lines, true) // it fails only if the caller has gone
}

// WriteAudit writes lines of an audit log as CSV, after a line with the columns' names if head is
// set.
func WriteAudit(w io.Writer, lines []record.Line, head bool) error {
	out := csv.NewWriter(w)
	if head {
		_ = out.Write([]string{"number", "time", "node", "event", "round", "parties", "spent", "digest",
			"size", "note"})
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	for _, l := range lines {
		spent := ""
		if l.Spent != nil {
			spent = l.Spent.String()
		}
		_ = out.Write([]string{number(l.Number), l.Time.UTC().Format(time.RFC3339Nano), l.Node, l.Event,
			number(l.Round), number(l.Parties), spent, l.Digest, number(l.Size), l.Note})
	}
	out.Flush()
	return out.Error() // of any line
}
