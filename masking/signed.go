package masking

// Signed returns the values of a submission of the layout as integers with signs, one segment after
// the other, for protocols whose sums are integers: values of b bits lie from −2^(b−1) to
// 2^(b−1) − 1.
func Signed(layout Layout, values [][]uint64) []int64 {
	var out []int64
	for i, segment := range values {
		shift := 64 - layout[i].Bits
		for _, x := range segment {
			out = append(out, int64(x<<shift)>>shift)
		}
	}
	return out
}

// FromSigned converts sums of integers that [Signed] returned back into values of the ring, by
// segments of the layout.
func FromSigned(layout Layout, sum []int64) [][]uint64 {
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
