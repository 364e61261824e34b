package dudect

import (
	"crypto/sha256"
	"testing"
)

var sink byte

// compare is a comparison that ends at the first difference: the classical leak.
func compare(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A leak of some nanoseconds is found, and none where there is none.
func TestPower(t *testing.T) {
	secret := make([]byte, 4096)
	prepare := func(class int) []byte {
		guess := make([]byte, len(secret))
		guess[0] = byte(class) // class 1 differs at once
		return guess
	}
	Check(t, "an early exit", true, 1<<14, prepare, func(guess []byte) {
		if compare(secret, guess) {
			sink++
		}
	})
	Check(t, "a hash", false, 1<<14, prepare, func(guess []byte) {
		sum := sha256.Sum256(guess)
		sink += sum[0]
	})
}
