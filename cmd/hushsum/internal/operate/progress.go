package operate

import (
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// progress prints what happens, a line for each event, with the time.
func (s *side) progress(o *settled, std cli.Streams) func(hushsum.Event) {
	last := ""
	return func(e hushsum.Event) {
		if s.quiet || e.Kind == hushsum.Waiting || e.Kind == hushsum.Joining {
			return
		}
		text := e.String()
		who, roster := "party", o.files.Roster
		if e.Member {
			who, roster = "member", o.files.Committee
		}
		if e.Party < roster.Len() {
			text = strings.Replace(text, fmt.Sprintf("%s %d ", who, e.Party),
				roster.Name(e.Party)+" ", 1)
		}
		if text == last {
			return
		}
		last = text
		fmt.Fprintln(std.Err, time.Now().Format(time.TimeOnly), text)
	}
}

// partyProgress is progress of a process that is one party or member: events of others do not come.
func (s *side) partyProgress(std cli.Streams) func(hushsum.Event) {
	last := ""
	return func(e hushsum.Event) {
		if s.quiet || e.Kind == hushsum.Joining {
			return
		}
		text := e.String()
		switch e.Kind {
		case hushsum.Connected:
			text = "connected"
		case hushsum.Disconnected:
			text = fmt.Sprintf("not connected, dialing again: %v", e.Err)
		}
		if text == last {
			return
		}
		last = text
		fmt.Fprintln(std.Err, time.Now().Format(time.TimeOnly), text)
	}
}
