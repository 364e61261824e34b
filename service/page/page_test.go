package page_test

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
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

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

// shown is a federation as the page gets it.
type shown struct {
	mutex  sync.Mutex
	status runner.Status
	done   []string
	who    string // gave the last order
}

func newShown() *shown {
	s := &shown{status: runner.Status{
		Name: "study", ID: strings.Repeat("ab", 32), State: "running", Stage: "submitting", Session: 1,
		Round: 7, Rounds: 20, Lost: 1, Epsilon: 3.2, Budget: 8, Delta: 1e-5, Least: 7, Leader: "node-1",
		Decisions: 41, BytesIn: 123456,
		Parties: []runner.PartyStatus{
			{Name: "north", State: "here"}, {Name: "south", State: "late"}, {Name: "east", State: "gone"},
			{Name: "<script>alert(1)</script>", State: "never"},
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

func (s *shown) AuditLog(context.Context, string) ([]record.Line, error) {
	return []record.Line{{Time: time.Unix(0, 0), Event: "begun", Round: 7, Parties: 9}}, nil
}

func (s *shown) Declare(_ context.Context, text, _, _ []byte) (string, error) {
	if string(text) == "bad" {
		return "", &federation.FileError{Line: 3, Field: "rounds", Reason: "0 is too few"}
	}
	return s.status.ID, nil
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

// Who may do what.
func TestRoles(t *testing.T) {
	s, server, tokens := newPage(t, false)
	read, operate := tokens[0], tokens[1]
	f := "/v1/federations/" + s.status.ID
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
		{"POST", f + "/pause", read, "*", "", 401},
		{"POST", f + "/pause", operate, "", "", 428},
		{"POST", f + "/pause", operate, `"40"`, "", 412},
		{"POST", f + "/pause", operate, `"0"`, "", 412},
		{"POST", f + "/pause", operate, `"x"`, "", 412},
		{"POST", f + "/pause", operate, `"41"`, "", 200},
		{"POST", f + "/resume", operate, "*", "", 200},
		{"POST", f + "/erase", operate, "*", "", 404},
		{"POST", "/v1/federations", read, "", "{}", 401},
		{"POST", "/v1/federations", operate, "", "{", 400},
		{"POST", "/v1/federations", operate, "", `{"more":1}`, 400},
		{"POST", "/v1/federations", operate, "", `{"text":"YmFk"}`, 422},
		{"POST", "/v1/federations", operate, "", `{"text":"Z29vZA=="}`, 201},
		{"GET", "/debug/pprof/", read, "", "", 303},
		{"GET", "/debug/pprof/", operate, "", "", 200},
		{"GET", "/page.css", "", "", "", 200},
		{"GET", "/federations/" + s.status.ID + "/model.safetensors", read, "", "", 200},
	} {
		status, body, h := call(t, c.method, server.URL+c.path, c.token, c.match, c.body)
		if status != c.status {
			t.Errorf("%s %s: %d, want %d: %.200s", c.method, c.path, status, c.status, body)
		}
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
			t.Errorf("%s: policy %q", c.path, csp)
		}
	}
	if got := strings.Join(s.done, " "); got != "pause resume" {
		t.Errorf("orders %q", got)
	}
}

// Operators by their keys: signed requests have the role of the key, and a copy of an order
// does nothing more.
func TestOperatorsByKey(t *testing.T) {
	reads, operates, stranger := newIdentity(t), newIdentity(t), newIdentity(t)
	file := filepath.Join(t.TempDir(), "operators.txt")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public := func(key ed25519.PrivateKey) string {
		return hex.EncodeToString(key.Public().(ed25519.PublicKey))
	}
	write("# who\n\nread ann " + public(reads) + "\noperate bob " + public(operates) + "\n")
	list, err := page.ReadOperators(file)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	s := newShown()
	clock := time.Now()
	tokens, _, err := page.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.New(page.Options{Federations: s, Tokens: tokens, Operators: list,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return clock }}))
	defer server.Close()
	f := "/v1/federations/" + s.status.ID
	send := func(
		key ed25519.PrivateKey, method, path, match, body string, change func(*http.Request),
	) int {
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if match != "" {
			r.Header.Set("If-Match", match)
		}
		var signed []byte
		if body != "" {
			signed = []byte(body)
		}
		if err := signature.Sign(r, signed, key, time.Now()); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(r)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	const good = `{"text":"Z29vZA=="}`
	for _, c := range []struct {
		name                string
		key                 ed25519.PrivateKey
		method, path, match string
		body                string
		change              func(*http.Request)
		status              int
	}{
		{"reads", reads, "GET", f, "", "", nil, 200},
		{"operates reads", operates, "GET", f, "", "", nil, 200},
		{"a stranger", stranger, "GET", f, "", "", nil, 401},
		{"a reader's order", reads, "POST", f + "/pause", `"41"`, "", nil, 401},
		{"a stranger's order", stranger, "POST", f + "/pause", `"41"`, "", nil, 401},
		{"a star", operates, "POST", f + "/pause", "*", "", nil, 412},
		{"no match", operates, "POST", f + "/pause", "", "", nil, 428},
		{"another match", operates, "POST", f + "/pause", `"41"`, "", func(r *http.Request) {
			r.Header.Set("If-Match", "*")
		}, 401},
		{"a match put in", operates, "POST", f + "/pause", "", "", func(r *http.Request) {
			r.Header.Set("If-Match", "*")
		}, 401},
		{"another path", operates, "POST", f + "/pause", `"41"`, "", func(r *http.Request) {
			r.URL.Path = f + "/end"
		}, 401},
		{"another body", operates, "POST", "/v1/federations", "", good, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"text":"YmFkIQ=="}`))
		}, 401},
		{"a body", operates, "POST", "/v1/federations", "", good, nil, 201},
		{"a signature with a token", stranger, "GET", f, "", "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer x")
		}, 401},
		{"an order", operates, "POST", f + "/pause", `"41"`, "", nil, 200},
	} {
		if got := send(c.key, c.method, c.path, c.match, c.body, c.change); got != c.status {
			t.Errorf("%s: %d, want %d", c.name, got, c.status)
		}
	}
	if got := strings.Join(s.done, " "); got != "pause" || s.who != "bob" {
		t.Errorf("orders %q, the last by %q", got, s.who)
	}
	clock = clock.Add(time.Hour)
	if got := send(operates, "GET", f, "", "", nil); got != 401 {
		t.Errorf("an hour later: %d", got)
	}
	for text, want := range map[string]string{
		"operate bob":                                           "line 1: 2 words",
		"\nadmin bob " + public(operates):                       "line 2: there is no role",
		"operate bob zz":                                        "64 hexadecimal",
		"operate  " + public(operates):                          "no name",
		"operate bob " + public(operates)[2:]:                   "64 hexadecimal",
		"read a " + public(reads) + "\nread b " + public(reads): "line 2: the key is there twice",
	} {
		write(text)
		if _, err := page.ReadOperators(file); !errors.Is(err, page.ErrOperators) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func newIdentity(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	key, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
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
	for _, want := range []string{"paused", "7</b> of 20", "3.2", "1 here, 1 late, 1 gone, 1 never",
		"&lt;script&gt;alert", "no sum", "It means what it says.", "Resume", "<svg"} {
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
