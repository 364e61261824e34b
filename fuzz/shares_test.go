package fuzz

import (
	"bytes"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// order is the group order ℓ = 2^252 + 27742317777372353535851937790883648493,
// little-endian: the least number that is not a canonical scalar.
var order = [32]byte{
	0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
	31: 0x10,
}

// FuzzSecret parses bytes as a secret, which shares are encoded as too.
func FuzzSecret(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Add(order[:])
	one := order
	one[0]--
	f.Add(one[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		secret, err := shamir.ParseSecret(b)
		switch {
		case err == nil && !bytes.Equal(secret[:], b):
			t.Fatalf("%x parses as the secret %x", b, secret)
		case err == nil && !below(secret, order):
			t.Fatalf("%x is taken, and not below the group order", b)
		case err != nil && len(b) == 32 && below([32]byte(b), order):
			t.Fatalf("%x is refused, and below the group order: %v", b, err)
		case err != nil && !isOneOf(err, []error{shamir.ErrLength, shamir.ErrNonCanonical}):
			t.Fatalf("undocumented error: %v", err)
		}
	})
}

// below compares little-endian numbers.
func below(x, y [32]byte) bool {
	for i := 31; i >= 0; i-- {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

// FuzzPublicKey parses bytes as an X25519 key. What is taken stands for one
// point, and gives a secret that is not zero.
func FuzzPublicKey(f *testing.F) {
	private, err := keyexchange.GenerateKey(stream("key"))
	if err != nil {
		f.Fatal(err)
	}
	public, err := private.Public()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(public[:])
	prime := [32]byte{0xed, 31: 0x7f}
	for i := 1; i < 31; i++ {
		prime[i] = 0xff
	}
	f.Add(prime[:])
	prime[0]--
	f.Add(prime[:]) // of low order
	prime[0]--
	f.Add(prime[:])
	f.Add(make([]byte, 32))
	config, _ := session(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		key, err := keyexchange.ParsePublicKey(b)
		if err != nil {
			if !isOneOf(err, []error{keyexchange.ErrPublicKey}) {
				t.Fatalf("undocumented error: %v", err)
			}
			return
		}
		prime := prime
		prime[0] = 0xed
		if !bytes.Equal(key[:], b) || !below(key, prime) {
			t.Fatalf("%x is taken, and not canonical", b)
		}
		if _, err := private.NewChain([32]byte{}, config.Roster, 0, 1, key); err != nil {
			t.Fatalf("%x is taken, and not of full order: %v", b, err)
		}
	})
}
