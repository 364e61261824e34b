package record

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file has the stream of decisions: a subject for each federation, each message a signed
// entry, none ever deleted. An entry is added only after the one that its author knows as the last,
// so that of two nodes which lead one decides.

const (
	streamDecided  = "HUSHSUM-DECIDED"
	subjectDecided = "hushsum.decided."
)

// openDecided creates or finds the stream. The leader of the stream is asked, and no other copy:
// one that has lost an entry would answer as if that had never been.
func (r *Records) openDecided(ctx context.Context) (err error) {
	r.decided, err = r.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:       streamDecided,
		Subjects:   []string{subjectDecided + ">"},
		MaxMsgSize: chain.MostLine + 4<<10, // with headers
		Replicas:   r.replicas,
		DenyDelete: true,
		DenyPurge:  true,
	})
	return err
}

// streamed is an entry as the stream has it.
type streamed struct {
	line     []byte
	sequence uint64
}

// lastDecided reads the last entry of a federation, of sequence 0 if there is none.
func (r *Records) lastDecided(ctx context.Context, id string) (last streamed, err error) {
	err = r.retry(ctx, func(ctx context.Context) error {
		m, err := r.decided.GetLastMsgForSubject(ctx, subjectDecided+id)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err == nil {
			last = streamed{m.Data, m.Sequence}
		}
		return err
	})
	if err != nil {
		return last, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return last, nil
}

// nextDecided reads the first entry of a federation at or after a sequence, of sequence 0 if there
// is none.
func (r *Records) nextDecided(ctx context.Context, id string, from uint64,
) (next streamed, err error) {
	err = r.retry(ctx, func(ctx context.Context) error {
		m, err := r.decided.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subjectDecided+id))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err == nil {
			next = streamed{m.Data, m.Sequence}
		}
		return err
	})
	if err != nil {
		return next, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return next, nil
}

// decidedFrom reads the entries of a federation from a number on, by which they are in order, up to
// the last one given. It finds the first by halves: the stream is that of all federations.
func (r *Records) decidedFrom(ctx context.Context, id string, number uint64, last streamed,
) (lines []byte, err error) {
	from := uint64(1)
	if number > 0 {
		var failed error
		before := sort.Search(int(last.sequence), func(k int) bool { // of those from k+1 on
			if failed != nil {
				return true
			}
			next, err := r.nextDecided(ctx, id, uint64(k)+1)
			failed = err
			e, err := chain.Parse(next.line)
			return next.sequence == 0 || err != nil || e.Number >= number
		})
		if failed != nil {
			return nil, failed
		}
		from = uint64(before) + 1
	}
	for {
		next, err := r.nextDecided(ctx, id, from)
		if err != nil {
			return nil, err
		}
		if next.sequence == 0 || next.sequence > last.sequence {
			return lines, nil
		}
		lines = append(append(lines, next.line...), '\n')
		from = next.sequence + 1
	}
}

// decide adds an entry after one of a given sequence, and returns its own. It fails with [ErrLost]
// if that is not the last, and with a [Damage] if the stream contradicts itself, as after a flipped
// bit: to ask again would go on for ever. If an answer was lost it finds out by asking again.
func (r *Records) decide(ctx context.Context, id string, line []byte, after uint64,
) (sequence uint64, err error) {
	m := nats.NewMsg(subjectDecided + id)
	m.Data = line
	err = r.retry(ctx, func(ctx context.Context) error {
		ack, err := r.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(after))
		if err == nil {
			sequence = ack.Sequence
		}
		return err
	})
	if !wrongSequence(err) {
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return sequence, nil
	}
	// Mine, written by an attempt whose answer was lost? A node that was frozen may still know an
	// older last one.
	last, failed := r.lastDecided(ctx, id)
	if failed != nil {
		return 0, failed
	}
	switch {
	case last.sequence > after && string(last.line) == string(line):
		return last.sequence, nil
	case last.sequence <= after && r.replicas == 1: // and so nobody else has decided
		return 0, damaged("JetStream has lost the last decision of %.16s…, and takes no other", id)
	}
	return 0, ErrLost
}
