package page

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hushsum/hushsum/internal/strict/altered"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/federation"
)

// declaring takes what operators declare and plan.
type declaring struct{ Federations }

func (declaring) Declare(context.Context, string, federation.Files) (string, error) {
	return "declared", nil
}

func (declaring) Plan(context.Context, string, []byte) (*Planned, error) {
	return new(Planned), nil
}

// What operators send is read as it is declared, and in no other way.
func TestBodies(t *testing.T) {
	s := &site{Options: Options{Federations: declaring{}}}
	for text, handle := range map[string]http.HandlerFunc{
		`{"text": "YQ==", "roster": "Yg==", "model": null}`: s.declare,
		`{"text": "YQ=="}`: s.planJSON,
	} {
		altered.Refused(t, []byte(text), func(text []byte) error {
			w := httptest.NewRecorder()
			handle(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(text)))
			if w.Code >= http.StatusBadRequest {
				return errors.New(w.Body.String())
			}
			return nil
		})
	}
}

// Bodies come from operators, whose key or token is known by then.
func TestWorstFiles(t *testing.T) {
	s := &site{Options: Options{Federations: declaring{}}}
	bodies := func(field string) map[string]func(n int) []byte {
		return map[string]func(n int) []byte{
			"base64":  suite.Repeated(`{"`+field+`":"`, "AAAA", `"}`),
			"escapes": suite.Repeated(`{"`+field+`":"`, `\u0041`, `"}`),
			"twice":   suite.Repeated(`{`, `"`+field+`":"",`, `"`+field+`":""}`),
			"nested":  suite.Repeated(`{"`+field+`":`, "[", ""),
			"numbers": suite.Repeated(`{"`+field+`":[`, "0,", "0]}"),
			"blanks":  suite.Repeated(`{`, " ", `}`),
		}
	}
	through := func(handle http.HandlerFunc) func(b []byte) error {
		return func(b []byte) error {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(b))
			handle(httptest.NewRecorder(), r)
			return nil
		}
	}
	suite.WorstFiles(t,
		suite.Worst{Name: "body: a federation is declared", Most: maxDeclared, Try: 1 << 20,
			Parse: through(s.declare), Files: bodies("text")},
		suite.Worst{Name: "body: queries are planned", Most: 2 * mostQuestions,
			Parse: through(s.planJSON), Files: bodies("text")},
		suite.Worst{Name: "operators", Most: mostOperators,
			Parse: func(b []byte) error {
				_, err := parseOperators(string(b))
				return err
			},
			Files: map[string]func(n int) []byte{
				"lines":  suite.Repeated("", "\n", ""),
				"blanks": suite.Repeated("", " ", ""),
				"keys":   suite.Repeated("", "operate x %064d\n", ""),
			}})
}
