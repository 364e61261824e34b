package door

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

// caller is a party or member that signed a request, with its federation.
type caller struct {
	Known
	peer   runner.Peer
	signed *signature.Signed
}

// key names a caller in the door's tables.
func (c *caller) key() string { return fmt.Sprint(c.Federation.ID, c.peer) }

// wait is how long a question of the caller waits, unless the caller says how long.
func (c *caller) wait() time.Duration {
	return exchange.Wait(c.Federation.Settled.Roster().Len())
}

type handler func(w http.ResponseWriter, r *http.Request, c *caller)

// role says which callers a resource is for.
type role int

const (
	anybody role = iota // of the federation
	party
	member // of the committee
)

// find finds the peer that a key belongs to.
func (of role) find(f *federation.Federation, key ed25519.PublicKey) (p runner.Peer, found bool) {
	if of != member {
		if p.Index, found = f.Settled.Roster().Index(key); found || of == party {
			return p, found
		}
	}
	if one := f.Settled.Oneshot(); one != nil {
		p.Member = true
		p.Index, found = one.Committee.Index(key)
	}
	return p, found
}

// signed lets through requests that a caller of a role in the path's federation has signed.
func (d *Door) signed(of role, next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		entry, found := d.Federations.Find(r.PathValue("id"))
		// A signature is verified before its request is counted, since otherwise strangers would
		// use up the party's requests. A caller that names no party's key is counted first.
		named := false
		if found && !entry.Forgotten {
			_, named = of.find(entry.Federation, signature.Claimed(r))
		}
		if !named && d.tooMany(w, r) {
			return
		}
		if entry.Forgotten {
			d.refuse(w, "forgotten", "the federation ended, and its operator had its models and states "+
				"erased; keep your book")
			return
		}
		if !found && d.Ready != nil && d.Ready() != nil {
			d.refuse(w, "leader", "this node is starting")
			return
		}
		if !found {
			if isIdentifier(r.PathValue("id")) {
				d.refuse(w, "unknown", "this server does not have it, or not yet: perhaps a backup is "+
					"still to be restored, or it was declared elsewhere; see /v1/federations")
				return
			}
			d.refuse(w, "unknown", "an identifier is 64 hexadecimal digits; see /v1/federations")
			return
		}
		s, err := signature.Verify(r, d.Now())
		if err != nil && named && d.tooMany(w, r) {
			return
		}
		switch {
		case errors.Is(err, signature.ErrClock):
			d.warnOfClock(err)
			d.refuse(w, "clock", "%v", err)
			return
		case errors.Is(err, signature.ErrSignature):
			d.refuse(w, "signature", "it must cover the request as sent, including path and query")
			return
		case err != nil:
			d.refuse(w, "unsigned", "%v", err)
			return
		}
		peer, found := of.find(entry.Federation, ed25519.PublicKey(s.Key))
		if !found {
			d.refuse(w, "stranger", "compare the roster's fingerprint with the operator's")
			return
		}
		c := &caller{entry, peer, s}
		if d.Known != nil {
			d.Known(r, string(s.Key))
		}
		w.Header().Set(exchange.HeaderWait, strconv.Itoa(int(c.wait().Seconds())))
		if d.tooManyOf(w, c) || d.doubtful(w, r) {
			return
		}
		next(w, r, c)
	}
}

// isIdentifier reports whether a text could be a federation's identifier.
func isIdentifier(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == sha256.Size
}

// warnOfClock logs, at most once a minute, that clocks differ: if this machine's clock is off, no
// request is accepted.
func (d *Door) warnOfClock(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now := time.Now(); now.Sub(d.warned) > time.Minute {
		d.warned = now
		d.Log.Warn("requests are refused because clocks differ: if all are, correct this machine's clock",
			"error", err.Error())
	}
}

// led lets through requests for federations that this node leads, and passes on the rest.
func (d *Door) led(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) {
		switch {
		case c.Runner != nil:
			next(w, r, c)
		case c.Forward != nil && r.Header.Get(headersForwards) == "":
			r.Header.Set(headersForwards, "1")
			w.Header().Del(exchange.HeaderWait) // the leader's answer has it
			defer d.poll(r, func() {})()        // it ends with its answer
			c.Forward.ServeHTTP(w, r)
		default:
			d.refuse(w, "leader", "ask again")
		}
	}
}
