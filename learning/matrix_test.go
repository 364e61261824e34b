package learning

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMatrixIsConfusion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 1<<20)
		c := Confusion{TP: count.Draw(t, "TP"), FP: count.Draw(t, "FP"), TN: count.Draw(t, "TN"),
			FN: count.Draw(t, "FN")}
		m := Matrix{Classes: 2, Counts: []int{c.TN, c.FP, c.FN, c.TP}}
		if m.Accuracy() != c.Accuracy() || m.Total() != c.Total() || math.Abs(m.MCC()-c.MCC()) > 1e-7 {
			t.Fatalf("%v: accuracy %v and %v, MCC %v and %v", c, m.Accuracy(), c.Accuracy(), m.MCC(),
				c.MCC())
		}
	})
}

func TestMatrixKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		counts   []int
		acc, mcc float64
	}{
		{make([]int, 9), 0, 0},
		{[]int{4, 0, 0, 0, 5, 0, 0, 0, 6}, 1, 1},
		{[]int{0, 0, 4, 0, 0, 5, 0, 0, 6}, 0.4, 0}, // always class 2
		{[]int{4, 5, 6, 0, 0, 0, 0, 0, 0}, 4.0 / 15, 0},
		// n 10, hits 7, labels (4, 3, 3), predictions (3, 4, 3): the formula gives
		// (70 − 33)/√((100−34)(100−34)).
		{[]int{3, 1, 0, 0, 2, 1, 0, 1, 2}, 0.7, 37.0 / 66},
	} {
		m := Matrix{Classes: 3, Counts: c.counts}
		if math.Abs(m.Accuracy()-c.acc) > 1e-15 || math.Abs(m.MCC()-c.mcc) > 1e-14 {
			t.Errorf("%v: accuracy %v, MCC %v, want %v, %v", c.counts, m.Accuracy(), m.MCC(), c.acc, c.mcc)
		}
	}
	m := Matrix{Classes: 3, Counts: []int{3, 1, 0, 0, 2, 1, 0, 0, 0}}
	if m.Recall(0) != 0.75 || m.Recall(1) != 2.0/3 || m.Recall(2) != 0 {
		t.Errorf("recall %v, %v, %v", m.Recall(0), m.Recall(1), m.Recall(2))
	}
}

func TestEvaluate(t *testing.T) {
	// The identity: a row's class is the larger feature, class 0 when they tie.
	m := Softmax{Features: 2, Outputs: 2}
	w := []float64{1, 0, 0, 1, 0, 0}
	d := &Dataset{Features: 2}
	want := make([]int, 4)
	var difference Confusion         // that of the first feature less the second, if above 0
	for i := range 5*chunkRows + 3 { // more than one chunk
		row := [][]float64{{2, 1}, {1, 2}, {1, 1}}[i%3]
		d.X = append(d.X, row...)
		y := i % 2
		d.Labels = append(d.Labels, y)
		if i%3 == 1 {
			want[2*y+1]++
		} else {
			want[2*y]++
		}
		switch first := i%3 == 0; {
		case first && y == 1:
			difference.TP++
		case first:
			difference.FP++
		case y == 1:
			difference.FN++
		default:
			difference.TN++
		}
	}
	got, err := Evaluate(m, w, d)
	if err != nil || got.Classes != 2 || !slices.Equal(got.Counts, want) || got.Total() != d.Len() {
		t.Errorf("%+v, %v, want %v", got, err, want)
	}
	if got, err := (Logistic{Features: 2}).Evaluate([]float64{1, -1}, d); err != nil ||
		got != difference {
		t.Errorf("%+v, %v, want %+v", got, err, difference)
	}
}
