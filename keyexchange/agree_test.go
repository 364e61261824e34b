package keyexchange

import (
	"bytes"
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/mlkem/mlkemtest"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// ML-KEM-768 is that of the standard library, byte for byte: keys from seeds, ciphertexts and
// secrets both ways, the secrets of ciphertexts that were changed, and which keys are refused.
func TestMLKEMAgreesWithStandardLibrary(t *testing.T) {
	random := rand.NewChaCha8([32]byte{30})
	draw := func(n int) []byte {
		b := make([]byte, n)
		_, _ = random.Read(b)
		return b
	}
	for range suite.Size(20, 200, 5000, 5000) {
		seed, m := draw(DecapsulationKeySize), draw(32)
		ours, err := ParseDecapsulationKey(seed)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := mlkem.NewDecapsulationKey768(seed)
		if err != nil {
			t.Fatal(err)
		}
		public, err := ours.Public()
		if err != nil || !bytes.Equal(public, theirs.EncapsulationKey().Bytes()) {
			t.Fatalf("seed %x: another key, %v", seed, err)
		}
		if back, err := ours.AppendBinary(nil); err != nil || !bytes.Equal(back, seed) {
			t.Fatalf("seed %x: comes back as another, %v", seed, err)
		}
		key, err := ParseEncapsulationKey(public)
		if err != nil {
			t.Fatal(err)
		}
		var sent Agreement
		ciphertext, err := sent.Encapsulate(key, bytes.NewReader(m))
		if err != nil {
			t.Fatal(err)
		}
		secret, want, err := mlkemtest.Encapsulate768(theirs.EncapsulationKey(), m)
		if err != nil || !bytes.Equal(ciphertext, want) || !bytes.Equal(sent.kem[:], secret) {
			t.Fatalf("seed %x, m %x: another ciphertext or secret, %v", seed, m, err)
		}
		// As it was made, changed in one bit, and all at random.
		changed := bytes.Clone(ciphertext)
		changed[int(m[0])*4] ^= 1 << (m[1] % 8)
		for _, c := range [][]byte{ciphertext, changed, draw(ciphertextSize)} {
			var got Agreement
			if err := got.Decapsulate(ours, c); err != nil {
				t.Fatal(err)
			}
			secret, err := theirs.Decapsulate(c)
			if err != nil || !bytes.Equal(got.kem[:], secret) {
				t.Fatalf("seed %x: %x decapsulates otherwise, %v", seed, c, err)
			}
			if bytes.Equal(c, ciphertext) != (got.kem == sent.kem) {
				t.Fatalf("seed %x: only the true ciphertext has the secret", seed)
			}
		}
		// Two coefficients in three bytes: about the modulus, 3329, and at random.
		bad := bytes.Clone(public)
		at := int(binary.LittleEndian.Uint16(m[2:])) % 384 * 3
		value := 3327 + uint32(m[4])%4
		bad[at], bad[at+1] = byte(value), bad[at+1]&0xf0|byte(value>>8)
		for _, b := range [][]byte{bad, draw(EncapsulationKeySize), public[:len(public)-1],
			append(bytes.Clone(public), 0)} {
			_, err := ParseEncapsulationKey(b)
			_, theirs := mlkem.NewEncapsulationKey768(b)
			if (err == nil) != (theirs == nil) || err != nil && !errors.Is(err, ErrEncapsulationKey) {
				t.Fatalf("a key with %d at %d: %v, and %v", value, at, err, theirs)
			}
		}
	}
}

// X25519 is that of the standard library, also for points that are not on the curve, not
// canonical, or of low order, which the parser refuses before.
func TestX25519AgreesWithStandardLibrary(t *testing.T) {
	random := rand.NewChaCha8([32]byte{31})
	compare := func(secret [KeySize]byte, peer PublicKey) (refused bool) {
		t.Helper()
		ours, err := ParseKey(secret[:])
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := ecdh.X25519().NewPrivateKey(secret[:])
		if err != nil {
			t.Fatal(err)
		}
		public, err := ours.Public()
		if err != nil || !bytes.Equal(public[:], theirs.PublicKey().Bytes()) {
			t.Fatalf("%x has another public key, %v", secret, err)
		}
		point, err := ecdh.X25519().NewPublicKey(peer[:])
		if err != nil {
			t.Fatal(err)
		}
		agreed, err := ours.Agree(peer)
		want, theirErr := theirs.ECDH(point)
		if (err == nil) != (theirErr == nil) || err == nil && !bytes.Equal(agreed.x25519[:], want) {
			t.Fatalf("%x with %x: %v, and %v", secret, peer, err, theirErr)
		}
		return err != nil
	}
	for range suite.Size(50, 500, 20000, 20000) {
		var secret [KeySize]byte
		var peer PublicKey
		_, _ = random.Read(secret[:])
		_, _ = random.Read(peer[:])
		if compare(secret, peer) {
			t.Fatalf("%x is refused", peer)
		}
	}
	// Around 0, p and 2^255, with and without the bit above.
	refused := 0
	for _, end := range []byte{0, 0x7f} {
		for low := range 256 {
			peer := PublicKey{0: byte(low), 31: end}
			for i := 1; i < 31 && end != 0; i++ {
				peer[i] = 0xff
			}
			for _, high := range []byte{0, 0x80} {
				peer[31] = end | high
				if compare([KeySize]byte{1, 31: 0x55}, peer) {
					refused++
				}
			}
		}
	}
	for _, low := range lowOrder {
		if !compare([KeySize]byte{3}, low) {
			t.Errorf("%x is of low order and taken", low)
		}
	}
	if refused != 10 { // 0, 1, p − 1, p, p + 1, each with the bit above and without
		t.Errorf("%d of the points at the edges are refused", refused)
	}
}
