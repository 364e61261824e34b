package consent

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

const bookParty = "p0"

var partyKey = seedOf(0).Public() // of p0

func seedOf(i int) ed25519.PrivateKey {
	seed := make([]byte, 32)
	seed[0] = byte(i)
	return ed25519.NewKeyFromSeed(seed)
}

// rosterOf lists so many, of a kind.
func rosterOf(kind string, n int) (*keyexchange.Roster, error) {
	var all []keyexchange.Entry
	for i := range n {
		all = append(all, keyexchange.Entry{Name: fmt.Sprint(kind, i),
			Key: seedOf(i).Public().(ed25519.PublicKey)})
	}
	return keyexchange.NewRoster(all)
}

// settle works out a job for parties p0, p1 and so on, and members m0, m1 if there are any.
func settle(text string, parties, members int, before []byte) (*job.Settled, error) {
	j, err := job.Parse("", []byte(text))
	if err != nil {
		return nil, err
	}
	files := job.Files{Before: before}
	if files.Roster, err = rosterOf("p", parties); err == nil && members > 0 {
		files.Committee, err = rosterOf("m", members)
	}
	if err != nil {
		return nil, err
	}
	return j.Settle(files)
}

// fewOf is a job of four parties, after others if there is a record of those.
func fewOf(t *testing.T, text string, before []byte) *job.Settled {
	t.Helper()
	s, err := settle(text, 4, 0, before)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	fewText = `name = "few"
rounds = 3
parties = { roster = "r", drop_out = 0.25 }
sum.adversary = "curious"
[[model.tensor]]
name = "w"
shape = [3]
[privacy]
clip = 1.0
`
	noise = "noise = \"discrete-gaussian\"\nepsilon = 8.0\ndelta = 1e-5"
)

// declared is a job of four parties that may spend epsilon in all. after, if not nil, is the
// one that it goes on from, by whose record p0 has submitted so often.
func declared(
	t *testing.T, name, epsilon string, after *job.Settled, often int,
) *job.Settled {
	t.Helper()
	text := strings.Replace(fewText, `"few"`, `"`+name+`"`, 1) +
		"noise = \"discrete-gaussian\"\nepsilon = " + epsilon + "\n"
	if after != nil {
		ledger, err := after.Ledger()
		if err == nil && often > 0 {
			err = ledger.SpendRounds(after.Round(), often, bookParty)
		}
		if err != nil {
			t.Fatal(err)
		}
		return continued(t, name, epsilon, "", after, ledger)
	}
	return fewOf(t, text, nil)
}

// continued is declared, with more in its job, after a job of which the record has this
// ledger.
func continued(t *testing.T, name, epsilon, more string, after *job.Settled,
	ledger *accounting.Ledger,
) *job.Settled {
	t.Helper()
	before := job.Before{Federation: idOf(after), Ledger: ledger}
	record, err := before.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return fewOf(t, strings.Replace(fewText, `"few"`, `"`+name+`"`, 1)+
		"noise = \"discrete-gaussian\"\nbefore = \"before.json\"\nepsilon = "+epsilon+"\n"+more,
		record)
}

// ofRecords is a job whose epsilon, of 1, is of each record.
func ofRecords(t *testing.T) *job.Settled {
	t.Helper()
	text := strings.Replace(fewText, `"few"`, `"records"`, 1)
	return fewOf(t, text+`noise = "discrete-gaussian"
epsilon = 1.0
unit = "record"
records = 50
submit_after = "20s"
[training]
batch = 5.0
`, nil)
}

// submitted is a guard that has counted this many submissions of p0.
func submitted(t *testing.T, f *job.Settled, often uint64) drive.Guard {
	t.Helper()
	limits, err := f.Limits(seedOf(0).Public())
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

// wants fails a test unless a refusal has these words; without words, unless there is none.
func wants(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if (err == nil) != (len(words) == 0) || err != nil && !errors.Is(err, ErrPolicy) {
		t.Errorf("%s: %v", what, err)
	}
	for _, word := range words {
		if err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q", what, err, word)
		}
	}
}

// A year's epsilon is that of the lines of all jobs together, each line once: what has left,
// and what may still leave in those that go on.
func TestBook(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "2.0", nil, 0)
	other := declared(t, "other", "3.0", nil, 0)
	next := declared(t, "next", "2.5", first, 2)
	allowed := func(what string, year float64, f *job.Settled, want bool) {
		t.Helper()
		err := b.Check(&Policy{MaxEpsilonYear: year}, f, partyKey)
		if (err == nil) != want || err != nil && !errors.Is(err, ErrPolicy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	begin := func(f *job.Settled) {
		t.Helper()
		if err := b.begin(nil, f, partyKey); err != nil {
			t.Fatal(err)
		}
	}
	allowed("the first alone", 2, first, true)
	allowed("the first alone, and less", 1.9, first, false)
	begin(first)
	begin(first) // as when the party is started again
	allowed("one that is accepted", 1, first, true)
	allowed("both", 3.8, other, true)
	allowed("both, and less", 3.6, other, false)
	adds := func(year float64) error {
		return b.Check(&Policy{MaxEpsilonYear: year, Plan: "adds"}, other, partyKey)
	}
	wants(t, "both, added", adds(5.4))
	wants(t, "both, added, and less", adds(5), "max_epsilon_year is 5")
	allowed("one after another that has not ended", 2.5, next, false)
	allowed("one after another that has not ended", 2.9, next, true)

	guard := submitted(t, first, 2)
	if err := b.count(first, guard); err != nil {
		t.Fatal(err)
	}
	entries, err := b.Entries()
	if err != nil || len(entries) != 1 || entries[0].left() != 2 || len(entries[0].May) != 1 ||
		entries[0].May[0].Count != 1 {
		t.Fatalf("%+v, %v", entries, err)
	}
	if err := b.end(first, guard); err != nil {
		t.Fatal(err)
	}
	entries, err = b.Entries()
	if err != nil || len(entries) != 1 || entries[0].left() != 2 || len(entries[0].May) != 1 ||
		!entries[0].Ended.Equal(now) {
		t.Fatalf("%+v, %v", entries, err)
	}
	allowed("one after another", 2.5, next, true)
	allowed("with what was spent of the first", 3.6, other, true)
	wants(t, "the first whole, added", adds(5.4))
	wants(t, "the first whole, added, and less", adds(5), "max_epsilon_year is 5")
	for often := range 2 {
		err := b.Check(&Policy{MaxEpsilonYear: 8}, declared(t, "less", "2.5", first, often), partyKey)
		wants(t, "too little is counted", err, fmt.Sprintf("its record has %d of the 2 submissions to "+
			"first (%.4s…) that this party's book counts", often, idOf(first)))
	}
	if err := b.Check(nil, next, "another"); !errors.Is(err, ErrPolicy) {
		t.Errorf("another name has spent nothing: %v", err)
	}
	now = now.Add(366 * 24 * time.Hour)
	allowed("a year later", 3, other, true)
}

// A record is held against the lines of the whole chain, and not against an epsilon: other lines
// may spend as much, at the delta that the record itself names.
func TestBookForged(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "2.0", nil, 0)
	if err := b.begin(nil, first, partyKey); err != nil {
		t.Fatal(err)
	}
	guard := submitted(t, first, 3)
	if err := b.count(first, guard); err != nil { // and its end is not seen
		t.Fatal(err)
	}
	other := declared(t, "other", "2.1", nil, 0) // whose lines spend more
	ledger, err := other.Ledger()
	if err == nil {
		err = ledger.SpendRounds(other.Round(), 3, bookParty)
	}
	if err != nil {
		t.Fatal(err)
	}
	forged := continued(t, "forged", "4.0", "", first, ledger)
	wants(t, "other lines", b.Check(nil, forged, partyKey), fmt.Sprintf("its record has 0 of the 3 "+
		"submissions to first (%.4s…) that this party's book counts", idOf(first)))

	// Of three jobs, the third's record counts the second's lines and not the first's.
	next := declared(t, "next", "3.0", first, 3)
	if err := b.begin(nil, next, partyKey); err != nil {
		t.Fatal(err)
	}
	guard = submitted(t, next, 1)
	if err := b.count(next, guard); err != nil {
		t.Fatal(err)
	}
	short, err := first.Ledger()
	if err == nil {
		err = short.SpendRound(next.Round(), bookParty)
	}
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "without the first", b.Check(nil, continued(t, "third", "5.0", "", next, short),
		partyKey), "its record has 0 of the 3 submissions to first")
	wants(t, "all", b.Check(nil, declared(t, "third", "5.0", next, 1), partyKey))
}

// What has left counts, also once it cannot be told by an epsilon of the job's, and in a job
// that ended after the one that continues it.
func TestBookCounts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "2.0", nil, 0)
	next := declared(t, "next", "2.5", first, 0)
	other := declared(t, "other", "1.0", nil, 0)
	for _, f := range []*job.Settled{first, next} {
		if err := b.begin(nil, f, partyKey); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.end(next, submitted(t, next, 0)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(300 * 24 * time.Hour)
	if err := b.end(first, submitted(t, first, 3)); err != nil {
		t.Fatal(err)
	}
	wants(t, "ended after its successor", b.Check(&Policy{MaxEpsilonYear: 1.01}, other, partyKey),
		"max_epsilon_year is 1.01")

	b = newBook(t, &now)
	bare := fewOf(t, fewText+"noise = \"discrete-gaussian\"\nmultiplier = 0.5\n", nil)
	if err := b.begin(nil, bare, partyKey); err != nil {
		t.Fatal(err)
	}
	if err := b.end(bare, submitted(t, bare, 3)); err != nil {
		t.Fatal(err)
	}
	wants(t, "a multiplier alone", b.Check(&Policy{MaxEpsilonYear: 10}, other, partyKey),
		"max_epsilon_year is 10")

	b = newBook(t, &now)
	plain := fewOf(t, fewText, nil)
	if err := b.begin(nil, plain, partyKey); err != nil {
		t.Fatal(err)
	}
	bound := &Policy{MaxEpsilonYear: 10}
	wants(t, "no noise", b.Check(bound, other, partyKey), "few", "has no noise")
	if err := b.end(plain, submitted(t, plain, 0)); err != nil {
		t.Fatal(err)
	}
	wants(t, "no noise, and nothing has left", b.Check(bound, other, partyKey))
}

// A job that was passed over leaves its study's budget nowhere, and nor does a job that
// states the budget at another delta.
func TestBookKeepsStudy(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := asking(t, "first", "0.5", "1.0", nil)
	if err := b.begin(nil, first, partyKey); err != nil {
		t.Fatal(err)
	}
	if err := b.end(first, submitted(t, first, 1)); err != nil {
		t.Fatal(err)
	}
	// Records are forged, so that only the book knows the study.
	ledger, err := first.Ledger()
	if err == nil {
		err = ledger.SpendRound(first.Round(), bookParty)
	}
	if err != nil {
		t.Fatal(err)
	}
	const words = "by this party's book its study may spend epsilon 1 at delta 1e-05, and by the job "
	much := continued(t, "much", "20.0", "study = 50.0\n", first, ledger)
	wants(t, "a larger study", b.Check(nil, much, partyKey), words+"50")
	wants(t, "a larger delta", b.Check(nil, continued(t, "at", "1.0", "study = 1.0\ndelta = 0.1\n",
		first, ledger), partyKey), words+"1 at delta 0.1")
	wants(t, "no study", b.Check(nil, continued(t, "none", "20.0", "", first, ledger), partyKey),
		words+"any")
	after := continued(t, "after", "20.0", "study = 50.0\n", much, ledger)
	wants(t, "one passed over in between", b.Check(nil, after, partyKey, much), words+"50")
	last := continued(t, "last", "20.0", "study = 50.0\n", after, ledger)
	wants(t, "two passed over", b.Check(nil, last, partyKey, much, after), words+"50")
	if err := b.Decline(much); err != nil {
		t.Fatal(err)
	}
	wants(t, "one declined in between", b.Check(nil, after, partyKey), words+"50")
	wants(t, "with the study's own budget", b.Check(nil, continued(t, "keeps", "1.0",
		"study = 1.0\n", much, ledger), partyKey))
}

// A policy's epsilon is for its own unit: what parties spend counts twice for a record.
func TestBookOfUnits(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "1.0", nil, 0)
	records := ofRecords(t)
	if err := b.begin(nil, first, partyKey); err != nil {
		t.Fatal(err)
	}
	check := func(p Policy) error { return b.Check(&p, records, partyKey) }
	const assumed = "coins,instant,program,time,last-bit"
	words := "the book has epsilon of each party and of each record; set unit to the one that " +
		"max_epsilon_year is about"
	wants(t, "two units", check(Policy{MaxEpsilonYear: 50}), words)
	wants(t, "in records", check(Policy{MaxEpsilonYear: 50, Unit: "record", Plan: "adds",
		Assumes: strings.Split(assumed, ",")}))
	wants(t, "in records, and less", check(Policy{MaxEpsilonYear: 2.9, Unit: "record", Plan: "adds"}),
		"max_epsilon_year is 2.9")
	wants(t, "without an assumption", check(Policy{MaxEpsilonYear: 50, Unit: "record", Plan: "adds",
		Assumes: []string{}}), "assuming")
	patients := &Policy{MaxEpsilonYear: 50, Unit: "records of each patient"}
	wants(t, "of another unit", b.Check(patients, records, partyKey), "set unit to the one")
}

// Where a party goes on is the job that it accepted last of those that continue the first,
// as long as each of them has ended.
func TestBookLast(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "2.0", nil, 0)
	declined := declared(t, "declined", "3.0", first, 0)
	third := declared(t, "third", "4.0", declined, 0)
	last := func(from, want *job.Settled) {
		t.Helper()
		if id, err := b.Last(idOf(from)); err != nil || id != idOf(want) {
			t.Errorf("%s, %v, want %s", id, err, want.Job().Name)
		}
	}
	begin := func(f *job.Settled) {
		t.Helper()
		if err := b.begin(nil, f, partyKey); err != nil {
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

// A study does not go on twice, and not past a job that the party passed over either: what
// it spent in the first is in no record of the second.
func TestBookFork(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	study := func(name string, after *job.Settled) *job.Settled {
		return declared(t, name, "2.0\nstudy = 2.0", after, 0)
	}
	first := study("first", nil)
	second, passed := study("second", first), study("passed", first)
	third := study("third", passed)
	for _, f := range []*job.Settled{first, second} {
		if err := b.begin(nil, f, partyKey); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []*job.Settled{passed, third} {
		if err := b.begin(nil, f, partyKey); !errors.Is(err, ErrPolicy) ||
			!strings.Contains(err.Error(), "second continues the same job") {
			t.Errorf("%s: %v", f.Job().Name, err)
		}
		if err := b.Decline(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.begin(nil, study("fourth", second), partyKey); err != nil {
		t.Errorf("the study goes on: %v", err)
	}
}

// A study that goes on after a job without an entry in the book counts all that has left in
// studies of the same budget: a server cannot invent one in between that has spent nothing.
func TestBookInvented(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := declared(t, "first", "2.0\nstudy = 2.0", nil, 0)
	if err := b.begin(nil, first, partyKey); err != nil {
		t.Fatal(err)
	}
	guard := submitted(t, first, 2)
	if err := b.end(first, guard); err != nil {
		t.Fatal(err)
	}
	honest := declared(t, "between", "2.0\nstudy = 2.0", first, 2)
	if err := b.Check(nil, declared(t, "next", "2.0\nstudy = 2.0", honest, 2), partyKey); err != nil {
		t.Errorf("after a job that the party did not see: %v", err)
	}
	invented := declared(t, "between", "2.0\nstudy = 2.0", nil, 0)
	next := declared(t, "next", "2.0\nstudy = 2.0", invented, 0)
	wants(t, "after one that is invented", b.Check(nil, next, partyKey), "its record has 0 of the 2 "+
		"submissions to first")
}

// A book that was changed, cut, set back, lost, or sealed under another key is refused.
func TestBookRefused(t *testing.T) {
	now := time.Now()
	b := newBook(t, &now)
	var old []byte
	for _, name := range []string{"first", "second"} {
		if err := b.begin(nil, declared(t, name, "2.0", nil, 0), partyKey); err != nil {
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
