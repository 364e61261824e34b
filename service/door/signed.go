package door

import (
	"crypto/ed25519"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/service/signature"
)

// caller is who signed a request, for which federation.
type caller struct {
	Known
	party  int
	signed *signature.Signed
}

// key names a caller in the door's tables.
func (c *caller) key() string { return c.Federation.ID + strconv.Itoa(c.party) }

type handler func(w http.ResponseWriter, r *http.Request, c *caller)

// signed lets through what a party of the federation in the path has signed.
func (d *Door) signed(next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		entry, found := d.Federations.Find(r.PathValue("id"))
		// A signature is verified before its request is counted, or else strangers would use up
		// what parties may ask. Who names no party's key is counted first.
		member := false
		if found {
			_, member = entry.Federation.Settled.Roster().Index(signature.Claimed(r))
		}
		if !member && d.tooMany(w, r) {
			return
		}
		if !found && d.Ready != nil && d.Ready() != nil {
			d.refuse(w, "leader", "this node is starting")
			return
		}
		if !found {
			d.refuse(w, "unknown", "its identifier is 64 hexadecimal digits, see /v1/federations")
			return
		}
		s, err := signature.Verify(r, d.Now())
		if err != nil && member && d.tooMany(w, r) {
			return
		}
		switch {
		case errors.Is(err, signature.ErrClock):
			d.warnOfClock(err)
			d.refuse(w, "clock", "%v", err)
			return
		case errors.Is(err, signature.ErrSignature):
			d.refuse(w, "signature", "it must be over the request as it is sent, path and query included")
			return
		case err != nil:
			d.refuse(w, "unsigned", "%v", err)
			return
		}
		party, found := entry.Federation.Settled.Roster().Index(ed25519.PublicKey(s.Key))
		if !found {
			d.refuse(w, "stranger", "compare the roster's fingerprint with the operator's")
			return
		}
		c := &caller{entry, party, s}
		if d.Known != nil {
			d.Known(r, string(s.Key))
		}
		if d.tooManyOf(w, r, c) || d.doubtful(w, r) {
			return
		}
		next(w, r, c)
	}
}

// warnOfClock says in the log, at most once a minute, that clocks differ: if it is this
// machine's that is off, nobody is let in.
func (d *Door) warnOfClock(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now := time.Now(); now.Sub(d.warned) > time.Minute {
		d.warned = now
		d.Log.Warn("requests are refused since clocks differ: if all are, put this machine's right",
			"error", err.Error())
	}
}

// led lets through what this node leads, and passes on the rest.
func (d *Door) led(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) {
		switch {
		case c.Runner != nil:
			next(w, r, c)
		case c.Forward != nil && r.Header.Get(headersForwards) == "":
			r.Header.Set(headersForwards, "1")
			defer d.poll(r, func() {})() // it ends with its answer
			c.Forward.ServeHTTP(w, r)
		default:
			d.refuse(w, "leader", "ask again")
		}
	}
}
