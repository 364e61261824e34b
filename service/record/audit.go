package record

import (
	"context"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/chain"
)

// Line is a line of the audit log: who, when, what, digests and sizes. It contains no secret.
type Line struct {
	// Number is the line's place in its federation's log, from 1. It is not stored.
	Number  int       `json:"number,omitempty"`
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Event   string    `json:"event"`
	Round   int       `json:"round,omitempty"`
	Parties int       `json:"parties,omitempty"`
	// Spent bounds what any party has spent; nil of other events, and without a budget.
	Spent  *accounting.Claim `json:"spent,omitempty"`
	Digest string            `json:"digest,omitempty"`
	Size   int               `json:"size,omitempty"`
	Note   string            `json:"note,omitempty"`
}

// Events of lines that do not follow from a decision.
const (
	EventCreated  = "created"
	EventHealed   = "healed" // from another copy
	eventRestored = "restored"
	// eventChosen: of several histories an operator said which one stands.
	eventChosen = "chosen"
	// eventForgotten is the last, of a federation whose models and states were erased.
	eventForgotten = "forgotten"
	// EventUnreadable stands for a line whose text cannot be read.
	EventUnreadable = "unreadable"
)

// Kinds of lines. Orders include what happens without an operator to the same effect, as when a
// federation ends with its last round. Incidents are faults and frauds.
const (
	KindOrder    = "order"
	KindRound    = "round"
	kindSession  = "session"
	KindIncident = "incident"
)

// Kinds lists the kinds of lines.
var Kinds = []string{KindOrder, KindRound, kindSession, KindIncident}

var kinds = map[string]string{
	EventCreated: KindOrder, eventRestored: KindOrder, "paused": KindOrder, "resumed": KindOrder,
	"left out": KindOrder, "readmitted": KindOrder, "ended": KindOrder,
	eventForgotten: KindOrder, eventChosen: KindOrder,
	"begun": KindRound, "summed": KindRound, "lost": KindRound,
	"a session forms": kindSession, "a session took over": kindSession,
	"set back": KindIncident, "damaged": KindIncident, EventHealed: KindIncident, "lied": KindIncident,
	EventUnreadable: KindIncident,
}

// Kind returns the kind of a line.
func (l *Line) Kind() string { return kinds[l.Event] }

// Log says what a federation's audit log had when it was read.
type Log struct {
	Lines   int // one stands for the lines of an entry whose text cannot be read
	Entries int // decisions
	Missing int // decisions that are in no copy that the reader has
}

// LastLines reads the last lines of a federation's log, at most a given number.
func (r *Records) LastLines(ctx context.Context, id string, most int) (lines []Line, err error) {
	_, err = r.AuditLog(ctx, id, -most, func(line Line) bool {
		lines = append(lines, line)
		return true
	})
	return lines, err
}

// AuditLog reads a federation's log in order from a line on, a negative number counting from the
// end, until each returns false. It fails with the errors of [Records.Chain].
func (r *Records) AuditLog(ctx context.Context, id string, from int, each func(Line) bool,
) (log Log, err error) {
	c, err := r.Chain(ctx, id)
	if err != nil {
		return log, err
	}
	names, err := r.names(ctx, id)
	if err != nil {
		return log, err
	}
	var all []Line
	for n := range c.Last().Number + 1 {
		e := c.Entry(n)
		if e == nil {
			continue
		}
		log.Entries++
		if len(e.Notes) == 0 {
			continue
		}
		var lines []Line
		if names != nil {
			lines, err = names.open(e)
		}
		if names == nil || err != nil {
			lines = []Line{unreadableLine(e)}
		}
		all = append(all, lines...)
	}
	for _, lost := range c.Gaps() {
		log.Missing += int(lost.To - lost.From + 1)
	}
	log.Lines = len(all)
	if from < 0 {
		from += log.Lines + 1
	}
	for k := max(from, 1); k <= len(all); k++ {
		all[k-1].Number = k
		if !each(all[k-1]) {
			break
		}
	}
	return log, nil
}

// unreadableLine returns what an entry says of itself to those who cannot read its lines.
func unreadableLine(e *chain.Entry) Line {
	return Line{Time: e.Time, Node: e.Node, Event: EventUnreadable, Round: int(e.Round),
		Note: fmt.Sprintf("entry %d, of kind %s: its text was erased, or its key lost", e.Number, e.Kind)}
}
