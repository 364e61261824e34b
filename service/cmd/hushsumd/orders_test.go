package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/runner"
)

// An order is based on the orders that the operator has seen. Where the answer to an end is lost
// the command looks again and asks once more, by what it sees then. Nothing else is asked twice:
// neither another order, nor an end that was refused.
func TestOrderLost(t *testing.T) {
	lose := func(w http.ResponseWriter) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close()
	}
	problem := func(status int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status})
		}
	}
	broken := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"name": "s"`))
	}
	gateway := func(w http.ResponseWriter) { w.WriteHeader(http.StatusGatewayTimeout) }
	type replies []func(http.ResponseWriter)
	first, second := []string{`"0-a"`}, []string{`"0-a"`, `"1-a"`}
	for name, c := range map[string]struct {
		what    string
		answers replies // to orders in turn; then they are carried out
		seen    []string
		code    int
	}{
		"end":                       {"end", nil, first, 0},
		"a lost connection":         {"end", replies{lose}, second, 0},
		"an answer that breaks":     {"end", replies{broken}, second, 0},
		"a gateway that gives up":   {"end", replies{gateway}, second, 0},
		"a leader that is silent":   {"end", replies{problem(503)}, second, 0},
		"lost twice":                {"end", replies{lose, lose}, second, 1},
		"another order came":        {"end", replies{problem(412)}, first, 1},
		"a token that reads":        {"end", replies{problem(401)}, first, 1},
		"a pause that is lost":      {"pause", replies{lose}, first, 1},
		"an exclusion that is lost": {"exclude", replies{lose}, first, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			s := &runner.Status{Name: "s", ID: "01", State: "running", Orders: "0-a", Leader: "n"}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_ = json.NewEncoder(w).Encode([]*runner.Status{s})
					return
				}
				seen = append(seen, r.Header.Get("If-Match"))
				s.Orders = "1-a" // what is lost was carried out
				if n := len(seen); n <= len(c.answers) {
					c.answers[n-1](w)
					return
				}
				_ = json.NewEncoder(w).Encode(s)
			}))
			defer server.Close()
			args := []string{"federation", c.what, "s", "--admin", server.URL}
			if c.what == "exclude" {
				args = slices.Insert(args, 3, "p")
			}
			code, out := says(t, args...)
			if code != c.code || !slices.Equal(seen, c.seen) {
				t.Errorf("%d, want %d, and orders %s, want %s: %s", code, c.code, strings.Join(seen, " "),
					strings.Join(c.seen, " "), out)
			}
		})
	}
}
