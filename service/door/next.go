package door

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/runner"
)

func (d *Door) next(w http.ResponseWriter, r *http.Request, c *caller) {
	ask, wait, err := exchange.ParseAsk(r.URL.Query(), c.wait())
	if err != nil {
		d.refuse(w, "query", "%v", err)
		return
	}
	told, ok := d.heard(w, r, c)
	if !ok {
		return
	}
	// Its place in a crowd is waited for even where news is not.
	ctx, cancel := context.WithTimeout(r.Context(), wait+exchange.Late/2)
	defer cancel()
	ended := d.poll(r, cancel)
	n, err := c.Runner.Next(ctx, c.peer, ask, wait)
	if ended() {
		w.Header().Set("Connection", "close")
	}
	var copied *runner.CopiedError
	switch {
	case errors.As(err, &copied):
		w.Header().Set(exchange.HeaderNumber, strconv.FormatUint(copied.Last, 10))
		if copied.Twice {
			d.refuse(w, "twice", "is a copy of the folder in use elsewhere? Stop one of the two")
		} else {
			d.refuse(w, "copied", "number the next question above %d", copied.Last)
		}
		return
	case err != nil:
		d.refuse(w, "leader", "%v", err)
		return
	}
	defer n.Sent()
	if n.Kind == exchange.Nothing {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h := w.Header()
	n.Set(h)
	if chain := c.Runner.Told(told); chain != nil {
		chain.Set(h)
	}
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(n.Len()))
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(transferTime(n.Len())))
	written, err := w.Write(n.Shared)
	if err == nil {
		rest, _ := w.Write(n.Message)
		written += rest
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
	d.Counts.BytesOut.Add(int64(written))
}

// poll registers a request that waits until something is next, and returns [Options.Poll]'s ended.
func (d *Door) poll(r *http.Request, give func()) (ended func() (asked bool)) {
	if d.Poll == nil {
		return func() bool { return false }
	}
	return d.Poll(r, give)
}
