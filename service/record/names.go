package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/labels"
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
	mac.Write([]byte(labels.Names + "\n" + purpose))
	return mac.Sum(nil)
}

const (
	// mostNotes is the size of the lines of a decision, in bytes, above which they are compressed, and
	// then what a line says at length is cut, and then lines are left out. An entry has at most
	// chain.MostLine.
	mostNotes = 32 << 10
	// mostText is the size of lines as they were.
	mostText = 16 << 20
)

// packLines encodes lines in at most mostNotes bytes.
func packLines(lines []Line) ([]byte, error) {
	left := 0 // out
	for most := 4 << 10; ; most /= 4 {
		b, err := json.Marshal(lines)
		if err != nil || len(b) <= mostNotes {
			return b, err
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		if packed.Len() <= mostNotes && len(b) <= mostText {
			return packed.Bytes(), nil
		}
		lines = slices.Clone(lines)
		if most > 0 {
			for i := range lines {
				if note := lines[i].Note; len(note) > most {
					lines[i].Note = strings.ToValidUTF8(note[:most], "") + "…"
				}
			}
			continue
		}
		half := len(lines) / 2
		left += len(lines) - half
		lines = append(lines[:half], Line{Event: EventUnreadable, Time: lines[0].Time,
			Node: lines[0].Node, Note: fmt.Sprintf("%d more lines did not fit", left)})
		left--
	}
}

// unpackLines decodes what packLines returns.
func unpackLines(b []byte) (lines []Line, err error) {
	if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if b, err = io.ReadAll(io.LimitReader(r, mostText)); err != nil {
			return nil, err
		}
	}
	return lines, json.Unmarshal(b, &lines)
}

// seal seals the lines for people of an entry, nil if there are none.
func (k *namesKey) seal(e *chain.Entry, lines []Line) ([]byte, error) {
	if len(lines) == 0 || k == nil {
		return nil, nil
	}
	b, err := packLines(lines)
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
		lines, err = unpackLines(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the notes of entry %d", ErrRecord, e.Number)
	}
	return lines, nil
}

// notesOf returns the data that notes are sealed with, so that they open in their own entry only.
func notesOf(e *chain.Entry) []byte {
	return fmt.Appendf(nil, labels.Notes+"\n%s\n%d\n%d\n%s", e.Federation, e.Segment, e.Number,
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
