package consent

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/store"
)

// files has the bytes of a book's file and of its counter; nil: there is none.
type files [2][]byte

func filesOf(t *testing.T, b *Book) (out files) {
	t.Helper()
	for k, name := range []string{b.File, string(b.counter())} {
		var err error
		if out[k], err = os.ReadFile(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return out
}

func (f files) put(t *testing.T, b *Book) {
	t.Helper()
	for k, name := range []string{b.File, string(b.counter())} {
		err := os.Remove(name)
		if f[k] != nil {
			err = os.WriteFile(name, f[k], 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// A party has its place in the book with its state. Whatever earlier book is put back, its counter
// too, also none, or one that was made anew: a party whose place is later says so, and one whose
// place is not goes on.
func TestBookPutBack(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first, second := declared(t, "first", "2.0", nil, 0), declared(t, "second", "3.0", nil, 0)
	accept := func(s *job.Settled) *Accepted {
		t.Helper()
		now = now.Add(time.Second)
		a, err := b.Accept(nil, s, partyKey)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	type kept struct {
		of    *job.Settled
		place []byte
		at    int // how many books there were
	}
	books := []files{{}}
	var places []kept
	after := func(a *Accepted) {
		t.Helper()
		books = append(books, filesOf(t, b))
		place, err := a.Place()
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, kept{a.job, place, len(books) - 1})
	}
	one := accept(first)
	after(one)
	for n := range uint64(2) {
		if err := one.Count(submitted(t, first, n+1)); err != nil {
			t.Fatal(err)
		}
		after(one)
	}
	two := accept(second)
	after(two)
	if err := two.Count(submitted(t, second, 1)); err != nil {
		t.Fatal(err)
	}
	after(two)

	named, fine := 0, 0
	for at, book := range books {
		for _, p := range places {
			book.put(t, b)
			err := accept(p.of).Had(p.place)
			if (at >= p.at) != (err == nil) || err != nil && !errors.Is(err, ErrBook) {
				t.Errorf("book %d, a place in book %d: %v", at, p.at, err)
			}
			if err != nil {
				named++
			} else {
				fine++
			}
		}
	}
	books[0].put(t, b)
	for range 9 { // a book made anew that has as many changes
		accept(second)
		if err := b.begin(nil, first, partyKey); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range places {
		if err := accept(p.of).Had(p.place); !errors.Is(err, ErrBook) {
			t.Errorf("a new book, a place in book %d: %v", p.at, err)
		}
		named++
	}
	if err := accept(first).Had([]byte("{}x")); !errors.Is(err, ErrBook) {
		t.Errorf("no place: %v", err)
	}
	t.Logf("%d of %d books put back are named", named, named+fine)
}

// A bit of a book's file, or of its counter, is flipped, or the file is cut or gone: the book stays
// as it was, or an error says why not. It never has fewer entries.
func TestBookFlip(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	a, err := b.Accept(nil, declared(t, "first", "2.0", nil, 0), partyKey)
	if err == nil {
		err = a.Count(submitted(t, a.job, 2))
	}
	if err != nil {
		t.Fatal(err)
	}
	place, err := a.Place()
	if err != nil {
		t.Fatal(err)
	}
	whole, count := filesOf(t, b), map[string]int{}
	try := func(k int, bytes []byte) {
		t.Helper()
		damaged := whole
		damaged[k] = bytes
		damaged.put(t, b)
		err := a.Had(place)
		entries, failed := b.Entries()
		what := "harmless"
		switch {
		case errors.Is(err, ErrBook), errors.Is(err, store.ErrStore):
			what = "named"
		case err != nil:
			t.Errorf("file %d of %d bytes: %v", k, len(bytes), err)
		case failed != nil || len(entries) != 1 || entries[0].left() != 2:
			what = "silent"
			t.Errorf("file %d of %d bytes: %+v, %v", k, len(bytes), entries, failed)
		}
		count[what]++
	}
	for k, file := range whole {
		for i := range file {
			for bit := range 8 {
				flipped := slices.Clone(file)
				flipped[i] ^= 1 << bit
				try(k, flipped)
			}
			try(k, file[:i])
		}
		try(k, nil)
	}
	files{}.put(t, b)
	if err := a.Had(place); !errors.Is(err, ErrBook) {
		t.Errorf("both are gone: %v", err)
	}
	t.Logf("%v", count)
}

// Entries that are not chained are no book.
func TestBookChained(t *testing.T) {
	var book text
	for _, id := range []string{"a", "b", "c"} {
		book.add(Entry{ID: id})
	}
	if !book.chained() || !new(text).chained() {
		t.Error("what is added is not chained")
	}
	for name, change := range map[string]func(t *text){
		"one is gone": func(t *text) { t.Entries = slices.Delete(t.Entries, 1, 2) },
		"swapped": func(t *text) {
			t.Entries[1], t.Entries[2] = t.Entries[2], t.Entries[1]
		},
		"another": func(t *text) { t.Entries[0].ID = "x" },
		"renamed": func(t *text) { t.Entries[2].Name = "x" },
	} {
		other := text{Entries: slices.Clone(book.Entries)}
		if change(&other); other.chained() {
			t.Errorf("%s, and it is chained", name)
		}
	}
}
