package model

import (
	"errors"
	"math"
	"testing"
)

func TestInvertRow(t *testing.T) {
	for _, c := range []struct {
		update []float64
		bias   int
	}{{nil, 0}, {[]float64{1, 0}, 1}, {[]float64{1}, -1}, {[]float64{1, math.NaN()}, 1}} {
		if _, _, err := invertRow(c.update, c.bias); !errors.Is(err, errInversion) {
			t.Errorf("%v: %v", c, err)
		}
	}
	layer := imprintLayer{weights: []float64{1}}
	if _, err := layer.recoverRows(nil); !errors.Is(err, errInversion) {
		t.Error(err)
	}
}
