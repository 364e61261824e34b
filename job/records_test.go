package job_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

const byRecord = "[privacy]\nunit = \"record\"\nnoise = \"discrete-gaussian\"\nclip = 1.0\n" +
	"epsilon = 1.0\nrecords = 30000\nsubmit_after = \"5s\"\n"

// A job whose unit is a record spends of each record, amplified by coins whose probability is
// public, and means are over the batch that is expected.
func TestRecordsSettle(t *testing.T) {
	j, s := settle(t, "parties.count = 10\ntraining.batch = 3000\n"+byRecord)
	r := s.Round()
	if r.Unit != accounting.RecordUnit || r.SecretRate != .1 || !(r.Overrun > 0 && r.Overrun < 1e-15) {
		t.Errorf("%+v", r)
	}
	spent, err := r.Spent(accounting.ServerView, s.Rounds(), 1e-5)
	if err != nil || spent.Upper > 1 || spent.Upper < .99 || spent.Unit != accounting.RecordUnit {
		t.Errorf("%+v, %v", spent, err)
	}
	// Rounding costs below one part in a hundred.
	if most := s.Mechanism().MaxNorm(); most < 1 || most > 1.01 {
		t.Errorf("a record of norm 1 counts as %v", most)
	}
	if got, want := s.StdDev(10), s.Mechanism().StdDev(10)/3000; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("noise of the mean %v, want %v", got, want)
	}
	text := strings.Join(j.Explain(), "\n")
	for _, want := range []string{"each record of a party", "probability 0.1", "3,000 records"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q: %s", want, text)
		}
	}
	j.Privacy.Group, j.Parties.Colluders = "patient", 2
	text = strings.Join(j.Explain(), "\n")
	if !strings.Contains(text, "each patient's records at a party") ||
		!strings.Contains(text, "the server and any 2 parties") {
		t.Error(text)
	}
	_, all := settle(t, "parties.count = 10\n"+byRecord)
	if r := all.Round(); r.SecretRate != 1 || r.Overrun != 0 {
		t.Errorf("without a batch: %+v", r)
	}
}

// Whatever would have a record count with more than its clip, or show but in the sum, is refused,
// and so is what is of no use.
func TestRecordsRefused(t *testing.T) {
	for _, c := range []struct{ old, new, path string }{
		{`noise = "discrete-gaussian"`, `noise = "none"`, "privacy.noise"},
		{"records = 30000", "records = 10\ntraining.batch = 20", "training.batch"},
		{`unit = "record"`, "", "privacy.records"},
		{"clip = 1.0", "clip = 1.0\nclip_quantile = 0.5", "privacy.clip_quantile"},
		{"[model]", "[sum]\nmax_weight = 20\n[model]", "sum.max_weight"},
		{"[model]", "[sum]\nprotocol = \"oneshot\"\n[model]", "sum.protocol"},
		{"[model]", "[training]\nepochs = 2\n[model]", "training.epochs"},
		{"[model]", "[training]\nsteps = 2\n[model]", "training.steps"},
		{"[model]", "[training]\nmomentum = 0.9\n[model]", "training.momentum"},
		{"[model]", "[training]\nrule = \"fedprox\"\n[model]", "training.rule"},
		{"[model]", "[training]\nmask = \"soft\"\n[model]", "training.mask"},
		{`"softmax"`, `"lenet-norm"`, "model.name"},
		{`name = "softmax"`, "length = 20", "privacy.unit"},
		{"parties.count = 10", "parties = { count = 10, per_round = 5 }", "parties.per_round"},
		{"parties.count = 10", "parties = { count = 10, hidden = 0.5 }", "parties.hidden"},
	} {
		text := "name = \"x\"\nrounds = 2\nparties.count = 10\n[model]\nname = \"softmax\"\n" + byRecord
		if !strings.Contains(text, c.old) {
			t.Fatal(c.old)
		}
		text = strings.Replace(text, c.old, c.new, 1)
		if c.path == "training.batch" {
			text = strings.Replace(text, "\ntraining.batch = 20", "", 1) + "[training]\nbatch = 20\n"
		}
		_, err := job.Parse("job.toml", []byte(text))
		found := false
		for _, e := range job.Errors(err) {
			found = found || e.Path == c.path && e.Advice != ""
		}
		if !found {
			t.Errorf("%s -> %s: %v", c.old, c.new, err)
		}
	}
}

// A party without a sum submits zeros with its share of the noise, by records too.
func TestRecordsBlank(t *testing.T) {
	_, s := settle(t, "parties.count = 10\n"+byRecord)
	v, err := masking.NewVector(s.Layout())
	if err == nil {
		err = s.Blank(v, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range v.Values()[0] {
		if x != 0 {
			return
		}
	}
	t.Error("there is no noise")
}
