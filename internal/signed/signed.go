// Package signed turns values of a ring into integers with signs and back, for protocols
// whose sums are integers.
package signed

import "github.com/hushsum/hushsum/masking"

// Values returns the values of a submission of the layout with their signs, one segment
// after the other: those of b bits from −2^(b−1) to 2^(b−1) − 1.
func Values(layout masking.Layout, values [][]uint64) []int64 {
	var out []int64
	for i, segment := range values {
		shift := 64 - layout[i].Bits
		for _, x := range segment {
			out = append(out, int64(x<<shift)>>shift)
		}
	}
	return out
}

// Ring returns sums of what Values returns in the ring, by segments of the layout.
func Ring(layout masking.Layout, sum []int64) [][]uint64 {
	var out [][]uint64
	for _, segment := range layout {
		values := make([]uint64, segment.Length)
		for i := range values {
			values[i] = uint64(sum[i]) & (^uint64(0) >> (64 - segment.Bits))
		}
		out, sum = append(out, values), sum[segment.Length:]
	}
	return out
}
