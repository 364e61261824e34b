package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/internal/openapi"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// shown is a federation as the page gets it.
type shown struct {
	mutex  sync.Mutex
	status runner.Status
	done   []string
	who    string // gave the last order
	fails  error  // what orders fail with
	breaks error  // what backups break off with
}

func newShown() *shown {
	s := &shown{status: runner.Status{
		Name: "study", ID: strings.Repeat("ab", 32), State: "running", Stage: "submitting", Session: 1,
		Round: 7, Rounds: 20, Lost: 1, Epsilon: 3.2, Budget: 8, Delta: 1e-5, Least: 7, Leader: "node-1",
		Protects: "each record of a party", Against: "the server and any 2 parties",
		Decisions: 41, BytesIn: 123456,
		Parties: []runner.PartyStatus{
			{Name: "north", State: "here"}, {Name: "south", State: "late"}, {Name: "east", State: "gone"},
			{Name: "<script>alert(1)</script>", State: "never"},
		},
		Committee: []runner.PartyStatus{
			{Name: "notary", State: "here", Awaited: true}, {Name: "court", State: "here"},
		},
	}}
	for i := range 7 {
		p := runner.Past{Round: i + 1, Session: 1, Parties: 9, Seconds: 1.5, Epsilon: .4 * float64(i+1),
			Accuracy: .6 + .03*float64(i), Began: time.Now()}
		if i == 3 {
			p = runner.Past{Round: 4, Lost: "too few parties"}
		}
		s.status.History = append(s.status.History, p)
	}
	return s
}

func (s *shown) Listing(context.Context) []*runner.Status {
	out, _ := s.Status(context.Background(), s.status.ID)
	return []*runner.Status{out}
}

func (s *shown) Status(_ context.Context, id string) (*runner.Status, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if id != s.status.ID {
		return nil, record.ErrNone
	}
	out := s.status
	return &out, nil
}

func (s *shown) Do(
	ctx context.Context, id, what, who string, decisions *uint64,
) (*runner.Status, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	if decisions != nil && *decisions != s.status.Decisions {
		return nil, page.ErrStale
	}
	s.mutex.Lock()
	s.done, s.who = append(s.done, what), who
	s.status.State = map[string]string{"pause": "paused", "resume": "running", "end": "ended"}[what]
	s.mutex.Unlock()
	return s.Status(ctx, id)
}

func (s *shown) Model(context.Context, string) ([]byte, error) { return []byte("model"), nil }

func (s *shown) Meaning(string) []string { return []string{"It means what it says."} }

func (s *shown) After(context.Context, string) (*federation.Files, error) {
	return &federation.Files{Text: []byte("rounds = 2"), Roster: []byte("a")}, nil
}

func (s *shown) AuditLog(context.Context, string) ([]record.Line, error) {
	return []record.Line{{Time: time.Unix(0, 0), Event: "begun", Round: 7, Parties: 9}}, nil
}

func (s *shown) Declare(_ context.Context, files federation.Files) (string, error) {
	if string(files.Text) == "bad" {
		return "", &job.ConfigError{Line: 3, Path: "rounds", Reason: "0 is too few"}
	}
	return s.status.ID, nil
}

func (s *shown) WriteBackup(_ context.Context, w io.Writer) error {
	if s.fails != nil {
		return s.fails
	}
	_, err := io.WriteString(w, "sealed")
	if err == nil {
		err = s.breaks
	}
	return err
}

func (s *shown) ReadBackup(_ context.Context, r io.Reader) ([]string, error) {
	b, err := io.ReadAll(r)
	if err == nil && s.fails == nil && string(b) != "sealed" {
		err = record.ErrAltered
	}
	return []string{s.status.ID}, errors.Join(err, s.fails)
}

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
	var p door.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != status || p.Title == "" {
		t.Errorf("no problem details: %v %s", err, body)
	}
	return strings.TrimPrefix(p.Type, door.ProblemPrefix)
}

// The document describes the handlers that there are and no others, and of refusals those
// of the table, which the documentation has too.
func TestOpenAPI(t *testing.T) {
	document := openapi.Read(t, page.OpenAPI())
	document.Check(t, page.Routes, page.Refusals(), "login 401", "profiles 404")
	for name, sent := range map[string]any{
		"Problem":  door.Problem{},
		"Declared": page.Declared{},
		"Status":   runner.Status{},
		"Party":    runner.PartyStatus{},
		"Past":     runner.Past{},
		"Metric":   federation.Metric{},
		"Line":     record.Line{},
	} {
		document.Fields(t, name, sent)
	}
	text, err := os.ReadFile(filepath.FromSlash("../../docs/service.md"))
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
		{"POST", f + "/pause", operate, `"41"`, "", 200},
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
		{"GET", "/v1/nothing", read, "", "", 404},
		{"DELETE", f, operate, "", "", 405},
		{"GET", "/v1/openapi.json", "", "", "", 200},
		{"GET", "/login", "", "", "", 200},
		{"GET", "/healthz", "", "", "", 200},
		{"GET", "/debug/pprof/", "", "", "", 303},
		{"POST", "/v1/federations", operate, "", `{"text":"Z29vZA=="}`, 201},
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

// A backup that breaks off is no whole answer.
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

// Without JavaScript: log in, look, pause by a button.
func TestPlainPage(t *testing.T) {
	s, server, tokens := newPage(t, false)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	post := func(path string, form url.Values) (int, string) {
		answer, err := client.PostForm(server.URL+path, form)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}
	if status, _ := post("/login", url.Values{"token": {"no"}}); status != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", status)
	}
	if status, body := post("/login", url.Values{"token": {tokens[1]}}); status != 200 ||
		!strings.Contains(body, "study") {
		t.Fatalf("%d %s", status, body)
	}
	_, body := post("/federations/"+s.status.ID+"/pause", nil)
	for _, want := range []string{"paused", "7</b> of 20", "3.2",
		"of each record of a party, against the server and any 2 parties",
		"1 here, 1 late, 1 gone, 1 never",
		"&lt;script&gt;alert", "no sum", "It means what it says.",
		"waited for: <b>notary</b>", "Resume", "<svg"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, "<script>alert") {
		t.Error("a party's name is not escaped")
	}
	outside := regexp.MustCompile(`(src|href|action)="([^"]*)"`)
	for _, m := range outside.FindAllStringSubmatch(body, -1) {
		if !strings.HasPrefix(m[2], "/") || strings.HasPrefix(m[2], "//") {
			t.Errorf("an asset from elsewhere: %s", m[0])
		}
	}
}

// What people see in a browser, with live updates; the screenshot is left where
// HUSHSUM_SCREENSHOT says. It skips without Chromium.
func TestScreenshot(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			browser = found
		}
	}
	if browser == "" {
		t.Skip("needs chromium")
	}
	s, server, _ := newPage(t, true)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser),
		chromedp.NoSandbox, chromedp.WindowSize(1100, 1500))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()
	address := server.URL + "/federations/" + s.status.ID
	if err := chromedp.Do(ctx, chromedp.Navigate(address),
		chromedp.WaitVisible(`#live[data-updates]`)); err != nil {
		t.Fatal(err)
	}
	s.mutex.Lock()
	s.status.Round, s.status.Stage = 8, "revealing"
	s.mutex.Unlock()
	if err := chromedp.Do(ctx, chromedp.WaitVisible(`#live[data-updates="2"]`)); err != nil {
		t.Fatal(err)
	}
	text, err1 := chromedp.Run(ctx, chromedp.Text("#live"))
	title, err2 := chromedp.Run(ctx, chromedp.Title())
	shot, err3 := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "revealing") || !strings.Contains(title, "study") {
		t.Errorf("title %q, text %q", title, text)
	}
	if name := os.Getenv("HUSHSUM_SCREENSHOT"); name != "" {
		if err := os.WriteFile(name, shot, 0o600); err != nil {
			t.Error(err)
		}
	}
	if len(shot) < 10_000 {
		t.Errorf("a screenshot of %d bytes", len(shot))
	}
}

// Metrics can be read by Prometheus: a name, labels and a number on each line.
func TestMetrics(t *testing.T) {
	_, server, tokens := newPage(t, false)
	_, body, _ := call(t, "GET", server.URL+"/metrics", tokens[0], "", "")
	line := regexp.MustCompile(`^hushsum_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$`)
	lines := strings.Split(strings.TrimSpace(body), "\n")
	for _, l := range lines {
		if !line.MatchString(l) {
			t.Errorf("no metric: %q", l)
		}
	}
	if len(lines) < 9 || strings.Contains(body, "north") {
		t.Errorf("%d metrics, or a party's name: %s", len(lines), body)
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
	if h.Get("ETag") != `"41"` {
		t.Errorf("ETag %s", h.Get("ETag"))
	}
}
