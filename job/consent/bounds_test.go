package consent

import (
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

// A party's rounds count twice for a record: an epsilon of 1 for each party is none of 1 for each
// of its records.
func TestPolicyDoubles(t *testing.T) {
	f := declared(t, "first", "1.0", nil, 0)
	wants(t, "for parties", (&Policy{MaxEpsilon: 1}).Check(f))
	wants(t, "for records", (&Policy{MaxEpsilon: 1, Unit: "record"}).Check(f),
		"for each record it may spend epsilon 2.15", " at delta 1e-05, max_epsilon is 1")
	wants(t, "for records, and enough", (&Policy{MaxEpsilon: 2.16, Unit: "record"}).Check(f))
	wants(t, "by coins", (&Policy{Assumes: []string{"instant", "program"}}).Check(ofRecords(t)),
		"its epsilon assumes time, last-bit, coins, and assumes has program, instant")
	wants(t, "at a smaller delta", (&Policy{MaxEpsilon: 1, Delta: 1e-7}).Check(f),
		"at delta 1e-07, max_epsilon is 1")
	// What was spent before counts, of whoever in the roster has spent most.
	next := declared(t, "next", "2.0", f, 3)
	wants(t, "both together", (&Policy{MaxEpsilon: 2.01}).Check(next))
	wants(t, "both together, and less", (&Policy{MaxEpsilon: 1.9}).Check(next), "max_epsilon is 1.9")
}

// A policy refuses by name a job whose own epsilon assumes that it was fixed ahead, and works its
// own epsilon out without, unless it lists that assumption.
func TestPolicyAhead(t *testing.T) {
	after := func(text string, first *job.Settled) *job.Settled {
		ledger, err := first.Ledger()
		if err == nil {
			err = ledger.SpendRounds(first.Round(), 3, bookParty)
		}
		before := job.Before{Federation: idOf(first), Study: first.Study(), Plan: first.StudyPlan(),
			Ledger: ledger}
		record, err2 := before.MarshalText()
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return fewOf(t, text+"before = \"before.json\"\n", record)
	}
	const gaussian, laplace = fewText + "noise = \"discrete-gaussian\"\n",
		fewText + "noise = \"discrete-laplace\"\n"
	coins := strings.Replace(gaussian, "drop_out", "hidden = 0.2, drop_out", 1) +
		"submit_after = \"1s\"\n"
	first := fewOf(t, gaussian+"epsilon = 1.0\n", nil)
	next := after(gaussian+"epsilon = 2.0\n", first)
	only := &Policy{Assumes: []string{"instant"}}
	wants(t, "nothing", (&Policy{Assumes: []string{}}).Check(first),
		"its epsilon assumes instant, and assumes has nothing")
	wants(t, "the first", only.Check(first))
	wants(t, "the next", only.Check(next), "its epsilon assumes ahead, and assumes has instant")
	wants(t, "a study's next", only.Check(after(gaussian+"epsilon = 2.0\nstudy = 2.0\n",
		fewOf(t, gaussian+"epsilon = 1.0\nstudy = 2.0\n", nil))))
	wants(t, "a study that is declared late", only.Check(after(gaussian+"epsilon = 2.0\nstudy = 2.0\n",
		first)), "assumes ahead")

	tossed := after(coins+"epsilon = 2.0\n", fewOf(t, coins+"epsilon = 1.0\n", nil))
	wants(t, "coins chosen late", (&Policy{MaxEpsilon: 2.01}).Check(tossed), "max_epsilon is 2.01")
	wants(t, "coins fixed ahead", (&Policy{MaxEpsilon: 2.01,
		Assumes: []string{"ahead", "coins"}}).Check(tossed))
	added := after(laplace+"epsilon = 2.0\n", fewOf(t, laplace+"epsilon = 1.0\n", nil))
	wants(t, "Laplace chosen late", (&Policy{MaxEpsilon: 9}).Check(added), "list ahead in assumes")
	wants(t, "Laplace fixed ahead", (&Policy{MaxEpsilon: 2.01,
		Assumes: []string{"ahead", "instant"}}).Check(added))
}
