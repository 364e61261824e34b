package model

import (
	"slices"
	"testing"
)

func TestModelAccuracies(t *testing.T) {
	got := modelAccuracies([]Scored{
		{1, true, 3}, {1, false, 2}, {-1, true, 3}, {-1, false, 2}, {-2, false, 2}, {2, true, 2},
	})
	if !slices.Equal(got, []float64{0.75, 0.5}) {
		t.Error(got)
	}
}
