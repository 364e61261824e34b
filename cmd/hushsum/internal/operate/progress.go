package operate

import (
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/host"
)

// progress prints what happens, a line for each event, with the time.
func (s *side) progress(o *settled, std cli.Streams) func(hushsum.Event) {
	last, here, begun := "", map[int]bool{}, false
	return func(e hushsum.Event) {
		switch e.Kind {
		case host.Connected, host.Disconnected:
			if !e.Member {
				here[e.Party] = e.Kind == host.Connected
			}
		case host.Begun:
			begun = true
		}
		if s.quiet || e.Kind == host.Waiting || e.Kind == host.Joining {
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
		if e.Kind == host.Connected && !e.Member && !begun {
			text += absentees(o, here)
		}
		if text == last {
			return
		}
		last = text
		fmt.Fprintln(std.Err, time.Now().Format(time.TimeOnly), text)
	}
}

// absentees names those that the first round waits for, if too few parties are present.
func absentees(o *settled, here map[int]bool) string {
	var names []string
	roster, count := o.files.Roster, 0
	for i := range roster.Len() {
		if here[i] {
			count++
		} else if len(names) < 5 {
			names = append(names, roster.Name(i))
		}
	}
	if count >= o.MinSurvivors() {
		return ""
	}
	text := fmt.Sprintf("; %d of %d are here, a round takes %d: not here %s", count, roster.Len(),
		o.MinSurvivors(), strings.Join(names, ", "))
	if more := roster.Len() - count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// partyProgress is progress for a process that is one party or member: it gets no events of others.
func (s *side) partyProgress(std cli.Streams) func(hushsum.Event) {
	last := ""
	return func(e hushsum.Event) {
		if s.quiet || e.Kind == host.Joining {
			return
		}
		text := e.String()
		switch e.Kind {
		case host.Connected:
			text = "connected"
		case host.Disconnected:
			text = fmt.Sprintf("not connected, dialing again: %v", e.Err)
		}
		if text == last {
			return
		}
		last = text
		fmt.Fprintln(std.Err, time.Now().Format(time.TimeOnly), text)
	}
}
