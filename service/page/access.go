package page

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
)

// This file decides who may do what.

// caller is the key under which a request's context holds its sender.
type caller struct{}

// who returns the sender of a request, as far as its token or signature tells.
func who(r *http.Request) operator {
	o, _ := r.Context().Value(caller{}).(operator)
	return o
}

// isSigned reports whether a request is signed; a signature takes precedence over any token.
func isSigned(r *http.Request) bool {
	return r.Header.Get("Signature") != "" || r.Header.Get("Signature-Input") != ""
}

// known has the next handler find the request's sender in its context, if the sender's role
// suffices.
func (s *site) known(enough func(Role) bool, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o := operator{Name: "an operator", Role: s.role(r)}
		var digest [sha256.Size]byte
		if isSigned(r) {
			var err error
			if o, digest, err = s.signed(r); err != nil {
				fail(w, r, err)
				return
			}
		}
		open := s.Open && o.Role == Nobody && r.Header.Get("Authorization") == ""
		switch {
		case enough(o.Role), open && enough(Read):
		case o.Role == Nobody:
			s.unauthorized(w, r)
			return
		default:
			problem(w, r, "role", "it takes a token, or a key, that may operate")
			return
		}
		if isSigned(r) {
			if err := compare(r, digest); err != nil {
				fail(w, r, err)
				return
			}
		}
		if s.Known != nil && o.Role != Nobody {
			s.Known(r, o.Name)
		}
		next(w, r.WithContext(context.WithValue(r.Context(), caller{}, o)))
	}
}

// role returns the role that a request's token grants.
func (s *site) role(r *http.Request) Role {
	if token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
		return s.Tokens.role(token)
	}
	if c, err := r.Cookie(cookie); err == nil {
		return s.Tokens.role(c.Value)
	}
	return Nobody
}

func (s *site) read(next http.HandlerFunc) http.HandlerFunc {
	return s.known(func(role Role) bool { return role != Nobody }, next)
}

func (s *site) operate(next http.HandlerFunc) http.HandlerFunc {
	return s.known(func(role Role) bool { return role == Operate }, next)
}

// unauthorized asks programs for a token, and sends people to the form that takes theirs.
func (s *site) unauthorized(w http.ResponseWriter, r *http.Request) {
	if forPrograms(r) {
		detail := "send an operator's token as Authorization: Bearer, or sign with an operator's key"
		if r.Header.Get("Authorization") != "" {
			detail = "it carries a token that this node does not know: each node makes its own at its " +
				"first start, in tokens.txt in its folder, and none is in a backup; send one of these, or " +
				"sign with an operator's key"
		}
		problem(w, r, "token", detail)
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// forPrograms reports whether a request is for a resource that programs use.
func forPrograms(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/metrics"
}
