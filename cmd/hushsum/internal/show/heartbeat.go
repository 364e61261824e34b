package show

import (
	"fmt"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// heartbeat reports on standard error that a long run goes on, where no line on the terminal shows
// it.
type heartbeat struct {
	std   cli.Streams
	quiet bool // a line on the terminal shows it
	who   string
	now   func() time.Time
	last  time.Time
}

// heartbeatEvery is the time between two lines, and before the first.
const heartbeatEvery = 10 * time.Second

func NewHeartbeat(std cli.Streams, json bool, who string) *heartbeat {
	now := std.Now
	if now == nil {
		now = time.Now
	}
	return &heartbeat{std: std, quiet: std.Live && !json, who: who, now: now, last: now()}
}

// Beat reports how far a run has come, unless the last line is too recent.
func (h *heartbeat) Beat(format string, a ...any) {
	if t := h.now(); !h.quiet && t.Sub(h.last) >= heartbeatEvery {
		h.last = t
		fmt.Fprintf(h.std.Err, "%s: %s\n", h.who, fmt.Sprintf(format, a...))
	}
}
