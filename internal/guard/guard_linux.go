// Package guard provides memory between pages that end the process if they are touched, for tests
// of assembly.
package guard

import (
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// Pages returns memory of whole pages between two that nobody may touch, until the test ends.
func Pages(t testing.TB, pages int) []uint64 {
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
