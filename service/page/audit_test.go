package page_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

// yearOf is a year of 2,000 rounds, 10,000 lines: in every round there is an order, and every tenth
// is lost.
func yearOf() (lines []record.Line) {
	const rounds = 2000
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for round := 1; round <= rounds; round++ {
		at := began.Add(time.Duration(round-1) * 4 * time.Hour)
		add := func(line record.Line) {
			line.Time, line.Node = at, "node-1"
			lines = append(lines, line)
		}
		add(record.Line{Event: "begun", Round: round, Parties: 9})
		add(record.Line{Event: "a session forms", Round: round})
		add(record.Line{Event: "paused", Round: round, Note: fmt.Sprintf("by ann, order %d", round)})
		if round%10 == 0 {
			note := "protocol: too few parties: 3 parties submitted in round %d; missing: a"
			add(record.Line{Event: "lost", Round: round, Note: fmt.Sprintf(note, round)})
		} else {
			spent := spentOf(float64(round) / 500)
			add(record.Line{Event: "summed", Round: round, Parties: 7 + round%3, Spent: spent})
		}
		if round < rounds {
			add(record.Line{Event: "resumed", Round: round, Note: "by ann"})
		} else {
			add(record.Line{Event: "ended", Round: round})
		}
	}
	lines[1] = record.Line{Time: began, Node: "node-1", Event: "created", Note: "by ann"}
	return lines
}

// recorded is a record with an audit log.
type recorded struct {
	*record.Records
	conn *nats.Conn
}

// messages returns how many messages the record's client has received while a function ran.
func (r *recorded) messages(f func()) int {
	before := r.conn.Stats().InMsgs
	f()
	return int(r.conn.Stats().InMsgs - before)
}

// record writes lines to a new record, with some decisions.
func (s *shown) record(t *testing.T, lines []record.Line) *recorded {
	t.Helper()
	// Unlike the embedded one it does not wait for the disk at every line.
	one, err := server.NewServer(&server.Options{JetStream: true, StoreDir: t.TempDir(),
		DontListen: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	one.Start()
	t.Cleanup(func() {
		one.Shutdown()
		one.WaitForShutdown()
	})
	conn, err := nats.Connect("", nats.InProcessServer(one))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(2*len(lines)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(t.Context(), js, 1, record.NewKeys(*key))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.KeepIn(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	d := record.Definition{ID: s.status.ID, Text: []byte("text"), Created: time.Now().UTC()}
	if err := r.Create(t.Context(), d, nil, nil); err != nil {
		t.Fatal(err)
	}
	h, err := r.Claim(t.Context(), s.status.ID, "node")
	for chunk := range slices.Chunk(lines, 20) {
		if h.Lines = slices.Clone(chunk); err == nil {
			err = h.Decide(t.Context(), []byte("state"))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return &recorded{r, conn}
}

// The pages of a year's audit log join to the whole of it, of all lines and of each kind, and the
// report has every order and counts all rounds. A node reads its own file: it asks JetStream for
// little.
func TestAuditOfAYear(t *testing.T) {
	s, server, tokens := newPage(t, false)
	lines := yearOf()
	of := s.record(t, lines)
	s.reads = of.Records
	address := server.URL + "/v1/federations/" + s.status.ID + "/audit"
	ask := func(query string) (out page.AuditPage, next string) {
		t.Helper()
		status, body, h := call(t, "GET", address+query, tokens[0], "", "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", query, status, body)
		}
		if err := json.Unmarshal([]byte(body), &out); err != nil {
			t.Fatal(err)
		}
		return out, h.Get("Hushsum-Next-Line")
	}
	for _, kind := range []string{"", "order", "round", "session", "incident"} {
		var want []record.Line
		for i, line := range lines {
			line.Number = i + 1
			if kind == "" || line.Kind() == kind {
				want = append(want, line)
			}
		}
		var got []record.Line
		pages := 0
		fetched := of.messages(func() {
			for from := 1; from > 0; pages++ {
				query := fmt.Sprintf("?from=%d", from)
				if kind != "" {
					query += "&kind=" + kind
				}
				out, next := ask(query)
				if from = out.Next; from > 0 && (len(out.Lines) != 1000 || next != strconv.Itoa(from)) {
					t.Errorf("%s: a page of %d lines, next %d, %q", kind, len(out.Lines), from, next)
				}
				got = append(got, out.Lines...)
			}
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("kind %q: %d lines are not the %d of the log", kind, len(got), len(want))
		}
		if most := pages * 16; fetched > most {
			t.Errorf("kind %q: %d pages took %d messages, more than %d", kind, pages, fetched, most)
		}
	}
	if fetched := of.messages(func() {
		if out, _ := ask("?from=9990&limit=3"); len(out.Lines) != 3 || out.Lines[0].Number != 9990 {
			t.Errorf("from 9990: %+v", out)
		}
	}); fetched > 16 {
		t.Errorf("three lines near the end took %d messages", fetched)
	}
	if out, _ := ask("?from=10001"); len(out.Lines) > 0 || out.Next != 0 || out.Missing != 0 {
		t.Errorf("after the end: %+v", out)
	}

	s.status.Round, s.status.Rounds, s.status.Lost = 2000, 2000, 200
	var body string
	fetched := of.messages(func() {
		_, body, _ = call(t, "GET", server.URL+"/federations/"+s.status.ID+"/report", tokens[0], "", "")
	})
	for i, order := range regexp.MustCompile(`<td>by ann, order (\d+)</td>`).
		FindAllStringSubmatch(body, 2001) {
		if order[1] != strconv.Itoa(i+1) {
			t.Fatalf("the report has the order of round %s in place of that of round %d", order[1], i+1)
		}
	}
	if n := strings.Count(body, "<td>by ann, order "); n != 2000 {
		t.Errorf("the report has %d orders", n)
	}
	for _, want := range []string{
		`<td class="number">3.2</td>`, "to number 41",
		"<td>too few parties</td><td class=\"number\">200</td><td class=\"number\">10</td>" +
			"<td class=\"number\">2000</td>",
		"<td>all</td><td class=\"number\">2000</td><td class=\"number\">1800</td>" +
			"<td class=\"number\">200</td><td class=\"number\">7 to 9</td><td>epsilon 3.9980",
		"<td>2026-01</td><td class=\"number\">186</td>", "Sums had 7 to 9 parties",
		"Made of the whole audit log: 10,000 lines, from 2026-01-01 00:00:00 to 2026-11-30 04:00:00",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, not := range []string{"last 200", "Missing:", "By the log", "is missing", "has lost"} {
		if strings.Contains(body, not) {
			t.Errorf("the report of a whole log says %q", not)
		}
	}
	if fetched > 16 {
		t.Errorf("the report took %d messages", fetched)
	}
}

// CSV has the lines of JSON, by Accept or by format.
func TestAuditCSV(t *testing.T) {
	s, server, tokens := newPage(t, false)
	s.log = yearOf()[:12]
	s.log[3].Note = "a \"note\", with\na line more"
	address := server.URL + "/v1/federations/" + s.status.ID + "/audit"
	ask := func(query, accept string) (string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", address+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		r.Header.Set("Authorization", "Bearer "+tokens[0])
		recorder := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(recorder, r)
		return recorder.Body.String(), recorder.Header()
	}
	for _, c := range []struct {
		query, accept string
		csv           bool
	}{
		{"?limit=5", "", false}, {"?limit=5", "*/*", false}, {"?limit=5", "text/csv", true},
		{"?limit=5", "application/json, text/csv", false},
		{"?limit=5", "text/csv;q=0.9, application/json;q=0.5", true},
		{"?limit=5&format=json", "text/csv", false}, {"?limit=5&format=csv", "application/json", true},
	} {
		body, h := ask(c.query, c.accept)
		if got := strings.HasPrefix(h.Get("Content-Type"), "text/csv"); got != c.csv ||
			h.Get("Hushsum-Next-Line") != "6" {
			t.Errorf("%+v: %v", c, h)
		}
		if !c.csv {
			continue
		}
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil || len(rows) != 6 || rows[0][0] != "number" || rows[5][0] != "5" ||
			rows[4][9] != s.log[3].Note || rows[4][6] != s.log[3].Spent.String() ||
			rows[1][3] != "begun" || rows[1][5] != "9" {
			t.Errorf("%+v: %v %q", c, err, rows)
		}
	}
}

// Each parameter that is unknown, given twice or without sense has an error of its own, and nothing
// is read.
func TestAuditParameters(t *testing.T) {
	s, server, tokens := newPage(t, false)
	address := server.URL + "/v1/federations/" + s.status.ID + "/audit"
	said := map[string]string{}
	for query, want := range map[string]string{
		"?from=0": "from=0", "?from=-1": "from=-1", "?from=x": "from=x", "?from=": "from=;",
		"?from=01": "from=01", "?from=2147483648": "1 to 2147483647", "?limit=0": "limit=0",
		"?limit=10001": "1 to 10000", "?limit=%2B5": "limit=+5", "?kind=": "kind=;",
		"?kind=orders": "one of order, round, session, incident", "?format=xml": "json or csv",
		"?form=1": `there is no "form"`, "?from=1&from=2": "from is given 2 times", "?from=%zz": "be read",
	} {
		status, body, h := call(t, "GET", address+query, tokens[0], "", "")
		if kind := kindOf(t, status, h, body); status != 400 || kind != "parameters" ||
			!strings.Contains(body, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: %d %s", query, status, body)
		}
		if other, twice := said[body]; twice {
			t.Errorf("%s and %s are refused alike: %s", query, other, body)
		}
		said[body] = query
	}
	if s.given > 0 {
		t.Errorf("%d lines were read", s.given)
	}
}

// A log that cannot be read, breaks off, or lacks lines makes no page and no report that looks
// whole.
func TestAuditCut(t *testing.T) {
	s, server, tokens := newPage(t, false)
	audit := server.URL + "/v1/federations/" + s.status.ID + "/audit"
	report := func() string {
		_, body, _ := call(t, "GET", server.URL+"/federations/"+s.status.ID+"/report", tokens[0], "", "")
		return body
	}
	s.status.Round = 7
	s.log = yearOf()[:35]
	if body := report(); !strings.Contains(body, "whole audit log: 35 lines") ||
		strings.Contains(body, "Missing:") {
		t.Error(body)
	}
	for _, c := range []struct {
		set  func()
		want string
	}{
		{func() { s.missing = 2 }, "Missing: 2 decisions, which no copy"},
		{func() { s.log[9] = record.Line{Event: record.EventUnreadable} },
			"listed as unreadable: 1 line."},
		{func() { s.log = s.log[5:] }, "line of the declaration is missing"},
		{func() { s.status.Round = 8 }, "By the log 7 rounds were begun, and by the newest state 8"},
		{func() { s.cut = 12 }, "Made of the first 12 lines of the audit log, from "},
		{func() { s.log = s.log[:0] }, "The audit log has no line."},
	} {
		s.log, s.missing, s.cut, s.status.Round = yearOf()[:35], 0, 0, 7
		c.set()
		if body := report(); !strings.Contains(body, c.want) {
			t.Errorf("the report lacks %q: %s", c.want, body)
		}
	}
	s.log, s.cut = yearOf()[:35], 12
	status, body, h := call(t, "GET", audit, tokens[0], "", "")
	if kindOf(t, status, h, body) != "leader" {
		t.Errorf("a page that breaks off: %d %s", status, body)
	}
	s.cut, s.missing = 0, 3
	status, body, h = call(t, "GET", audit+"?from=30", tokens[0], "", "")
	if status != 200 || h.Get("Hushsum-Missing-Decisions") != "3" || !strings.Contains(body, `"missing":3`) {
		t.Errorf("%d %v %s", status, h, body)
	}
}

// Causes of loss are counted without the numbers and names of a round, and are few.
func TestCauses(t *testing.T) {
	s, server, tokens := newPage(t, false)
	s.log = []record.Line{
		{Event: "lost", Round: 1, Note: "protocol: too few parties: 3 submitted; missing: north"},
		{Event: "lost", Round: 4, Note: "protocol: too few parties: 2 submitted; missing: south"},
		{Event: "lost", Round: 5, Note: "protocol: too few parties: 2; the record was away in this round"},
		{Event: "lost", Round: 6},
	}
	for i := range 30 {
		s.log = append(s.log, record.Line{Event: "lost", Round: 7 + i,
			Note: fmt.Sprintf("odd %d %s", i, strings.Repeat("x", i+1))})
	}
	_, body, _ := call(t, "GET", server.URL+"/federations/"+s.status.ID+"/report", tokens[0], "", "")
	row := func(of string, rounds, first, last int) string {
		return fmt.Sprintf(`<td>%s</td><td class="number">%d</td><td class="number">%d</td>`+
			`<td class="number">%d</td>`, of, rounds, first, last)
	}
	for _, want := range []string{row("too few parties", 2, 1, 4), row("no cause is given", 1, 6, 6),
		row("too few parties; the record was away in this round", 1, 5, 5),
		row("odd … xxx", 1, 9, 9), row("other causes", 13, 24, 36)} {
		if !strings.Contains(body, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}
