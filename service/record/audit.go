package record

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/accounting"
)

// Line is a line of the audit log: who, when, what, digests and sizes. It contains no secret.
type Line struct {
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
)

// Audit appends a line to the log of a federation. It is best effort: decisions are in
// the record, whose states have the history too.
func (r *Records) Audit(ctx context.Context, id string, line Line) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	_, err = r.js.Publish(ctx, subjectAudit+id, b)
	return err
}

// AuditLog reads the last lines of the log, at most a given number.
func (r *Records) AuditLog(ctx context.Context, id string, most int) ([]Line, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	stream, err := r.js.Stream(ctx, streamAudit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	// The log covers all federations and grows for as long as they go on: it is read from further
	// and further back until it suffices.
	state := stream.CachedInfo().State
	for back := uint64(auditBack); ; back *= auditBack {
		from := state.FirstSeq
		if state.LastSeq > back {
			from = max(from, state.LastSeq-back)
		}
		lines, err := r.auditFrom(ctx, id, from, most)
		if err != nil || len(lines) == most || from == state.FirstSeq {
			return lines, err
		}
	}
}

// auditBack is how many lines are read at first; then that many times as many.
const auditBack = 256

// auditFrom reads the last lines of a federation, at most a given number, from a line of the log
// on.
func (r *Records) auditFrom(ctx context.Context, id string, from uint64, most int) ([]Line, error) {
	consumer, err := r.js.OrderedConsumer(ctx, streamAudit, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subjectAudit + id},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:    max(from, 1),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var lines []Line
	for {
		batch, err := consumer.FetchNoWait(500)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		got := 0
		for message := range batch.Messages() {
			got++
			var line Line
			if json.Unmarshal(message.Data(), &line) == nil {
				lines = append(lines, line)
			}
		}
		if len(lines) > most {
			lines = lines[len(lines)-most:]
		}
		if got == 0 {
			return lines, nil
		}
	}
}
