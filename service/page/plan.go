package page

import (
	"errors"
	"net/http"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/service/federation"
)

// This file computes what more questions would cost and give, before they are asked.

// Planned holds what a job's queries would cost and give, as the next federation of a study.
type Planned struct {
	// Own bounds what the queries to be asked spend on their own, Before what the party that has spent
	// most has spent already, and Total both together; nil without noise.
	Own    *accounting.Claim `json:"own"`
	Before *accounting.Claim `json:"before"`
	Total  *accounting.Claim `json:"total"`
	// Study is the study once they are asked, nil without one.
	Study *federation.Study `json:"study"`
	// Known names, by query, the federation that has already answered the query, which then costs
	// nothing.
	Known    map[string]string `json:"known"`
	Queries  []answers.Planned `json:"queries"` // that would be asked
	Rows     int               `json:"rows"`    // that margins are computed for
	expected []query.Expected
}

// NewPlanned returns the plan of a batch. known maps the text of a question to the federation that
// has answered it; j is the job that has all queries.
func NewPlanned(b *federation.Batch, j *job.Job, known map[string]string) *Planned {
	out := &Planned{Own: b.Own, Before: b.Before, Total: b.Total, Study: b.Study,
		Known: map[string]string{}}
	for i, question := range b.Questions {
		if from, found := known[question]; found && !slices.Contains(b.Asked, i) {
			out.Known[j.Query[i].Name] = from
		}
	}
	if b.Federation != nil {
		out.expected = b.Federation.Expected()
		out.Rows = b.Federation.Questions().Rows()
	}
	out.Queries = answers.Plan(out.expected)
	return out
}

// Expected returns the values that Queries were made from.
func (p *Planned) Expected() []query.Expected { return p.expected }

// Assumes states what margins are computed for.
func (p *Planned) Assumes() string { return answers.Assumes(p.Rows) }

// mostQuestions bounds the text of a job that is planned.
const mostQuestions = 64 << 10

func (s *site) planJSON(w http.ResponseWriter, r *http.Request) {
	var q struct { // Questions of the document
		Text []byte `json:"text"`
	}
	if !body(w, r, 2*mostQuestions, &q) {
		return
	}
	if len(q.Text) > mostQuestions {
		fail(w, r, errOversized)
		return
	}
	out, err := s.Federations.Plan(r.Context(), r.PathValue("id"), q.Text)
	if err != nil {
		fail(w, r, err)
		return
	}
	answer(w, out)
}

// planning is the form of a plan, and its result.
type planning struct {
	ID, Name, Text, Wrong string
	Planned               *Planned // nil: nothing was planned
}

func (s *site) planForm(w http.ResponseWriter, r *http.Request) {
	if p, err := s.planning(r); err != nil {
		fail(w, r, err)
	} else {
		s.render(w, "plan.html", p)
	}
}

// planning returns the form, with the queries of the federation itself in it.
func (s *site) planning(r *http.Request) (*planning, error) {
	status, err := s.Federations.Status(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	p := &planning{ID: status.ID, Name: status.Name}
	if known, found := s.Federations.Known(status.ID); found {
		if known.Federation.Questions() == nil {
			return nil, federation.ErrAsks
		}
		p.Text = string(known.Federation.Text)
	}
	return p, nil
}

func (s *site) plan(w http.ResponseWriter, r *http.Request) {
	p, err := s.planning(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4*mostQuestions) // as forms write it
	p.Text = r.PostFormValue("job")
	p.Planned, err = s.Federations.Plan(r.Context(), p.ID, []byte(p.Text))
	switch {
	case errors.Is(err, job.ErrConfig):
		p.Wrong = err.Error()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(refusals["federation"].Status)
	case err != nil:
		fail(w, r, err)
		return
	}
	s.render(w, "plan.html", p)
}
