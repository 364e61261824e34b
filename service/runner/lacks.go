package runner

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/numbers"
)

// This file says when too few parties are here for a sum.

const (
	mostNamed   = 20               // of those that a sum lacks
	lacksEvery  = 5 * drive.Second // the least time between two looks at who is here
	lacksLonger = 8 * drive.Second // before the log says so
)

// Lacks says for which parties a federation waits, if fewer are here than a sum needs. It is empty
// for a federation that has enough parties, has ended or is paused.
func (s *Status) Lacks() string {
	here, missing := Present(s.Parties)
	if s.State != "waiting" && s.State != "running" || here >= s.Least {
		return ""
	}
	return fmt.Sprintf("waits for: %s; a sum needs %d of %s, and %d are here",
		some(missing), s.Least, numbers.Plural(len(s.Parties), "party"), here)
}

// some joins names, and counts those beyond the first few.
func some(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed:mostNamed], fmt.Sprint(more, " more"))
	}
	return strings.Join(names, ", ")
}

// Present returns how many parties of a list are here, and the names and states of the others.
func Present(list []PartyStatus) (here int, missing []string) {
	for _, p := range list {
		switch p.State {
		case "here", "late":
			here++
		case "never":
			missing = append(missing, p.Name+" (never here)")
		default:
			missing = append(missing, p.Name+" ("+p.State+")")
		}
	}
	return here, missing
}

// lacking holds since when a federation lacks parties.
type lacking struct {
	next  drive.Time // look at who is here
	since drive.Time // 0: it lacks none
	said  bool
}

// sayLacks has the log say, once, that too few parties are here, when that has lasted.
func (r *Runner) sayLacks() {
	now := r.now()
	if now < r.lacks.next {
		return
	}
	r.lacks.next = now + lacksEvery
	lacks := r.status().Lacks()
	switch {
	case lacks == "":
		r.lacks.since, r.lacks.said = 0, false
	case r.lacks.since == 0:
		r.lacks.since = now
	case !r.lacks.said && now-r.lacks.since >= lacksLonger:
		r.lacks.said = true
		r.Log.Warn("too few parties are here", "note", lacks)
	}
}
