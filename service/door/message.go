package door

import (
	"errors"
	"io"
	"net/http"

	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/runner"
)

// message takes a body, a message or a piece of one, after all checks that need no body.
func (d *Door) message(w http.ResponseWriter, r *http.Request, c *caller) {
	if r.ContentLength < 0 {
		d.refuse(w, "length", "send Content-Length")
		return
	}
	p, err := pieceOf(r, c.signed)
	if err != nil {
		d.refuse(w, "query", "%v", err)
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
	if p.length > int64(most) {
		d.refuse(w, "oversized", "%d bytes, at most %d are read", p.length, most)
		return
	}
	if !p.whole && r.ContentLength > exchange.PieceSize {
		d.refuse(w, "oversized", "%d bytes, a piece has at most %d", r.ContentLength, exchange.PieceSize)
		return
	}
	d.mutex.Lock()
	again := d.last[c.key()] == p.digest && p.length > 0
	busy := d.bodies[c.key()]
	if !busy {
		d.bodies[c.key()] = true
	}
	d.mutex.Unlock()
	if busy && (due || !again) {
		d.refuse(w, "busy", "send one at a time")
		return
	}
	if !busy {
		defer func() {
			d.mutex.Lock()
			delete(d.bodies, c.key())
			d.mutex.Unlock()
		}()
	}
	switch {
	case !due && again:
		held(w) // a copy of one that is held already
		return
	case !due:
		d.take(c.key()).discard()
		d.refuse(w, "due", "ask for next")
		return
	}
	b, ok := d.receive(w, r, c, p)
	if !ok {
		return
	}
	defer b.Close()
	if [32]byte(b.digest.Sum(nil)) != p.digest {
		d.refuse(w, "digest", "%s does not fit", p.named())
		return
	}
	message, err := b.reader()
	if err == nil {
		err = c.Runner.ReadMessage(r.Context(), c.peer, message, b.size, p.digest, b.began)
	}
	switch {
	case err == nil:
		d.Counts.BytesIn.Add(b.size)
		d.mutex.Lock()
		d.last[c.key()] = p.digest
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
