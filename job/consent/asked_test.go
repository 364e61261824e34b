package consent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
)

// asking declares queries to four parties, after another job, in which p0 has submitted, if
// that is not nil.
func asking(
	t *testing.T, name string, epsilon, study string, after *job.Settled,
) *job.Settled {
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
	var record []byte
	if epsilon != "" {
		text += "noise = \"discrete-gaussian\"\nepsilon = " + epsilon + "\n"
	}
	if study != "" {
		text += "study = " + study + "\n"
	}
	if after != nil {
		text += "before = \"before.json\"\n"
		ledger, err := after.Ledger()
		if err == nil {
			err = ledger.SpendRound(after.Round(), bookParty)
		}
		if err != nil {
			t.Fatal(err)
		}
		before := job.Before{Federation: idOf(after), Study: after.Study(),
			Plan: after.StudyPlan(), Ledger: ledger}
		if record, err = before.MarshalText(); err != nil {
			t.Fatal(err)
		}
	}
	return fewOf(t, text, record)
}

// A policy allows queries by column, kind, and the smallest group that answers tell from none, and
// names the query that it refuses.
func TestPolicyOfQueries(t *testing.T) {
	f, plain := asking(t, "asks", "1.0", "", nil), asking(t, "clear", "", "", nil)
	blur := f.Blur()
	if blur < 10 || blur > 100 {
		t.Fatalf("%v rows are not told from none", blur)
	}
	said := fewOf(t, `name = "said"
parties = { roster = "r", drop_out = 0.25 }
sum.adversary = "curious"
column = [{ name = "said", type = "text" }]
query = [{ name = "words", kind = "heavy", column = "said" }]
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
`, nil)
	for _, c := range []struct {
		policy Policy
		f      *job.Settled
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
		{Policy{QueryColumns: []string{"none"}, SmallestGroup: 1000}, fewOf(t, fewText+noise, nil), ""},
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

// A job that ended before its rounds were held counts in a month as what was spent in it.
func TestBookOfEndedEarly(t *testing.T) {
	for often, most := range []float64{1, 1.5} {
		now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		b := newBook(t, &now)
		first, other := asking(t, "first", "1.0", "4.0", nil), asking(t, "other", "1.0", "", nil)
		if err := b.begin(nil, first, partyKey); err != nil {
			t.Fatal(err)
		}
		if err := b.Check(&Policy{MaxEpsilonMonth: 1.4}, other, partyKey); !errors.Is(err, ErrPolicy) {
			t.Errorf("while the first goes on: %v", err)
		}
		if err := b.end(first, submitted(t, first, uint64(often))); err != nil {
			t.Fatal(err)
		}
		if err := b.Check(&Policy{MaxEpsilonMonth: most}, other, partyKey); err != nil {
			t.Errorf("after %d rounds of 1: %v", often, err)
		}
		if often == 0 {
			continue
		}
		if err := b.Check(&Policy{MaxEpsilonMonth: 1.4}, other, partyKey); !errors.Is(err, ErrPolicy) {
			t.Errorf("after its round: %v", err)
		}
	}
}

// A month's epsilon counts what jobs spend by themselves, also of one that goes on from an
// older one. A study has one budget, and goes on along one path; what was declined is on it.
func TestBookOfStudy(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	b := newBook(t, &now)
	first := asking(t, "first", "1.0", "4.0", nil)
	next := asking(t, "next", "2.0", "4.0", first)
	fork := asking(t, "fork", "1.5", "4.0", first)
	third := asking(t, "third", "3.0", "4.0", next)
	other := asking(t, "other", "1.0", "", nil)
	allowed := func(what string, month float64, f *job.Settled, want bool,
		declined ...*job.Settled,
	) {
		t.Helper()
		err := b.Check(&Policy{MaxEpsilonMonth: month}, f, partyKey, declined...)
		if (err == nil) != want || err != nil && !errors.Is(err, ErrPolicy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	allowed("the first", 1, first, true)
	allowed("the first, and less", 0.9, first, false)
	if err := b.begin(nil, first, partyKey); err != nil {
		t.Fatal(err)
	}
	if err := b.end(first, submitted(t, first, 1)); err != nil {
		t.Fatal(err)
	}
	allowed("the second", 9, next, true)
	allowed("the second in the same month", 2, next, true)
	allowed("the second in the same month, and less than both", 1.9, next, false)
	now = now.Add(31 * 24 * time.Hour)
	allowed("the second a month later, by itself", 1.9, next, true)
	allowed("the third, of which the second is not known", 9, third, true)
	if err := b.begin(nil, next, partyKey); err != nil {
		t.Fatal(err)
	}
	allowed("a second path", 9, fork, false)
	allowed("another study", 9, other, true)
	if err := b.end(next, submitted(t, next, 1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Decline(third); err != nil {
		t.Fatal(err)
	}
	if err := b.Decline(third); err != nil {
		t.Fatal(err)
	}
	entries, err := b.Entries()
	if err != nil || len(entries) != 3 || !entries[2].Declined ||
		len(entries[2].Left)+len(entries[2].May) != 0 || len(entries[1].Left) != 1 ||
		*entries[1].Study != *first.Study() {
		t.Errorf("%+v: %v", entries, err)
	}
	allowed("after one that was declined", 9, asking(t, "fourth", "3.5", "4.0", third), true)
	more := asking(t, "more", "3.5", "4.0", third)
	more.Job().Privacy.Study = 5 // as only a lie has it
	allowed("with another budget", 9, more, false)
	fifth := asking(t, "fifth", "3.2", "4.0", asking(t, "passed", "3.1", "4.0", third))
	allowed("after one that is passed over", 9, fifth, true, asking(t, "passed", "3.1", "4.0", third))
}

// A job whose noise bounds nothing is entered, and counts without a bound.
func TestBookWithoutBound(t *testing.T) {
	now := time.Now()
	b := newBook(t, &now)
	f := fewOf(t, fewText+"noise = \"discrete-gaussian\"\nmultiplier = 0.001\n", nil)
	if err := b.begin(nil, f, partyKey); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(&Policy{MaxEpsilonMonth: 1e6}, asking(t, "asks", "1.0", "", nil),
		partyKey); !errors.Is(err, ErrPolicy) {
		t.Errorf("nothing bounds the other: %v", err)
	}
}
