package simulate

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/hushsum/hushsum/internal/chart"

	"github.com/hushsum/hushsum/job"
)

// A number of parties is spread as those that are declared are.
func TestSetParties(t *testing.T) {
	for _, test := range []struct{ counts, n, want []int }{
		{[]int{24, 20, 14, 1, 1}, []int{60}, []int{24, 20, 14, 1, 1}},
		{[]int{24, 20, 14, 1, 1}, []int{120}, []int{48, 40, 28, 2, 2}},
		{[]int{24, 20, 14, 1, 1}, []int{6}, []int{3, 2, 1}}, // 2.4, 2, 1.4, 0.1 and 0.1
		{[]int{0, 0, 0}, []int{4}, []int{2, 1, 1}},
		{[]int{0, 0, 0}, []int{2}, []int{1, 1}},
		{[]int{5}, []int{50}, []int{50}},
	} {
		j := &job.Job{}
		for _, c := range test.counts {
			j.Parties.Group = append(j.Parties.Group, job.Group{Count: c})
		}
		if err := setParties(j, strconv.Itoa(test.n[0])); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, g := range j.Parties.Group {
			got = append(got, g.Count)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d over %v: %v, want %v", test.n[0], test.counts, got, test.want)
		}
	}
}

func TestGrowth(t *testing.T) {
	square := []chart.Point{{X: 10, Y: 3}, {X: 100, Y: 300}, {X: 1000, Y: 30000}}
	if got := growth(square); got < 1.999 || got > 2.001 {
		t.Errorf("a square grows with exponent %v", got)
	}
	if got := growth([]chart.Point{{X: 10, Y: 3}, {X: 0, Y: 3}}); !math.IsNaN(got) {
		t.Errorf("one point: %v", got)
	}
}

// A spread is the standard deviation of a single run, and of one run there is none.
func TestFigure(t *testing.T) {
	if f := newFigure([]float64{1, 3}); f.Mean != 2 || f.SD != math.Sqrt2 {
		t.Errorf("%+v", f)
	}
	if f := newFigure([]float64{0.25}); f.Mean != 0.25 || f.SD != 0 || f.percent() != "25.0 %" {
		t.Errorf("%+v, %s", f, f.percent())
	}
}
