package keyexchange

import (
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
)

// Opening takes a time that does not depend on what is inside, nor on where a box that
// does not open was changed. leakyOpen is what the test would find.
func TestOpenTiming(t *testing.T) {
	var key SealKey
	var nonce Nonce
	box := func(change func(class int, sealed []byte)) func(class int) []byte {
		return func(class int) []byte {
			plaintext := make([]byte, 32)
			if class == 1 {
				for i := range plaintext {
					plaintext[i] = 0xff
				}
			}
			sealed, err := Seal(&nonce, &key, plaintext, nil)
			if err != nil {
				t.Fatal(err)
			}
			change(class, sealed)
			return sealed
		}
	}
	open := func(sealed []byte) { _, _ = Open(&key, sealed, nil) }
	for name, change := range map[string]func(class int, sealed []byte){
		"plaintext": func(int, []byte) {},
		"first or last byte of the tag": func(class int, sealed []byte) {
			sealed[len(sealed)-16+15*class] ^= 1
		},
	} {
		dudect.Check(t, name, false, 1<<14, box(change), open)
	}
	leakyOpen := func(sealed []byte) {
		plaintext, err := Open(&key, sealed, nil)
		if err == nil && plaintext[0] != 0 {
			_, _ = Open(&key, sealed, nil) // something more to do with some secrets
		}
	}
	dudect.Check(t, "work that depends on the plaintext", true, 1<<13,
		box(func(int, []byte) {}), leakyOpen)
}
