package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
)

// refused fails a test unless a job is refused at a field, with these words.
func refused(t *testing.T, what string, err error, path string, words ...string) {
	t.Helper()
	wrong := job.Errors(err)
	if len(wrong) == 0 || wrong[0].Path != path {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q", what, err, word)
		}
	}
}

// A study of epsilon 1 at a delta of 1e-5 has spent at least 3.977 at that delta, once four jobs
// have spent 1 each at ever larger ones: it goes on at its own delta alone.
func TestStudyKeepsDelta(t *testing.T) {
	study := strings.Replace(noisy, "4.0", "1.0", 1) + "study = 1.0\n"
	_, first := settle(t, "parties.count = 10\n"+study)
	_, text := spentBefore(t, first, 1, "party-1")
	more := study + "before = \"before.json\"\n"
	if _, err := after(t, first.Roster(), more, text); err != nil {
		t.Error(err)
	}
	for _, delta := range []string{"0.0001", "0.001", "0.01", "0.1", "1e-06"} {
		_, err := after(t, first.Roster(), more+"delta = "+delta+"\n", text)
		refused(t, delta, err, "privacy.delta", "privacy.delta: the study has epsilon 1 at delta 1e-05, "+
			"and this job states its own at "+delta+"; write 1e-05")
	}
}

// A study's epsilon is about what its first job says, and about no less later.
func TestStudyKeepsStatement(t *testing.T) {
	study := noisy + "study = 4.0\n"
	_, first := settle(t, "parties.count = 10\nparties.colluders = 2\n"+study)
	_, text := spentBefore(t, first, 1, "party-1")
	for colluders, want := range map[int]string{1: "privacy.study", 2: "", 3: "privacy.before"} {
		_, err := after(t, first.Roster(), fmt.Sprintf("parties.colluders = %d\n", colluders)+study+
			"before = \"before.json\"\n", text)
		switch {
		case want != "":
			refused(t, fmt.Sprint(colluders), err, want, "any ")
		case err != nil:
			t.Error(err)
		}
	}
}

// The first job of a study fixes the plan by which the rounds of all add up, and a job that does
// not fit it is refused: rounds that are chosen by what was seen would otherwise have a delta of
// 1.80e-5 where each path alone has 1e-5.
func TestStudyPlans(t *testing.T) {
	const coins = "parties.hidden = 0.5\n"
	laplace := strings.Replace(noisy, "gaussian", "laplace", 1)
	late := func(text string) string { return text + "submit_after = \"20s\"\n" }
	_, some := settle(t, "parties.count = 10\n"+noisy)
	roster := some.Roster()
	for _, c := range []struct {
		name, first, next string
		plan              accounting.Plan
		path, words       string // of the refusal; empty: there is none
	}{
		{"gaussian", noisy + "study = 4.0\n", noisy + "study = 4.0\n", accounting.GaussianPlan, "", ""},
		{"coins after", late(noisy) + "study = 4.0\n", coins + late(noisy) + "study = 4.0\n",
			accounting.GaussianPlan, "privacy.study", "and this job's is assuming coins"},
		{"no instant after", late(noisy) + "study = 4.0\n", noisy + "study = 4.0\n",
			accounting.GaussianPlan, "privacy.study", "and this job's is assuming instant"},
		{"coins by squares", coins + late(noisy) + "study = 4.0\nstudy_plan = \"gaussian\"\n", "",
			accounting.GaussianPlan, "privacy.study_plan", "the study's plan is gaussian"},
		{"Laplace after", noisy + "study = 4.0\n", laplace + "study = 4.0\n", accounting.GaussianPlan,
			"privacy.study_plan", "the study's plan is gaussian"},
		{"other coins", coins + late(noisy) + "study = 4.0\n", coins + late(noisy) + "study = 4.0\n",
			accounting.EqualPlan, "privacy.study_plan", "does not fit it: accounting: "},
		{"other Laplace", laplace + "study = 8.0\n", laplace + "study = 8.0\n", accounting.EqualPlan,
			"privacy.study_plan", "the study's plan is equal"},
		{"another plan", noisy + "study = 4.0\n", noisy + "study = 4.0\nstudy_plan = \"equal\"\n",
			accounting.GaussianPlan, "privacy.study_plan", "the study's plan is gaussian, which its first"},
	} {
		if c.next == "" {
			_, err := after(t, roster, c.first, nil)
			refused(t, c.name, err, c.path, c.words)
			continue
		}
		_, first := settle(t, "parties.count = 10\n"+c.first)
		if first.StudyPlan() != c.plan {
			t.Errorf("%s: the plan is %v", c.name, first.StudyPlan())
		}
		_, text := spentBefore(t, first, 1, "party-1")
		next, err := after(t, first.Roster(), c.next+"before = \"before.json\"\n", text)
		switch {
		case c.path != "":
			refused(t, c.name, err, c.path, c.words)
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case next.StudyPlan() != c.plan:
			t.Errorf("%s: the plan becomes %v", c.name, next.StudyPlan())
		}
	}
	// Equal rounds fit.
	same := noisy + "multiplier = 20.0\nstudy = 4.0\nstudy_plan = \"equal\"\n"
	_, first := settle(t, "parties.count = 10\n"+same)
	_, text := spentBefore(t, first, 1, "party-1")
	if _, err := after(t, roster, same+"before = \"before.json\"\n", text); err != nil {
		t.Errorf("equal rounds: %v", err)
	}
}

// Without a study, a job's epsilon with that of those before assumes that nobody chose the job by
// what those have shown.
func TestBeforeAssumesAhead(t *testing.T) {
	_, first := settle(t, "parties.count = 10\n"+noisy)
	_, text := spentBefore(t, first, 1, "party-1")
	next, err := after(t, first.Roster(), noisy+"before = \"before.json\"\n", text)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := next.Ledger()
	if err != nil || ledger.Statement().Assumes()&accounting.AssumesAhead == 0 {
		t.Errorf("%v, %v", ledger.Statement(), err)
	}
	if alone, err := first.Ledger(); err != nil || alone.Statement().Assumes() !=
		accounting.AssumesInstant {
		t.Errorf("a job that continues none: %v, %v", alone.Statement(), err)
	}
	if said := strings.Join(next.Explain(), "\n"); !strings.Contains(said,
		"Epsilon assumes ahead: what is summed later was fixed before earlier sums were seen.") {
		t.Error(said)
	}
}
