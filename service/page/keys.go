package page

import "net/http"

// This file has how an operator's program sees under which keys the record is sealed, and has it
// sealed anew.

// Key is a key that seals the record, by its name: nothing tells the key.
type Key struct {
	Name    string `json:"name"`    // empty: of objects that open under no key
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
