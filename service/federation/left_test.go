package federation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/federation"
)

// A federation that has the rest of a budget says what is left if that is next to nothing, and how
// much noise that is.
func TestLeft(t *testing.T) {
	const text = `name = "left"
rounds = 8
parties = { roster = "roster.txt", drop_out = 0.2 }
sum.recovery = true
model.length = 3
privacy = { noise = "discrete-gaussian", epsilon = %v, delta = 1e-5, clip = 1.0%s }
`
	first, err := federation.New(federation.Files{Text: fmt.Appendf(nil, text, 1.0, ""),
		Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := first.Settled.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.SpendRounds(first.Settled.Round(), 8, ledgerNames(first)...); err != nil {
		t.Fatal(err)
	}
	before := job.Before{Federation: first.ID, Ledger: ledger}
	spent, err := before.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for epsilon, want := range map[float64]string{
		1.01: "of privacy.epsilon, 1.01, the party with most has spent 0.9998 before: the noise ",
		3:    "",
	} {
		files := &federation.Files{Roster: rosterOf(t, 10), Before: spent,
			Text: fmt.Appendf(nil, text, epsilon, `, before = "before.json"`)}
		f, err := federation.New(*files)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(f.Left(files), "\n")
		if !strings.Contains(said, want) || (said == "") != (want == "") {
			t.Errorf("with %v it says %q", epsilon, said)
		} else {
			t.Log(said)
		}
	}
	if said := first.Left(&federation.Files{Text: first.Text, Roster: rosterOf(t, 10)}); said != nil {
		t.Errorf("with nothing spent it says %q", said)
	}
}

func ledgerNames(f *federation.Federation) (names []string) {
	for i := range f.Settled.Roster().Len() {
		names = append(names, f.Settled.Roster().Name(i))
	}
	return names
}
