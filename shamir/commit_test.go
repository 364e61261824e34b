package shamir

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"filippo.io/edwards25519"
	"pgregory.net/rapid"
)

// smallOrder has the canonical encodings of the seven points of order 2, 4 and
// 8. The identity, of order 1, is left out.
var smallOrder = []string{
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 2: (0, −1)
	"0000000000000000000000000000000000000000000000000000000000000000", // order 4
	"0000000000000000000000000000000000000000000000000000000000000080", // order 4
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // order 8
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", // order 8
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85", // order 8
}

// otherEncodings are 32 bytes that decode to no point, or to one that has
// another, canonical encoding.
var otherEncodings = []string{
	"0100000000000000000000000000000000000000000000000000000000000080", // identity, sign bit set
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // identity, y = p+1
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", // identity, both
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 4, y = p
	"f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // y = p+3
	"0200000000000000000000000000000000000000000000000000000000000000", // not on the curve
	"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
}

func TestParseCommitments(t *testing.T) {
	base := edwards25519.NewGeneratorPoint()
	refuse := func(name string, b []byte) {
		t.Helper()
		for position := range 2 { // first and second of two commitments
			enc := append(bytes.Clone(b), base.Bytes()...)
			if position == 1 {
				enc = append(base.Bytes(), b...)
			}
			if f, err := ParseFeldman(enc); !errors.Is(err, ErrCommitment) || f != nil {
				t.Errorf("Feldman accepts %s at %d: %v", name, position, err)
			}
			if p, err := ParsePedersen(enc); !errors.Is(err, ErrCommitment) || p != nil {
				t.Errorf("Pedersen accepts %s at %d: %v", name, position, err)
			}
		}
	}
	for _, s := range smallOrder {
		b := must(hex.DecodeString(s))
		p := must(new(edwards25519.Point).SetBytes(b))
		if !bytes.Equal(p.Bytes(), b) || p.Equal(edwards25519.NewIdentityPoint()) == 1 ||
			new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) != 1 {
			t.Fatalf("%s is not in the table by right", s)
		}
		refuse("small order "+s, b)
		refuse("mixed order with "+s, p.Add(p, base).Bytes())
	}
	for _, s := range otherEncodings {
		refuse(s, must(hex.DecodeString(s)))
	}
	for n := range 3*commitmentSize + 1 {
		b := make([]byte, n)
		for i := 0; i < n; i += commitmentSize {
			b[i] = 1 // identities
		}
		f, err := ParseFeldman(b)
		if n > 0 && n%commitmentSize == 0 {
			if err != nil || f.Threshold() != n/commitmentSize ||
				!bytes.Equal(must(f.AppendBinary(nil)), b) {
				t.Errorf("%d bytes of identities: %v", n, err)
			}
		} else if !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestFeldman(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := holders(4).Draw(t, "holders")
		threshold := rapid.IntRange(1, len(xs)).Draw(t, "threshold")
		secret := secrets().Draw(t, "secret")
		seed := rapid.Byte().Draw(t, "seed")
		shares, made, err := SplitFeldman(chacha(seed), secret, threshold, xs)
		if err != nil {
			t.Fatal(err)
		}
		f := must(ParseFeldman(must(made.AppendBinary(nil))))
		if f.Threshold() != threshold {
			t.Fatal("threshold")
		}
		if err := f.VerifySecret(secret); err != nil {
			t.Fatal(err)
		}
		for i, plain := range must(Split(chacha(seed), secret, threshold, xs)) {
			s := shares[i]
			if s != plain {
				t.Fatal("shares differ from those of Split")
			}
			if err := f.Verify(s); err != nil {
				t.Fatal(err)
			}
			bad, _ := corrupt(shares, []int{i})
			var index *IndexError
			if err := f.Verify(bad[i]); !errors.Is(err, ErrNotCommitted) || !errors.As(err, &index) ||
				index.Index != s.Index {
				t.Fatalf("wrong value: %v", err)
			}
			if threshold > 1 {
				s.Index ^= 1 << 31
				if s.Index != 0 && f.Verify(s) == nil {
					t.Fatal("wrong index accepted")
				}
			}
		}
	})
	_, f, _ := SplitFeldman(chacha(1), Secret{1}, 2, upTo(3))
	for _, c := range []struct{ got, want error }{
		{f.VerifySecret(Secret{2}), ErrNotCommitted},
		{f.VerifySecret(notCanonical["ℓ"]), ErrNonCanonical},
		{f.Verify(Share{Index: 0}), ErrIndexZero},
		{f.Verify(Share{1, notCanonical["ℓ+1"]}), ErrNonCanonical},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if _, f, err := SplitFeldman(nil, Secret{}, 2, upTo(1)); !errors.Is(err, ErrThreshold) ||
		f != nil {
		t.Error(err)
	}
}

// TestFeldmanKnownAnswer: the commitments to 2 + 3x are 2·B and 3·B.
func TestFeldmanKnownAnswer(t *testing.T) {
	_, f, err := SplitFeldman(coefficientReader(3), Secret{2}, 2, upTo(2))
	if err != nil {
		t.Fatal(err)
	}
	two := edwards25519.NewGeneratorPoint()
	two.Add(two, two)
	three := new(edwards25519.Point).Add(two, edwards25519.NewGeneratorPoint())
	if want := append(two.Bytes(), three.Bytes()...); !bytes.Equal(must(f.AppendBinary(nil)), want) {
		t.Errorf("got %x, want %x", must(f.AppendBinary(nil)), want)
	}
}

// TestCorrectWithFeldman uses a commitment to the secret as the check.
func TestCorrectWithFeldman(t *testing.T) {
	secret := must(GenerateSecret(chacha(3)))
	shares, f, err := SplitFeldman(chacha(4), secret, 3, upTo(7))
	if err != nil {
		t.Fatal(err)
	}
	c := must(NewCombiner(3, upTo(7)))
	bad, _ := corrupt(shares, []int{0, 5})
	got, wrong, err := c.CorrectVarTime(bad, func(s Secret) bool { return f.VerifySecret(s) == nil })
	if err != nil || got != secret || len(wrong) != 2 {
		t.Errorf("named %v, error %v", wrong, err)
	}
}

// TestPedersenGenerator pins the second generator. The constant was computed
// with another implementation of the curve, from the description in
// pedersenGenerator; the counter was 2.
func TestPedersenGenerator(t *testing.T) {
	const want = "f4d13b7a427d7e9aa27831826d2511651cb16f3344dd11e4baa47e8afaa36cfa"
	if got := hex.EncodeToString(pedersenGenerator().Bytes()); got != want {
		t.Errorf("got %s", got)
	}
	if _, err := parsePoints(pedersenGenerator().Bytes()); err != nil {
		t.Error(err)
	}
}

func TestPedersen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := holders(4).Draw(t, "holders")
		threshold := rapid.IntRange(1, len(xs)).Draw(t, "threshold")
		secret := secrets().Draw(t, "secret")
		shares, blinding, made, err := SplitPedersen(chacha(rapid.Byte().Draw(t, "seed")), secret,
			threshold, xs)
		if err != nil {
			t.Fatal(err)
		}
		p := must(ParsePedersen(must(made.AppendBinary(nil))))
		if p.Threshold() != threshold {
			t.Fatal("threshold")
		}
		if err := p.VerifySecret(secret, blinding); err != nil {
			t.Fatal(err)
		}
		var values, blindings []Share
		for _, s := range shares {
			if err := p.Verify(s); err != nil {
				t.Fatal(err)
			}
			values, blindings = append(values, s.SecretShare()), append(blindings, s.BlindingShare())
			s.Value = encode(number(s.Value).SetBit(number(s.Value), 7, number(s.Value).Bit(7)^1))
			if err := p.Verify(s); !errors.Is(err, ErrNotCommitted) {
				t.Fatalf("wrong value: %v", err)
			}
			s.Value, s.Blinding = s.Blinding, s.Value
			if p.Verify(s) == nil {
				t.Fatal("value and blinding swapped")
			}
		}
		if must(Combine(threshold, values)) != secret || must(Combine(threshold, blindings)) != blinding {
			t.Fatal("does not combine")
		}
	})
	shares, blinding, p, err := SplitPedersen(nil, Secret{1}, 2, upTo(3))
	if err != nil {
		t.Fatal(err)
	}
	zero, large, largeBlinding := shares[0], shares[0], shares[0]
	zero.Index = 0
	large.Value = notCanonical["ℓ"]
	largeBlinding.Blinding = notCanonical["ℓ"]
	for _, c := range []struct{ got, want error }{
		{p.Verify(zero), ErrIndexZero},
		{p.Verify(large), ErrNonCanonical},
		{p.Verify(largeBlinding), ErrNonCanonical},
		{p.VerifySecret(Secret{2}, blinding), ErrNotCommitted},
		{p.VerifySecret(Secret{1}, Secret{}), ErrNotCommitted},
		{p.VerifySecret(Secret{1}, notCanonical["ℓ"]), ErrNonCanonical},
		{p.VerifySecret(notCanonical["ℓ"], blinding), ErrNonCanonical},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	for name, err := range map[string]error{
		"secret":  fourth(SplitPedersen(nil, notCanonical["ℓ"], 2, upTo(3))),
		"holders": fourth(SplitPedersen(nil, Secret{}, 4, upTo(3))),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func fourth[A, B, C any](_ A, _ B, _ C, err error) error { return err }
