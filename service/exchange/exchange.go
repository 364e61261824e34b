// Package exchange has what a party and a door say to each other over HTTPS: a party's question and
// the answer, what a door says of its federations and of its certificates, and refusals. The party
// imports it, and so needs nothing of the server.
package exchange

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ask is the question of a party or a member of the committee about what is next.
type Ask struct {
	Sessions []uint64 // that it has keys for
	Least    uint64   // the least number of a session that it may join
	Absent   uint64   // a round that it submits nothing in
	Offer    uint64   // a round that it has its one message of, but was not told to upload
	Seen     []string // items that it has seen
	Working  bool     // it is busy with what it has, and wants to hear only what is newer
	// Number rises from question to question, so that a copy of an older one changes nothing; 0 for
	// a question that cannot be copied.
	Number uint64
	// Process is a random number of the process that asks: two that ask in turn have one identity.
	Process uint64
}

// Waits of a door until something is next.
const (
	shortPoll   = 8 * time.Second
	longestPoll = 25 * time.Second
	shortFor    = 1000 // parties; more of them ask less often
)

// Wait is how long a door waits until something is next for one of a given number of parties,
// unless the party says how long. It is short, since a party finds out only by the end of its wait
// that a node has been frozen.
func Wait(parties int) time.Duration {
	if parties <= shortFor {
		return shortPoll
	}
	return longestPoll
}

// Late is how much later than the door's wait an answer comes at most: a party then takes it that
// the node does not answer.
const Late = 3 * time.Second

// HeaderWait has how many seconds the door lets a question wait, see [Wait].
const HeaderWait = "Hushsum-Wait"

// ParseWait reads [HeaderWait] from the headers of an answer; without it, the longest wait.
func ParseWait(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get(HeaderWait), 10, 31)
	if wait := time.Duration(seconds) * time.Second; err == nil && wait < longestPoll {
		return max(wait, shortPoll)
	}
	return longestPoll
}

// Query returns the query in which a question is sent.
func (a *Ask) Query() url.Values {
	q := make(url.Values)
	var sessions []string
	for _, n := range a.Sessions {
		sessions = append(sessions, strconv.FormatUint(n, 10))
	}
	if sessions != nil {
		q.Set("sessions", strings.Join(sessions, ","))
	}
	if a.Seen != nil {
		q.Set("seen", strings.Join(a.Seen, ","))
	}
	if a.Working {
		q.Set("working", "true")
	}
	if a.Absent > 0 {
		q.Set("absent", strconv.FormatUint(a.Absent, 10))
	}
	if a.Offer > 0 {
		q.Set("offer", strconv.FormatUint(a.Offer, 10))
	}
	if a.Process > 0 {
		q.Set("process", strconv.FormatUint(a.Process, 10))
	}
	q.Set("number", strconv.FormatUint(a.Number, 10))
	q.Set("least", strconv.FormatUint(a.Least, 10))
	return q
}

// ParseAsk reads a query: the question, and how long its sender is ready to wait, if it says so.
func ParseAsk(query url.Values, wait time.Duration) (Ask, time.Duration, error) {
	ask := Ask{}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		if len(values) != 1 {
			return Ask{}, 0, fmt.Errorf("%.20q comes %d times", name, len(values))
		}
		if err := ask.read(name, values[0], &wait); err != nil {
			return Ask{}, 0, err
		}
	}
	return ask, wait, nil
}

// read reads one parameter of a query.
func (a *Ask) read(name, value string, wait *time.Duration) (err error) {
	switch name {
	case "sessions":
		if value == "" {
			return nil
		}
		for _, part := range strings.Split(value, ",") {
			n, err := strconv.ParseUint(part, 10, 63)
			if err != nil || len(a.Sessions) == 4 {
				return errors.New("sessions takes up to 4 numbers, separated by commas")
			}
			a.Sessions = append(a.Sessions, n)
		}
	case "least":
		a.Least, err = strconv.ParseUint(value, 10, 62)
	case "offer":
		a.Offer, err = strconv.ParseUint(value, 10, 31)
	case "absent":
		a.Absent, err = strconv.ParseUint(value, 10, 31)
	case "seen":
		a.Seen = strings.SplitN(value, ",", 5)
		if len(a.Seen) > 4 {
			return errors.New("seen takes up to 4 items, separated by commas")
		}
	case "number":
		a.Number, err = strconv.ParseUint(value, 10, 63)
	case "process":
		a.Process, err = strconv.ParseUint(value, 10, 63)
	case "working":
		a.Working, err = strconv.ParseBool(value)
	case "wait":
		var seconds float64
		seconds, err = strconv.ParseFloat(value, 64)
		if err == nil && !(seconds >= 0 && seconds <= longestPoll.Seconds()) {
			err = fmt.Errorf("0 to %v seconds", longestPoll.Seconds())
		}
		*wait = time.Duration(seconds * float64(time.Second))
	default:
		return fmt.Errorf("there is no parameter %.20q", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Kind says what is next.
type Kind string

// The kinds.
const (
	Nothing Kind = ""        // nothing yet: ask again
	Join    Kind = "join"    // make keys for the session of this number
	Message Kind = "message" // take this message
	Upload  Kind = "upload"  // send the one message of the round
	End     Kind = "end"     // the federation has ended; the model is the last one
)

// Next is the answer to a question.
type Next struct {
	Kind    Kind
	Item    string // name it as seen
	Session uint64
	Round   int    // of the federation, where the message begins one
	Message []byte // the body
}

// HeaderNext has the kind of the answer to a question.
const HeaderNext = "Hushsum-Next"

// Other headers of the answer.
const (
	headerItem    = "Hushsum-Item"
	headerSession = "Hushsum-Session"
	headerRound   = "Hushsum-Round"
)

// Set sets the headers of an answer other than Nothing, which has none.
func (n *Next) Set(h http.Header) {
	h.Set(HeaderNext, string(n.Kind))
	h.Set(headerItem, n.Item)
	h.Set(headerSession, strconv.FormatUint(n.Session, 10))
	h.Set(headerRound, strconv.Itoa(n.Round))
}

// ParseNext reads what is next, but for the message, from the headers of an answer.
func ParseNext(h http.Header) (Next, error) {
	kind, item := Kind(h.Get(HeaderNext)), h.Get(headerItem)
	if kind == Nothing {
		return Next{}, nil
	}
	session, e1 := strconv.ParseUint(h.Get(headerSession), 10, 64)
	round, e2 := strconv.ParseUint(h.Get(headerRound), 10, 31)
	if e1 != nil || e2 != nil || len(item) > 64 || strings.ContainsAny(item, ",") {
		return Next{}, errors.New("the headers of its answer")
	}
	return Next{Kind: kind, Item: item, Session: session, Round: int(round)}, nil
}

// Headers of other answers.
const (
	HeaderNumber = "Hushsum-Number" // of a refusal: the number of the last question
	HeaderOffset = "Hushsum-Offset" // how many bytes of an upload have arrived
)

// PieceSize is the maximum size of a piece in bytes: half of what nginx accepts unless configured.
const PieceSize = 512 << 10

const (
	leastGrace   = time.Second
	graceForEach = 10 * time.Millisecond // since all come at once
)

// DefaultGrace is how long one of a given number of parties counts as present after it was last
// heard from.
func DefaultGrace(parties int) time.Duration {
	return leastGrace + time.Duration(parties)*graceForEach
}
