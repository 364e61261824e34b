package normproof

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBuckets: buckets, filled by either way and reduced between or not, give sums of rows as the
// matrix defines them, for moduli of all sizes and every number of columns.
func TestBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	for n := 1; n <= columns; n++ {
		q := uint64(1)<<(20+n%31) - uint64(r.IntN(1000))
		values := make([][2]uint64, n)
		for j := range values {
			values[j] = [2]uint64{r.Uint64N(q), q - 1}
		}
		bytes := make([]byte, n*rows/4)
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		fast, slow, first := newBuckets(rows), newBuckets(rows), newBuckets(rows)
		for range 2 {
			fast.add(bytes, values, true)
			slow.addPortable(bytes, values, true)
			first.addPortable(bytes, values, false)
		}
		if !slices.Equal(fast, slow) || !slices.Equal(first.rows(0, q), slow.rows(0, q)) {
			t.Fatalf("%d columns: other buckets", n)
		}
		if n%2 == 0 {
			fast.reduce(q)
		}
		for lane := range 2 {
			var want [rows]uint64
			for j, v := range values {
				for i := range want {
					entry := bytes[j*rows/4+i/4] >> (2 * (i % 4)) & 3
					x := 2 * v[lane] % q
					switch entry {
					case 1:
						want[i] = (want[i] + x) % q
					case 2:
						want[i] = (want[i] + q - x) % q
					}
				}
			}
			if got := fast.rows(lane, q); !slices.Equal(got, want[:]) {
				t.Fatalf("%d columns, values %d: other sums", n, lane)
			}
		}
	}
}
