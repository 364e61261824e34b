package party

import (
	"bytes"
	"encoding/gob"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// A state of a format that is not known is refused, whoever sealed it.
func TestFormatUnknown(t *testing.T) {
	s, err := openStore(t.TempDir(), &keyexchange.SealKey{2}, kindParty, "f", seedOf(0))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, format := range []int{-1, 0, savedFormat + 1} {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(saved{Format: format}); err != nil {
			t.Fatal(err)
		}
		nonce, err := keyexchange.GenerateNonce(nil)
		if err != nil {
			t.Fatal(err)
		}
		box, err := keyexchange.Seal(&nonce, s.key, b.Bytes(), s.owner)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.open(box); !errors.Is(err, ErrStored) {
			t.Errorf("format %d: %v", format, err)
		}
	}
}
