package main

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// "federation audit" writes all pages of a log, with one head in CSV. It fails where the log breaks
// off or lacks lines, after what there is.
func TestFederationAudit(t *testing.T) {
	const most, all = 3, 7
	fails, missing := 0, 0
	id := strings.Repeat("0a", 32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/federations" {
			_ = json.NewEncoder(w).Encode([]*runner.Status{{Name: "study", ID: id}})
			return
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("from"))
		kind := r.URL.Query().Get("kind")
		if r.URL.Path != "/v1/federations/"+id+"/audit" || from < 1 || kind != "" && kind != "order" {
			t.Errorf("it asks for %s", r.URL)
		}
		if fails > 0 && from >= fails {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"type":"urn:hushsum:problem:leader","title":"No node","status":503,` +
				`"detail":"away"}`))
			return
		}
		var out page.AuditPage
		for n := from; n <= all; n++ {
			if len(out.Lines) == most {
				out.Next = n
				break
			}
			line := record.Line{Number: n, Event: "begun", Round: n, Parties: 2}
			if n%2 == 0 {
				line = record.Line{Number: n, Event: "paused", Note: "by ann"}
			}
			if kind == "" || line.Kind() == kind {
				out.Lines = append(out.Lines, line)
			}
		}
		if out.Next == 0 {
			out.Missing = missing
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	defer server.Close()
	run := func(code int, args ...string) string {
		t.Helper()
		got, text := says(t, append([]string{"federation", "audit", "study", "--admin", server.URL},
			args...)...)
		if got != code {
			t.Errorf("%v: code %d, %s", args, got, text)
		}
		return text
	}
	text := run(0)
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != all ||
		lines[0] != "1  0001-01-01T00:00:00Z  begun, round 1, 2 parties" ||
		lines[5] != "6  0001-01-01T00:00:00Z  paused: by ann" {
		t.Error(text)
	}
	if text = run(0, "--orders"); strings.Count(text, "paused: by ann") != 3 ||
		strings.Count(text, "\n") != 3 {
		t.Error(text)
	}
	text = run(0, "--csv")
	if rows, err := csv.NewReader(strings.NewReader(text)).ReadAll(); err != nil ||
		len(rows) != all+1 || rows[0][0] != "number" || rows[7][0] != "7" {
		t.Errorf("%v %s", err, text)
	}
	number := 0
	for line := range strings.Lines(run(0, "--json")) {
		var l record.Line
		if number++; json.Unmarshal([]byte(line), &l) != nil || l.Number != number {
			t.Errorf("line %d: %s", number, line)
		}
	}
	if number != all {
		t.Errorf("%d lines of JSON", number)
	}
	missing = 2
	if text = run(1); strings.Count(text, "0001-01-01") != all ||
		!strings.Contains(text, "the log lacks 2 decisions") {
		t.Error(text)
	}
	fails = 5 // the second page is whole, and the third is refused
	if text = run(1); strings.Count(text, "0001-01-01") != 6 ||
		!strings.Contains(text, "written up to line 6, and is cut there: the server answers 503") {
		t.Error(text)
	}
	for _, c := range []struct{ args, says string }{
		{"federation audit", "takes a name or file"},
		{"federation audit a b", "too many"},
		{"federation audit a --csv --json", "exclude each other"},
		{"federation show a --csv", "are for audit"},
		{"federation list --orders", "are for audit"},
	} {
		code, text := says(t, strings.Fields(c.args)...)
		if code != 2 || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", c.args, code, text)
		}
	}
}
