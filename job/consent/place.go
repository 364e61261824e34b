package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/strict"
)

// place is the place of a job in a party's book, which the party keeps with its state in that job:
// a book that is gone, or older, or another one, does not have it.
type place struct {
	Number uint64 `json:"number"` // of the book
	Hash   string `json:"hash"`   // of the job's entry
}

// hash returns the hash of an entry that follows one of a given hash.
func (e *Entry) hash(before string) string {
	digest := sha256.New()
	for _, part := range []string{labels.BookEntry, before, e.ID, e.Name, e.Before,
		e.Accepted.UTC().Format(time.RFC3339Nano), fmt.Sprint(e.Declined)} {
		fmt.Fprintf(digest, "%d\n%s\n", len(part), part)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// add enters an entry.
func (t *text) add(e Entry) {
	before := ""
	if n := len(t.Entries); n > 0 {
		before = t.Entries[n-1].Hash
	}
	e.Hash = e.hash(before)
	t.Entries = append(t.Entries, e)
}

// chained reports whether each entry follows the one before.
func (t *text) chained() bool {
	before := ""
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Hash != e.hash(before) {
			return false
		}
		before = t.Entries[i].Hash
	}
	return true
}

// Place returns the place of the job in the book, for the state of the party: see [Accepted.Had].
// It is nil without a book.
func (a *Accepted) Place() ([]byte, error) {
	if a.book == nil {
		return nil, nil
	}
	t, err := a.book.read()
	if err != nil {
		return nil, err
	}
	e := t.at(idOf(a.job))
	if e == nil {
		return nil, fmt.Errorf("%w: it does not have %s (%.4s…)", ErrBook, a.job.Job().Name, idOf(a.job))
	}
	return json.Marshal(place{t.Number, e.Hash})
}

// Had takes the place that was saved with the state of the party; nil: none was. It fails with
// [ErrBook] if the book does not have it. Call it once the state is loaded, before anything is
// sent.
func (a *Accepted) Had(saved []byte) error {
	if a.book == nil || saved == nil {
		return nil
	}
	var p place
	if err := strict.JSON(saved, &p); err != nil {
		return fmt.Errorf("%w: the place in the book that the state has: %w", ErrBook, err)
	}
	t, err := a.book.read()
	if err != nil {
		return err
	}
	e := t.at(idOf(a.job))
	switch {
	case e == nil || e.Hash != p.Hash:
		return fmt.Errorf("%w: %s is not the book that this party accepted %s with; bring that back, "+
			"or say that the state is lost, with how much was spent", ErrBook, a.book.File,
			a.job.Job().Name)
	case t.Number < p.Number:
		return fmt.Errorf("%w: %s is number %d, and was number %d; restore the newest", ErrBook,
			a.book.File, t.Number, p.Number)
	}
	return nil
}
