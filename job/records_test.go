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
	if r.Statement.Unit() != accounting.RecordUnit || r.SecretRate != 0.1 || !(r.Overrun > 0 &&
		r.Overrun < 1e-15) {
		t.Errorf("%+v", r)
	}
	spent, err := r.Spent(accounting.ServerView, s.Rounds(), 1e-5)
	if err != nil || spent.Bare().Upper > 1 || spent.Bare().Upper < 0.99 ||
		spent.Unit() != accounting.RecordUnit {
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
	if strings.Contains(text, "Caution") {
		t.Errorf("a small delta is told: %s", text)
	}
	j.Privacy.Delta = 1 / 29999.
	if text := strings.Join(j.Explain(), "\n"); !strings.Contains(text, "above 1 / 30000 units") {
		t.Errorf("a large delta is not told: %s", text)
	}
	j.Privacy.Delta = 1e-5
	j.Privacy.Group, j.Parties.Colluders = "patient", 2
	text = strings.Join(j.Explain(), "\n")
	if !strings.Contains(text, "each patient's records at a party") ||
		!strings.Contains(text, "a server that cheats with any 2 parties; assumes coins.") {
		t.Error(text)
	}
	_, all := settle(t, "parties.count = 10\n"+byRecord)
	if r := all.Round(); r.SecretRate != 1 || r.Overrun != 0 {
		t.Errorf("without a batch: %+v", r)
	}
}

// Whatever would have a record count with more than its clip, or show but in the sum, is refused,
// and so is a setting that is of no use.
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
		{`name = "softmax"`, "length = 20\n[metrics]\nshare = 0.1", "metrics.share"},
		{`name = "softmax"`, "length = 20\n[server]\naverage = 0.5", "server.average"},
		{`name = "softmax"`, "personal = [\"w\"]\ntensor = [{ name = \"w\", shape = [2] }]",
			"model.personal"},
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

// Programs of the parties' own sum over records too: the sum is not clipped to what one of them
// adds, and means are over the batch, by each of the ways to encode and decode.
func TestRecordsOfPrograms(t *testing.T) {
	j, trained := settle(t, "parties.count = 10\ntraining.batch = 3000\n"+byRecord)
	j.Model = job.Model{Length: 4}
	j.Privacy.Epsilon, j.Privacy.Multiplier, j.Privacy.Bits = 0, 1e-6, 60
	s, err := j.Settle(job.Files{Roster: trained.Roster()})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Coins(); c == nil || c.Count != 30000 || c.Rate != 0.1 || c.Clip != 1 || c.Group != "" ||
		c.Most <= 3000 || c.Most >= 6000 {
		t.Errorf("%+v", c)
	}
	if !s.Alone() || s.Trains() {
		t.Error("it is more than a vector")
	}
	vector := []float64{300, -40, 0, 0.5}
	for range 3 {
		sum, err := masking.NewVector(s.Layout())
		if err != nil {
			t.Fatal(err)
		}
		digest, made := job.BroadcastDigest([]byte("b")), job.Update[float64]{Vector: vector}
		values, err := s.Encode(digest, made, nil)
		if err == nil {
			err = sum.Set(values...)
		}
		if err != nil {
			t.Fatal(err)
		}
		one := sum.Clone()
		if err := job.EncodeTo(one, s, digest, made, nil); err != nil {
			t.Fatal(err)
		}
		if err := sum.Add(one); err != nil {
			t.Fatal(err)
		}
		total, err := s.Decode(digest, sum.Values(), 2)
		if err != nil {
			t.Fatal(err)
		}
		to := make([]float64, 4)
		if _, err := job.DecodeTo(to, s, digest, sum, 2); err != nil {
			t.Fatal(err)
		}
		for k, x := range vector {
			if want := 2 * x / 3000; math.Abs(total.Mean[k]-want) > 1e-6 || math.Abs(to[k]-want) > 1e-6 {
				t.Errorf("%v and %v, want %v", total.Mean[k], to[k], want)
			}
		}
	}
	text := strings.Join(s.Explain(), "\n")
	for _, want := range []string{"each record of a party",
		"The Python package does that for a party", "probability 0.1", "no epsilon is promised"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q: %s", want, text)
		}
	}
	own := s.Job()
	own.Privacy.Multiplier, own.Privacy.Epsilon = 0, 1
	if text := strings.Join(own.Explain(), "\n"); !strings.Contains(text,
		"Epsilon assumes time: how long a party's own program takes for a unit depends on that unit") {
		t.Error(text)
	}
	if _, party := settle(t, "parties.count = 10\n"); party.Coins() != nil {
		t.Error("parties toss coins for records without a unit")
	}
	asked, err := job.Parse("queries", []byte(`name = "asked"
parties.count = 10
privacy = { unit = "record", records = 300, noise = "discrete-gaussian", epsilon = 2.0 }
column = [{ name = "age", type = "whole", range = [18, 100] }]
query = [{ name = "old", kind = "count", where = "age >= 60" }]
`))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = asked.Settle(job.Files{Roster: trained.Roster()}); err != nil || s.Coins() != nil {
		t.Errorf("parties toss coins for answers: %v, %v", s.Coins(), err)
	}
}
