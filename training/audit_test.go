package training

import (
	"context"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// An audit by an inserted record: whoever knows all other records, and sees the sums of many first
// rounds with the record and without, finds less than the ε that is stated. With coins that always
// come up, while the accountant believes in them, the same audit finds more. Shares of trials are
// off by more than the margin with a probability of 1e-6 each (Hoeffding's bound).
func TestAuditByInsertedRecords(t *testing.T) {
	const trials, delta = 6000, 0.01
	made, _ := made(t, func(j *job.Job) {
		byRecords(j)
		j.Model.Features, j.Privacy.Multiplier, j.Privacy.Bits = 2, 0.5, 40
		j.Privacy.Records, j.Training.Batch = 100, 5
	})
	stated, err := made.settled.Round().Spent(accounting.ServerView, 1, delta)
	if err != nil || stated.Unit() != accounting.RecordUnit {
		t.Fatal(stated, err)
	}
	nothing := &learning.Dataset{X: make([]float64, 2), Features: 2, Labels: []int{1}}
	inserted := &learning.Dataset{X: []float64{8, 0}, Features: 2, Labels: []int{1}}
	clip, rows := made.options.Records.Clip, []*learning.Dataset{nothing, nothing, nothing}
	// found is the share of sums that are above the clip where the record points.
	found := func(first *learning.Dataset) float64 {
		rows[0] = first
		var parties []*Own
		for i, d := range rows {
			p, err := made.Party(i, d, nil)
			if err != nil {
				t.Fatal(err)
			}
			parties = append(parties, p)
		}
		above, s := 0, made.First()
		for range trials {
			sum := [][]uint64{{0, 0}}
			for _, p := range parties {
				values, err := p.Submit(context.Background(), s)
				if err != nil {
					t.Fatal(err)
				}
				for j, x := range values[0] {
					sum[0][j] += x
				}
			}
			total, err := made.settled.Decode(s.Public, sum, len(parties))
			if err != nil {
				t.Fatal(err)
			}
			if total.Mean[0]*float64(made.options.Records.Batch) > clip {
				above++
			}
		}
		return float64(above) / trials
	}
	margin := math.Sqrt(math.Log(1e6) / (2 * trials))
	audit := func() float64 {
		return math.Log(math.Max(1e-9, found(inserted)-margin-delta) / (found(nothing) + margin))
	}
	if got := audit(); got > stated.Bare().Upper {
		t.Errorf("the audit finds epsilon %v at delta %v, %v is stated", got, delta, stated.Bare().Upper)
	}
	made.options.Records.Random = zeros{}
	if got := audit(); got < stated.Bare().Upper {
		t.Errorf("without coins the audit finds epsilon %v, no more than %v", got, stated.Bare().Upper)
	} else {
		t.Logf("stated %.3f; without coins the audit finds %.3f", stated.Bare().Upper, got)
	}
}
