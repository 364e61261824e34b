package door

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/service/runner"
)

// Headers of the answer to next.
const (
	HeaderNext    = "Hushsum-Next"
	HeaderItem    = "Hushsum-Item"
	HeaderSession = "Hushsum-Session"
	HeaderRound   = "Hushsum-Round"
	HeaderNumber  = "Hushsum-Number" // in a refusal: the number of the last question
)

// parseAsk reads the query of next.
func parseAsk(r *http.Request) (ask runner.Ask, wait time.Duration, err error) {
	wait = longestPoll
	query := r.URL.Query()
	for name, values := range query {
		if len(values) != 1 {
			return ask, 0, fmt.Errorf("%.20q comes %d times", name, len(values))
		}
		value := values[0]
		switch name {
		case "sessions":
			if value == "" {
				continue
			}
			for _, part := range strings.Split(value, ",") {
				n, err := strconv.ParseUint(part, 10, 63)
				if err != nil || len(ask.Sessions) == 4 {
					return ask, 0, errors.New("sessions takes up to 4 numbers, separated by commas")
				}
				ask.Sessions = append(ask.Sessions, n)
			}
		case "least":
			ask.Least, err = strconv.ParseUint(value, 10, 62)
		case "round":
			ask.Round, err = strconv.ParseUint(value, 10, 31)
		case "offer":
			ask.Offer, err = strconv.ParseUint(value, 10, 31)
		case "absent":
			ask.Absent, err = strconv.ParseUint(value, 10, 31)
		case "seen":
			ask.Seen = strings.SplitN(value, ",", 5)
			if len(ask.Seen) > 4 {
				return ask, 0, errors.New("seen takes up to 4 items, separated by commas")
			}
		case "number":
			ask.Number, err = strconv.ParseUint(value, 10, 63)
		case "working":
			ask.Working, err = strconv.ParseBool(value)
		case "wait":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			if err == nil && !(seconds >= 0 && seconds <= longestPoll.Seconds()) {
				err = fmt.Errorf("0 to %v seconds", longestPoll.Seconds())
			}
			wait = time.Duration(seconds * float64(time.Second))
		default:
			return ask, 0, fmt.Errorf("there is no parameter %.20q", name)
		}
		if err != nil {
			return ask, 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	return ask, wait, nil
}

func (d *Door) next(w http.ResponseWriter, r *http.Request, c *caller) {
	ask, wait, err := parseAsk(r)
	if err != nil {
		d.refuse(w, "query", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	ended := d.poll(r, cancel)
	n, err := c.Runner.Next(ctx, c.peer, ask)
	if ended() {
		w.Header().Set("Connection", "close")
	}
	var copied *runner.CopiedError
	switch {
	case errors.As(err, &copied):
		w.Header().Set(HeaderNumber, strconv.FormatUint(copied.Last, 10))
		d.refuse(w, "copied", "number the next question above %d", copied.Last)
		return
	case err != nil:
		d.refuse(w, "leader", "%v", err)
		return
	}
	defer n.Sent()
	if n.Kind == runner.Nothing {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h := w.Header()
	h.Set(HeaderNext, string(n.Kind))
	h.Set(HeaderItem, n.Item)
	h.Set(HeaderSession, strconv.FormatUint(n.Session, 10))
	h.Set(HeaderRound, strconv.Itoa(n.Round))
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
