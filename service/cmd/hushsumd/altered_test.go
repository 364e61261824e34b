package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/internal/strict/altered"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
)

// What the server answers to an operator is read as it is declared, and in no other way.
func TestAltered(t *testing.T) {
	var said []byte
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write(said)
	}))
	defer server.Close()
	o := &operator{admin: server.URL}
	altered.Refused(t, []byte(`{"name": "s", "id": "01", "parties": 3, "of": 4, "questions": ["n"], `+
		`"answers": [{"name": "n", "kind": "count", "unit": "rows", "spends": null, "value": 1, `+
		`"interval": [0, 2]}]}`), func(text []byte) error {
		said = text
		return o.ask(t.Context(), http.MethodGet, "/", nil, "", new(federation.Asked))
	})
	code = http.StatusConflict
	altered.Refused(t, []byte(`{"type": "about:blank", "title": "stale", "status": 409}`),
		func(text []byte) error {
			said = text
			_, err := o.send(t.Context(), http.MethodGet, "/", nil, nil, "")
			if problem := err.Error(); problem == server.URL+" answers 409 Conflict; is it the page's "+
				"address, and not the door's?" {
				return errors.New(problem)
			}
			return nil
		})
}

// An answer is no longer than the operator's command reads.
func TestWorstFiles(t *testing.T) {
	const count = `{"kind":"histogram","value":[`
	suite.WorstFiles(t, suite.Worst{Name: "answer to an operator", Most: mostAnswer, Try: 1 << 20,
		Parse: func(b []byte) error {
			return errors.Join(strict.JSON(b, new(federation.Asked)), strict.JSON(b, new(runner.Status)))
		},
		Files: map[string]func(n int) []byte{
			"answers": suite.Repeated(`{"answers":[`, "{},", "{}]}"),
			"numbers": suite.Repeated(`{"answers":[`+count, "0,", `0],"interval":[],"labels":[]}]}`),
			"pairs": suite.Repeated(`{"answers":[{"kind":"histogram","value":[],"labels":[],"interval":[`,
				"[],", "[]]}]}"),
			"parties": suite.Repeated(`{"parties":[`, "{},", "{}]}"),
			"nested":  suite.Repeated(`{"answers":`, "[", ""),
			"fields":  suite.Repeated("{", `"%d":0,`, `"id":""}`),
		}})
}
