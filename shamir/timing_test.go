package shamir

import (
	"bytes"
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
)

// Sharing takes a time that does not depend on the secret, nor combining on the shares.
func TestSharingTiming(t *testing.T) {
	if testing.Short() {
		t.Skip("a statistical test of times")
	}
	indices := []uint32{1, 2, 3, 4, 5, 6, 7}
	coefficients := bytes.Repeat([]byte{0x5a}, 64*3)
	secret := func(class int) Secret {
		if class == 0 {
			return Secret{} // zero
		}
		s, err := GenerateSecret(nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	split := dudect.Measure(1<<13, secret, func(s Secret) {
		if _, err := Split(bytes.NewReader(coefficients), s, 4, indices); err != nil {
			t.Error(err)
		}
	})
	if split > dudect.Limit {
		t.Errorf("Split: |t| = %.1f, above %v", split, dudect.Limit)
	}
	combiner, err := NewCombiner(4, indices)
	if err != nil {
		t.Fatal(err)
	}
	shares := func(class int) []Share {
		out := make([]Share, len(indices))
		for i, x := range indices {
			out[i] = Share{Index: x, Value: secret(class)}
		}
		return out
	}
	combine := dudect.Measure(1<<13, shares, func(s []Share) {
		for range 4 {
			if _, err := combiner.Combine(s); err != nil {
				t.Error(err)
			}
		}
	})
	if combine > dudect.Limit {
		t.Errorf("Combine: |t| = %.1f, above %v", combine, dudect.Limit)
	}
}
