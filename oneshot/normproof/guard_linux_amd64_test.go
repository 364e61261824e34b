//go:build !purego

package normproof

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/hushsum/hushsum/internal/guard"
)

// Buckets, values and bytes lie directly before pages that end the process if they are touched, and
// then behind them: nothing outside of them is.
func TestGuardPages(t *testing.T) {
	for _, n := range []int{1, 2, 255, columns} {
		for _, atEnd := range []bool{false, true} {
			room := func(words int) []uint64 {
				pages := guard.Pages(t, (8*words+4095)/4096)
				if atEnd {
					return pages[len(pages)-words:]
				}
				return pages[:words]
			}
			of := func(size int) *byte { return (*byte)(unsafe.Pointer(&room(size / 8)[0])) }
			bytes := unsafe.Slice(of(n*rows/4), n*rows/4)
			values := unsafe.Slice((*[2]uint64)(unsafe.Pointer(of(16*n))), n)
			got := buckets(unsafe.Slice((*[256][2]uint64)(unsafe.Pointer(of(rows/4*4096))), rows/4))
			for i := range bytes {
				bytes[i] = byte(255 - i)
			}
			for j := range values {
				values[j] = [2]uint64{uint64(j), 1 << 49}
			}
			got.add(bytes, values, true)
			want := newBuckets(rows)
			want.addPortable(bytes, values, true)
			if !slices.Equal(got, want) {
				t.Errorf("%d columns: other buckets", n)
			}
		}
	}
}
