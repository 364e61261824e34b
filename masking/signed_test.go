package masking

import (
	"slices"
	"testing"
)

// Values have their signs, and sums come back to the ring.
func TestSigned(t *testing.T) {
	layout := Layout{{Length: 3, Bits: 4}, {Length: 2, Bits: 64}}
	in := [][]uint64{{7, 8, 15}, {1, 1<<64 - 1}}
	values := Signed(layout, in)
	if !slices.Equal(values, []int64{7, -8, -1, 1, -1}) {
		t.Error(values)
	}
	back := FromSigned(layout, values)
	if !slices.Equal(back[0], in[0]) || !slices.Equal(back[1], in[1]) {
		t.Error(back)
	}
	for i := range values {
		values[i] *= 3
	}
	if sum := FromSigned(layout, values); !slices.Equal(sum[0], []uint64{5, 8, 13}) {
		t.Error(sum)
	}
}
