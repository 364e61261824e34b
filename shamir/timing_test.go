package shamir

import (
	"bytes"
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
)

// Sharing takes a time that does not depend on the secret, nor combining on the shares.
func TestSharingTiming(t *testing.T) {
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
	dudect.Check(t, "Split", false, 1<<13, secret, func(s Secret) {
		if _, err := Split(bytes.NewReader(coefficients), s, 4, indices); err != nil {
			t.Error(err)
		}
	})
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
	dudect.Check(t, "Combine", false, 1<<13, shares, func(s []Share) {
		for range 4 {
			if _, err := combiner.Combine(s); err != nil {
				t.Error(err)
			}
		}
	})
}
