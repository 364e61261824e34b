package host

import (
	"fmt"

	"github.com/hushsum/hushsum/drive"
)

// EventKind says what has happened.
type EventKind int

// The kinds of events, and which fields of an [Event] they have next to Kind.
const (
	Connected    EventKind = iota + 1 // Party at the coordinator, Err: it ended an older connection
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
	Waiting                           // Session, Round, Parties at the coordinator that are waited for
	Rejected                          // Party at the coordinator, Err: its job or roster is another
	LeftOut                           // Party at the coordinator, Session, Round, Err: it spoilt it
	// A coordinator reports the following at most once a second, with the Count of connections since
	// the last report, and the Err of the last of them.
	Unknown    // closed: keys that are not in the roster
	Unfinished // closed: they did not say in time whose they are, were too many, or broke
	Strained   // could not be accepted: there are no descriptors, say; tried again
	// Those that follow are a coordinator's.
	Stalled // Party, Session, Round: it let a step pass, and is waited for less from now on
	SetBack // Round, Count: parties know of Count more rounds, which count as spent and lost
	Short   // Round, Parties that let steps pass, Err: StepTime is short, by how long answers take
	// The last are a party's.
	Blank // Session, Round, Err: no vector; with noise zeros are submitted, and others are not told
	// Round, Err: Spent says more than the stored state; rounds up to Round count as spent
	CaughtUp
)

var eventNames = map[EventKind]string{
	Connected: "connected", Disconnected: "disconnected", Joining: "joining", Formed: "formed",
	TookOver: "took over",
	Begun:    "begun", Submitted: "submitted", Summed: "summed", Lost: "lost", Absent: "absent",
	Refused: "refused", Waiting: "waiting", Rejected: "rejected", LeftOut: "left out",
	Unknown:    "from nobody in the roster",
	Unfinished: "closed before hello", Strained: "not accepted",
	Stalled: "let a step pass", SetBack: "parties know of more rounds than are stored",
	Short:    "let steps pass",
	Blank:    "submitted zeros with noise, for lack of a vector",
	CaughtUp: "counted more rounds than are stored",
}

// ofDrive has the kinds of events that drive's notices are.
var ofDrive = map[drive.NoticeKind]EventKind{
	drive.Forms:     Joining,
	drive.Formed:    Formed,
	drive.Following: TookOver,
	drive.Begun:     Begun,
	drive.Awaited:   Waiting,
	drive.Stall:     Stalled,
	drive.Short:     Short,
	drive.Spoiler:   LeftOut,
	drive.Liar:      Refused,
	drive.Summed:    Summed,
	drive.Lost:      Lost,
	drive.SetBack:   SetBack,
}

// EventOf returns a notice of drive as an event, and whether it is one.
func EventOf(n drive.Notice) (Event, bool) {
	kind, known := ofDrive[n.Kind]
	return Event{Kind: kind, Party: n.Party, Session: n.Session, Round: n.Round, Parties: n.Parties,
		Member: n.Member, Count: int(n.Skipped), Err: n.Err}, known
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
	Member  bool // Party and Parties are members of the committee
	Count   int  // of connections, or rounds
	Err     error
}

func (e Event) String() string {
	text, who, many := e.Kind.String(), "party", "parties"
	if e.Member {
		who, many = "member", "members"
	}
	switch e.Kind {
	case LeftOut, Stalled:
		text = fmt.Sprintf("round %d: %s %d %s", e.Round, who, e.Party, text)
		if e.Session != 0 {
			text = fmt.Sprintf("session %d, %s", e.Session, text)
		}
	case Connected, Disconnected, Rejected:
		text = fmt.Sprintf("%s %d %s", who, e.Party, text)
	case Unknown, Unfinished, Strained:
		text = fmt.Sprintf("%d connections %s", e.Count, text)
	case SetBack:
		text = fmt.Sprintf("round %d: %s (%d rounds)", e.Round, text, e.Count)
	case Joining, Formed, TookOver:
		text = fmt.Sprintf("session %d: %s", e.Session, text)
	default:
		text = fmt.Sprintf("round %d: %s", e.Round, text)
		if e.Session != 0 { // a job with one-message sums has no sessions
			text = fmt.Sprintf("session %d, %s", e.Session, text)
		}
	}
	if e.Parties != nil {
		text += fmt.Sprintf(" (%d %s)", len(e.Parties), many)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}
