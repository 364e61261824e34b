package noise

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"testing"
)

// Words that would make some results likelier are drawn again (Lemire 2019): for each n
// those whose product with n has a low word below 2^64 mod n, and no others.
func TestBelowRejects(t *testing.T) {
	for _, n := range []uint64{3, 10, 1<<32 + 1, 3 << 62, 1<<63 + 1, 1<<64 - 1} {
		bound := -n % n
		rejected := 0
		for _, word := range []uint64{0, 1, 2, 1<<62 - 1, 1 << 62, 1<<63 + 12345, 1<<64 - 1} {
			_, low := bits.Mul64(word, n)
			next := uint64(1<<64 - 1) // never rejected by these n
			if _, lowNext := bits.Mul64(next, n); lowNext < bound {
				t.Fatalf("n = %d: the second word is rejected too", n)
			}
			// A Source takes its words from 256 bytes at a time, the first first.
			stream := make([]byte, 256)
			binary.LittleEndian.PutUint64(stream, word)
			binary.LittleEndian.PutUint64(stream[8:], next)
			got, err := NewSource(bytes.NewReader(stream)).below(n)
			if err != nil {
				t.Fatal(err)
			}
			taken := word
			if low < bound {
				taken = next
				rejected++
			}
			if want, _ := bits.Mul64(taken, n); got != want {
				t.Errorf("n = %d, word %#x: got %d, want %d", n, word, got, want)
			}
		}
		if rejected == 0 {
			t.Errorf("n = %d: no word was rejected", n)
		}
	}
}
