package record

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file has the key that a federation's names are sealed under. What people read of a decision
// is in its entry, sealed, since nothing of a chain can be taken out; once the key is erased nobody
// reads it, in whichever copy.

// namesKey is the key of a federation's names.
type namesKey [32]byte

// String hides the key.
func (namesKey) String() string { return "[names key]" }

// GoString hides the key.
func (namesKey) GoString() string { return "[names key]" }

func newNames() (k namesKey) {
	_, _ = rand.Read(k[:]) // it does not fail
	return k
}

// secret derives a secret for a purpose.
func (k *namesKey) secret(purpose string) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte("hushsum/5 names 1\n" + purpose))
	return mac.Sum(nil)
}

// mostNotes is the size of notes, in bytes, above which what a line says at length is cut.
const mostNotes = 32 << 10

// seal seals the lines for people of an entry, nil if there are none.
func (k *namesKey) seal(e *chain.Entry, lines []Line) ([]byte, error) {
	if len(lines) == 0 || k == nil {
		return nil, nil
	}
	b, err := json.Marshal(lines)
	for most := 4 << 10; err == nil && len(b) > mostNotes && most > 0; most /= 4 {
		lines = append([]Line(nil), lines...)
		for i := range lines {
			if note := lines[i].Note; len(note) > most {
				lines[i].Note = strings.ToValidUTF8(note[:most], "") + "…"
			}
		}
		b, err = json.Marshal(lines)
	}
	if err != nil {
		return nil, err
	}
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return nil, err
	}
	key := keyexchange.SealKey(k.secret("notes"))
	return keyexchange.Seal(&nonce, &key, b, notesOf(e))
}

// open opens the lines of an entry.
func (k *namesKey) open(e *chain.Entry) (lines []Line, err error) {
	key := keyexchange.SealKey(k.secret("notes"))
	b, err := keyexchange.Open(&key, e.Notes, notesOf(e))
	if err == nil {
		err = json.Unmarshal(b, &lines)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the notes of entry %d", ErrRecord, e.Number)
	}
	return lines, nil
}

// notesOf returns the data that notes are sealed with, so that they open in their own entry only.
func notesOf(e *chain.Entry) []byte {
	return fmt.Appendf(nil, "hushsum/5 notes 1\n%s\n%d\n%d\n%s", e.Federation, e.Segment, e.Number,
		e.Before)
}

// names reads the key of a federation's names, nil if it was erased.
func (r *Records) names(ctx context.Context, id string) (*namesKey, error) {
	d, err := r.definition(ctx, id)
	if err != nil || len(d.Names) == 0 {
		return nil, err
	}
	b, err := r.first(ctx, d, d.Names, len(namesKey{}))
	if errors.Is(err, ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := namesKey(b)
	return &k, nil
}

// errForgotten: the key of a federation's names was erased, or lost.
var errForgotten = errors.New("record: the names of the federation were erased")

// Salt returns 32 secret bytes of a federation for a purpose, which are erased with its names.
func (r *Records) Salt(ctx context.Context, id, purpose string) ([]byte, error) {
	k, err := r.names(ctx, id)
	if err != nil {
		return nil, err
	}
	if k == nil {
		return nil, errForgotten
	}
	return k.secret("salt " + purpose), nil
}
