package page

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/hushsum/hushsum/service/record"
)

// This file lets an operator's program take and restore backups.

// counted counts what is written.
type counted struct {
	io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

func (s *site) backup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	out := &counted{Writer: w}
	err := s.Federations.WriteBackup(r.Context(), out)
	switch {
	case err == nil:
		s.Log.Info("a backup was taken", "by", who(r).Name, "bytes", out.n)
	case out.n == 0:
		fail(w, r, err)
	default: // the caller sees that the answer breaks off
		s.Log.Error("a backup broke off", "error", err.Error())
		panic(http.ErrAbortHandler)
	}
}

func (s *site) restore(w http.ResponseWriter, r *http.Request) {
	ids, err := s.Federations.ReadBackup(r.Context(), r.Body)
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string][]string{"ids": ids})
}

// Checked is a federation with what reading all of it has found.
type Checked struct {
	Name string `json:"name"` // empty: its definition is lost
	record.Checked
}

func (s *site) recordJSON(w http.ResponseWriter, r *http.Request) {
	all, err := s.Federations.Check(r.Context())
	if err != nil {
		fail(w, r, err)
		return
	}
	answer(w, all)
}

func (s *site) heal(w http.ResponseWriter, r *http.Request) {
	took, err := s.Federations.ReadLost(r.Context(), r.Body)
	if err != nil {
		fail(w, r, err)
		return
	}
	s.Log.Warn("the record was healed from a backup", "by", who(r).Name, "took", took)
	answer(w, took)
}

func (s *site) choose(w http.ResponseWriter, r *http.Request) {
	err := s.Federations.Choose(r.Context(), r.PathValue("id"), r.PathValue("last"), who(r).Name)
	if err != nil {
		fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// chain answers all decisions of a federation, as text.
func (s *site) chain(w http.ResponseWriter, r *http.Request) {
	b, err := s.Federations.Chain(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(b)
}

// head answers the signed note of a federation's newest head, as text.
func (s *site) head(w http.ResponseWriter, r *http.Request) {
	note, err := s.Federations.Head(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(note)
}
