package page

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file has what operators' programs use.

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
	list := s.Federations.Listing(r.Context())
	if list == nil {
		list = []*runner.Status{}
	}
	answer(w, list)
}

func (s *site) statusJSON(w http.ResponseWriter, r *http.Request) {
	status, err := s.Federations.Status(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("ETag", etag(status))
	answer(w, status)
}

// etag is the number of decisions, for If-Match.
func etag(s *runner.Status) string { return fmt.Sprintf("%q", strconv.FormatUint(s.Decisions, 10)) }

func (s *site) auditJSON(w http.ResponseWriter, r *http.Request) {
	lines, err := s.Federations.AuditLog(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	if lines == nil {
		lines = []record.Line{}
	}
	answer(w, lines)
}

func (s *site) afterJSON(w http.ResponseWriter, r *http.Request) {
	files, err := s.Federations.After(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, Declared(*files))
}

// Declared is the body that declares a federation, and what one begins with that goes on from
// another.
type Declared struct {
	Text      []byte `json:"text"`
	Roster    []byte `json:"roster"`
	Committee []byte `json:"committee,omitempty"`
	Model     []byte `json:"model,omitempty"`
	Before    []byte `json:"before,omitempty"`
	// Succession is 32 bytes of an operator's key and 64 of its signature.
	Succession []byte `json:"succession,omitempty"`
}

func (s *site) declare(w http.ResponseWriter, r *http.Request) {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDeclared))
	decoder.DisallowUnknownFields()
	var d Declared
	err := decoder.Decode(&d)
	if long := new(http.MaxBytesError); errors.As(err, &long) {
		fail(w, errOversized)
		return
	}
	if err == nil && decoder.More() {
		err = errors.New("something is behind its end")
	}
	if err != nil {
		problem(w, "query", err.Error())
		return
	}
	id, err := s.Federations.Declare(r.Context(), federation.Files(d))
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Location", "/v1/federations/"+id)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]string{"id": id})
}

// doJSON does what an operator's program says. If-Match has the ETag that it has seen, or
// a star.
func (s *site) doJSON(w http.ResponseWriter, r *http.Request) {
	what := r.PathValue("what")
	if !orders(what) {
		problem(w, "route", "pause, resume or end")
		return
	}
	var seen *uint64
	switch match := r.Header.Get("If-Match"); match {
	case "":
		problem(w, "match", "send If-Match: the ETag of the status, or *")
		return
	case "*":
		if isSigned(r) { // a copy of it could be sent again
			problem(w, "match", "a signed order takes the ETag of the status, and no star")
			return
		}
	default:
		n, err := strconv.ParseUint(strings.Trim(match, `"`), 10, 64)
		if seen = &n; err != nil {
			problem(w, "stale", "the ETag is not one of this resource")
			return
		}
	}
	status, err := s.Federations.Do(r.Context(), r.PathValue("id"), what, who(r).Name, seen)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("ETag", etag(status))
	answer(w, status)
}

// metrics are in the text form of Prometheus. Names have no party.
func (s *site) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	line := func(name, labels string, value float64) {
		fmt.Fprintf(w, "hushsum_%s%s %v\n", name, labels, value)
	}
	if c := s.Counts; c != nil {
		line("door_requests_total", "", float64(c.Requests.Load()))
		line("door_refused_total", "", float64(c.Refused.Load()))
		line("door_bytes_in_total", "", float64(c.BytesIn.Load()))
		line("door_bytes_out_total", "", float64(c.BytesOut.Load()))
	}
	for _, f := range s.Federations.Listing(r.Context()) {
		labels := fmt.Sprintf("{federation=%q}", f.Name)
		line("rounds_begun_total", labels, float64(f.Round))
		line("rounds_lost_total", labels, float64(f.Lost))
		line("decisions_total", labels, float64(f.Decisions))
		line("epsilon_spent", labels, f.Epsilon)
		line("epsilon_budget", labels, f.Budget)
		for state, n := range states(f.Parties) {
			line("parties", fmt.Sprintf("{federation=%q,state=%q}", f.Name, state), float64(n))
		}
		if f.Committee == nil {
			continue
		}
		for state, n := range states(f.Committee) {
			line("members", fmt.Sprintf("{federation=%q,state=%q}", f.Name, state), float64(n))
		}
	}
}

// awaited names those whose answers are waited for.
func awaited(committee []runner.PartyStatus) string {
	var names []string
	for _, p := range committee {
		if p.Awaited {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}

// states counts parties by state.
func states(parties []runner.PartyStatus) map[string]int {
	out := map[string]int{"here": 0, "late": 0, "gone": 0, "never": 0}
	for _, p := range parties {
		out[p.State]++
	}
	return out
}
