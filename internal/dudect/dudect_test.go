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
	leak := Measure(1<<14, prepare, func(guess []byte) {
		if compare(secret, guess) {
			sink++
		}
	})
	if leak < Limit {
		t.Errorf("an early exit gives |t| = %.1f, want above %v", leak, Limit)
	}
	none := Measure(1<<14, prepare, func(guess []byte) {
		sum := sha256.Sum256(guess)
		sink += sum[0]
	})
	if none > Limit {
		t.Errorf("a hash gives |t| = %.1f", none)
	}
	t.Logf("|t| = %.1f with a leak, %.1f without", leak, none)
}
