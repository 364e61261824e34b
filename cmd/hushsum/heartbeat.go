package main

import (
	"fmt"
	"time"
)

// heartbeat tells on standard error that a long run goes on, where no line on the
// terminal shows it.
type heartbeat struct {
	std   streams
	quiet bool // a line on the terminal shows it
	who   string
	now   func() time.Time
	last  time.Time
}

// heartbeatEvery is the time between two lines, and before the first.
const heartbeatEvery = 10 * time.Second

// heartbeatClock is what heartbeats go by. Tests stop it: how long they take is not what
// they are about.
var heartbeatClock = time.Now

func newHeartbeat(std streams, json bool, who string) *heartbeat {
	return &heartbeat{std: std, quiet: std.live && !json, who: who, now: heartbeatClock,
		last: heartbeatClock()}
}

// beat says how far a run is, unless the last line is too new.
func (h *heartbeat) beat(format string, a ...any) {
	if t := h.now(); !h.quiet && t.Sub(h.last) >= heartbeatEvery {
		h.last = t
		fmt.Fprintf(h.std.err, "%s: %s\n", h.who, fmt.Sprintf(format, a...))
	}
}
