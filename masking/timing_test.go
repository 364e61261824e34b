package masking

import (
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
)

// Masking takes a time that depends neither on the key nor on the vector. The test finds leaky,
// which does not.
func TestMaskTiming(t *testing.T) {
	layout := Layout{{3001, 20}}
	type input struct {
		v    *Vector
		seed Seed
	}
	prepare := func(class int) *input {
		in := new(input)
		var err error
		if in.v, err = NewVector(layout); err != nil {
			t.Fatal(err)
		}
		// Both classes write all of it, so that neither finds its memory colder than the other.
		fill, word := byte(0), uint64(0)
		if class == 1 {
			fill, word = 0xff, 1<<60-1
		}
		for i := range in.seed {
			in.seed[i] = fill
		}
		for i := range in.v.words {
			in.v.words[i] = word
		}
		return in
	}
	masked := func(in *input) { in.v.AddMask(&in.seed) }
	dudect.Check(t, "masking", false, 1<<14, prepare, masked)
	leaky := func(in *input) {
		if in.v.words[0] != 0 {
			masked(in) // something more to do with some vectors
		}
		masked(in)
	}
	dudect.Check(t, "work that depends on the vector", true, 1<<13, prepare, leaky)
}
