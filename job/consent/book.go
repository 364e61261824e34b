package consent

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/lock"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	stores "github.com/hushsum/hushsum/store"
)

// ErrBook: the party's book was changed, is sealed under another key, or is not the newest version;
// or it counts more than the party's state, or has the job as one that has ended.
var ErrBook = errors.New("consent: the party's book does not allow it")

// Book records what a party has accepted and spent in all its jobs, over any transport: one after
// another, and at the same time by processes with separate states. A book is one sealed file, with
// a counter next to it.
type Book struct {
	File string
	Key  *keyexchange.SealKey
	Now  func() time.Time // nil: time.Now
}

// Entry is the entry of a job in a book. It has lines and no epsilon: what lines spend depends on
// the delta, the unit and the adversary that the reader asks about.
type Entry struct {
	ID     string `json:"id"` // the digest of the settled job, 64 hexadecimal digits
	Name   string `json:"name"`
	Before string `json:"before,omitempty"` // the job that this one continues
	// Study is the budget of its study: the first that the book has of the chain; nil: there is none.
	Study *accounting.Budget `json:"study,omitempty"`
	// Left holds what has left this party, counted before it leaves, and May what may still leave, or
	// might have left until the job ended.
	Left []accounting.Line `json:"left"`
	May  []accounting.Line `json:"may"`
	// Clear reports that submissions have left, or may leave, without noise: nothing bounds epsilon.
	Clear    bool      `json:"clear,omitempty"`
	Accepted time.Time `json:"accepted"`
	Ended    time.Time `json:"ended"` // zero: it goes on
	// Declined reports that the party took no part in this job, and went on in one that continues it.
	// Its Study is that of the job before.
	Declined bool `json:"declined,omitempty"`
	// Hash chains the entries: it covers what does not change of this one, and the Hash before.
	Hash string `json:"hash"` // 64 hexadecimal digits
}

// label names the job in a refusal.
func (e *Entry) label() string { return fmt.Sprintf("%s (%.4s…)", e.Name, e.ID) }

// text is the content of a book's file.
type text struct {
	Format  int     `json:"format"`
	Number  uint64  `json:"number"`
	Entries []Entry `json:"entries"`
}

const (
	bookFormat = 3
	bookOwner  = labels.BookOfJobs
	year       = 365 * 24 * time.Hour
	month      = 30 * 24 * time.Hour
	bookTime   = 5 * time.Second // that another process may hold it
)

// idOf names a job in a book.
func idOf(s *job.Settled) string {
	digest := s.Digest()
	return hex.EncodeToString(digest[:])
}

// Accepted is a job that a party has accepted, by [Book.Accept].
type Accepted struct {
	// Ended reports that the job has ended for the party, which submits nothing in it any more,
	// whatever anybody says.
	Ended   bool
	job     *job.Settled
	book    *Book // nil: nothing is counted
	counted uint64
}

// Accept holds a job against the policy of the party of a key, and enters it in the party's book.
// Either may be nil: any job is permitted, and none is entered. Accept fails as [Policy.Check] and
// [Book.Check] do. A job that has ended is not judged anew.
func (b *Book) Accept(p *Policy, s *job.Settled, key crypto.PublicKey) (*Accepted, error) {
	a := &Accepted{job: s, book: b, counted: math.MaxUint64}
	if b != nil {
		t, err := b.read()
		if err != nil {
			return nil, err
		}
		if e := t.at(idOf(s)); e != nil && !e.Ended.IsZero() {
			a.Ended = true
			return a, nil
		}
	}
	if err := p.Check(s); err != nil {
		return nil, err
	}
	switch {
	case b != nil:
		return a, b.begin(p, s, key)
	case p.ofTime():
		return nil, &job.ConfigError{Path: "Book",
			Reason: "the policy bounds epsilon by the month or the year",
			Advice: "give the party a book, in Python a state and a key"}
	}
	return a, nil
}

// Count records what has left by the party's guard, once the state that counts it is saved and
// before anything of it is sent. It is called when that state is loaded, too: a kill may have come
// between the two. It fails with [ErrBook], also if anything more is to leave in a job that has
// ended.
func (a *Accepted) Count(guard drive.Guard) error {
	loaded := a.counted == math.MaxUint64
	if a.book == nil || guard.Count() == a.counted {
		return nil
	}
	if !(a.Ended && loaded) {
		if err := a.book.count(a.job, guard); err != nil {
			return err
		}
	}
	a.counted = guard.Count()
	return nil
}

// End records that the job has ended, and what has left in it.
func (a *Accepted) End(guard drive.Guard) error {
	if a.book == nil {
		return nil
	}
	return a.book.end(a.job, guard)
}

func (b *Book) now() time.Time {
	if b.Now != nil {
		return b.Now().UTC()
	}
	return time.Now().UTC()
}

func (b *Book) counter() stores.FileCounter { return stores.FileCounter(b.File + ".counter") }

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
	box, err := stores.FileStore(b.File).Load()
	if err != nil {
		return t, err
	}
	if box != nil {
		plain, err := keyexchange.Open(b.Key, box, []byte(bookOwner))
		if err != nil {
			return t, fmt.Errorf("%w: %s was changed, or sealed under another key; jobs that share a book "+
				"share its key", ErrBook, b.File)
		}
		decoder := json.NewDecoder(bytes.NewReader(plain))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&t); err != nil || t.Format != bookFormat || !t.chained() {
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
	if err != nil {
		return err
	}
	before, err := json.Marshal(t)
	if err == nil {
		err = change(&t)
	}
	if err != nil {
		return err
	}
	// A number is of a change: an older book that is put back does not come to the number of a newer.
	if after, err := json.Marshal(t); err == nil && bytes.Equal(before, after) {
		return nil
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
	if err := stores.FileStore(b.File).Save(box); err != nil {
		return err
	}
	return b.counter().Advance(t.Number)
}

// Check fails with [ErrPolicy] if a job's record lacks something that has left this party in the
// jobs that it continues, if it has another budget for their study or one that is about less, if it
// continues a job that another job of the study already continues, or if the party might spend more
// in a month or a year than its policy allows. key is the party's, in the roster. declined lists
// jobs, each continuing the one before, in which the party takes no part.
func (b *Book) Check(p *Policy, s *job.Settled, key crypto.PublicKey, declined ...*job.Settled,
) error {
	t, err := b.read()
	if err != nil {
		return err
	}
	for _, d := range declined {
		t.decline(b.entry(d))
	}
	return b.check(t, p, s, key)
}

func (b *Book) check(t text, p *Policy, s *job.Settled, key crypto.PublicKey) error {
	next := b.entry(s)
	if next.Before != "" {
		if err := t.contained(s, nameOf(s, key)); err != nil {
			return err
		}
	}
	if was := t.at(next.Before); was != nil {
		if err := t.study(was, s); err != nil {
			return err
		}
	}
	if !p.ofTime() || t.at(next.ID) != nil {
		return nil
	}
	return p.checkTimes(append(slices.Clone(t.Entries), next), b.now())
}

// nameOf returns the name of a key in a job's roster, empty if it is not there.
func nameOf(s *job.Settled, key crypto.PublicKey) string {
	public, _ := key.(ed25519.PublicKey)
	if i, found := s.Roster().Index(public); found {
		return s.Roster().Name(i)
	}
	return ""
}

// at returns the entry of a job, nil if there is none.
func (t *text) at(id string) *Entry {
	i := slices.IndexFunc(t.Entries, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return &t.Entries[i]
}

// chain lists the entries of the jobs that one continues, from the first on. A job that the book
// does not have may continue any: entries of a study with the same budget then count as its
// predecessors, since a server could otherwise invent a job that has spent nothing.
func (t *text) chain(s *job.Settled) (out []*Entry) {
	before := s.Before()
	if before == nil {
		return nil
	}
	at := before.Federation
	for e := t.at(at); e != nil && !slices.Contains(out, e); e = t.at(at) {
		out, at = append(out, e), e.Before
	}
	if study := s.Study(); at != "" && t.at(at) == nil && study != nil {
		for i := range t.Entries {
			e := &t.Entries[i]
			if e.Study != nil && e.Study.Target() == study.Target() && e.ID != idOf(s) &&
				!slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	slices.Reverse(out)
	return out
}

// contained returns an error unless the record that a job continues counts every line that has left
// this party, of a name in the record, in the whole chain.
func (t *text) contained(s *job.Settled, name string) error {
	record := s.Before().Ledger.Spending(name)
	var all accounting.Spending
	for _, e := range t.chain(s) {
		for _, l := range e.Left {
			if err := all.Add(l); err != nil {
				return refuse("its record cannot have what left in %s: %w", e.label(), err)
			}
			if record.Contains(all) {
				continue
			}
			short := all.Count(l.Round) - record.Count(l.Round)
			return refuse("its record has %d of the %d submissions to %s that this party's book counts",
				max(0, l.Count-short), l.Count, e.label())
		}
	}
	return nil
}

// study returns an error unless a job goes on with the study of the one before.
func (t *text) study(was *Entry, s *job.Settled) error {
	own := s.Job().Privacy
	if was.Study != nil {
		of := was.Study.Target()
		says := ""
		switch {
		case own.Study == 0:
			says = "any"
		case own.Study != of.Epsilon:
			says = fmt.Sprint(own.Study)
		case own.Delta != of.Delta:
			says = fmt.Sprintf("%v at delta %v", own.Study, own.Delta)
		}
		if says != "" {
			return refuse("by this party's book its study may spend epsilon %v at delta %v, and by the "+
				"job %s", of.Epsilon, of.Delta, says)
		}
		if err := s.Statement().Implies(was.Study.Statement()); err != nil {
			return refuse("by this party's book its study is about %v, and the job's epsilon is about "+
				"less: %w", was.Study.Statement(), err)
		}
	}
	next := Entry{ID: idOf(s), Before: was.ID}
	if i := fork(t.Entries, &next); own.Study > 0 && i >= 0 {
		return refuse("%s continues the same job, and a study spends its budget once",
			t.Entries[i].Name)
	}
	return nil
}

// fork returns the place of a job, other than those that lead to a next one, which continues the
// job that the next one continues, or one before it if the party passed that over; -1 if there is
// none. What the party has spent in the fork is in no record of the next one.
func fork(entries []Entry, next *Entry) int {
	for at, path := next.Before, []string{next.ID}; at != ""; {
		other := slices.IndexFunc(entries, func(e Entry) bool {
			return e.Before == at && !slices.Contains(path, e.ID)
		})
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == at })
		if other >= 0 || i < 0 || !entries[i].Declined {
			return other
		}
		at, path = entries[i].Before, append(path, at)
	}
	return -1
}

// Decline records that the party takes no part in a job that continues its last one, so that the
// party can go on in a job that continues the declined one. What the party has spent until then
// stays counted.
func (b *Book) Decline(s *job.Settled) error {
	return b.change(func(t *text) error {
		t.decline(b.entry(s))
		return nil
	})
}

// decline enters a job, unless the book has it. What the job declares binds nobody: the study is
// that of the one before.
func (t *text) decline(e Entry) {
	if t.at(e.ID) != nil {
		return
	}
	e.Declined, e.Clear, e.Study, e.Left, e.May, e.Ended = true, false, nil, nil, nil, e.Accepted
	if was := t.at(e.Before); was != nil {
		e.Study = was.Study
	}
	t.add(e)
}

// entry is the entry of a job in which nothing has left yet.
func (b *Book) entry(s *job.Settled) Entry {
	out := Entry{ID: idOf(s), Name: s.Job().Name, Accepted: b.now(), Study: s.Study(),
		Clear: s.Mechanism() == nil, May: planned(s, s.Charges(s.Submissions()))}
	if before := s.Before(); before != nil {
		out.Before = before.Federation
	}
	return out
}

// planned returns the line of a job's charges; without noise there is none.
func planned(s *job.Settled, charges int) []accounting.Line {
	if s.Mechanism() == nil || charges <= 0 {
		return nil
	}
	return []accounting.Line{{Round: s.Round(), Count: charges}}
}

// left is how many charges have left.
func (e *Entry) left() (n int) {
	for _, l := range e.Left {
		n += l.Count
	}
	return n
}

// Last returns the identifier of the job in which the party goes on after a given job: the last
// accepted job of those that continue it, or the given job itself, as long as it has not ended.
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

// begin enters a job in which the party takes part from now on, if [Book.Check] permits it.
func (b *Book) begin(p *Policy, s *job.Settled, key crypto.PublicKey) error {
	return b.change(func(t *text) error {
		if err := b.check(*t, p, s, key); err != nil {
			return err
		}
		next := b.entry(s)
		if t.at(next.ID) != nil {
			return nil
		}
		if was := t.at(next.Before); was != nil && was.Study != nil {
			next.Study = was.Study // the earlier one wins
		}
		t.add(next)
		return nil
	})
}

// count records what has left in a job by the party's guard, before it leaves. It fails with
// [ErrBook] if more has left by the book: the party's state is an older one then.
func (b *Book) count(s *job.Settled, guard drive.Guard) error {
	charges := int(guard.Charges())
	return b.change(func(t *text) error {
		e := t.at(idOf(s))
		switch {
		case e == nil:
			return fmt.Errorf("%w: it does not have %s (%.4s…)", ErrBook, s.Job().Name, idOf(s))
		case !e.Ended.IsZero():
			return fmt.Errorf("%w: %s has ended, and nothing leaves in it any more; run it again under "+
				"another name", ErrBook, e.label())
		case charges < e.left():
			return fmt.Errorf("%w: it counts %d submissions to %s, and the party's state %d; say with "+
				"Spent (--spent) the last round in which one may have left", ErrBook, e.left(), e.label(),
				charges)
		}
		e.spent(s, charges)
		return nil
	})
}

// end records that a job has ended, and what has left in it.
func (b *Book) end(s *job.Settled, guard drive.Guard) error {
	return b.change(func(t *text) error {
		if e := t.at(idOf(s)); e != nil && e.Ended.IsZero() {
			e.Ended, e.Clear = b.now(), e.Clear && guard.Count() > 0
			e.spent(s, max(int(guard.Charges()), e.left()))
		}
		return nil
	})
}

// spent has as many charges left the party, and the others may.
func (e *Entry) spent(s *job.Settled, charges int) {
	e.Left = planned(s, charges)
	e.May = planned(s, s.Charges(s.Submissions())-charges)
}
