package party

import (
	"bytes"
	"encoding/gob"
	"errors"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
)

// A state of a format that is not known is refused, whoever sealed it.
func TestFormatUnknown(t *testing.T) {
	r := newRunning(t, nil)
	r.Key, r.Folder = &keyexchange.SealKey{2}, t.TempDir()
	for _, format := range []int{-1, 0, 2} {
		s, _, err := opened(t, &r.Party)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(struct{ Format int }{format}); err != nil {
			t.Fatal(err)
		}
		if err := s.Save(b.Bytes()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if err := begins(t, r, kindParty, drive.PartSettings{}); !errors.Is(err, ErrStored) {
			t.Errorf("format %d: %v", format, err)
		}
	}
}
