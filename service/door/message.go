package door

import (
	"errors"
	"io"
	"net/http"

	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/runner"
)

// message takes a body, after all that can be checked without it.
func (d *Door) message(w http.ResponseWriter, r *http.Request, c *caller) {
	if r.ContentLength < 0 {
		d.refuse(w, "length", "send Content-Length")
		return
	}
	due, most, err := c.Runner.Due(r.Context(), c.peer)
	switch {
	case errors.Is(err, runner.ErrEnded):
		d.refuse(w, "ended", "take the last model")
		return
	case err != nil:
		d.refuse(w, "leader", "%v", err)
		return
	}
	if r.ContentLength > int64(most) {
		d.refuse(w, "oversized", "%d bytes, at most %d are read", r.ContentLength, most)
		return
	}
	d.mutex.Lock()
	again := d.last[c.key()] == c.signed.Digest && r.ContentLength > 0
	busy := d.bodies[c.key()]
	if !busy && (due || again) {
		d.bodies[c.key()] = true
	}
	d.mutex.Unlock()
	switch {
	case !due && again:
		d.mutex.Lock()
		delete(d.bodies, c.key())
		d.mutex.Unlock()
		held(w) // a copy of what is held already
		return
	case busy:
		d.refuse(w, "busy", "send one at a time")
		return
	case !due:
		d.refuse(w, "due", "ask what is next")
		return
	}
	defer func() {
		d.mutex.Lock()
		delete(d.bodies, c.key())
		d.mutex.Unlock()
	}()
	b, ok := d.read(w, r)
	if !ok {
		return
	}
	defer d.inFlight.Add(-r.ContentLength)
	defer b.Close()
	if [32]byte(b.digest.Sum(nil)) != c.signed.Digest {
		d.refuse(w, "digest", "Content-Digest does not fit")
		return
	}
	message, err := b.reader()
	if err == nil {
		err = c.Runner.ReadMessage(r.Context(), c.peer, message, b.size)
	}
	switch {
	case err == nil:
		d.Counts.BytesIn.Add(b.size)
		d.mutex.Lock()
		d.last[c.key()] = c.signed.Digest
		d.mutex.Unlock()
		held(w)
	case errors.Is(err, runner.ErrStopped), r.Context().Err() != nil:
		d.refuse(w, "leader", "ask again")
	case errors.Is(err, protocol.ErrStale), errors.Is(err, protocol.ErrPhase),
		errors.Is(err, protocol.ErrSession), errors.Is(err, protocol.ErrParticipants),
		errors.Is(err, oneshot.ErrPhase), errors.Is(err, oneshot.ErrContext):
		d.refuse(w, "due", "%v", err)
	case errors.Is(err, oneshot.ErrFull):
		d.refuse(w, "full", "offer it, and send it when next says upload")
	case errors.Is(err, runner.ErrEnded):
		d.refuse(w, "ended", "take the last model")
	default:
		d.refuse(w, "message", "%v", err)
	}
}

func held(w http.ResponseWriter) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"held"}`+"\n")
}
