package page

import (
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
)

// This file serves operators' programs.

//go:embed openapi.json
var embedded []byte

var openAPI = door.WithJob(embedded)

// OpenAPI returns the document that describes the interface.
func OpenAPI() []byte { return openAPI }

func (s *site) document(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (s *site) listJSON(w http.ResponseWriter, r *http.Request) {
	list := []*runner.Status{}
	for _, status := range s.Federations.Listing(r.Context()) {
		if status.State != runner.Forgotten || r.URL.Query().Has("all") {
			list = append(list, status)
		}
	}
	answer(w, list)
}

func (s *site) statusJSON(w http.ResponseWriter, r *http.Request) {
	status, err := s.Federations.Status(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("ETag", etag(status))
	answer(w, status)
}

// etag returns what orders change as an ETag, for If-Match.
func etag(s *runner.Status) string { return strconv.Quote(s.Orders) }

func (s *site) afterJSON(w http.ResponseWriter, r *http.Request) {
	files, err := s.Federations.After(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, r, err)
		return
	}
	answer(w, Declared(*files))
}

// Declared is the body that declares a federation, and the response that prepares one which
// continues another.
type Declared struct {
	Text      []byte `json:"text"`
	Roster    []byte `json:"roster"`
	Committee []byte `json:"committee,omitempty"`
	Model     []byte `json:"model,omitempty"`
	Before    []byte `json:"before,omitempty"`
	// Succession is 32 bytes of an operator's key and 64 of its signature.
	Succession []byte `json:"succession,omitempty"`
}

// body reads the body of a request strictly, and answers one that is too long or invalid.
func body(w http.ResponseWriter, r *http.Request, most int64, into any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if long := new(http.MaxBytesError); errors.As(err, &long) {
		fail(w, r, errOversized)
		return false
	}
	if err == nil {
		err = strict.JSON(text, into)
	}
	if err != nil {
		problem(w, r, "query", err.Error())
	}
	return err == nil
}

func (s *site) declare(w http.ResponseWriter, r *http.Request) {
	var d Declared
	if !body(w, r, maxDeclared, &d) {
		return
	}
	id, err := s.Federations.Declare(r.Context(), who(r).Name, federation.Files(d))
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Location", "/v1/federations/"+id)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]string{"id": id})
}

// doJSON carries out the order of an operator's program. If-Match has the ETag that the program has
// seen, or a star.
func (s *site) doJSON(w http.ResponseWriter, r *http.Request) {
	o := Order{What: r.PathValue("what"), Party: r.PathValue("party"), Who: who(r).Name}
	if !o.known() {
		problem(w, r, "route", ordersAre)
		return
	}
	seen, ok := matched(w, r)
	if !ok {
		return
	}
	o.Seen = seen
	status, err := s.Federations.Do(r.Context(), r.PathValue("id"), o)
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("ETag", etag(status))
	answer(w, status)
}
