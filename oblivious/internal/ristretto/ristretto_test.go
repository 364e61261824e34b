package ristretto

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"

	"filippo.io/edwards25519"
)

// The vectors of RFC 9496, appendix A.

func TestMultiples(t *testing.T) {
	p := edwards25519.NewIdentityPoint()
	for i, want := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
		"6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
		"94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
		"da80862773358b466ffadfe0b3293ab3d9fd53c5ea6c955358f568322daf6a57",
		"e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
	} {
		got := Encode(p)
		if hex.EncodeToString(got[:]) != want {
			t.Errorf("%d·B = %x, want %s", i, got, want)
		}
		if q, err := Decode(got[:]); err != nil || Encode(q) != got {
			t.Errorf("%d·B does not decode to itself: %v", i, err)
		}
		p.Add(p, edwards25519.NewGeneratorPoint())
	}
}

func TestOneWayMap(t *testing.T) {
	for label, want := range map[string]string{
		"Ristretto is traditionally a short shot of espresso coffee": "3066f82a1a747d45" +
			"120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
		"made with the normal amount of ground coffee but extracted with": "f26e5b6f7d362d2d" +
			"2a94c5d0e7602cb4773c95a2e5c31a64f133189fa76ed61b",
		"about half the amount of water in the same amount of time": "006ccd2a9e6867e6" +
			"a2c5cea83d3302cc9de128dd2a9a57dd8ee7b9d7ffe02826",
		"by using a finer grind.": "f8f0c87cf237953c" +
			"5890aec3998169005dae3eca1fbb04548c635953c817f92a",
		"This produces a concentrated shot of coffee per volume.": "ae81e7dedf20a497" +
			"e10c304a765c1767a42d6e06029758d2d7e8ef7cc4c41179",
		"Just pulling a normal shot short will produce a weaker shot": "e2705652ff9f5e44" +
			"d3e841bf1c251cf7dddb77d140870d1ab2ed64f1a9ce8628",
		"and is not a Ristretto as some believe.": "80bd07262511cdde" +
			"4863f8a7434cef696750681cb9510eea557088f76d9e5065",
	} {
		h := sha512.Sum512([]byte(label))
		if got := Encode(FromUniform(&h)); hex.EncodeToString(got[:]) != want {
			t.Errorf("%q maps to %x, want %s", label, got, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, bad := range []string{
		"00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", // not canonical
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // the prime
		"0100000000000000000000000000000000000000000000000000000000000000", // negative
		"26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371", // not a square
		"3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e", // negative xy
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // y = 0
		"", "00", "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d7600",
	} {
		b, _ := hex.DecodeString(bad)
		if _, err := Decode(b); !errors.Is(err, ErrEncoding) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A point and the same point plus torsion are one element.
func TestTorsion(t *testing.T) {
	// The point (0, −1) has order two.
	torsion, err := new(edwards25519.Point).
		SetBytes(append([]byte{0xec}, append(bytes.Repeat([]byte{0xff}, 30), 0x7f)...))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.NewChaCha8([32]byte{1})
	for range 100 {
		var b [64]byte
		r.Read(b[:])
		p := FromUniform(&b)
		e := Encode(p)
		if Encode(new(edwards25519.Point).Add(p, torsion)) != e {
			t.Fatal("torsion changes the encoding")
		}
		q, err := Decode(e[:])
		if err != nil || Encode(q) != e {
			t.Fatal("no round trip")
		}
	}
}

// FuzzDecode: what decodes encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	g := Encode(edwards25519.NewGeneratorPoint())
	f.Add(g[:])
	f.Add(make([]byte, Size))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := Decode(b); err == nil &&
			!bytes.Equal(b, func() []byte { e := Encode(p); return e[:] }()) {
			t.Fatal("two encodings of one element")
		}
	})
}
