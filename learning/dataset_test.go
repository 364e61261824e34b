package learning

import (
	"errors"
	"slices"
	"testing"
)

func small() *Dataset {
	return &Dataset{X: []float64{1, 2, 3, 4, 5, 6}, Features: 2, Labels: []int{0, 1, 1}}
}

// positives is the number of rows whose label is not 0.
func positives(d *Dataset) (n int) {
	for _, y := range d.Labels {
		if y != 0 {
			n++
		}
	}
	return n
}

func TestDatasetRows(t *testing.T) {
	d := small()
	if d.Len() != 3 || positives(d) != 2 || !slices.Equal(d.Row(1), []float64{3, 4}) {
		t.Fatalf("Len %d, positives %d, Row(1) %v", d.Len(), positives(d), d.Row(1))
	}
	if cap(d.Row(0)) != 2 {
		t.Error("appending to a row would overwrite the next one")
	}
	s, err := d.Subset([]int{2, 0, 2})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.X, []float64{5, 6, 1, 2, 5, 6}) || !slices.Equal(s.Labels, []int{1, 0, 1}) {
		t.Errorf("Subset gave %v", s)
	}
	s.X[0] = 99
	if d.X[4] != 5 {
		t.Error("Subset shares memory with its source")
	}
	if s, err := d.Subset(nil); err != nil || s.Len() != 0 || s.Features != 2 {
		t.Errorf("empty Subset: %v, %v", s, err)
	}
}

func TestDatasetRejects(t *testing.T) {
	for _, idx := range [][]int{{-1}, {3}, {0, 3}} {
		if _, err := small().Subset(idx); !errors.Is(err, ErrShape) {
			t.Errorf("Subset(%v): %v", idx, err)
		}
	}
	bad := map[string]*Dataset{
		"nil":         nil,
		"zero":        {},
		"negative":    {X: []float64{1}, Features: -1, Labels: []int{0}},
		"ragged":      {X: []float64{1, 2, 3}, Features: 2, Labels: []int{0}},
		"labels":      {X: []float64{1, 2}, Features: 2, Labels: []int{0, 1}},
		"no features": {Labels: []int{0}},
	}
	for name, d := range bad {
		if _, err := d.Subset([]int{0}); !errors.Is(err, ErrShape) {
			t.Errorf("%s: Subset: %v", name, err)
		}
		if _, _, err := d.Split(0.5, 1); !errors.Is(err, ErrShape) {
			t.Errorf("%s: Split: %v", name, err)
		}
		if _, err := d.PartitionIID(1, 1, 1); !errors.Is(err, ErrShape) {
			t.Errorf("%s: PartitionIID: %v", name, err)
		}
	}
}
