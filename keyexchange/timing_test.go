package keyexchange

import (
	"testing"

	"github.com/hushsum/hushsum/internal/dudect"
)

// Opening takes a time that does not depend on what is inside, nor on where a box that
// does not open was changed. The test would find leakyOpen.
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

// Agreeing takes a time that depends neither on the X25519 key nor on whether an ML-KEM ciphertext
// was made for the key. The same test finds an agreement that stops early.
func TestAgreeTiming(t *testing.T) {
	_, peer := fixedKey(t, 2)
	dudect.Check(t, "X25519", false, 1<<14, func(class int) *PrivateKey {
		secret := make([]byte, KeySize)
		if class == 1 {
			for i := range secret {
				secret[i] = 0xff
			}
		}
		key, err := ParseKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}, func(key *PrivateKey) { _, _ = key.Agree(peer) })

	key, err := GenerateDecapsulationKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	encapsulation, err := ParseEncapsulationKey(public)
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(class int) []byte {
		ciphertext, err := new(Agreement).Encapsulate(encapsulation, nil)
		if err != nil {
			t.Fatal(err)
		}
		if class == 1 {
			ciphertext[0] ^= 1
		}
		return ciphertext
	}
	decapsulate := func(ciphertext []byte) { _ = new(Agreement).Decapsulate(key, ciphertext) }
	dudect.Check(t, "ML-KEM", false, 1<<14, sealed, decapsulate)
	var first byte
	sum := func(ciphertext []byte) {
		agreed := new(Agreement)
		if err := agreed.Decapsulate(key, ciphertext); err == nil && agreed.kem[0]&1 == first {
			decapsulate(ciphertext) // something more to do with some secrets
		}
	}
	fixed := sealed(0)
	agreed := new(Agreement)
	if err := agreed.Decapsulate(key, fixed); err != nil {
		t.Fatal(err)
	}
	first = agreed.kem[0] & 1
	dudect.Check(t, "work that depends on the secret", true, 1<<13, func(class int) []byte {
		if class == 0 {
			return fixed
		}
		return sealed(0)
	}, sum)
}
