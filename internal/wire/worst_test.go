package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// Messages of a party or a server are read by lengths that follow from the session's size.
func TestWorstFiles(t *testing.T) {
	ones := func(size int) []byte { return bytes.Repeat([]byte{0xff}, size) }
	zeros := func(size int) []byte { return make([]byte, size) }
	drawn := func(size int) []byte {
		b, rng := make([]byte, size), rand.New(rand.NewPCG(1, 2))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	parse := func(b []byte) error {
		part := func(size int) []byte { return b[:min(size, len(b))] }
		n := len(b) / 64
		var errs [10]error
		_, errs[0] = ParseUpload(part(UploadSize(len(b)/96)), len(b)/96)
		_, errs[1] = ParseMasked(part(MaskedSize(9, len(b)/200, len(b)/200)), 9, len(b)/200, len(b)/200)
		_, errs[2] = ParseKeys(b, n, true, func(*Keys) (int, error) { return n, nil })
		_, errs[3] = ParseEncapsulate(part(64+1088*(len(b)/1100)), len(b)/1100)
		_, errs[4] = ParseMembers(b, n, func(Set) ([]int, error) { return make([]int, n), nil })
		_, errs[5] = ParseBegin(b, n, func(Set) int { return n })
		_, errs[6] = ParseSurvivors(b, n, func(Set) int { return n })
		_, errs[7] = ParseCertificate(part(len(b)/68*68), n)
		_, errs[8] = ParseReveal(part(len(b)/36*36), n*2)
		_, errs[9] = ParseSet(b, 8*len(b))
		return errors.Join(errs[:]...)
	}
	lists := func(entry int) func(size int) []byte { // of parties in order
		return func(size int) []byte {
			b := make([]byte, size/entry*entry)
			for i := range size / entry {
				binary.BigEndian.PutUint32(b[i*entry:], uint32(i))
			}
			return b
		}
	}
	suite.WorstFiles(t, suite.Worst{Name: "messages of pairwise sums", Most: 1 << 30, Try: 4 << 20,
		Parse: parse,
		Files: map[string]func(n int) []byte{"ones": ones, "zeros": zeros, "drawn": drawn,
			"certificate": lists(68), "shares": lists(36)}})
}
