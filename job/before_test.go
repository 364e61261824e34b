package job_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/strict/altered"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

const noisy = "[privacy]\nnoise = \"discrete-gaussian\"\nclip = 1.0\nepsilon = 4.0\n"

// spentBefore is the record of a job of which rounds were held with some parties, and its text.
func spentBefore(
	tb testing.TB, s *job.Settled, rounds int, parties ...string,
) (*job.Before, []byte) {
	tb.Helper()
	ledger, err := s.Ledger()
	if err == nil {
		err = ledger.SpendRounds(s.Round(), rounds, parties...)
	}
	if err != nil {
		tb.Fatal(err)
	}
	b := &job.Before{Federation: strings.Repeat("ab", 32), Study: s.Study(),
		Plan: s.StudyPlan(), Ledger: ledger}
	text, err := b.MarshalText()
	if err != nil {
		tb.Fatal(err)
	}
	return b, text
}

// after settles a job that goes on from another.
func after(
	t *testing.T, roster *keyexchange.Roster, more string, text []byte,
) (*job.Settled, error) {
	t.Helper()
	j, err := job.Parse("job.toml", []byte("name = \"after\"\nrounds = 6\nparties.count = 10\n"+
		"model.length = 15\n"+more))
	if err != nil {
		return nil, err
	}
	return j.Settle(job.Files{Roster: roster, Before: text})
}

// What parties have spent before counts: for all rounds together the one with most keeps the
// budget, by the ledger of the server and by its own, and those with less keep more of it.
func TestBefore(t *testing.T) {
	_, first := settle(t, "parties.count = 10\n"+noisy)
	roster := first.Roster()
	_, text := spentBefore(t, first, 4, "party-1", "party-2", "who has left")
	more := noisy + "before = \"before.json\"\n"
	s, err := after(t, roster, more, text)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := after(t, roster, noisy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.StdDev(10) <= 1.2*alone.StdDev(10) {
		t.Errorf("noise %v, of a job that begins anew %v", s.StdDev(10), alone.StdDev(10))
	}
	ledger, err := s.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range roster.Len() {
		names = append(names, roster.Name(i))
	}
	if err := ledger.SpendRounds(s.Round(), 6, names...); err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]float64{"party-1": 3.98, "party-3": 2, "who has left": 3} {
		spent, err := ledger.Spent(name)
		if err != nil || spent.Bare().Upper < least || spent.Bare().Upper > 4 {
			t.Errorf("%s: %+v, %v", name, spent, err)
		}
	}
	if third, _ := ledger.Spent("party-3"); third.Bare().Upper > 3.5 {
		t.Errorf("who has spent nothing before: %+v", third)
	}
	if err := ledger.SpendRound(s.Round(), "party-1"); !errors.Is(err, accounting.ErrBudget) {
		t.Errorf("a round more: %v", err)
	}
	// A party's own guard counts the same, also once it is made again of what was saved.
	for k, name := range []string{"party-1", "party-3"} {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(1 + 2*k)
		limits, err := s.Limits(ed25519.NewKeyFromSeed(seed).Public())
		if err != nil {
			t.Fatal(err)
		}
		guard, err := drive.ResumeGuard(limits, 5, 5)
		if err == nil {
			err = guard.Charge(6)
		}
		if err != nil {
			t.Fatal(err)
		}
		own, _ := guard.Spent()
		if others, _ := ledger.Spent(name); own.Bare() != others.Bare() {
			t.Errorf("%s has counted %+v, the server %+v", name, own, others)
		}
	}
	text2 := strings.Join(s.Explain(), "\n")
	for _, want := range []string{"continues federation abab",
		"The most was spent by party-1: epsilon ",
		" for each party, against a server that cheats; assumes instant, ahead."} {
		if !strings.Contains(text2, want) {
			t.Errorf("nothing says %q: %s", want, text2)
		}
	}
	// The identifier is over the content of the file.
	_, other := spentBefore(t, first, 3, "party-1")
	if o, err := after(t, roster, more, other); err != nil || o.Digest() == s.Digest() {
		t.Errorf("%v, %v", o, err)
	}
}

// A record that does not fit is refused, with the field and what to do.
func TestBeforeRefused(t *testing.T) {
	_, first := settle(t, "parties.count = 10\n"+noisy)
	b, text := spentBefore(t, first, 6, "party-1")
	of := func(s accounting.Statement, epsilon float64) accounting.Budget {
		budget, err := accounting.NewBudget(s, epsilon, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		return budget
	}
	records, err := accounting.NewLedger(of(accounting.Calculated(accounting.RecordUnit), 4))
	if err != nil {
		t.Fatal(err)
	}
	unit, err := (&job.Before{Federation: b.Federation, Ledger: records}).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	budget := of(first.Statement(), 5)
	b.Study, b.Plan = &budget, accounting.GaussianPlan
	study, err := b.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	more := noisy + "before = \"before.json\"\n"
	if s, err := after(t, first.Roster(), more+"study = 5.0\n", study); err != nil ||
		*s.Study() != budget || s.StudyPlan() != accounting.GaussianPlan {
		t.Errorf("a study goes on: %v", err)
	}
	if s, err := after(t, first.Roster(), more+"study = 5.0\n", text); err != nil ||
		s.Study().Statement().Assumes() != accounting.AssumesAhead|accounting.AssumesInstant {
		t.Errorf("a study begins: %v", err)
	}
	for _, c := range []struct {
		name, more, path string
		text             []byte
	}{
		{"nothing is left", strings.Replace(more, "4.0", "3.9", 1), "privacy.epsilon", text},
		{"no file", more, "privacy.before", nil},
		{"no name", noisy, "privacy.before", text},
		{"another unit", more, "privacy.before", unit},
		{"a study without its budget", more, "privacy.study", study},
		{"another budget of the study", more + "study = 6.0\n", "privacy.study", study},
		{"more than the study has", more + "study = 3.9\n", "privacy.epsilon", text},
		{"another text", more, "privacy.before", append([]byte(" "), text...)},
		{"no name and no noise", "", "privacy.before", text},
		{"no noise", "privacy.before = \"before.json\"\n", "privacy.before", text},
		{"no budget", strings.Replace(more, "epsilon = 4.0", "multiplier = 1.0", 1), "privacy.before",
			text},
	} {
		_, err := after(t, first.Roster(), c.more, c.text)
		if wrong := job.Errors(err); len(wrong) == 0 || wrong[0].Path != c.path ||
			wrong[0].Advice == "" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What was spent before was counted against as many colluders as there were then; against more it
// was more, so that epsilon of both together would not hold. Parties do not share the noise of a
// committee, and against any number of them it is the same.
func TestBeforeColluders(t *testing.T) {
	more := noisy + "before = \"before.json\"\n"
	_, first := settle(t, "parties.count = 10\nparties.colluders = 2\n"+noisy)
	_, text := spentBefore(t, first, 4, "party-1")
	for colluders, want := range map[int]bool{0: true, 2: true, 3: false} {
		_, err := after(t, first.Roster(), fmt.Sprintf("parties.colluders = %d\n", colluders)+more, text)
		wrong := job.Errors(err)
		if want && err != nil || !want && (len(wrong) == 0 || wrong[0].Path != "privacy.before") {
			t.Errorf("%d colluders: %v", colluders, err)
		}
	}
	cost := first.Round()
	members := accounting.Terms{Server: accounting.CheatingServer, Colluders: accounting.AnyColluders,
		Committees: []accounting.Committee{{Members: 4, InLeague: 1}}}
	var err error
	if cost.Statement, err = members.Statement(); err != nil {
		t.Fatal(err)
	}
	budget, err := accounting.NewBudget(cost.Statement, 4, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := accounting.NewLedger(budget)
	if err == nil {
		err = ledger.SpendRounds(cost, 4, "party-1")
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &job.Before{Federation: strings.Repeat("ab", 32), Ledger: ledger}
	if text, err = b.MarshalText(); err == nil {
		_, err = after(t, first.Roster(), "parties.colluders = 3\n"+more, text)
	}
	if wrong := job.Errors(err); len(wrong) == 0 || !strings.Contains(err.Error(),
		"counted with up to 1 of the 4 members") {
		t.Errorf("after noise of a committee: %v", err)
	}
}

// One text says one thing, and no other is read.
func FuzzBefore(f *testing.F) {
	budget, err := accounting.NewBudget(accounting.Statement{}, 1, 1e-5)
	if err != nil {
		f.Fatal(err)
	}
	ledger, err := accounting.NewLedger(budget)
	if err != nil {
		f.Fatal(err)
	}
	if err := ledger.Spend(accounting.Step{Mechanism: accounting.Gaussian{NoiseMultiplier: 9},
		Count: 2}, "A"); err != nil {
		f.Fatal(err)
	}
	text, err := (&job.Before{Federation: fmt.Sprintf("%064x", 7), Ledger: ledger}).MarshalText()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-1])
	altered.Refused(f, text, new(job.Before).UnmarshalText)
	f.Fuzz(func(t *testing.T, text []byte) {
		var b job.Before
		if err := b.UnmarshalText(text); err != nil {
			if !errors.Is(err, job.ErrBefore) {
				t.Error(err)
			}
			return
		}
		if again, err := b.MarshalText(); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%v: %s becomes %s", err, text, again)
		}
	})
}
