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

// The mean of a sum counts each party as often as its weight says, the heaviest is what noise is
// charged for, and sum.max_weight caps what is declared.
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
