//go:build !purego

package masking

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns memory of whole pages between two that nobody may touch.
func guarded(t *testing.T, pages int) []uint64 {
	t.Helper()
	size := os.Getpagesize()
	all, err := syscall.Mmap(-1, 0, (pages+2)*size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{all[:size], all[(pages+1)*size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&all[size])), pages*size/8)
}

// No path reads or writes outside of the vector: it lies directly before and behind pages that end
// the process if they are touched.
func TestGuardPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(30, 3))
	room := guarded(t, 9)
	for n := 1; n <= len(room); n++ {
		if n > 300 {
			n += rng.IntN(60)
		}
		n = min(n, len(room))
		bits := 1 + rng.IntN(64)
		if n%4 == 0 {
			bits = 32
		}
		layout := Layout{{n*(64/bits) - rng.IntN(64/bits), bits}}
		masks := randomMasks(rng, 1+rng.IntN(2))
		for _, words := range [][]uint64{room[:n], room[len(room)-n:]} {
			v := &Vector{layout, words}
			if err := v.Set(randomValues(rng, layout)...); err != nil {
				t.Fatal(err)
			}
			comparePaths(t, v, masks)
		}
	}
}
