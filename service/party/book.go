package party

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/lock"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
)

// ErrBook: the party's book was changed, is sealed under another key, or is not the newest.
var ErrBook = errors.New("party: the book of federations does not open")

// Book has what a party has accepted and spent in all its federations: one after the other, and at
// the same time by parties with folders of their own. It is one sealed file, with a counter next to
// it.
type Book struct {
	File string
	Key  *keyexchange.SealKey
	Now  func() time.Time // nil: time.Now
}

// Entry is a federation in a book.
type Entry struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Before   string    `json:"before,omitempty"` // the one that it goes on from, whose epsilon is in it
	Unit     string    `json:"unit"`
	Epsilon  float64   `json:"epsilon"` // of all rounds; 0: none is promised
	Delta    float64   `json:"delta"`
	Spent    float64   `json:"spent"` // by the party's own ledger, once it has ended
	Accepted time.Time `json:"accepted"`
	Ended    time.Time `json:"ended"` // zero: it goes on
}

// text is the content of a book's file.
type text struct {
	Format  int     `json:"format"`
	Number  uint64  `json:"number"`
	Entries []Entry `json:"entries"`
}

const (
	bookFormat = 1
	bookOwner  = "hushsum/4 book of federations"
	year       = 365 * 24 * time.Hour
	bookTime   = 5 * time.Second // that another process may hold it
)

func (b *Book) now() time.Time {
	if b.Now != nil {
		return b.Now().UTC()
	}
	return time.Now().UTC()
}

func (b *Book) counter() hushsum.FileCounter { return hushsum.FileCounter(b.File + ".counter") }

// Entries returns what is in the book, in the order in which it was accepted. It fails with
// [ErrBook].
func (b *Book) Entries() ([]Entry, error) {
	t, err := b.read()
	return t.Entries, err
}

func (b *Book) read() (t text, err error) {
	newest, err := b.counter().Value()
	if err != nil {
		return t, err
	}
	box, err := hushsum.FileStore(b.File).Load()
	if err != nil {
		return t, err
	}
	if box != nil {
		plain, err := keyexchange.Open(b.Key, box, []byte(bookOwner))
		if err != nil {
			return t, fmt.Errorf("%w: %s was changed, or sealed under another key", ErrBook, b.File)
		}
		decoder := json.NewDecoder(bytes.NewReader(plain))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&t); err != nil || t.Format != bookFormat {
			return t, fmt.Errorf("%w: %s is of a format that this program does not know", ErrBook, b.File)
		}
	}
	if t.Number < newest {
		return t, fmt.Errorf("%w: %s is number %d, of %d; bring the newest back", ErrBook, b.File,
			t.Number, newest)
	}
	return t, nil
}

// change reads the book, changes it and writes it. Nobody else does meanwhile.
func (b *Book) change(change func(t *text) error) error {
	held, err := lock.File(b.File + ".lock")
	for end := time.Now().Add(bookTime); errors.Is(err, lock.ErrHeld) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		held, err = lock.File(b.File + ".lock")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBook, err)
	}
	defer held.Close()
	t, err := b.read()
	if err == nil {
		err = change(&t)
	}
	if err != nil {
		return err
	}
	t.Format, t.Number = bookFormat, t.Number+1
	plain, err := json.Marshal(t)
	if err != nil {
		return err
	}
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return err
	}
	box, err := keyexchange.Seal(&nonce, b.Key, plain, []byte(bookOwner))
	if err != nil {
		return err
	}
	if err := hushsum.FileStore(b.File).Save(box); err != nil {
		return err
	}
	return b.counter().Advance(t.Number)
}

// Check fails with [ErrPolicy] if a federation counts less than this party has spent in the one
// that it goes on from, or would have it spend more in a year than its policy allows. name is the
// party's in the roster.
func (b *Book) Check(p *Policy, f *federation.Federation, name string) error {
	t, err := b.read()
	if err != nil {
		return err
	}
	return b.check(t.Entries, p, f, name)
}

func (b *Book) check(entries []Entry, p *Policy, f *federation.Federation, name string) error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrPolicy, fmt.Sprintf(format, a...))
	}
	next := b.entry(f)
	at := func(id string) int {
		return slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id })
	}
	if i := at(next.Before); next.Before != "" && i >= 0 && entries[i].Spent > 0 {
		counted, err := f.Settled.Before().Ledger.Spent(name)
		if err != nil {
			return err
		}
		if own := entries[i].Spent; counted.Upper < own*(1-1e-9) {
			return fail("it counts epsilon %.4g that %s has spent before, and by its own book it was %.4g",
				counted.Upper, name, own)
		}
	}
	if p == nil || p.MaxEpsilonYear == 0 || at(f.ID) >= 0 {
		return nil
	}
	spent, delta := 0.0, 0.0
	for _, e := range lasting(append(slices.Clone(entries), next), b.now()) {
		most := e.Epsilon
		if !e.Ended.IsZero() {
			most = e.Spent
		}
		if most == 0 && e.Ended.IsZero() {
			most = math.Inf(1)
		}
		spent, delta = spent+most, delta+e.Delta
	}
	if spent > p.MaxEpsilonYear {
		return fail("with it this party may spend epsilon %.4g in a year, at delta %.3g; "+
			"max_epsilon_year is %g", spent, delta, p.MaxEpsilonYear)
	}
	return nil
}

// lasting lists the entries of the last year, but for those whose epsilon is in another's: epsilons
// and deltas of the rest add up, whatever any of them was chosen by (basic composition). What was
// spent in one that the party has not seen end it does not know, and the other may have less of it.
func lasting(entries []Entry, now time.Time) (out []Entry) {
	for _, e := range entries {
		goesOn := e.Ended.IsZero()
		later := slices.ContainsFunc(entries, func(o Entry) bool { return o.Before == e.ID })
		if goesOn || now.Sub(e.Ended) < year && !later {
			out = append(out, e)
		}
	}
	return out
}

func (b *Book) entry(f *federation.Federation) Entry {
	j := f.Job
	out := Entry{ID: f.ID, Name: j.Name, Unit: j.Protects(), Accepted: b.now()}
	if j.Noisy() {
		out.Epsilon, out.Delta = j.Privacy.Epsilon, j.Privacy.Delta
	}
	if before := f.Settled.Before(); before != nil {
		out.Before = before.Federation
	}
	return out
}

// ended reports whether a federation has ended for this party, which then submits nothing in it.
func (b *Book) ended(id string) (bool, error) {
	t, err := b.read()
	return slices.ContainsFunc(t.Entries, func(e Entry) bool {
		return e.ID == id && !e.Ended.IsZero()
	}), err
}

// begin enters a federation in which the party takes part from now on, if [Book.Check] allows it.
func (b *Book) begin(p *Policy, f *federation.Federation, name string) error {
	return b.change(func(t *text) error {
		if err := b.check(t.Entries, p, f, name); err != nil {
			return err
		}
		if !slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.ID == f.ID }) {
			t.Entries = append(t.Entries, b.entry(f))
		}
		return nil
	})
}

// end notes that a federation has ended, and what the party has spent by its own ledger.
func (b *Book) end(id string, guard drive.Guard) error {
	spent, err := guard.Spent()
	if err != nil {
		return err
	}
	return b.change(func(t *text) error {
		for i := range t.Entries {
			if e := &t.Entries[i]; e.ID == id && e.Ended.IsZero() {
				e.Ended = b.now()
				if spent != nil {
					e.Spent = spent.Upper
				}
			}
		}
		return nil
	})
}
