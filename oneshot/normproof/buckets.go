package normproof

import "encoding/binary"

// buckets add up two values for each column by the bytes of a matrix: with four rows to a byte,
// bucket b of group g has the values of all columns that have b in it. Reading rows off at the end
// takes as much as some hundred columns do.
type buckets [][256][2]uint64

func newBuckets(rows int) buckets { return make(buckets, rows/4) }

// addPortable adds both values of columns, or the first alone, to the buckets of their bytes. The
// matrix has a multiple of 16 rows.
func (b buckets) addPortable(bytes []byte, values [][2]uint64, both bool) {
	// Four groups at a time stay in the fastest cache.
	for g := 0; g < len(b); g += 4 {
		t := (*[4][256][2]uint64)(b[g:])
		at := g
		for _, v := range values {
			x := binary.LittleEndian.Uint32(bytes[at:])
			at += len(b)
			t0, t1, t2, t3 := &t[0][x&255], &t[1][x>>8&255], &t[2][x>>16&255], &t[3][x>>24]
			t0[0] += v[0]
			t1[0] += v[0]
			t2[0] += v[0]
			t3[0] += v[0]
			if both {
				t0[1] += v[1]
				t1[1] += v[1]
				t2[1] += v[1]
				t3[1] += v[1]
			}
		}
	}
}

// reduce brings all buckets below q.
func (b buckets) reduce(q uint64) {
	for g := range b {
		for i := range b[g] {
			b[g][i][0] %= q
			b[g][i][1] %= q
		}
	}
}

// rows returns the sums of rows modulo q, of the first values or of the second. In a group, each
// kind adds up to less than 2^64.
func (b buckets) rows(lane int, q uint64) []uint64 {
	out := make([]uint64, 0, 4*len(b))
	for g := range b {
		var of [4][4]uint64 // sums by the two bits of a row
		for i, v := range &b[g] {
			x := v[lane]
			of[0][i&3] += x
			of[1][i>>2&3] += x
			of[2][i>>4&3] += x
			of[3][i>>6] += x
		}
		for k := range of {
			out = append(out, (of[k][1]%q+q-of[k][2]%q)%q)
		}
	}
	return out
}
