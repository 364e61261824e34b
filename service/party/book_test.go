package party

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
)

const bookParty = "p0" // of seedOf(0)

// declared is a federation of four parties that may spend epsilon in all. after, if not nil, is the
// one that it goes on from, by whose record p0 has submitted so often.
func declared(
	t *testing.T, name, epsilon string, after *federation.Federation, often int,
) *federation.Federation {
	t.Helper()
	text := strings.Replace(fewText, `"few"`, `"`+name+`"`, 1) +
		"noise = \"discrete-gaussian\"\nepsilon = " + epsilon + "\n"
	files := federation.Files{Roster: fewRoster()}
	if after != nil {
		text += "before = \"before.json\"\n"
		ledger, err := after.Settled.Ledger()
		if err == nil && often > 0 {
			err = ledger.SpendRounds(after.Settled.Round(), often, bookParty)
		}
		if err != nil {
			t.Fatal(err)
		}
		before := job.Before{Federation: after.ID, Unit: after.Job.Protects(), Ledger: ledger}
		if files.Before, err = before.MarshalText(); err != nil {
			t.Fatal(err)
		}
	}
	files.Text = []byte(text)
	f, err := federation.New(files)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// submitted is a guard that has counted this many submissions of p0.
func submitted(t *testing.T, f *federation.Federation, often uint64) drive.Guard {
	t.Helper()
	limits, err := hushsum.LimitsOf(f.Settled, seedOf(0).Public())
	if err != nil {
		t.Fatal(err)
	}
	guard, err := drive.NewGuard(limits, often)
	if err != nil {
		t.Fatal(err)
	}
	return *guard
}

func newBook(t *testing.T, now *time.Time) *Book {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Book{File: filepath.Join(t.TempDir(), "book"), Key: key,
		Now: func() time.Time { return *now }}
}

// A year's epsilon is that of all federations together, those that go on from each other once: if
// the party itself has seen the earlier one end, and what it has spent there is in the later one.
func TestBook(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "2.0", nil, 0)
	other := declared(t, "other", "3.0", nil, 0)
	next := declared(t, "next", "2.5", first, 2)
	allowed := func(what string, year float64, f *federation.Federation, want bool) {
		t.Helper()
		err := b.Check(&Policy{MaxEpsilonYear: year}, f, bookParty)
		if (err == nil) != want || err != nil && !errors.Is(err, ErrPolicy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	begin := func(f *federation.Federation) {
		t.Helper()
		if err := b.begin(nil, f, bookParty); err != nil {
			t.Fatal(err)
		}
	}
	allowed("the first alone", 2, first, true)
	allowed("the first alone, and less", 1.9, first, false)
	begin(first)
	begin(first) // as when the party is started again
	allowed("one that is accepted", 1, first, true)
	allowed("both", 5, other, true)
	allowed("both, and less", 4.9, other, false)
	allowed("one after another that has not ended", 4.4, next, false)
	allowed("one after another that has not ended", 4.5, next, true)

	if err := b.end(first, submitted(t, first, 2)); err != nil {
		t.Fatal(err)
	}
	entries, err := b.Entries()
	if err != nil || len(entries) != 1 || entries[0].Spent == 0 || !entries[0].Ended.Equal(now) {
		t.Fatalf("%+v, %v", entries, err)
	}
	spent, err := next.Settled.Before().Ledger.Spent(bookParty)
	if err != nil || spent.Upper != entries[0].Spent {
		t.Errorf("%v, %v", spent, err)
	}
	allowed("one after another", 2.5, next, true)
	allowed("with what was spent of the first", 3+entries[0].Spent, other, true)
	allowed("with more than was spent of the first", 2.9+entries[0].Spent, other, false)
	for often, name := range []string{"nothing is counted", "one is counted"} {
		allowed(name, 8, declared(t, "less", "2.5", first, often), false)
	}
	if err := b.Check(nil, next, "another"); !errors.Is(err, ErrPolicy) {
		t.Errorf("another name has spent nothing: %v", err)
	}
	now = now.Add(366 * 24 * time.Hour)
	allowed("a year later", 3, other, true)
}

// Where a party goes on is the federation that it accepted last of those that continue the first,
// as long as each of them has ended.
func TestBookLast(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "2.0", nil, 0)
	declined := declared(t, "declined", "3.0", first, 0)
	third := declared(t, "third", "4.0", declined, 0)
	last := func(from, want *federation.Federation) {
		t.Helper()
		if id, err := b.Last(from.ID); err != nil || id != want.ID {
			t.Errorf("%s, %v, want %s", id, err, want.Job.Name)
		}
	}
	begin := func(f *federation.Federation) {
		t.Helper()
		if err := b.begin(nil, f, bookParty); err != nil {
			t.Fatal(err)
		}
	}
	last(first, first)
	begin(first)
	begin(declared(t, "other", "2.0", nil, 0))
	early := declared(t, "early", "2.5", first, 0) // accepted by hand
	begin(early)
	last(first, first)
	if err := b.end(first, submitted(t, first, 0)); err != nil {
		t.Fatal(err)
	}
	last(first, early)
	if err := b.Decline(declined); err != nil {
		t.Fatal(err)
	}
	last(first, early)
	begin(third)
	last(first, third)
	last(early, early)
	if err := b.end(third, submitted(t, third, 0)); err != nil {
		t.Fatal(err)
	}
	last(first, third)
	last(third, third)
}

// A book that was changed, cut, set back, lost, or sealed under another key is refused.
func TestBookRefused(t *testing.T) {
	now := time.Now()
	b := newBook(t, &now)
	var old []byte
	for _, name := range []string{"first", "second"} {
		if err := b.begin(nil, declared(t, name, "2.0", nil, 0), bookParty); err != nil {
			t.Fatal(err)
		}
		if name == "first" {
			first, err := os.ReadFile(b.File)
			if err != nil {
				t.Fatal(err)
			}
			old = first
		}
	}
	newest, err := os.ReadFile(b.File)
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte(nil), newest...)
	changed[len(changed)/2] ^= 1
	for name, content := range map[string][]byte{"old": old, "changed": changed, "cut": newest[:9],
		"gone": nil} {
		err := os.Remove(b.File)
		if err == nil && content != nil {
			err = os.WriteFile(b.File, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Entries(); !errors.Is(err, ErrBook) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(b.File, newest, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Book{File: b.File, Key: key}).Entries(); !errors.Is(err, ErrBook) {
		t.Errorf("another key: %v", err)
	}
	if entries, err := b.Entries(); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A federation that has ended for a party stays ended, whatever the server says later: the
// party's book counts what it has spent there.
func TestBookEnded(t *testing.T) {
	f := few(t)
	now := time.Now()
	book := newBook(t, &now)
	withBook := func(p *Party) { p.Book = book }
	first := newCheat(f, join(1), round(1))
	first.play(t, withBook, nil)
	later := newCheat(f, join(2), round(2))
	later.folder = first.folder
	later.play(t, withBook, nil)
	if len(first.released) != 1 || len(later.released) != 0 {
		t.Errorf("%d submissions, and %d once it had ended", len(first.released), len(later.released))
	}
}
