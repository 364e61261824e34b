package shamir

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

var order, _ = new(big.Int).SetString(
	"7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// encode returns v mod ℓ in 32 bytes, little-endian.
func encode(v *big.Int) (b [32]byte) {
	new(big.Int).Mod(v, order).FillBytes(b[:])
	slices.Reverse(b[:])
	return b
}

func number(b [32]byte) *big.Int {
	slices.Reverse(b[:])
	return new(big.Int).SetBytes(b[:])
}

// valueAt is the reference for polynomials: a sum of powers, in math/big.
func valueAt(coefficients []*big.Int, x uint32) *big.Int {
	sum := new(big.Int)
	for k, c := range coefficients {
		power := new(big.Int).Exp(big.NewInt(int64(x)), big.NewInt(int64(k)), order)
		sum.Add(sum, power.Mul(power, c))
	}
	return sum.Mod(sum, order)
}

// interpolateAt is the reference for interpolation: Lagrange's formula at any
// point, in math/big.
func interpolateAt(at *big.Int, xs []uint32, ys []*big.Int) *big.Int {
	sum := new(big.Int)
	for i := range xs {
		num, den := new(big.Int).Set(ys[i]), big.NewInt(1)
		for j := range xs {
			if j != i {
				num.Mul(num, new(big.Int).Sub(at, big.NewInt(int64(xs[j])))).Mod(num, order)
				den.Mul(den, big.NewInt(int64(xs[i])-int64(xs[j]))).Mod(den, order)
			}
		}
		sum.Add(sum, num.Mul(num, den.ModInverse(den, order)))
	}
	return sum.Mod(sum, order)
}

// chacha returns a deterministic source for tests.
func chacha(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// coefficientReader returns a reader from which Split takes the coefficients.
func coefficientReader(coefficients ...int64) io.Reader {
	var buf bytes.Buffer
	for _, c := range coefficients {
		b := encode(big.NewInt(c))
		buf.Write(b[:])
		buf.Write(make([]byte, 32))
	}
	return &buf
}

func upTo(n int) []uint32 {
	xs := make([]uint32, n)
	for i := range xs {
		xs[i] = uint32(i + 1)
	}
	return xs
}

// must returns v; an error is the fault of the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// subset returns the shares whose bit is set in mask.
func subset(shares []Share, mask int) []Share {
	var s []Share
	for i := range shares {
		if mask>>i&1 == 1 {
			s = append(s, shares[i])
		}
	}
	return s
}

// secrets draws secrets with weight on small and large ones.
func secrets() *rapid.Generator[Secret] {
	return rapid.Custom(func(t *rapid.T) Secret {
		v := big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "edge"))
		if rapid.Bool().Draw(t, "anywhere") {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes"))
		}
		return encode(v)
	})
}

// holders draws 1 to most distinct indices of all sizes.
func holders(most int) *rapid.Generator[[]uint32] {
	index := rapid.OneOf(rapid.Uint32Range(1, 20), rapid.Uint32Range(1, 1<<32-1),
		rapid.Uint32Range(1<<32-20, 1<<32-1))
	return rapid.SliceOfNDistinct(index, 1, most, rapid.ID[uint32])
}

func TestSplitKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name         string
		secret       int64
		coefficients []int64
		indices      []uint32
		want         []int64
	}{
		// 1234 + 166x + 94x², worked by hand.
		{"by hand", 1234, []int64{166, 94}, upTo(6), []int64{1494, 1942, 2578, 3402, 4414, 5614}},
		{"threshold 1", 5, nil, []uint32{9, 2}, []int64{5, 5}},
		{"wraps", -1, []int64{1}, []uint32{1, 2, 1<<32 - 1}, []int64{0, 1, 1<<32 - 2}},
		{"negative coefficient", 3, []int64{-1, 0, 2}, []uint32{1, 2, 10, 3}, []int64{4, 17, 1993, 54}},
	} {
		shares := must(Split(coefficientReader(c.coefficients...), encode(big.NewInt(c.secret)),
			len(c.coefficients)+1, c.indices))
		for i := range c.want {
			if want := (Share{c.indices[i], encode(big.NewInt(c.want[i]))}); shares[i] != want {
				t.Errorf("%s: share %d is %v, want %v", c.name, i, shares[i], want)
			}
		}
	}
}

// TestSplitReference compares Split with the sum of powers in math/big, with
// indices of all sizes.
func TestSplitReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := holders(12).Draw(t, "holders")
		threshold := rapid.IntRange(1, len(xs)).Draw(t, "threshold")
		secret := secrets().Draw(t, "secret")
		seed := rapid.Byte().Draw(t, "seed")
		shares := must(Split(chacha(seed), secret, threshold, xs))
		r := chacha(seed)
		coefficients := []*big.Int{number(secret)}
		for range threshold - 1 {
			var b [64]byte
			io.ReadFull(r, b[:])
			slices.Reverse(b[:])
			coefficients = append(coefficients, new(big.Int).Mod(new(big.Int).SetBytes(b[:]), order))
		}
		for i, x := range xs {
			if want := encode(valueAt(coefficients, x)); shares[i].Index != x || shares[i].Value != want {
				t.Fatalf("share of %d: got %x, want %x", x, shares[i].Value, want)
			}
		}
	})
}

// TestExhaustive rebuilds a secret from every subset of up to 5 holders, for
// every threshold, by both ways; too few are refused.
func TestExhaustive(t *testing.T) {
	xs := []uint32{3, 1, 1 << 31, 700, 1<<32 - 1}
	for n := 1; n <= len(xs); n++ {
		for threshold := 1; threshold <= n; threshold++ {
			secret := must(GenerateSecret(chacha(byte(n))))
			shares := must(Split(chacha(byte(threshold)), secret, threshold, xs[:n]))
			for mask := range 1 << n {
				some := subset(shares, mask)
				got, err := Combine(threshold, some)
				if len(some) < threshold {
					if !errors.Is(err, ErrTooFewShares) || got != (Secret{}) {
						t.Fatalf("n=%d t=%d subset %b: got error %v", n, threshold, mask, err)
					}
					continue
				}
				if err != nil || got != secret {
					t.Fatalf("n=%d t=%d subset %b: %v", n, threshold, mask, err)
				}
				c := must(combinerFor(threshold, some))
				if got := must(c.Combine(some)); got != secret {
					t.Fatalf("n=%d t=%d subset %b: Combiner", n, threshold, mask)
				}
				// Without, for every one of them, and twice.
				for i, s := range some {
					if len(some) == threshold {
						if _, err := c.Without(s.Index); !errors.Is(err, ErrThreshold) {
							t.Fatal(err)
						}
						continue
					}
					rest := slices.Delete(slices.Clone(some), i, i+1)
					d := must(c.Without(s.Index))
					if got, wrong, err := d.CorrectVarTime(rest, nil); err != nil || wrong != nil ||
						got != secret {
						t.Fatalf("n=%d t=%d subset %b without %d: %v %v", n, threshold, mask, s.Index, wrong, err)
					}
					if len(rest) > threshold {
						e := must(d.Without(rest[0].Index))
						if got, _, err := e.CorrectVarTime(rest[1:], nil); err != nil || got != secret {
							t.Fatalf("n=%d t=%d subset %b without two: %v", n, threshold, mask, err)
						}
					}
				}
			}
		}
	}
}

// TestAnySubset takes random thresholds, holders and subsets, larger than the
// exhaustive test can.
func TestAnySubset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := holders(25).Draw(t, "holders")
		threshold := rapid.IntRange(1, len(xs)).Draw(t, "threshold")
		secret := secrets().Draw(t, "secret")
		shares := must(Split(chacha(rapid.Byte().Draw(t, "seed")), secret, threshold, xs))
		some := rapid.Permutation(shares).
			Draw(t, "order")[:rapid.IntRange(threshold, len(xs)).Draw(t, "how many")]
		got, err := Combine(threshold, some)
		if err != nil || got != secret {
			t.Fatalf("got %x, error %v", got, err)
		}
		ys := make([]*big.Int, threshold)
		for i := range ys {
			ys[i] = number(some[i].Value)
		}
		indices := must(combinerFor(threshold, some)).Indices()
		if want := interpolateAt(new(big.Int), indices[:threshold], ys); number(got).Cmp(want) != 0 {
			t.Fatal("differs from Lagrange's formula in math/big")
		}
	})
}

// TestPrivacy shows that t−1 shares fit every secret: for shares of one secret
// and any other secret it constructs the polynomial of degree below t that has
// the same t−1 shares and the other secret, namely
// p(x) + (other − secret)·Π(1 − x/x_i), and deals it. The map between the two
// polynomials is a bijection, so that uniform coefficients make all secrets
// equally likely.
func TestPrivacy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := holders(8).Draw(t, "holders")
		threshold := rapid.IntRange(1, len(xs)).Draw(t, "threshold")
		secret, other := secrets().Draw(t, "secret"), secrets().Draw(t, "other")
		shares := must(Split(chacha(rapid.Byte().Draw(t, "seed")), secret, threshold, xs))
		known := shares[:threshold-1]

		// A further share that takes the known ones to the other secret.
		points, ys := []uint32{0}, []*big.Int{number(other)}
		for _, s := range known {
			points, ys = append(points, s.Index), append(ys, number(s.Value))
		}
		last := xs[threshold-1]
		forged := append(slices.Clone(known),
			Share{last, encode(interpolateAt(big.NewInt(int64(last)), points, ys))})
		if got := must(Combine(threshold, forged)); got != other {
			t.Fatalf("no polynomial takes the shares to %x", other)
		}
		// It is the one of the formula.
		factor := big.NewInt(1)
		for _, s := range known {
			x := big.NewInt(int64(s.Index))
			factor.Mul(factor, new(big.Int).Sub(x, big.NewInt(int64(last))))
			factor.Mul(factor, x.ModInverse(x, order)).Mod(factor, order)
		}
		want := new(big.Int).Sub(number(other), number(secret))
		want.Mul(want, factor).Add(want, number(shares[threshold-1].Value))
		if encode(want) != forged[threshold-1].Value {
			t.Fatal("not the polynomial of the formula")
		}
	})
}

// TestLinearity: sums of shares are shares of the sum.
func TestLinearity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := holders(10).Draw(t, "holders")
		threshold := rapid.IntRange(1, len(xs)).Draw(t, "threshold")
		a, b := secrets().Draw(t, "a"), secrets().Draw(t, "b")
		sa := must(Split(chacha(1), a, threshold, xs))
		sb := must(Split(chacha(2), b, threshold, xs))
		sum := make([]Share, len(xs))
		for i, x := range xs {
			sum[i] = Share{x, encode(new(big.Int).Add(number(sa[i].Value), number(sb[i].Value)))}
		}
		want := encode(new(big.Int).Add(number(a), number(b)))
		if got := must(Combine(threshold, sum)); got != want {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
}

// TestUniform sorts single shares of one fixed secret into 16 bins by their
// upper bits. For uniform shares the chi-square statistic with 15 degrees of
// freedom is above 90 with probability below 10^-12. The seed is fixed.
func TestUniform(t *testing.T) {
	const draws = 16000
	for _, threshold := range []int{2, 3} {
		r := chacha(byte(threshold))
		var bins [16]float64
		for range draws {
			shares := must(Split(r, Secret{}, threshold, []uint32{1, 2, 3}))
			v := number(shares[threshold-1].Value)
			bins[new(big.Int).Div(v.Lsh(v, 4), order).Int64()]++
		}
		chi2 := 0.0
		for _, n := range bins {
			chi2 += (n - draws/16) * (n - draws/16) / (draws / 16)
		}
		if chi2 > 90 {
			t.Errorf("threshold %d: chi-square is %.1f", threshold, chi2)
		}
	}
}

var notCanonical = map[string][32]byte{
	"ℓ": [32]byte(must(hex.DecodeString(
		"edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"))),
	"ℓ+1": [32]byte(must(hex.DecodeString(
		"eed3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"))),
	"2^253":   {31: 0x20},
	"2^255":   {31: 0x80},
	"2^256-1": [32]byte(bytes.Repeat([]byte{0xff}, 32)),
}

func TestErrors(t *testing.T) {
	secret := Secret{1}
	good := must(Split(chacha(1), secret, 2, upTo(4)))
	large := Share{1, notCanonical["ℓ"]}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"threshold 0", second(Split(nil, secret, 0, upTo(3))), ErrThreshold},
		{"negative threshold", second(Split(nil, secret, -1, upTo(3))), ErrThreshold},
		{"threshold above n", second(Split(nil, secret, 4, upTo(3))), ErrThreshold},
		{"no holders", second(Split(nil, secret, 1, nil)), ErrThreshold},
		{"index 0", second(Split(nil, secret, 2, []uint32{1, 0})), ErrIndexZero},
		{"duplicate", second(Split(nil, secret, 2, []uint32{7, 1, 7})), ErrDuplicateIndex},
		{"secret ℓ", second(Split(nil, notCanonical["ℓ"], 2, upTo(3))), ErrNonCanonical},
		{"short reader", second(Split(bytes.NewReader(make([]byte, 127)), secret, 3, upTo(3))), io.ErrUnexpectedEOF},
		{"failing reader", second(GenerateSecret(iotest.ErrReader(io.ErrClosedPipe))), io.ErrClosedPipe},
		{"combine threshold 0", second(Combine(0, good)), ErrThreshold},
		{"combine nothing", second(Combine(1, nil)), ErrTooFewShares},
		{"combine too few", second(Combine(5, good)), ErrTooFewShares},
		{"combine duplicate", second(Combine(2, []Share{good[0], good[1], good[0]})), ErrDuplicateIndex},
		{"combine index 0", second(Combine(1, []Share{{}})), ErrIndexZero},
		{"combine ℓ", second(Combine(2, []Share{good[1], large})), ErrNonCanonical},
		{"combiner threshold", second(NewCombiner(3, upTo(2))), ErrThreshold},
		{"combiner index 0", second(NewCombiner(1, []uint32{0})), ErrIndexZero},
		{"combiner duplicate", second(NewCombiner(1, []uint32{2, 2})), ErrDuplicateIndex},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.err, c.want)
		}
	}
	c := must(NewCombiner(2, upTo(4)))
	swapped := []Share{good[1], good[0], good[2], good[3]}
	for name, shares := range map[string][]Share{"Combine": swapped,
		"extra": append(slices.Clone(good), Share{Index: 5})} {
		if _, _, err := c.CorrectVarTime(shares, nil); !errors.Is(err, ErrUnknownIndex) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := c.Combine(swapped); !errors.Is(err, ErrUnknownIndex) {
		t.Errorf("order of shares: got %v", err)
	}
	if _, err := c.Combine(good[:1]); !errors.Is(err, ErrTooFewShares) {
		t.Errorf("got %v", err)
	}
	if _, _, err := c.CorrectVarTime(good[:3], nil); !errors.Is(err, ErrTooFewShares) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Without(5); !errors.Is(err, ErrUnknownIndex) {
		t.Errorf("got %v", err)
	}
	var index *IndexError
	if _, err := c.Combine([]Share{large, good[1]}); !errors.As(err, &index) || index.Index != 1 ||
		!errors.Is(err, ErrNonCanonical) {
		t.Errorf("got %v", err)
	}
	if _, err := GenerateSecret(nil); err != nil {
		t.Error(err)
	}
	if c.Threshold() != 2 {
		t.Error("Threshold")
	}
}

func second[T any](_ T, err error) error { return err }

func TestParseSecret(t *testing.T) {
	for n := range 2 * SecretSize {
		_, err := ParseSecret(make([]byte, n))
		if n == SecretSize && err != nil || n != SecretSize && !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes: error %v", n, err)
		}
	}
	for name, v := range notCanonical {
		if _, err := ParseSecret(v[:]); !errors.Is(err, ErrNonCanonical) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
