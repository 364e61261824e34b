package page_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/internal/openapi"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// newPage serves a page; the tokens are read's and operate's.
func newPage(t *testing.T, open bool) (s *shown, server *httptest.Server, tokens []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.json")
	store, tokens, err := page.OpenTokens(file)
	if err != nil || len(tokens) != 2 {
		t.Fatal(tokens, err)
	}
	b, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(b), tokens[0][8:]) {
		t.Errorf("the file of tokens has a token: %v", err)
	}
	if _, again, err := page.OpenTokens(file); err != nil || again != nil {
		t.Errorf("the second start made tokens %v, %v", again, err)
	}
	s = newShown()
	server = httptest.NewServer(page.New(page.Options{
		Federations: s,
		Tokens:      store,
		Open:        open,
		Log:         slog.New(slog.DiscardHandler),
		Counts:      new(door.Counts),
	}))
	t.Cleanup(server.Close)
	return s, server, tokens
}

func call(t *testing.T, method, address, token, match, body string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if match != "" {
		r.Header.Set("If-Match", match)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b), answer.Header
}

// kindOf is the kind of a problem, empty for what is none.
func kindOf(t *testing.T, status int, h http.Header, body string) string {
	t.Helper()
	if h.Get("Content-Type") != "application/problem+json" {
		return ""
	}
	var p exchange.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != status || p.Title == "" {
		t.Errorf("no problem details: %v %s", err, body)
	}
	return strings.TrimPrefix(p.Type, exchange.ProblemPrefix)
}

// The document describes the handlers that there are and no others, and of refusals those
// of the table, which the documentation has too.
func TestOpenAPI(t *testing.T) {
	document := openapi.Read(t, page.OpenAPI())
	document.Check(t, page.Routes, page.Refusals(), "login 401", "profiles 404",
		"planShown 422")
	for name, sent := range map[string]any{
		"Problem":   exchange.Problem{},
		"Declared":  page.Declared{},
		"Asked":     federation.Asked{},
		"Planned":   page.Planned{},
		"Status":    runner.Status{},
		"StepTimes": runner.StepTimes{},
		"Party":     runner.PartyStatus{},
		"Past":      runner.Past{},
		"Metric":    job.Metric{},
		"Line":      record.Line{},
		"AuditPage": page.AuditPage{},
	} {
		document.Fields(t, name, sent)
	}
	text, err := os.ReadFile(filepath.FromSlash("../../docs/service-begin.md"))
	if err != nil {
		t.Fatal(err)
	}
	document.Job(t, "Declared", "text")
	openapi.Compare(t, openapi.Table(t, string(text), "### Refusals"), page.Refusals())
	_, server, _ := newPage(t, false)
	status, body, _ := call(t, "GET", server.URL+"/v1/openapi.json", "", "", "")
	if status != 200 || body != string(page.OpenAPI()) {
		t.Errorf("it serves another document: %d", status)
	}
}

// What an order fails with at the federation's leader is told as what it is.
func TestOrderFails(t *testing.T) {
	s, server, tokens := newPage(t, false)
	document := openapi.Read(t, page.OpenAPI())
	for _, c := range []struct {
		err    error
		status int
		kind   string
	}{
		{record.ErrLost, 503, "leader"},
		{record.ErrUnavailable, 503, "leader"},
		{runner.ErrStopped, 503, "leader"},
		{runner.ErrState, 409, "state"},
		{record.ErrNone, 404, "unknown"},
		{page.ErrStale, 412, "stale"},
		{runner.ErrStale, 412, "stale"},
	} {
		s.fails = c.err
		path := "/v1/federations/" + s.status.ID + "/pause"
		status, body, h := call(t, "POST", server.URL+path, tokens[1], "*", "")
		if kind := kindOf(t, status, h, body); status != c.status || kind != c.kind {
			t.Errorf("%v: %d %s", c.err, status, kind)
		}
		document.Allows(t, httptest.NewRequest("POST", path, nil), status, c.kind)
		if retry := h.Get("Retry-After"); (status == 503) != (retry != "") {
			t.Errorf("%v: Retry-After %q", c.err, retry)
		}
	}
}

// A page that anybody may read takes no order of anybody, and no wrong token.
func TestOpenPage(t *testing.T) {
	s, server, tokens := newPage(t, true)
	f := "/v1/federations/" + s.status.ID
	for _, c := range []struct {
		method, token string
		status        int
	}{
		{"GET", "", 200}, {"GET", tokens[0], 200}, {"GET", "x", 401},
		{"POST", "", 401}, {"POST", tokens[0], 403}, {"POST", tokens[1], 200},
	} {
		path := f
		if c.method == "POST" {
			path += "/pause"
		}
		if status, body, _ := call(t, c.method, server.URL+path, c.token, "*", ""); status != c.status {
			t.Errorf("%s %.5s: %d, want %d: %s", c.method, c.token, status, c.status, body)
		}
	}
}

// A token that is none of the node's is told from none at all.
func TestOtherToken(t *testing.T) {
	_, server, _ := newPage(t, false)
	for token, want := range map[string]string{
		"":  "send an operator's token",
		"x": "a token that this node does not know",
	} {
		status, body, _ := call(t, "GET", server.URL+"/v1/federations", token, "", "")
		if status != 401 || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s", token, status, body)
		}
	}
}

// Who may do what.
func TestRoles(t *testing.T) {
	s, server, tokens := newPage(t, false)
	read, operate := tokens[0], tokens[1]
	f := "/v1/federations/" + s.status.ID
	document := openapi.Read(t, page.OpenAPI())
	for _, c := range []struct {
		method, path, token, match, body string
		status                           int
	}{
		{"GET", "/", "", "", "", 303},
		{"GET", "/federations/" + s.status.ID, "", "", "", 303},
		{"GET", "/", read, "", "", 200},
		{"GET", "/", read + "0", "", "", 303},
		{"GET", "/v1/federations", "", "", "", 401},
		{"GET", "/v1/federations", read, "", "", 200},
		{"GET", "/metrics", "", "", "", 401},
		{"GET", "/metrics", read, "", "", 200},
		{"GET", f, read, "", "", 200},
		{"GET", f + "/audit", read, "", "", 200},
		{"GET", "/v1/federations/none", read, "", "", 404},
		{"POST", f + "/pause", "", "*", "", 401},
		{"POST", f + "/pause", read, "*", "", 403},
		{"POST", f + "/pause", operate, "", "", 428},
		{"POST", f + "/pause", operate, `"40"`, "", 412},
		{"POST", f + "/pause", operate, `"0"`, "", 412},
		{"POST", f + "/pause", operate, `"x"`, "", 412},
		{"POST", f + "/pause", operate, `"3-ab"`, "", 200},
		{"POST", f + "/resume", operate, "*", "", 200},
		{"POST", f + "/erase", operate, "*", "", 404},
		{"POST", "/v1/federations", "", "", "{}", 401},
		{"POST", "/v1/federations", read, "", "{}", 403},
		{"POST", "/v1/federations", operate, "", "{", 400},
		{"POST", "/v1/federations", operate, "", `{"more":1}`, 400},
		{"POST", "/v1/federations", operate, "", `{} {}`, 400},
		{"POST", "/v1/federations", operate, "", `{"text":"YmFk"}`, 422},
		{"POST", "/federations/" + s.status.ID + "/end", "", "", "", 303},
		{"POST", "/federations/" + s.status.ID + "/end", read, "", "", 403},
		{"POST", "/federations/" + s.status.ID + "/erase", operate, "", "", 404},
		{"GET", "/federations/" + s.status.ID + "/report", read, "", "", 200},
		{"GET", "/federations/" + s.status.ID + "/report", "", "", "", 303},
		{"GET", "/federations/" + s.status.ID + "/end", read, "", "", 403},
		{"GET", "/federations/" + s.status.ID + "/end", operate, "", "", 200},
		{"GET", "/federations/none/end", operate, "", "", 404},
		{"POST", "/federations/" + s.status.ID + "/end", operate, "", "", 422},
		{"GET", "/federations/" + s.status.ID + "/parties/south/exclude", operate, "", "", 200},
		{"POST", "/federations/" + s.status.ID + "/parties/south/exclude", operate, "", "", 422},
		{"POST", "/federations/" + s.status.ID + "/parties/south/exclude", read, "", "", 403},
		{"POST", "/federations/" + s.status.ID + "/parties/south/erase", operate, "", "", 404},
		{"GET", "/node", "", "", "", 303},
		{"GET", "/node", read, "", "", 200},
		{"GET", "/v1/nothing", read, "", "", 404},
		{"DELETE", f, operate, "", "", 405},
		{"GET", "/v1/openapi.json", "", "", "", 200},
		{"GET", "/login", "", "", "", 200},
		{"GET", "/healthz", "", "", "", 200},
		{"GET", "/debug/pprof/", "", "", "", 303},
		{"POST", "/v1/federations", operate, "", `{"text":"Z29vZA=="}`, 201},
		{"GET", "/v1/keys", "", "", "", 401},
		{"GET", "/v1/keys", read, "", "", 200},
		{"POST", "/v1/keys/rewrite", read, "", "", 403},
		{"POST", "/v1/keys/rewrite", operate, "", "", 200},
		{"GET", "/v1/nodes", "", "", "", 401},
		{"GET", "/v1/nodes", read, "", "", 200},
		{"POST", "/v1/nodes/node-1/remove", read, "*", "", 403},
		{"POST", "/v1/nodes/node-1/remove", operate, "", "", 428},
		{"POST", "/v1/nodes/node-1/remove", operate, `"3"`, "", 412},
		{"POST", "/v1/nodes/node-9/remove", operate, `"4"`, "", 409},
		{"POST", "/v1/nodes/node-1/remove", operate, `"4"`, "", 409},
		{"POST", "/v1/nodes/node-1/remove?force=true", operate, `"4"`, "", 200},
		{"GET", "/v1/backup", "", "", "", 401},
		{"GET", "/v1/backup", read, "", "", 403},
		{"GET", "/v1/backup", operate, "", "", 200},
		{"POST", "/v1/restore", read, "", "sealed", 403},
		{"POST", "/v1/restore", operate, "", "sealee", 422},
		{"POST", "/v1/restore", operate, "", "sealed", 201},
		{"GET", "/debug/pprof/", read, "", "", 403},
		{"GET", "/debug/pprof/goroutine", operate, "", "", 200},
		{"GET", "/debug/pprof/", operate, "", "", 200},
		{"GET", "/page.css", "", "", "", 200},
		{"GET", "/federations/" + s.status.ID + "/model.safetensors", read, "", "", 200},
	} {
		status, body, h := call(t, c.method, server.URL+c.path, c.token, c.match, c.body)
		if status != c.status {
			t.Errorf("%s %s: %d, want %d: %.200s", c.method, c.path, status, c.status, body)
		}
		r := httptest.NewRequest(c.method, c.path, nil)
		document.Allows(t, r, status, kindOf(t, status, h, body))
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
			t.Errorf("%s: policy %q", c.path, csp)
		}
	}
	if got := strings.Join(s.done, " "); got != "pause resume" {
		t.Errorf("orders %q", got)
	}
}

// A backup that breaks off is not a whole answer.
func TestBackupBreaksOff(t *testing.T) {
	s, server, tokens := newPage(t, false)
	s.breaks = record.ErrUnavailable
	r, err := http.NewRequest(http.MethodGet, server.URL+"/v1/backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokens[1])
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil {
		t.Error("it looks whole")
	}
}

// A page of another site cannot send an operator's browser to do anything.
func TestCrossOrigin(t *testing.T) {
	s, server, tokens := newPage(t, false)
	r, err := http.NewRequest("POST", server.URL+"/federations/"+s.status.ID+"/end", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "hushsum-token", Value: tokens[1]})
	r.Header.Set("Origin", "https://elsewhere.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden || len(s.done) > 0 {
		t.Errorf("%d, orders %v", answer.StatusCode, s.done)
	}
}

// Statuses are JSON with an ETag that orders take.
func TestStatusJSON(t *testing.T) {
	s, server, tokens := newPage(t, false)
	_, body, h := call(t, "GET", server.URL+"/v1/federations/"+s.status.ID, tokens[0], "", "")
	var status runner.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil || status.Round != 7 {
		t.Errorf("%v %s", err, body)
	}
	if h.Get("ETag") != `"3-ab"` {
		t.Errorf("ETag %s", h.Get("ETag"))
	}
}
