package page_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/internal/openapi"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/signature"
)

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
	list, err := page.OpenOperators(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newShown()
	clock := time.Now()
	tokens, fresh, err := page.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.New(page.Options{Federations: s, Tokens: tokens, Operators: list,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return clock }}))
	defer server.Close()
	f := "/v1/federations/" + s.status.ID
	document := openapi.Read(t, page.OpenAPI())
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
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		kind := kindOf(t, answer.StatusCode, answer.Header, string(b))
		document.Allows(t, r, answer.StatusCode, kind)
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
		{"a stranger", stranger, "GET", f, "", "", nil, 403},
		{"a reader's order", reads, "POST", f + "/pause", `"3-ab"`, "", nil, 403},
		{"a stranger's order", stranger, "POST", f + "/pause", `"3-ab"`, "", nil, 403},
		{"a star", operates, "POST", f + "/pause", "*", "", nil, 428},
		{"an order by the page's button", operates, "POST", "/federations/" + s.status.ID + "/pause",
			"", "", nil, 428},
		{"an empty match", operates, "POST", f + "/pause", `""`, "", nil, 412},
		{"another state", operates, "POST", f + "/pause", `"4-ab"`, "", nil, 412},
		{"no match", operates, "POST", f + "/pause", "", "", nil, 428},
		{"another match", operates, "POST", f + "/pause", `"3-ab"`, "", func(r *http.Request) {
			r.Header.Set("If-Match", "*")
		}, 401},
		{"a match put in", operates, "POST", f + "/pause", "", "", func(r *http.Request) {
			r.Header.Set("If-Match", "*")
		}, 401},
		{"another path", operates, "POST", f + "/pause", `"3-ab"`, "", func(r *http.Request) {
			r.URL.Path = f + "/end"
		}, 401},
		{"another body", operates, "POST", "/v1/federations", "", good, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"text":"YmFkIQ=="}`))
		}, 401},
		{"a body", operates, "POST", "/v1/federations", "", good, nil, 201},
		{"a signature with a token", stranger, "GET", f, "", "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+fresh[1])
		}, 403},
		{"an order", operates, "POST", f + "/pause", `"3-ab"`, "", nil, 200},
		{"a reader's order of a party", reads, "POST", f + "/parties/b/exclude", `"3-ab"`, "", nil, 403},
		{"no order of a party", operates, "POST", f + "/parties/b/pause", `"3-ab"`, "", nil, 404},
		{"no order of all", operates, "POST", f + "/exclude", `"3-ab"`, "", nil, 404},
		{"an order of a party", operates, "POST", f + "/parties/b/exclude", `"3-ab"`, "", nil, 200},
	} {
		if got := send(c.key, c.method, c.path, c.match, c.body, c.change); got != c.status {
			t.Errorf("%s: %d, want %d", c.name, got, c.status)
		}
	}
	if got := strings.Join(s.done, " "); got != "pause exclude b" || s.who != "bob" {
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
		"operate  " + public(operates):                          "not a name",
		"operate bob " + public(operates)[2:]:                   "64 hexadecimal",
		"read a " + public(reads) + "\nread b " + public(reads): "line 2: the key is there twice",
	} {
		write(text)
		if _, err := page.OpenOperators(file, nil); !errors.Is(err, page.ErrOperators) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A file of operators that changes counts from then on; one that becomes wrong is told to the
// log with its line, once, and whoever was there before stays.
func TestOperatorsChange(t *testing.T) {
	ann, bob := newIdentity(t), newIdentity(t)
	file := filepath.Join(t.TempDir(), "operators.txt")
	line := func(role, name string, key ed25519.PrivateKey) string {
		return fmt.Sprintf("%s %s %x\n", role, name, []byte(key.Public().(ed25519.PublicKey)))
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(line("read", "ann", ann))
	var log bytes.Buffer
	list, err := page.OpenOperators(file, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := newShown()
	tokens, _, err := page.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.New(page.Options{Federations: s, Tokens: tokens,
		Operators: list, Log: slog.New(slog.DiscardHandler)}))
	defer server.Close()
	pause := func(key ed25519.PrivateKey) int {
		r, err := http.NewRequest("POST", server.URL+"/v1/federations/"+s.status.ID+"/pause", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("If-Match", `"3-ab"`)
		if err := signature.Sign(r, nil, key, time.Now()); err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	expect := func(when string, wantAnn, wantBob int) {
		t.Helper()
		if gotAnn, gotBob := pause(ann), pause(bob); gotAnn != wantAnn || gotBob != wantBob {
			t.Errorf("%s: %d and %d, want %d and %d", when, gotAnn, gotBob, wantAnn, wantBob)
		}
	}
	expect("at first", 403, 403)
	write(line("operate", "ann", ann)) // the same moment
	expect("a role is raised", 200, 403)
	write(line("operate", "bob", bob)) // and the same length
	expect("another operator", 403, 200)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	expect("another time", 403, 200)
	write(line("operate", "bob", bob) + "operate ann\n")
	expect("a broken file", 403, 200)
	expect("a broken file again", 403, 200)
	if got := log.String(); strings.Count(got, "line 2: 2 words, want 3") != 1 {
		t.Errorf("the log does not say once what is wrong: %s", got)
	}
	again := strings.Count(log.String(), "was reread")
	write(line("operate", "bob", bob))
	expect("a file that was mended", 403, 200)
	expect("a file that was mended", 403, 200)
	if n := strings.Count(log.String(), "was reread"); n != again+1 {
		t.Errorf("the log says %d times that the file was mended: %s", n-again, log.String())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("no file", 403, 200)
	next := file + ".next"
	if err := os.WriteFile(next, []byte(line("read", "bob", bob)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	expect("a file that was put in its place", 403, 403)
	write("# nobody\n")
	if pause(bob) != 403 || !strings.Contains(log.String(), "operators=0") {
		t.Errorf("nobody is left: %s", log.String())
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
