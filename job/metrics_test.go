package job_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
)

// measured is a job of parties that measure loss and accuracy.
func measured(t *testing.T, epsilon string) *job.Settled {
	t.Helper()
	j, err := job.Parse("job.toml", []byte("name = \"measured\"\nrounds = 2\nparties.count = 10\n"+
		"model.length = 12\nmetrics.share = 0.3\n"+
		"privacy = { noise = \"discrete-gaussian\", epsilon = "+epsilon+", clip = 1.0 }\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := j.Settle(job.Files{Roster: job.RosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A vector and its metrics together have at most the clip's norm, whatever they are, and come apart
// again.
func TestMetricsWithinClip(t *testing.T) {
	s := measured(t, "8.0")
	rapid.Check(t, func(t *rapid.T) {
		u := job.Update[float64]{
			Vector:   rapid.SliceOfN(rapid.Float64Range(-100, 100), 12, 12).Draw(t, "update"),
			Loss:     rapid.Float64().Draw(t, "loss"),
			Accuracy: rapid.Float64Range(0, 1).Draw(t, "accuracy"),
		}
		joined, err := job.WithMetrics(s, u)
		if err != nil {
			t.Fatal(err)
		}
		norm := 0.
		for _, x := range joined {
			norm += x * x
		}
		if norm = math.Sqrt(norm); !(norm <= 1+1e-12) {
			t.Fatalf("norm %v", norm)
		}
		m := s.MetricOf(joined[12], joined[13], 10)
		if math.Abs(m.Accuracy-u.Accuracy) > 1e-9 || !(m.Loss >= 0 && m.Loss <= 10+1e-9) {
			t.Fatalf("accuracy %v became %v, loss %v became %v", u.Accuracy, m.Accuracy, u.Loss, m.Loss)
		}
	})
}

// Metrics are read from a sum, of either type of vector, and the mean is without them.
func TestMetricsOfSum(t *testing.T) {
	s := measured(t, "1e4")
	if s.Length() != 12 || s.ModelLength() != 12 {
		t.Fatalf("%d numbers, a model of %d", s.Length(), s.ModelLength())
	}
	sum, err := masking.NewVector(s.Layout())
	if err != nil {
		t.Fatal(err)
	}
	one := sum.Clone()
	for i := range 10 {
		if i%2 == 0 {
			err = job.EncodeTo(one, s, [32]byte{1}, job.Update[float32]{Vector: make([]float32, 12),
				Loss: 2, Accuracy: 0.5}, nil)
		} else {
			err = job.EncodeTo(one, s, [32]byte{1}, job.Update[float64]{Vector: make([]float64, 12),
				Loss: math.NaN(), Accuracy: 2}, nil)
		}
		if err == nil {
			err = sum.Add(one)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mean := make([]float32, 12)
	total, err := job.DecodeTo(mean, s, [32]byte{1}, sum, 10)
	if err != nil || total.Metric == nil {
		t.Fatal(total, err)
	}
	// At six deviations the test fails for one correct sum in 10^8.
	if m := total.Metric; math.Abs(m.Loss-1) > 6*m.LossDev || m.LossDev > 2 ||
		math.Abs(m.Accuracy-0.75) > 6*m.AccuracyDev || m.AccuracyDev > 0.2 {
		t.Errorf("%+v", m)
	}
}
