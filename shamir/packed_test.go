package shamir

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func secretsOf(seed byte, n int) []Secret {
	random := chacha(seed)
	out := make([]Secret, n)
	for i := range out {
		out[i] = must(GenerateSecret(random))
	}
	return out
}

// padded returns the secrets with zeros up to whole polynomials.
func padded(p Packing, secrets []Secret) []Secret {
	return append(slices.Clone(secrets),
		make([]Secret, p.Polynomials(len(secrets))*p.PerPolynomial-len(secrets))...)
}

// TestPackedValues compares the shares with the polynomial in big integers.
func TestPackedValues(t *testing.T) {
	p := Packing{PerPolynomial: 3, Privacy: 2}
	secrets := secretsOf(1, 4) // the second polynomial has one secret and two zeros
	shares := must(SplitPacked(chacha(2), p, secrets, upTo(6)))
	uniform := must(randomElements(chacha(2), 4))
	for k, own := range [][]Secret{secrets[:3], {secrets[3], {}, {}}} {
		for _, s := range shares {
			want := new(big.Int)
			for i := 4; i >= 0; i-- {
				var c [32]byte
				if i < 3 {
					c = own[i]
				} else {
					c = uniform[2*k+i-3].Bytes()
				}
				want.Mul(want, big.NewInt(int64(s.Index)))
				want.Add(want, number(c)).Mod(want, order)
			}
			if s.Values[k] != encode(want) {
				t.Fatalf("polynomial %d, holder %d: wrong value", k, s.Index)
			}
		}
	}
}

// TestPackedPrivacy: for any secrets, any values of Privacy holders come from
// exactly one choice of the uniform coefficients, for every choice of holders.
func TestPackedPrivacy(t *testing.T) {
	p := Packing{PerPolynomial: 2, Privacy: 2}
	secrets := secretsOf(3, 2)
	wanted := secretsOf(4, 2)
	for a := uint32(1); a <= 6; a++ {
		for b := a + 1; b <= 6; b++ {
			// c2·x² + c3·x³ = v − s0 − s1·x at x = a, b: divide by x² and solve.
			rest := func(x uint32, v Secret) *big.Int {
				xx := big.NewInt(int64(x))
				r := new(big.Int).Sub(number(v), number(secrets[0]))
				r.Sub(r, new(big.Int).Mul(xx, number(secrets[1])))
				return r.Mul(r, new(big.Int).ModInverse(new(big.Int).Mul(xx, xx), order)).Mod(r, order)
			}
			ra, rb := rest(a, wanted[0]), rest(b, wanted[1])
			c3 := new(big.Int).Sub(rb, ra)
			c3.Mul(c3, new(big.Int).ModInverse(big.NewInt(int64(b-a)), order)).Mod(c3, order)
			c2 := new(big.Int).Sub(ra, new(big.Int).Mul(c3, big.NewInt(int64(a))))
			b2, b3 := encode(c2.Mod(c2, order)), encode(c3)
			random := slices.Concat(b2[:], make([]byte, 32), b3[:], make([]byte, 32))
			shares := must(SplitPacked(bytes.NewReader(random), p, secrets, upTo(6)))
			if shares[a-1].Values[0] != wanted[0] || shares[b-1].Values[0] != wanted[1] {
				t.Fatalf("holders %d and %d cannot have these values", a, b)
			}
		}
	}
}

// TestPackedPatterns: every pattern of holders that are right, silent or wrong, for
// small committees. The outcome follows the rule of CombinePackedVarTime.
func TestPackedPatterns(t *testing.T) {
	for _, c := range []struct {
		p         Packing
		faults, n int
	}{
		{Packing{1, 0}, 0, 2}, {Packing{2, 0}, 0, 3}, {Packing{1, 1}, 1, 4}, {Packing{2, 1}, 1, 5},
		{Packing{3, 1}, 1, 7}, {Packing{2, 2}, 2, 8}, {Packing{1, 1}, 2, 6},
	} {
		secrets := secretsOf(5, 5)
		shares := must(SplitPacked(chacha(6), c.p, secrets, upTo(c.n)))
		patterns := 1
		for range c.n {
			patterns *= 3
		}
		for pattern := range patterns {
			var given []PackedShare
			var names []uint32
			x := pattern
			for _, s := range shares {
				switch x % 3 {
				case 1:
					s.Values = slices.Clone(s.Values)
					s.Values[pattern%len(s.Values)][0] ^= 1
					names = append(names, s.Index)
					given = append(given, s)
				case 0:
					given = append(given, s)
				}
				x /= 3
			}
			got, wrong, err := CombinePackedVarTime(c.p, c.faults, given)
			what := fmt.Sprintf("%+v, pattern %d", c, pattern)
			switch r := c.p.Threshold(); {
			case len(given) < r+c.faults:
				if !errors.Is(err, ErrTooFewShares) || got != nil {
					t.Fatalf("%s: too few shares: %v", what, err)
				}
			case len(names) > c.faults: // nothing is promised
			case len(given) >= r+c.faults+len(names):
				if err != nil || !slices.Equal(got, padded(c.p, secrets)) || !slices.Equal(wrong, names) {
					t.Fatalf("%s: named %v, error %v", what, wrong, err)
				}
			default:
				if !errors.Is(err, ErrTooManyWrong) || got != nil || wrong != nil {
					t.Fatalf("%s: too many wrong: %v", what, err)
				}
			}
		}
	}
}

// TestPackedLimit documents what more liars than faults can do: r of them and one
// honest holder fit another polynomial, when faults is set to 1.
func TestPackedLimit(t *testing.T) {
	p := Packing{1, 1}
	mine, other := must(SplitPacked(chacha(1), p, secretsOf(1, 1), upTo(4))),
		must(SplitPacked(chacha(2), p, secretsOf(2, 1), upTo(4)))
	got, wrong, err := CombinePackedVarTime(p, 1, append(other[:3:3], mine[3]))
	if err != nil || got[0] != secretsOf(2, 1)[0] || !slices.Equal(wrong, []uint32{4}) {
		t.Errorf("named %v, error %v", wrong, err)
	}
}

// TestPackedSums: shares of sums add up, at the sizes of committees.
func TestPackedSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.IntRange(0, 12).Draw(t, "f")
		p := Packing{rapid.IntRange(1, 12).Draw(t, "per"), f}
		n := p.Threshold() + 2*f + rapid.IntRange(0, 3).Draw(t, "more")
		count := rapid.IntRange(1, 40).Draw(t, "secrets")
		random := chacha(byte(rapid.IntRange(0, 255).Draw(t, "seed")))
		sums := make([]*big.Int, count)
		for i := range sums {
			sums[i] = new(big.Int)
		}
		total := must(SplitPacked(random, p, make([]Secret, count), upTo(n)))
		for range rapid.IntRange(1, 5).Draw(t, "dealers") {
			secrets := make([]Secret, count)
			for i := range secrets {
				secrets[i] = must(GenerateSecret(random))
				sums[i].Add(sums[i], number(secrets[i])).Mod(sums[i], order)
			}
			for i, s := range must(SplitPacked(random, p, secrets, upTo(n))) {
				if err := total[i].Add(&s); err != nil {
					t.Fatal(err)
				}
			}
		}
		lies := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, f, func(i int) int { return i }).
			Draw(t, "lies")
		for _, i := range lies {
			total[i].Values[i%len(total[i].Values)] = must(GenerateSecret(random))
		}
		got, wrong, err := CombinePackedVarTime(p, f, total)
		if err != nil || len(wrong) != len(lies) {
			t.Fatalf("%d lies, named %v: %v", len(lies), wrong, err)
		}
		for i, s := range sums {
			if got[i] != encode(s) {
				t.Fatal("wrong sum")
			}
		}
	})
}

func TestPackedErrors(t *testing.T) {
	p := Packing{2, 1}
	secrets := secretsOf(1, 2)
	high := Secret(encode(big.NewInt(-1)))
	high[0]++ // ℓ itself
	for _, c := range []struct {
		name    string
		p       Packing
		secrets []Secret
		indices []uint32
		want    error
	}{
		{"no room", Packing{0, 1}, secrets, upTo(4), ErrPacking},
		{"negative", Packing{1, -1}, secrets, upTo(4), ErrPacking},
		{"holders", p, secrets, upTo(2), ErrThreshold},
		{"zero", p, secrets, []uint32{0, 1, 2}, ErrIndexZero},
		{"twice", p, secrets, []uint32{1, 1, 2}, ErrDuplicateIndex},
		{"ℓ", p, []Secret{high}, upTo(4), ErrNonCanonical},
	} {
		if shares, err := SplitPacked(nil, c.p, c.secrets, c.indices); !errors.Is(err, c.want) ||
			shares != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := SplitPacked(bytes.NewReader(make([]byte, 63)), p, secrets, upTo(4)); !errors.Is(err,
		ErrRandom) {
		t.Errorf("short randomness: %v", err)
	}
	change := func(f func([]PackedShare)) []PackedShare {
		shares := must(SplitPacked(chacha(1), p, secrets, upTo(5)))
		f(shares)
		return shares
	}
	for _, c := range []struct {
		name   string
		p      Packing
		faults int
		shares []PackedShare
		want   error
	}{
		{"no room", Packing{}, 1, change(func([]PackedShare) {}), ErrPacking},
		{"negative", p, -1, change(func([]PackedShare) {}), ErrPacking},
		{"none", p, 0, nil, ErrTooFewShares},
		{"few", p, 3, change(func([]PackedShare) {}), ErrTooFewShares},
		{"zero", p, 1, change(func(s []PackedShare) { s[2].Index = 0 }), ErrIndexZero},
		{"twice", p, 1, change(func(s []PackedShare) { s[2].Index = 1 }), ErrDuplicateIndex},
		{"no values", p, 1, change(func(s []PackedShare) { s[0].Values = nil }), ErrLength},
		{"more values", p, 1, change(func(s []PackedShare) {
			s[3].Values = append(s[3].Values, secrets[0])
		}), ErrLength},
		{"ℓ", p, 1, change(func(s []PackedShare) { s[3].Values[0] = high }), ErrNonCanonical},
	} {
		if got, wrong, err := CombinePackedVarTime(c.p, c.faults, c.shares); !errors.Is(err, c.want) ||
			got != nil || wrong != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	shares := change(func([]PackedShare) {})
	before := slices.Clone(shares[0].Values)
	for _, c := range []struct {
		share PackedShare
		want  error
	}{
		{shares[1], ErrUnknownIndex},
		{PackedShare{1, nil}, ErrLength},
		{PackedShare{1, [][32]byte{high}}, ErrNonCanonical},
	} {
		if err := shares[0].Add(&c.share); !errors.Is(err, c.want) ||
			!slices.Equal(before, shares[0].Values) {
			t.Errorf("added %v: %v", c.share.Index, err)
		}
	}
}

// BenchmarkPacked deals and rebuilds what a one-message sum does: 158 scalars for a
// committee of 40, ten of whom may lie.
func BenchmarkPacked(b *testing.B) {
	p := Packing{PerPolynomial: 10, Privacy: 10}
	secrets := secretsOf(1, 158)
	shares := must(SplitPacked(nil, p, secrets, upTo(40)))
	b.Run("split", func(b *testing.B) {
		for b.Loop() {
			must(SplitPacked(nil, p, secrets, upTo(40)))
		}
	})
	b.Run("add", func(b *testing.B) {
		sum := must(SplitPacked(nil, p, secrets, upTo(40)))[0]
		for b.Loop() {
			_ = sum.Add(&shares[0])
		}
	})
	for _, lies := range []int{0, 10} {
		for i := range lies {
			shares[4*i].Values[i][0] ^= 1
		}
		b.Run(fmt.Sprintf("combine,wrong=%d", lies), func(b *testing.B) {
			for b.Loop() {
				if _, wrong, err := CombinePackedVarTime(p, 10, shares); err != nil || len(wrong) != lies {
					b.Fatal(err)
				}
			}
		})
	}
}
