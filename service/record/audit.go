package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/accounting"
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
	eventRestored = "restored"
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
	"begun": KindRound, "summed": KindRound, "lost": KindRound,
	"a session forms": kindSession, "a session took over": kindSession,
	"set back": KindIncident, "damaged": KindIncident, "healed": KindIncident, "lied": KindIncident,
	EventUnreadable: KindIncident,
}

// Kind returns the kind of a line.
func (l *Line) Kind() string { return kinds[l.Event] }

// Log says what a federation's audit log had when its reading began.
type Log struct {
	Lines int
	// Missing is how many of these lines, the last or damaged ones, JetStream counts and did not give
	// to a reading that came to the end.
	Missing int
	// Gaps is how many lines of this or other federations JetStream no longer has, although none is
	// ever removed.
	Gaps int
}

// Audit appends a line to the log of a federation. It is best effort: decisions are in
// the record, whose states have the history too.
func (r *Records) Audit(ctx context.Context, id string, line Line) error {
	line.Number = 0
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	_, err = r.js.Publish(ctx, subjectAudit+id, b)
	return err
}

// LastLines reads the last lines of a federation's log, at most a given number.
func (r *Records) LastLines(ctx context.Context, id string, most int) (lines []Line, err error) {
	_, err = r.AuditLog(ctx, id, -most, func(line Line) bool {
		lines = append(lines, line)
		return true
	})
	return lines, err
}

// auditBatch is how many lines are fetched at once, and from how many to how many lines the place
// in the stream is remembered.
const auditBatch = 256

const (
	auditWait = time.Second     // for lines that a copy of the stream lacks
	auditSlow = 5 * time.Minute // between two batches, of a reader that writes them somewhere
)

// AuditLog reads a federation's log in order from a line on, a negative number counting from the
// end, to the end that the log had at first or until each returns false. Memory is bounded by a
// batch. Where a reading stopped the next begins, and places between are remembered, so that a log
// that is read page by page is fetched once. It fails with [ErrUnavailable]; lines before that have
// been given.
func (r *Records) AuditLog(ctx context.Context, id string, from int, each func(Line) bool,
) (log Log, err error) {
	var info *jetstream.StreamInfo
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		info, err = r.audit.Info(ctx, jetstream.WithSubjectFilter(subjectAudit+id))
		return err
	})
	if err != nil {
		return log, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	log.Lines = int(info.State.Subjects[subjectAudit+id])
	log.Gaps = info.State.NumDeleted + int(max(info.State.FirstSeq, 1)-1)
	if from < 0 {
		from += log.Lines + 1
	}
	from = max(from, 1)
	if from > log.Lines {
		return log, nil
	}
	at := r.placeOf(id, info.Created, from)
	number, err := r.auditFrom(ctx, id, at, log.Lines, func(p place, text []byte) bool {
		if p.line%auditBatch == 0 {
			r.remember(id, info.Created, p)
		}
		if p.line < from {
			return true
		}
		line := Line{}
		if json.Unmarshal(text, &line) != nil {
			line = Line{Event: EventUnreadable, Note: "this line of the log is damaged"}
		}
		line.Number = p.line
		more := each(line)
		if !more || p.line == log.Lines {
			r.stopped(id, info.Created, p)
		}
		return more
	})
	if err != nil {
		return log, fmt.Errorf("%w: the audit log breaks off after line %d: %w", ErrUnavailable, number,
			err)
	}
	log.Missing = max(0, log.Lines-number)
	return log, nil
}

// auditFrom gives lines of the log from a place on, with the place of each, until there are as many
// as given or each returns false. It returns the number of the last line, which is the given number
// if each was content.
func (r *Records) auditFrom(ctx context.Context, id string, at place, lines int,
	each func(place, []byte) bool,
) (number int, err error) {
	var consumer jetstream.Consumer
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		consumer, err = r.audit.CreateConsumer(ctx, jetstream.ConsumerConfig{
			FilterSubject:     subjectAudit + id,
			DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:       at.sequence + 1,
			AckPolicy:         jetstream.AckNonePolicy,
			InactiveThreshold: auditSlow,
			MemoryStorage:     true,
			Replicas:          1,
		})
		return err
	})
	if err != nil {
		return at.line, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
		defer cancel()
		_ = r.audit.DeleteConsumer(ctx, consumer.CachedInfo().Name) // else JetStream does it later
	}()
	for delivered := uint64(0); at.line < lines; {
		if err := ctx.Err(); err != nil {
			return at.line, err
		}
		// The copy that answers may be behind the one that counted, so this waits.
		asked := min(auditBatch, lines-at.line)
		batch, err := consumer.Fetch(asked, jetstream.FetchMaxWait(auditWait))
		if err != nil {
			return at.line, err
		}
		for message := range batch.Messages() {
			m, err := message.Metadata()
			if err != nil {
				return at.line, err
			}
			if delivered++; m.Sequence.Consumer != delivered {
				return at.line, errors.New("a message was lost on its way")
			}
			asked--
			at = place{at.line + 1, m.Sequence.Stream}
			if !each(at, message.Data()) {
				return lines, nil
			}
		}
		if err := batch.Error(); err != nil {
			return at.line, err
		}
		if asked > 0 { // there is no more
			break
		}
	}
	return at.line, nil
}

// place is where in the stream of all federations a line of one of them is.
type place struct {
	line     int
	sequence uint64
}

// places are those that are remembered of a federation's log.
type places struct {
	created time.Time // of the stream
	every   []place   // of each line whose number auditBatch divides, as far as it was read
	last    place     // of where a reading stopped
}

// placesOf returns what is remembered of a federation's log in a stream that was created at a given
// time; the caller holds the mutex.
func (r *Records) placesOf(id string, created time.Time) *places {
	p := r.places[id]
	if p == nil || !p.created.Equal(created) {
		p = &places{created: created}
		r.places[id] = p
	}
	return p
}

// placeOf returns the last place that is remembered before a line.
func (r *Records) placeOf(id string, created time.Time, line int) (at place) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	p := r.placesOf(id, created)
	if i := sort.Search(len(p.every), func(i int) bool { return p.every[i].line >= line }); i > 0 {
		at = p.every[i-1]
	}
	if p.last.line < line && p.last.line > at.line {
		at = p.last
	}
	return at
}

// remember keeps the place of a line whose number auditBatch divides.
func (r *Records) remember(id string, created time.Time, at place) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	p := r.placesOf(id, created)
	if at.line == (len(p.every)+1)*auditBatch { // else it is known
		p.every = append(p.every, at)
	}
}

// stopped keeps the place where a reading stopped.
func (r *Records) stopped(id string, created time.Time, at place) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.placesOf(id, created).last = at
}
