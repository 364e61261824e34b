package record

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/keyexchange"
)

// This file has the key of the public log in backups. Its leaves are in none: anybody may copy
// them, and those since the backup are known by now. So a key that was restored signs nothing
// before the log has its leaves back: under one name it would sign a second history.

// restoredKey is the subject that a restored key is sealed for, until the log has its leaves back.
const restoredKey = subjectKey + " restored"

// logIfAny returns the public log without opening its key, nil if there is none.
func (r *Records) logIfAny(ctx context.Context) (*PublicLog, error) {
	l := &PublicLog{records: r}
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		l.stream, err = r.js.Stream(ctx, streamLog)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			l, err = nil, nil
		}
		return err
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return l, nil
}

// openKey opens the log's key in its sealed form.
func (l *PublicLog) openKey(box []byte) (plain []byte, by *keyexchange.SealKey, restored bool,
	err error,
) {
	plain, by, err = l.records.keys.open(box, []byte(subjectKey))
	if err != nil {
		restored = true
		plain, by, err = l.records.keys.open(box, []byte(restoredKey))
	}
	if err != nil || len(plain) < ed25519.SeedSize {
		return nil, nil, false, fmt.Errorf("%w: the key of the public log", ErrRecord)
	}
	return plain, by, restored, nil
}

// sealKey seals the log's key, with the log's name after it.
func (l *PublicLog) sealKey(plain []byte, restored bool) ([]byte, error) {
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return nil, err
	}
	sealedFor := subjectKey
	if restored {
		sealedFor = restoredKey
	}
	return keyexchange.Seal(&nonce, l.records.keys.Newest(), plain, []byte(sealedFor))
}

// Back says that the log has its leaves back, which Next has read, all of them.
func (l *PublicLog) Back(ctx context.Context) error {
	l.Restored = false
	return l.keep(ctx, l.keyAt)
}

// backUpLog writes the key of the public log, if there is one, sealed under the newest key.
func (r *Records) backUpLog(ctx context.Context, file *backupWriter) error {
	l, err := r.logIfAny(ctx)
	if err != nil || l == nil {
		return err
	}
	box, _, err := l.message(ctx, subjectKey, 0)
	if err != nil || box == nil {
		return err
	}
	plain, _, restored, err := l.openKey(box)
	if err != nil {
		return err
	}
	defer clear(plain)
	if box, err = l.sealKey(plain, restored); err != nil {
		return err
	}
	return file.frame(frameLog, "", box)
}

// errOtherLog: a backup has the key of another public log than the record.
var errOtherLog = fmt.Errorf("%w: they have begun a public log of their own, and the backup has "+
	"the key of another; start them without --public-log, restore, and name the log afterwards",
	ErrNotEmpty)

// hasLog reports whether the record has the key of a public log that a backup has. It fails with
// errOtherLog if the record has another one.
func (r *Records) hasLog(ctx context.Context, box []byte) (bool, error) {
	l, err := r.logIfAny(ctx)
	if err != nil || l == nil {
		return false, err
	}
	present, _, err := l.message(ctx, subjectKey, 0)
	if err != nil || present == nil {
		return false, err
	}
	plain, _, _, err := l.openKey(box)
	if err != nil {
		return false, err
	}
	defer clear(plain)
	own, _, _, err := l.openKey(present)
	if err != nil {
		return false, err
	}
	defer clear(own)
	if !bytes.Equal(own, plain) {
		return false, errOtherLog
	}
	return true, nil
}

// restoreLog puts back the key of the public log from its form in a backup, unless it is there. A
// key that is the only thing missing of a log is as it was; one whose leaves are missing too signs
// nothing yet.
func (r *Records) restoreLog(ctx context.Context, box []byte) (took bool, err error) {
	if had, err := r.hasLog(ctx, box); err != nil || had {
		return false, err
	}
	l := &PublicLog{records: r}
	if err := l.makeStream(ctx); err != nil {
		return false, err
	}
	leaf, _, err := l.message(ctx, subjectLeaf, 0)
	if err != nil {
		return false, err
	}
	plain, _, restored, err := l.openKey(box)
	if err != nil {
		return false, err
	}
	defer clear(plain)
	again, err := l.sealKey(plain, restored || leaf == nil)
	if err == nil {
		_, err = l.add(ctx, subjectKey, 0, again)
	}
	return err == nil, err
}
