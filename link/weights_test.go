package link

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
)

// Weights that are held as float32 have the bytes of the same weights as float64, and what they
// are read from is rounded to the nearest.
func TestNarrowWeights(t *testing.T) {
	narrow := make(Floats[float32], 3*pieceWeights+5)
	for i := range narrow {
		narrow[i] = float32(math.Sqrt(float64(i)) - 3)
	}
	wide := make(Floats[float64], len(narrow))
	for i, x := range narrow {
		wide[i] = float64(x)
	}
	var a, b bytes.Buffer
	if _, err := narrow.WriteTo(&a); err != nil {
		t.Fatal(err)
	}
	if _, err := wide.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	appended, err := aggregation.AppendModel(nil, wide)
	if err != nil || !bytes.Equal(a.Bytes(), appended) || !bytes.Equal(b.Bytes(), appended) {
		t.Fatalf("their bytes are others: %v", err)
	}
	for _, size := range []int{1, 7, 8, 9, 1000, len(appended)} {
		r := newWeightsReader(make(Floats[float32], len(narrow)))
		for piece := range slices.Chunk(appended, size) {
			if _, err := r.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.end()
		if err != nil || !slices.Equal(FloatsOf[float32](got), narrow) {
			t.Errorf("in pieces of %d they arrive otherwise: %v", size, err)
		}
	}
	third, err := aggregation.AppendModel(nil, []float64{1. / 3})
	if err != nil {
		t.Fatal(err)
	}
	one := make(Floats[float32], 1)
	if err := one.take(0, third); err != nil || one[0] != float32(1.)/3 {
		t.Errorf("a third is %v, %v", one[0], err)
	}
	large, err := aggregation.AppendModel(nil, []float64{1e39})
	if err != nil {
		t.Fatal(err)
	}
	if err := one.take(0, large); !errors.Is(err, ErrFrame) {
		t.Errorf("a weight beyond float32: %v", err)
	}
	if _, err := (Floats[float32]{float32(math.NaN())}).WriteTo(io.Discard); !errors.Is(err,
		aggregation.ErrNotFinite) {
		t.Errorf("no number: %v", err)
	}
}
