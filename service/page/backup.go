package page

import (
	"encoding/json"
	"io"
	"net/http"
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
