package party

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/federation"
)

// asking declares queries to four parties, after another federation if that is not nil.
func asking(
	t *testing.T, name string, epsilon, study string, after *federation.Federation,
) *federation.Federation {
	t.Helper()
	text := `name = "` + name + `"
parties = { roster = "r", rows = 2, drop_out = 0.25 }
sum.adversary = "curious"
column = [{ name = "age", type = "whole", range = [0, 99] }, { name = "sex", type = "category", ` +
		`categories = ["F", "M"] }]
query = [{ name = "men", kind = "count", where = "sex = M" }, { name = "age", kind = "mean", ` +
		`column = "age" }]
[privacy]
`
	files := federation.Files{Roster: fewRoster()}
	if epsilon != "" {
		text += "noise = \"discrete-gaussian\"\nepsilon = " + epsilon + "\n"
	}
	if study != "" {
		text += "study = " + study + "\n"
	}
	if after != nil {
		text += "before = \"before.json\"\n"
		ledger, err := after.Settled.Ledger()
		if err != nil {
			t.Fatal(err)
		}
		before := job.Before{Federation: after.ID, Unit: after.Job.Protects(),
			Study: after.Job.Privacy.Study, Ledger: ledger}
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

// A policy allows queries by column, kind, and the smallest group that answers tell from none, and
// names the query that it refuses.
func TestPolicyOfQueries(t *testing.T) {
	f, plain := asking(t, "asks", "1.0", "", nil), asking(t, "clear", "", "", nil)
	blur := f.Questions().Blur()
	if blur < 10 || blur > 100 {
		t.Fatalf("%v rows are not told from none", blur)
	}
	said, err := federation.New(federation.Files{Roster: fewRoster(), Text: []byte(`name = "said"
parties = { roster = "r", drop_out = 0.25 }
sum.adversary = "curious"
column = [{ name = "said", type = "text" }]
query = [{ name = "words", kind = "heavy", column = "said" }]
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy Policy
		f      *federation.Federation
		want   string // empty: it is within
	}{
		{Policy{}, f, ""},
		{Policy{QueryColumns: []string{"sex", "age"}, QueryKinds: []string{"mean", "count"},
			SmallestGroup: 10}, f, ""},
		{Policy{QueryColumns: []string{"age"}}, f, "query men reads the column sex"},
		{Policy{QueryColumns: []string{"sex"}}, f, "query age reads the column age"},
		{Policy{QueryKinds: []string{"count", "sum"}}, f, "query age is a mean"},
		{Policy{QueryKinds: []string{"histogram"}}, said, "query words is a heavy"},
		{Policy{QueryColumns: []string{"age"}}, said, "query words reads the column said"},
		{Policy{QueryColumns: []string{"said"}, QueryKinds: []string{"heavy"}}, said, ""},
		{Policy{SmallestGroup: blur + 1}, f, "smallest_group"},
		{Policy{SmallestGroup: 1}, plain, "groups of 0 rows"},
		{Policy{QueryColumns: []string{"none"}, SmallestGroup: 1000}, few(t), ""},
	} {
		err := c.policy.Check(c.f)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.policy, err)
		case c.want != "" && (!errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.policy, err, c.want)
		}
	}
}

// A federation that ended before its rounds were held counts in a month as what was spent in it.
func TestBookOfEndedEarly(t *testing.T) {
	for often, most := range []float64{1, 2} {
		now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		b := newBook(t, &now)
		first, other := asking(t, "first", "1.0", "4.0", nil), asking(t, "other", "1.0", "", nil)
		if err := b.begin(nil, first, bookParty); err != nil {
			t.Fatal(err)
		}
		if err := b.Check(&Policy{MaxEpsilonMonth: 1.9}, other, bookParty); !errors.Is(err, ErrPolicy) {
			t.Errorf("while the first goes on: %v", err)
		}
		if err := b.end(first, submitted(t, first, uint64(often))); err != nil {
			t.Fatal(err)
		}
		if err := b.Check(&Policy{MaxEpsilonMonth: most}, other, bookParty); err != nil {
			t.Errorf("after %d rounds of 1: %v", often, err)
		}
		if often == 0 {
			continue
		}
		if err := b.Check(&Policy{MaxEpsilonMonth: 1.9}, other, bookParty); !errors.Is(err, ErrPolicy) {
			t.Errorf("after its round: %v", err)
		}
	}
}

// A month's epsilon counts what federations spend by themselves, also of one that goes on from an
// older one. A study has one budget, and goes on along one path; what was declined is on it.
func TestBookOfStudy(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := asking(t, "first", "1.0", "4.0", nil)
	next := asking(t, "next", "2.0", "4.0", first)
	fork := asking(t, "fork", "1.5", "4.0", first)
	third := asking(t, "third", "3.0", "4.0", next)
	other := asking(t, "other", "1.0", "", nil)
	allowed := func(what string, month float64, f *federation.Federation, want bool,
		declined ...*federation.Federation,
	) {
		t.Helper()
		err := b.Check(&Policy{MaxEpsilonMonth: month}, f, bookParty, declined...)
		if (err == nil) != want || err != nil && !errors.Is(err, ErrPolicy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	allowed("the first", 1, first, true)
	allowed("the first, and less", 0.9, first, false)
	if err := b.begin(nil, first, bookParty); err != nil {
		t.Fatal(err)
	}
	if err := b.end(first, submitted(t, first, 1)); err != nil {
		t.Fatal(err)
	}
	allowed("that counts nothing", 9, next, false) // as its ledger, of this test, has nothing
	if err := b.change(func(x *text) error {
		x.Entries[0].Spent = 0 // so that the rest is tried
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	allowed("the second", 9, next, true)
	allowed("the second in the same month, and less than both", 2, next, false)
	now = now.Add(31 * 24 * time.Hour)
	allowed("the second a month later, by itself", 2, next, true)
	allowed("the third, of which the second is not known", 9, third, true)
	if err := b.begin(nil, next, bookParty); err != nil {
		t.Fatal(err)
	}
	allowed("a second path", 9, fork, false)
	allowed("another study", 9, other, true)
	if err := b.Decline(third); err != nil {
		t.Fatal(err)
	}
	if err := b.Decline(third); err != nil {
		t.Fatal(err)
	}
	entries, err := b.Entries()
	if err != nil || len(entries) != 3 || !entries[2].Declined || entries[2].Own != 0 ||
		entries[1].Own < 1.9 || entries[1].Study != 4 {
		t.Errorf("%+v: %v", entries, err)
	}
	allowed("after one that was declined", 9, asking(t, "fourth", "3.5", "4.0", third), true)
	more := asking(t, "more", "3.5", "4.0", third)
	more.Job.Privacy.Study = 5 // as only a lie has it
	allowed("with another budget", 9, more, false)
	fifth := asking(t, "fifth", "3.2", "4.0", asking(t, "passed", "3.1", "4.0", third))
	allowed("after one that is passed over", 9, fifth, true, asking(t, "passed", "3.1", "4.0", third))
}

// The trainer of a party that is asked brings what its rows add, the same in each try.
func TestNewAsked(t *testing.T) {
	f := asking(t, "asks", "1.0", "", nil)
	rows, _, err := query.NewSchema(f.Job).Read("rows.csv", strings.NewReader("age,sex\n50,M\n20,F\n"),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := NewAsked(f, rows)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		u, err := trainer.Train(context.Background(), nil)
		if err != nil || len(u.Vector) != 3 || u.Vector[0] <= 0 {
			t.Fatalf("%+v: %v", u, err)
		}
		clear(u.Vector)
	}
	if _, err := NewAsked(few(t), rows); !errors.Is(err, job.ErrConfig) {
		t.Errorf("it asks nothing: %v", err)
	}
}

// A federation whose noise bounds nothing is entered, and counts without a bound.
func TestBookWithoutBound(t *testing.T) {
	now := time.Now()
	b := newBook(t, &now)
	f := fewOf(t, fewText+"noise = \"discrete-gaussian\"\nmultiplier = 0.001\n")
	if err := b.begin(nil, f, bookParty); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(&Policy{MaxEpsilonMonth: 1e6}, asking(t, "asks", "1.0", "", nil),
		bookParty); !errors.Is(err, ErrPolicy) {
		t.Errorf("nothing bounds the other: %v", err)
	}
}
