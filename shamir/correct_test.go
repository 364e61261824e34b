package shamir

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// corrupt returns a copy of the shares with those at the given places wrong,
// and the indices of those, in the order of the shares.
func corrupt(shares []Share, places []int) ([]Share, []uint32) {
	out := slices.Clone(shares)
	var names []uint32
	slices.Sort(places)
	for k, i := range places {
		out[i].Value = encode(new(big.Int).Add(number(out[i].Value), big.NewInt(int64(k+1))))
		names = append(names, out[i].Index)
	}
	return out, names
}

// TestCorrectEveryCount corrects every number of wrong shares up to the limit,
// at random places, and refuses one and two above the limit.
// TestWrongSharesText: the error names the wrong shares, or says that they are too many.
func TestWrongSharesText(t *testing.T) {
	for _, c := range []struct {
		err  *WrongSharesError
		says string
	}{
		{&WrongSharesError{Wrong: []uint32{3, 8}, Limit: 2}, "[3 8]"},
		{&WrongSharesError{Limit: 2}, "limit 2"},
	} {
		if text := c.err.Error(); !strings.Contains(text, c.says) {
			t.Errorf("%q does not say %q", text, c.says)
		}
	}
}

func TestCorrectEveryCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := holders(16).Draw(t, "holders")
		m := len(xs)
		threshold := rapid.IntRange(1, m).Draw(t, "threshold")
		secret := secrets().Draw(t, "secret")
		shares := must(Split(chacha(rapid.Byte().Draw(t, "seed")), secret, threshold, xs))
		c := must(NewCombiner(threshold, xs))
		is := func(s Secret) bool { return s == secret }
		places := rapid.Permutation(intsUpTo(m)).Draw(t, "places")
		limit := (m - threshold) / 2
		for count := 0; count <= limit; count++ {
			bad, names := corrupt(shares, slices.Clone(places[:count]))
			got, wrong, err := c.CorrectVarTime(bad, nil)
			if err != nil || got != secret || !slices.Equal(wrong, names) {
				t.Fatalf("%d of %d wrong: got %v, want %v (error %v)", count, limit, wrong, names, err)
			}
			if got, _, err := c.CorrectVarTime(bad, is); err != nil || got != secret {
				t.Fatalf("%d of %d wrong, checked: error %v", count, limit, err)
			}
			_, err = Combine(threshold, bad)
			var report *WrongSharesError
			if count == 0 && err != nil || count > 0 &&
				(!errors.As(err, &report) || !slices.Equal(report.Wrong, names) ||
					errors.Is(err, ErrTooManyWrong) || !errors.Is(err, ErrWrongShares)) {
				t.Fatalf("Combine with %d of %d wrong: %v", count, limit, err)
			}
		}
		// With more wrong shares than the limit the decoder may only fail,
		// unless they happen to lie on another polynomial, which the check
		// below rules out.
		for count := limit + 1; count <= min(limit+2, m-threshold); count++ {
			bad, _ := corrupt(shares, slices.Clone(places[:count]))
			got, wrong, err := c.CorrectVarTime(bad, nil)
			if err == nil {
				if !fitsAllBut(threshold, bad, wrong) {
					t.Fatalf("%d wrong, limit %d: named %v, but the rest do not agree", count, limit, wrong)
				}
			} else if !errors.Is(err, ErrTooManyWrong) || got != (Secret{}) || wrong != nil {
				t.Fatalf("%d wrong, limit %d: error %v", count, limit, err)
			}
			got, wrong, err = c.CorrectVarTime(bad, is)
			if err == nil && got != secret || err != nil && (got != (Secret{}) || wrong != nil) {
				t.Fatalf("%d wrong, limit %d, checked: error %v", count, limit, err)
			}
		}
	})
}

// fitsAllBut reports whether the shares other than the named lie on one
// polynomial, by Lagrange's formula in math/big.
func fitsAllBut(threshold int, shares []Share, names []uint32) bool {
	var xs []uint32
	var ys []*big.Int
	for _, s := range shares {
		if !slices.Contains(names, s.Index) {
			xs, ys = append(xs, s.Index), append(ys, number(s.Value))
		}
	}
	for i := threshold; i < len(xs); i++ {
		if interpolateAt(big.NewInt(int64(xs[i])), xs[:threshold], ys[:threshold]).Cmp(ys[i]) != 0 {
			return false
		}
	}
	return true
}

func intsUpTo(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}

// TestCorrectExhaustive takes every set of wrong places among 7 holders, for
// every threshold, with errors that no second polynomial explains: any set
// within the limit is named, any other refused.
func TestCorrectExhaustive(t *testing.T) {
	xs := []uint32{5, 2, 9, 1, 1<<32 - 1, 1000, 77}
	for threshold := 1; threshold <= len(xs); threshold++ {
		secret := Secret{byte(threshold)}
		shares := must(Split(chacha(7), secret, threshold, xs))
		c := must(NewCombiner(threshold, xs))
		r := chacha(8)
		for mask := range 1 << len(xs) {
			bad := slices.Clone(shares)
			var names []uint32
			for i := range bad {
				if mask>>i&1 == 1 {
					bad[i].Value = must(GenerateSecret(r)) // differs but for chance 2^-252
					names = append(names, xs[i])
				}
			}
			got, wrong, err := c.CorrectVarTime(bad, nil)
			switch {
			case threshold == len(xs): // nothing to compare with
				if err != nil || wrong != nil {
					t.Fatal(err)
				}
			case threshold == 1 && len(names) == len(xs) || len(names) > c.limit():
				if !errors.Is(err, ErrTooManyWrong) {
					t.Fatalf("t=%d, wrong %v: named %v, error %v", threshold, names, wrong, err)
				}
			case err != nil || got != secret || !slices.Equal(wrong, names):
				t.Fatalf("t=%d, wrong %v: named %v, error %v", threshold, names, wrong, err)
			}
		}
	}
}

// TestCorrectFastPath: a secret that the check accepts ends the work, and the
// other shares are not even decoded.
func TestCorrectFastPath(t *testing.T) {
	secret := Secret{42}
	shares := must(Split(chacha(1), secret, 3, upTo(9)))
	c := must(NewCombiner(3, upTo(9)))
	shares[8].Value = notCanonical["ℓ"]
	calls := 0
	got, wrong, err := c.CorrectVarTime(shares, func(s Secret) bool { calls++; return s == secret })
	if err != nil || wrong != nil || got != secret || calls != 1 {
		t.Errorf("got %v, named %v, %d calls", err, wrong, calls)
	}
	if _, _, err := c.CorrectVarTime(shares, nil); !errors.Is(err, ErrNonCanonical) {
		t.Errorf("without the check: %v", err)
	}
}

// TestCorrectRefused: holders who agree on a secret that the check refuses.
func TestCorrectRefused(t *testing.T) {
	shares := must(Split(chacha(1), Secret{42}, 3, upTo(9)))
	c := must(NewCombiner(3, upTo(9)))
	never := func(Secret) bool { return false }
	for count := range 4 {
		bad, _ := corrupt(shares, intsUpTo(count))
		if got, wrong, err := c.CorrectVarTime(bad, never); !errors.Is(err, ErrRefused) || wrong != nil ||
			got != (Secret{}) {
			t.Errorf("%d wrong: error %v", count, err)
		}
	}
}

// TestCorrectLimit documents what colluders above the limit can do: when only
// two of seven honest holders are left, the others can agree on another
// polynomial and the honest are named. Only a check of the secret notices.
func TestCorrectLimit(t *testing.T) {
	const threshold, m = 3, 7 // limit 2
	shares := must(Split(chacha(1), Secret{1}, threshold, upTo(m)))
	other := must(Split(chacha(2), Secret{2}, threshold, upTo(m)))
	mixed := slices.Concat(other[:5], shares[5:])
	c := must(NewCombiner(threshold, upTo(m)))
	got, wrong, err := c.CorrectVarTime(mixed, nil)
	if err != nil || got != (Secret{2}) || !slices.Equal(wrong, []uint32{6, 7}) {
		t.Errorf("got %v, named %v", err, wrong)
	}
	if _, wrong, err = c.CorrectVarTime(mixed,
		func(s Secret) bool { return s == Secret{1} }); !errors.Is(err, ErrRefused) || wrong != nil {
		t.Errorf("checked: got %v, named %v", err, wrong)
	}
}

// TestCorrectNobodyFramed: with one share to spare a wrong one is noticed, and
// nobody may be named. By hand: of holders 1, 2, 3 with threshold 2 the only
// syndrome is (y1/2 − y2 + y3/2), and the recurrence found for a syndrome of
// 1 has the root 1, which is holder 1, when holder 3 added 2 to its share.
func TestCorrectNobodyFramed(t *testing.T) {
	shares := must(Split(chacha(1), Secret{1}, 2, upTo(3)))
	shares[2].Value = encode(new(big.Int).Add(number(shares[2].Value), big.NewInt(2)))
	_, wrong, err := must(NewCombiner(2, upTo(3))).CorrectVarTime(shares, nil)
	if !errors.Is(err, ErrTooManyWrong) || wrong != nil {
		t.Errorf("named %v, error %v", wrong, err)
	}
	if _, err := Combine(2, shares); !errors.Is(err, ErrTooManyWrong) {
		t.Errorf("Combine: %v", err)
	}
}

// TestCorrectLarge corrects the most that the largest size allows.
func TestCorrectLarge(t *testing.T) {
	const threshold, m = 101, 200
	secret := Secret{9}
	shares := must(Split(chacha(1), secret, threshold, upTo(m)))
	c := must(NewCombiner(threshold, upTo(m)))
	places := intsUpTo(m)
	for i := range places {
		places[i] = i * 37 % m
	}
	bad, names := corrupt(shares, slices.Clone(places[:49]))
	if got, wrong, err := c.CorrectVarTime(bad, nil); err != nil || got != secret ||
		!slices.Equal(wrong, names) {
		t.Errorf("named %v, error %v", wrong, err)
	}
	bad, _ = corrupt(shares, slices.Clone(places[:50]))
	if _, _, err := c.CorrectVarTime(bad, nil); !errors.Is(err, ErrTooManyWrong) {
		t.Errorf("one above the limit: error %v", err)
	}
}
