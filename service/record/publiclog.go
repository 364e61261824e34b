package record

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// This file has what all nodes of a server need for one public log: its key, sealed, and its
// leaves, in a stream of their own. A leaf is added only after the one that its author knows as the
// last.

const (
	streamLog   = "HUSHSUM-LOG"
	subjectLeaf = "hushsum.log.leaf"
	subjectKey  = "hushsum.log.key"
	mostLogName = 200 // bytes
)

// PublicLog is the public log of a server. It is not safe for concurrent use.
type PublicLog struct {
	// Name is the log's, and Key signs its checkpoints.
	Name string
	Key  ed25519.PrivateKey
	// Restored: the key is from a backup, and signs nothing before the log has its leaves back: add
	// those that are missing, then call [PublicLog.Back].
	Restored bool

	records *Records
	stream  jetstream.Stream
	last    uint64 // sequence of the last leaf that was read
	keyAt   uint64 // sequence of the key
}

// PublicLog opens the server's public log, or makes it with a name. begun says that this node has
// published some of it. It fails with [ErrDamaged] if the log's key is lost, with [ErrRecord] if it
// has another name, and with [ErrUnavailable].
func (r *Records) PublicLog(ctx context.Context, name string, begun bool) (*PublicLog, error) {
	if name == "" || len(name) > mostLogName {
		return nil, fmt.Errorf("%w: %.80q names no log", ErrRecord, name)
	}
	l := &PublicLog{Name: name, records: r}
	if err := l.makeStream(ctx); err != nil {
		return nil, err
	}
	box, sequence, err := l.message(ctx, subjectKey, 0)
	if err != nil {
		return nil, err
	}
	if box == nil {
		leaf, _, err := l.message(ctx, subjectLeaf, 0)
		if err != nil {
			return nil, err
		}
		if begun || leaf != nil {
			return nil, damaged("the key of the public log is lost")
		}
		_, l.Key, err = ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		if err = l.keep(ctx, sequence); !errors.Is(err, ErrLost) {
			return l, err
		}
		if box, sequence, err = l.message(ctx, subjectKey, 0); err != nil {
			return nil, err
		}
	}
	return l, l.open(ctx, box, sequence)
}

// makeStream opens the stream of the log, or makes it.
func (l *PublicLog) makeStream(ctx context.Context) error {
	err := l.records.retry(ctx, func(ctx context.Context) (err error) {
		l.stream, err = l.records.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name:       streamLog,
			Subjects:   []string{subjectLeaf, subjectKey},
			Replicas:   l.records.replicas,
			DenyDelete: true,
			DenyPurge:  true,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// open reads the key from its sealed form, and seals it under the newest key.
func (l *PublicLog) open(ctx context.Context, box []byte, sequence uint64) error {
	plain, by, restored, err := l.openKey(box)
	if err != nil {
		return err
	}
	defer clear(plain)
	l.Restored, l.keyAt = restored, sequence
	if had := string(plain[ed25519.SeedSize:]); had != l.Name {
		return fmt.Errorf("%w: the server's public log is called %s, and not %s", ErrRecord, had, l.Name)
	}
	l.Key = ed25519.NewKeyFromSeed(plain[:ed25519.SeedSize])
	if *by == *l.records.keys.Newest() {
		return nil
	}
	if err := l.keep(ctx, sequence); !errors.Is(err, ErrLost) { // else another node has done it
		return err
	}
	return nil
}

// keep stores the key, sealed, after what a sequence has.
func (l *PublicLog) keep(ctx context.Context, sequence uint64) error {
	plain := append(l.Key.Seed(), l.Name...)
	defer clear(plain)
	box, err := l.sealKey(plain, l.Restored)
	if err != nil {
		return err
	}
	at, err := l.add(ctx, subjectKey, sequence, box)
	if err == nil {
		l.keyAt = at
	}
	return err
}

// add adds a message after the last of its subject.
func (l *PublicLog) add(ctx context.Context, subject string, after uint64, b []byte,
) (sequence uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	ack, err := l.records.js.Publish(ctx, subject, b,
		jetstream.WithExpectLastSequencePerSubject(after))
	switch {
	case wrongSequence(err):
		return 0, ErrLost
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return ack.Sequence, nil
}

// message reads the first message of a subject from a sequence on, or with 0 the last one; nil if
// there is none.
func (l *PublicLog) message(ctx context.Context, subject string, from uint64,
) (b []byte, sequence uint64, err error) {
	err = l.records.retry(ctx, func(ctx context.Context) error {
		var m *jetstream.RawStreamMsg
		var err error
		if from == 0 {
			m, err = l.stream.GetLastMsgForSubject(ctx, subject)
		} else {
			m, err = l.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err == nil {
			b, sequence = m.Data, m.Sequence
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return b, sequence, nil
}

// Next returns the next leaf that was not read yet, nil if there is none.
func (l *PublicLog) Next(ctx context.Context) (leaf []byte, err error) {
	leaf, sequence, err := l.message(ctx, subjectLeaf, l.last+1)
	if leaf != nil {
		l.last = sequence
	}
	return leaf, err
}

// Append adds a leaf. It fails with [ErrLost] if another node has added one: see
// [PublicLog.Next]. It does not return the leaf: Next does.
func (l *PublicLog) Append(ctx context.Context, leaf []byte) error {
	_, err := l.add(ctx, subjectLeaf, l.last, leaf)
	return err
}
