package hushsum

import "fmt"

// EventKind says what has happened.
type EventKind int

// The kinds of events, and which fields of an [Event] they have beside Kind.
const (
	Connected    EventKind = iota + 1 // Party at the coordinator
	Disconnected                      // Party at the coordinator, Err
	Joining                           // Session: keys for it are made, or parties are asked to
	Formed                            // Session, Parties: it is ready to take over
	TookOver                          // Session: rounds are held in it from now on
	Begun                             // Session, Round, Parties that take part
	Submitted                         // Session, Round
	Summed                            // Session, Round, Parties in the sum
	Lost                              // Session, Round, Err: the round gave no sum
	Absent                            // Round, Err: this party has nothing to submit
	Refused                           // Session, Err: a message was refused
)

var eventNames = map[EventKind]string{
	Connected: "connected", Disconnected: "disconnected", Joining: "joining", Formed: "formed",
	TookOver: "took over",
	Begun:    "begun", Submitted: "submitted", Summed: "summed", Lost: "lost", Absent: "absent",
	Refused: "refused",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if name, found := eventNames[k]; found {
		return name
	}
	return fmt.Sprintf("EventKind(%d)", int(k))
}

// Event is a step of a job, for logs and progress bars. It has no secrets.
type Event struct {
	Kind    EventKind
	Party   int    // roster index
	Session uint64 // number
	Round   uint64 // of the job, from 1
	Parties []int
	Err     error
}

func (e Event) String() string {
	text := e.Kind.String()
	switch e.Kind {
	case Connected, Disconnected:
		text = fmt.Sprintf("party %d %s", e.Party, text)
	case Joining, Formed, TookOver:
		text = fmt.Sprintf("session %d: %s", e.Session, text)
	default:
		text = fmt.Sprintf("round %d: %s", e.Round, text)
		if e.Session != 0 { // a plan with Oneshot has no sessions
			text = fmt.Sprintf("session %d, %s", e.Session, text)
		}
	}
	if e.Parties != nil {
		text += fmt.Sprintf(" (%d parties)", len(e.Parties))
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}
