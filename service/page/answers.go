package page

import (
	"net/http"

	"github.com/hushsum/hushsum/query"
)

// This file serves the queries that a federation asks and their answers, to programs and as a file.

func (s *site) answersJSON(w http.ResponseWriter, r *http.Request) {
	asked, err := s.Federations.Answers(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, r, err)
		return
	}
	answer(w, asked)
}

func (s *site) answersCSV(w http.ResponseWriter, r *http.Request) {
	asked, err := s.Federations.Answers(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="answers.csv"`)
	_ = query.WriteCSV(w, asked.Answers) // it fails only if the caller has gone
}
