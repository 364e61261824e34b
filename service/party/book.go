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
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/lock"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
)

// ErrBook: the party's book was changed, is sealed under another key, or is not the newest.
var ErrBook = errors.New("party: the book of federations cannot be opened")

// Book records what a party has accepted and spent in all its federations: in succession, and at
// the same time by parties with folders of their own. It is one sealed file, with a counter next to
// it.
type Book struct {
	File string
	Key  *keyexchange.SealKey
	Now  func() time.Time // nil: time.Now
}

// Entry is the entry of a federation in a book.
type Entry struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Before   string    `json:"before,omitempty"` // the one that it continues, whose epsilon is in it
	Unit     string    `json:"unit"`
	Epsilon  float64   `json:"epsilon"` // of all rounds; 0: none is promised
	Delta    float64   `json:"delta"`
	Own      float64   `json:"own,omitempty"`   // what its rounds spend, or have spent, without earlier ones; 0: unknown
	Study    float64   `json:"study,omitempty"` // privacy.study
	Spent    float64   `json:"spent"`           // by the party's own ledger, once it has ended
	Accepted time.Time `json:"accepted"`
	Ended    time.Time `json:"ended"` // zero: it goes on
	// Declined reports that the party took no part, and continued in one that continues this one.
	Declined bool `json:"declined,omitempty"`
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
	month      = 30 * 24 * time.Hour
	bookTime   = 5 * time.Second // that another process may hold it
)

func (b *Book) now() time.Time {
	if b.Now != nil {
		return b.Now().UTC()
	}
	return time.Now().UTC()
}

func (b *Book) counter() hushsum.FileCounter { return hushsum.FileCounter(b.File + ".counter") }

// Entries returns the entries of the book, in the order in which they were accepted. It fails with
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
			return t, fmt.Errorf("%w: %s has a format that this program does not know", ErrBook, b.File)
		}
	}
	if t.Number < newest {
		return t, fmt.Errorf("%w: %s is number %d, of %d; restore the newest", ErrBook, b.File,
			t.Number, newest)
	}
	return t, nil
}

// change reads the book, changes it and writes it. No other process changes it meanwhile.
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
// that it continues, has another budget for their study, continues a federation that another of the
// study continues already, or would have the party spend more in a month or a year than its policy
// allows. name is the party's in the roster. declined lists federations, one after the other, in
// which the party takes no part.
func (b *Book) Check(p *Policy, f *federation.Federation, name string,
	declined ...*federation.Federation,
) error {
	t, err := b.read()
	if err != nil {
		return err
	}
	for _, d := range declined {
		t.decline(b.entry(d))
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
	if i := at(next.Before); next.Before != "" && i >= 0 {
		was := &entries[i]
		counted, err := f.Settled.Before().Ledger.Spent(name)
		if err != nil {
			return err
		}
		other := slices.IndexFunc(entries, func(e Entry) bool {
			return e.Before == next.Before && e.ID != next.ID
		})
		switch {
		case was.Spent > 0 && counted.Upper < was.Spent*(1-1e-9):
			return fail("it counts epsilon %.4g as spent by %s before, and by the party's own book it was "+
				"%.4g",
				counted.Upper, name, was.Spent)
		case was.Study > 0 && next.Study != was.Study:
			return fail("by this party's book its study may spend epsilon %g, and by the job %g", was.Study,
				next.Study)
		case next.Study > 0 && other >= 0:
			return fail("%s continues the same federation, and a study spends its budget once",
				entries[other].Name)
		}
	}
	if p == nil || !p.ofTime() || at(f.ID) >= 0 {
		return nil
	}
	entries = append(slices.Clone(entries), next)
	for _, bound := range []struct {
		span, field string
		most        float64
		of          []Entry
		epsilon     func(e *Entry) float64
	}{
		{"month", "max_epsilon_month", p.MaxEpsilonMonth, recent(entries, b.now()), (*Entry).own},
		{"year", "max_epsilon_year", p.MaxEpsilonYear, lasting(entries, b.now()), (*Entry).most},
	} {
		spent, delta := 0.0, 0.0
		for i := range bound.of {
			spent, delta = spent+bound.epsilon(&bound.of[i]), delta+bound.of[i].Delta
		}
		if bound.most > 0 && spent > bound.most {
			return fail("with it this party may spend epsilon %.4g in a %s, at delta %.3g; %s is %g", spent,
				bound.span, delta, bound.field, bound.most)
		}
	}
	return nil
}

// most returns what a federation may spend, or has spent, including those that it continues.
func (e *Entry) most() float64 {
	switch {
	case !e.Ended.IsZero():
		return e.Spent
	case e.Epsilon == 0:
		return math.Inf(1)
	}
	return e.Epsilon
}

// own returns what a federation may spend on its own, or has spent. Entries of earlier releases do
// not record it.
func (e *Entry) own() float64 {
	if e.Own > 0 || e.Declined {
		return e.Own
	}
	return e.most()
}

// recent lists the entries of the last month: what each spends on its own adds up.
func recent(entries []Entry, now time.Time) (out []Entry) {
	for _, e := range entries {
		if e.Ended.IsZero() || now.Sub(e.Ended) < month {
			out = append(out, e)
		}
	}
	return out
}

// lasting lists the entries of the last year, except those whose epsilon is included in another's:
// the epsilons and deltas of the rest add up, however any of them was chosen (basic composition).
// The party does not know what it spent in one that it has not seen end, and the other may count
// less of it.
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

// Decline records that the party takes no part in a federation that continues its last one, so that
// it can continue in one that continues that. What it has spent until then stays counted.
func (b *Book) Decline(f *federation.Federation) error {
	return b.change(func(t *text) error {
		t.decline(b.entry(f))
		return nil
	})
}

// decline enters a federation, unless the book has it.
func (t *text) decline(e Entry) {
	if slices.ContainsFunc(t.Entries, func(o Entry) bool { return o.ID == e.ID }) {
		return
	}
	e.Declined, e.Epsilon, e.Own, e.Ended = true, 0, 0, e.Accepted
	for _, o := range t.Entries {
		if o.ID == e.Before {
			e.Spent, e.Delta = o.Spent, o.Delta
		}
	}
	t.Entries = append(t.Entries, e)
}

func (b *Book) entry(f *federation.Federation) Entry {
	j := f.Job
	out := Entry{ID: f.ID, Name: j.Name, Unit: j.Protects(), Accepted: b.now()}
	if j.Noisy() {
		out.Epsilon, out.Delta, out.Study = j.Privacy.Epsilon, j.Privacy.Delta, j.Privacy.Study
		own, err := f.Settled.Round().Spent(accounting.ServerView,
			f.Settled.Charges(f.Settled.Submissions()), j.Privacy.Delta)
		if err == nil && !math.IsInf(own.Upper, 1) { // else it counts with those before
			out.Own = own.Upper
		}
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

// Last returns the identifier of the federation in which the party goes on from one: the last that
// it accepted of those that continue it, or that one itself, as long as it has not ended.
func (b *Book) Last(id string) (string, error) {
	t, err := b.read()
	over := map[string]bool{} // of those that continue it
	for _, e := range t.Entries {
		if e.ID != id && !over[e.Before] {
			continue
		}
		over[e.ID] = !e.Ended.IsZero()
		if !e.Declined {
			id = e.ID
		}
	}
	return id, err
}

// begin enters a federation in which the party takes part from now on, if [Book.Check] permits it.
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

// end records that a federation has ended, and what the party has spent by its own ledger: nothing,
// if it ended before the party submitted.
func (b *Book) end(f *federation.Federation, guard drive.Guard) error {
	spent, err := guard.Spent()
	if err != nil {
		return err
	}
	own := math.SmallestNonzeroFloat64 // since 0 stands for unknown
	if charges := int(guard.Charges()); spent != nil && charges > 0 {
		x, err := f.Settled.Round().Spent(accounting.ServerView, charges, f.Job.Privacy.Delta)
		if err != nil {
			return err
		}
		own = x.Upper
	}
	return b.change(func(t *text) error {
		for i := range t.Entries {
			if e := &t.Entries[i]; e.ID == f.ID && e.Ended.IsZero() {
				e.Ended = b.now()
				if spent != nil {
					e.Spent = spent.Upper
					if e.Own > 0 { // one that ended early has spent less than it might have
						e.Own = min(e.Own, own)
					}
				}
			}
		}
		return nil
	})
}
