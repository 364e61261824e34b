package job_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

// weighedJob is a bounded job of eight parties with weights.
func weighedJob(t *testing.T, more string) (*job.Settled, error) {
	t.Helper()
	j, err := job.Parse("job.toml", fmt.Appendf(nil, `name = "weights"
rounds = 2
model.length = 50
parties = { count = 8, drop_out = 0.25, weights = [40, 120, 300, 80, 80, 40, 200, 60] }
privacy = { noise = "discrete-gaussian", clip = 1.0, multiplier = 1.0, noise_by = "committee" }
sum = { protocol = "oneshot", committee = "c", bounded = true%s }
`, more))
	if err != nil {
		return nil, err
	}
	return j.Settle(job.Files{Roster: job.RosterOf(t, 8), Committee: job.CommitteeOf(t, 13)})
}

// The mean of a sum counts each party as often as its weight says, noise is charged for the
// heaviest, and sum.max_weight caps declared weights.
func TestDeclaredWeights(t *testing.T) {
	s, err := weighedJob(t, "")
	if err != nil {
		t.Fatal(err)
	}
	sums := s.Oneshot()
	unit, err := s.Mechanism().Encoder.Sensitivity()
	if err != nil {
		t.Fatal(err)
	}
	if l2 := s.Round().Update.Sensitivity.L2; math.Abs(l2/(300*unit.L2)-1) > 1e-12 {
		t.Errorf("%v is charged for, and the heaviest has %v", l2, 300*unit.L2)
	}
	if norm := float64(sums.Norm); norm < unit.L2 || norm > unit.L2+1 || sums.Roster.Weight(2) != 300 {
		t.Errorf("a norm of %v for %v, weight %d", norm, unit.L2, sums.Roster.Weight(2))
	}
	if f, err := sums.Parameters(); err != nil || f.Factor > 3.3 {
		t.Errorf("factor %v, %v", f.Factor, err)
	}
	if s.Roster().Weight(0) != 0 {
		t.Error("the roster that people compare has changed")
	}

	in, mean, all := []int{0, 2, 3, 6, 7, 5}, make([]float64, 50), 0
	var total []int64
	for _, i := range in {
		v := make([]float64, 50)
		for k := range v {
			v[k] = math.Sin(float64(100*i+k)) / 10
			mean[k] += float64(sums.Roster.Weight(i)) * v[k]
		}
		all += sums.Roster.Weight(i)
		encoded, err := s.Encode([32]byte{1}, job.Update[float64]{Vector: v}, nil)
		if err != nil {
			t.Fatal(err)
		}
		values := masking.Signed(s.Layout(), encoded)
		if total == nil {
			total = make([]int64, len(values))
		}
		for k, x := range values {
			total[k] += int64(sums.Roster.Weight(i)) * x
		}
	}
	if got := s.Counts(in); got != all {
		t.Errorf("%d vectors, want %d", got, all)
	}
	decoded, err := s.Decode([32]byte{1}, masking.FromSigned(s.Layout(), total), s.Counts(in))
	if err != nil {
		t.Fatal(err)
	}
	for k := range mean {
		// A rounding is off by less than 1 unit, and all are weighted alike.
		if off := decoded.Mean[k] - mean[k]/float64(all); math.Abs(off) > 8/s.Mechanism().Encoder.Scale {
			t.Errorf("number %d is off by %v", k, off)
		}
	}
	if text := strings.Join(s.Explain(), " "); !strings.Contains(text, "300 times") {
		t.Error(text)
	}

	capped, err := weighedJob(t, ", max_weight = 100")
	if err != nil {
		t.Fatal(err)
	}
	if w := capped.Oneshot().Roster.Weight(2); w != 100 || capped.Job().MaxRows() != 0 ||
		capped.Length() != 50 || capped.Digest() == s.Digest() {
		t.Errorf("a cap of 100 leaves %d", w)
	}
}

// Members in league who are parties too are as many parties in league.
func TestBothRolesRefused(t *testing.T) {
	j, err := job.Parse("job.toml", []byte("name = \"x\"\nrounds = 1\nmodel.length = 5\n"+
		"parties = { count = 8, colluders = 1 }\nsum = { protocol = \"oneshot\", committee = \"c\", "+
		"faults = 1, colluders = 2 }\n"))
	if err != nil {
		t.Fatal(err)
	}
	roster := job.RosterOf(t, 8)
	var mistake *job.ConfigError
	_, err = j.Settle(job.Files{Roster: roster, Committee: roster})
	if !errors.As(err, &mistake) || mistake.Path != "parties.colluders" ||
		mistake.Advice != "write 2 or more" {
		t.Error(err)
	}
}

// hospitalsJob is a bounded job of eight parties with weights, who are the committee too.
func hospitalsJob(t *testing.T, more string) (*job.Settled, error) {
	t.Helper()
	j, err := job.Parse("job.toml", fmt.Appendf(nil, `name = "hospitals"
rounds = 2
model.length = 1000
parties = { count = 8, drop_out = 0.25, colluders = 4, weights = [40, 120, 300, 80, 80, 40, 200, 60] }
privacy = { noise = "key", clip = 1.0%s }
sum = { protocol = "oneshot", committee = "c", bounded = true, faults = 1, colluders = 4 }
`, more))
	if err != nil {
		return nil, err
	}
	roster := job.RosterOf(t, 8)
	return j.Settle(job.Files{Roster: roster, Committee: roster})
}

// Eight parties are their own committee, with noise of keys alone: a party may add little more than
// its weight, no epsilon is claimed, and Explain says how far the noise moves a sum.
func TestKeyNoise(t *testing.T) {
	s, err := hospitalsJob(t, "")
	if err != nil {
		t.Fatal(err)
	}
	sums := s.Oneshot()
	f, err := sums.Parameters()
	if err != nil || f.Factor < 3.05 || f.Factor > 3.2 || f.Threshold != 6 || f.InLeague != 4 {
		t.Errorf("%+v, %v", f, err)
	}
	share, _ := sums.Noise.Scale().Float64() // of the parties that a sum has at least
	if share /= float64(sums.MinSurvivors - sums.Colluders); math.Abs(share-6.4*6.4) > 1e-9 {
		t.Errorf("a share has variance %v", share)
	}
	if s.Mechanism() != nil || s.Budget() != nil || s.Job().Noisy() {
		t.Error("it claims an epsilon")
	}
	text := strings.Join(s.Explain(), " ")
	for _, words := range []string{"no epsilon holds", "clips in L2 norm", "adds a vector of at " +
		"most 3.0"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not in: %s", words, text)
		}
	}
	v, mean := make([]float64, 1000), 0.
	var total []int64
	for i := range 8 {
		for k := range v {
			v[k] = float64(i) / 1000
		}
		mean += float64(sums.Roster.Weight(i)*i) / 1000 / 920
		encoded, err := s.Encode([32]byte{1}, job.Update[float64]{Vector: v}, nil)
		if err != nil {
			t.Fatal(err)
		}
		values := masking.Signed(s.Layout(), encoded)
		if total == nil {
			total = make([]int64, len(values))
		}
		square := 0.
		for k, x := range values {
			total[k] += int64(sums.Roster.Weight(i)) * x
			square += float64(x) * float64(x)
		}
		if square > float64(sums.Norm)*float64(sums.Norm) {
			t.Errorf("party %d submits %v units, and may %d", i, math.Sqrt(square), sums.Norm)
		}
	}
	decoded, err := s.Decode([32]byte{1}, masking.FromSigned(s.Layout(), total),
		s.Counts([]int{0, 1, 2, 3, 4, 5, 6, 7}))
	if err != nil {
		t.Fatal(err)
	}
	for k, x := range decoded.Mean {
		// Of 920 roundings, each off by less than a 512th of a clip.
		if math.Abs(x-mean) > 1./512 {
			t.Fatalf("number %d is %v, want %v", k, x, mean)
		}
	}
	if d := s.StdDev(8); d <= 0 || d > 1e-3 {
		t.Errorf("a mean deviates by %v", d)
	}
}

// Noise of keys alone is for vectors of one-message sums.
func TestKeyNoiseRefused(t *testing.T) {
	for more, path := range map[string]string{
		", epsilon = 1.0":       "privacy.epsilon",
		", multiplier = 1.0":    "privacy.multiplier",
		", clip_quantile = 0.5": "privacy.noise",
		", bits = 20":           "privacy.bits",
	} {
		var mistake *job.ConfigError
		if _, err := hospitalsJob(t, more); !errors.As(err, &mistake) || mistake.Path != path {
			t.Errorf("%s: %v", more, err)
		}
	}
	for _, text := range []string{"sum.protocol = \"pairwise\"\nprivacy.clip = 1.0",
		"sum.protocol = \"oneshot\"\nsum.committee = \"c\""} {
		_, err := job.Parse("job.toml", []byte("name = \"x\"\nrounds = 1\nmodel.length = 5\n"+
			"parties.count = 8\nprivacy.noise = \"key\"\n"+text))
		if err == nil {
			t.Error(text)
		}
	}
}

// Weights that nothing enforces, or that fit no roster, are refused by their field.
func TestWeightsRefused(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{", bounded = true", ""},
		{"200, 60]", "200]"},
		{"200, 60]", "200, 0]"},
		{"200, 60]", "200, 65537]"},
	} {
		text := strings.Replace(`name = "weights"
rounds = 2
model.length = 50
parties = { count = 8, drop_out = 0.25, weights = [40, 120, 300, 80, 80, 40, 200, 60] }
privacy = { noise = "discrete-gaussian", clip = 1.0, multiplier = 1.0 }
sum = { protocol = "oneshot", committee = "c", bounded = true }
`, c.from, c.to, 1)
		_, err := job.Parse("job.toml", []byte(text))
		var mistake *job.ConfigError
		if !errors.As(err, &mistake) || !strings.HasPrefix(mistake.Path, "parties.weights") {
			t.Errorf("%q for %q: %v", c.to, c.from, err)
		}
	}
}
