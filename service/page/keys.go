package page

import (
	"errors"
	"net/http"
)

// This file shows an operator's program the keys under which the record is sealed, and has the
// record sealed anew.

// ErrKeys: a node cannot read the file of the keys that seal, so the key under which the node seals
// may be on no disk.
var ErrKeys = errors.New("page: nothing was sealed: the node cannot read its file of seal keys")

// Key is a key that seals the record, by its name, which does not reveal the key.
type Key struct {
	Name    string `json:"name"`    // empty: of objects that no key opens
	Seals   bool   `json:"seals"`   // what this node writes
	Missing bool   `json:"missing"` // on this node
	Objects int    `json:"objects"` // that are sealed under it
}

func (s *site) keysJSON(w http.ResponseWriter, r *http.Request) {
	keys, err := s.Federations.Keys(r.Context())
	if err != nil {
		fail(w, r, err)
		return
	}
	answer(w, keys)
}

func (s *site) rewrite(w http.ResponseWriter, r *http.Request) {
	keys, err := s.Federations.Rewrite(r.Context())
	if err != nil {
		fail(w, r, err)
		return
	}
	s.Log.Info("the record was sealed under the newest key", "by", who(r).Name)
	answer(w, keys)
}
