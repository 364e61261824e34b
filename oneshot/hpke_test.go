package oneshot

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// standardKEM is that of the standard library.
func standardKEM(k KEM) hpke.KEM {
	if k == KEMX25519 {
		return hpke.DHKEM(ecdh.X25519())
	}
	return hpke.MLKEM768X25519()
}

// Boxes are those of the standard library: it opens them and makes them, refuses the same ones, and
// has the same keys.
func TestHPKEAgreesWithStandardLibrary(t *testing.T) {
	random := rand.NewChaCha8([32]byte{30})
	kdf, aead := hpke.HKDFSHA256(), hpke.ChaCha20Poly1305()
	for _, k := range []KEM{KEMHybrid, KEMX25519} {
		for range suite.Size(20, 100, 2000, 2000) {
			var seed [32]byte
			_, _ = random.Read(seed[:])
			plain, info := make([]byte, random.Uint64()%400), make([]byte, random.Uint64()%200)
			_, _ = random.Read(plain)
			_, _ = random.Read(info)
			ours, public, err := k.generate(&seed)
			if err != nil {
				t.Fatal(err)
			}
			theirs := must(standardKEM(k).NewPrivateKey(ours.seed[:]))
			if !bytes.Equal(theirs.PublicKey().Bytes(), public) ||
				!bytes.Equal(ours.public[:], public[len(public)-32:]) {
				t.Fatalf("%v, seed %x: another public key", k, seed)
			}
			box := must(seal(must(k.parseKey(public)), info, plain))
			if len(box) != k.encSize()+len(plain)+tagSize {
				t.Fatalf("%v: a box of %d bytes for %d", k, len(box), len(plain))
			}
			if got, err := hpke.Open(theirs, kdf, aead, info, box); err != nil ||
				!bytes.Equal(got, plain) {
				t.Fatalf("%v, seed %x: the standard library opens it otherwise, %v", k, seed, err)
			}
			box = must(hpke.Seal(theirs.PublicKey(), kdf, aead, info, plain))
			if got, err := open(ours, info, box); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%v, seed %x: a box of the standard library opens otherwise, %v", k, seed, err)
			}
			at := int(random.Uint64() % uint64(len(box)))
			box[at] ^= 1 << (random.Uint64() % 8)
			_, err = open(ours, info, box)
			if _, theirErr := hpke.Open(theirs, kdf, aead, info, box); !errors.Is(err, errOpen) ||
				theirErr == nil {
				t.Fatalf("%v, byte %d changed: %v, and %v", k, at, err, theirErr)
			}
			if _, err := open(ours, info, box[:k.encSize()-1]); !errors.Is(err, errOpen) {
				t.Fatalf("%v, a short box: %v", k, err)
			}
		}
	}
}

// Keys of members and of senders whose X25519 point has a small order are refused, whatever the
// encoding, and with them only what the standard library refuses.
func TestHPKESmallOrder(t *testing.T) {
	for _, k := range []KEM{KEMHybrid, KEMX25519} {
		private, public, err := k.generate(&[32]byte{7})
		if err != nil {
			t.Fatal(err)
		}
		theirs := must(standardKEM(k).NewPrivateKey(private.seed[:]))
		box := must(seal(must(k.parseKey(public)), nil, nil))
		refused := 0
		for _, end := range []byte{0, 0x7f} {
			for low := range 256 {
				for _, high := range []byte{0, 0x80} {
					var point [32]byte
					for i := 1; i < 31 && end != 0; i++ {
						point[i] = 0xff
					}
					point[0], point[31] = byte(low), end|high
					copy(public[len(public)-32:], point[:])
					copy(box[k.encSize()-32:], point[:])
					_, err := seal(must(k.parseKey(public)), nil, nil)
					key := must(standardKEM(k).NewPublicKey(public))
					_, theirErr := hpke.Seal(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), nil, nil)
					if (err == nil) != (theirErr == nil) || err != nil && !errors.Is(err, ErrKey) {
						t.Fatalf("%v, to %x: %v, and %v", k, point, err, theirErr)
					}
					if err == nil {
						continue
					}
					refused++
					_, err = open(private, nil, box)
					_, theirErr = hpke.Open(theirs, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), nil, box)
					if !errors.Is(err, errOrder) || theirErr == nil {
						t.Fatalf("%v, from %x: %v, and %v", k, point, err, theirErr)
					}
				}
			}
		}
		if refused != 10 { // 0, 1, p − 1, p, p + 1, each with the bit above and without
			t.Errorf("%v: %d points are refused", k, refused)
		}
	}
}

// Keys of another size, and ML-KEM keys with a coefficient that is not reduced, are refused.
func TestHPKEKeys(t *testing.T) {
	for _, k := range []KEM{KEMHybrid, KEMX25519} {
		_, public, err := k.generate(&[32]byte{7})
		if err != nil {
			t.Fatal(err)
		}
		bad := [][]byte{nil, public[1:], append(bytes.Clone(public), 0)}
		if k == KEMHybrid {
			unreduced := bytes.Clone(public)
			unreduced[0], unreduced[1] = 0x01, unreduced[1]&0xf0|0x0d // 3329
			bad = append(bad, unreduced)
		}
		for i, b := range bad {
			if _, err := k.parseKey(b); !errors.Is(err, ErrKey) {
				t.Errorf("%v, key %d: %v", k, i, err)
			}
		}
	}
}
