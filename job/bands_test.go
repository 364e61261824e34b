package job_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

const byTurns = "[privacy]\nnoise = \"discrete-gaussian\"\nclip = 1.0\nepsilon = 2.0\n" +
	"factorise = 3\n"

// Correlated noise is calibrated for the turns of a party, two in six rounds, at z = 4.37 and a
// little for rounding, where six submissions would take √3 times that. Means have a divisor that is
// public, and a party without an update submits its share of the noise.
func TestTurnsSettle(t *testing.T) {
	j, s := settle(t, "parties.count = 10\n"+byTurns)
	if s.Rounds() != 6 || s.Submissions() != 6 || s.Charges(6) != 2 || s.Charges(3) != 1 ||
		len(s.Band()) != 3 {
		t.Errorf("%d submissions, %d charges, %v", s.Submissions(), s.Charges(6), s.Band())
	}
	spent, _, err := s.Round().Views(2, 1e-5)
	if err != nil || spent.Bare().Upper > 2 || spent.Bare().Lower < 1.99 {
		t.Errorf("%+v, %v", spent, err)
	}
	_, plain := settle(t, "parties.count = 10\n"+strings.Replace(byTurns, "factorise = 3\n", "", 1))
	if a, b := s.StdDev(10), plain.StdDev(10); math.Abs(b/a/math.Sqrt(3)-1) > 0.005 {
		t.Errorf("noise of %v in a sum, and %v where parties submit all in each round", a, b)
	}
	if plain.Charges(6) != 6 || plain.Band() != nil {
		t.Error("independent noise has bands")
	}
	if said := strings.Join(j.Explain(), "\n"); !strings.Contains(said, "each once in 3 rounds") {
		t.Error(said)
	}
	v, err := masking.NewVector(s.Layout())
	if err == nil {
		err = s.Blank(v, nil)
	}
	if err != nil || v.Values()[0][0] == 0 && v.Values()[0][1] == 0 && v.Values()[0][2] == 0 {
		t.Errorf("no noise, %v", err)
	}
	if _, err := s.Round().Spent(accounting.PublicView, 1, 1e-5); err != nil {
		t.Error(err)
	}
}

// What would overlap, or be sent apart from the sum, or has no theorem, is refused at its field.
func TestTurnsRefused(t *testing.T) {
	for _, c := range []struct{ old, new, path string }{
		{"factorise = 3", "factorise = 7", "privacy.factorise"},
		{"factorise = 3", "factorise = 1", "privacy.factorise"},
		{"count = 10", "count = 2", "privacy.factorise"},
		{"discrete-gaussian", "discrete-laplace", "privacy.factorise"},
		{"discrete-gaussian", "none", "privacy.factorise"},
		{"clip = 1.0", "clip = 1.0\nunit = \"record\"", "privacy.factorise"},
		{`name = "softmax"`, "length = 20", "privacy.factorise"},
		{"[model]", "[sum]\nprotocol = \"oneshot\"\n[model]", "privacy.factorise"},
		{"parties.count = 10", "parties = { count = 10, per_round = 5 }", "parties.per_round"},
		{"parties.count = 10", "parties = { count = 10, per_round = 5, participations = 5 }",
			"parties.participations"},
		{"parties.count = 10", "parties = { count = 10, hidden = 0.5 }", "parties.hidden"},
		{"[model]", "[sum]\nmax_weight = 20\n[model]", "sum.max_weight"},
		{"[model]", "[training]\nmask = \"soft\"\n[model]", "training.mask"},
		{"clip = 1.0", "clip = 1.0\nclip_quantile = 0.5", "privacy.clip_quantile"},
	} {
		text := "name = \"x\"\nrounds = 6\nparties.count = 10\n[model]\nname = \"softmax\"\n" + byTurns
		if !strings.Contains(text, c.old) {
			t.Fatal(c.old)
		}
		_, err := job.Parse("job.toml", []byte(strings.Replace(text, c.old, c.new, 1)))
		found := false
		for _, e := range job.Errors(err) {
			found = found || e.Path == c.path && e.Advice != ""
		}
		if !found {
			t.Errorf("%s -> %s: %v", c.old, c.new, err)
		}
	}
}
