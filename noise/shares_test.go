package noise

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

// power is the law of the sum of m independent copies, kept to |value| ≤ reach and
// 220 bits, rounded down throughout.
func (e exactLaw) power(m int, reach int64) exactLaw {
	sum := exactLaw{0, []*big.Int{big.NewInt(1)}, 0}
	for base := e; ; base = base.plus(base).rounded(reach, 220) {
		if m&1 == 1 {
			sum = sum.plus(base).rounded(reach, 220)
		}
		if m >>= 1; m == 0 {
			return sum
		}
	}
}

// TestShareSums convolves the table law of one party's share m-fold and measures
// its distance from the law of the sum, with a bound on every rounding: at
// most m times the stated distance per sample.
func TestShareSums(t *testing.T) {
	r := big.NewRat
	dl1, err := DiscreteLaplace(r(5, 2))
	dl1 = must(t, dl1, err)
	dl2, err := DiscreteLaplace(r(10, 1))
	dl2 = must(t, dl2, err)
	sk, err := Skellam(r(100, 1))
	sk = must(t, sk, err)
	po, err := Poisson(r(30, 1))
	po = must(t, po, err)
	for _, l := range []Law{dl1, dl2, sk, po} {
		for _, m := range []int{1, 2, 10, 100} {
			s := Shares{Parties: m + 3, MinHonest: m, Law: l}
			party, err := s.Party()
			if err != nil {
				t.Fatal(err)
			}
			tb, err := NewTable(party)
			if err != nil {
				t.Fatal(err)
			}
			sum, err := s.Sum(m)
			if err != nil || sum.Tau != 0 {
				t.Fatalf("%v: %v %v", l, sum, err)
			}
			if sum.Law.String() != l.String() {
				t.Errorf("sum of %d is %v, want %v", m, sum.Law, l)
			}
			_, reach := l.extent(140)
			got := cascadeLaw(tb.cascade).power(m, int64(reach)).distanceTo(t, l)
			limit := new(big.Rat).Mul(tb.cascade.distance, r(int64(m), 1))
			t.Logf("%v, m = %d: distance 2^%.1f, stated 2^%.1f", l, m, log2(got), log2(limit))
			if got.Cmp(limit) > 0 {
				t.Errorf("%v, m = %d: beyond the stated distance", l, m)
			}
			if m == 10 { // drop-outs beyond and fewer than the slack
				for _, k := range []int{7, 13} {
					sum, err := s.Sum(k)
					if err != nil {
						t.Fatal(err)
					}
					d := cascadeLaw(tb.cascade).power(k, int64(2*reach)).distanceTo(t, sum.Law)
					if d.Cmp(new(big.Rat).Mul(tb.cascade.distance, r(int64(k), 1))) > 0 {
						t.Errorf("%v: %d of m = 10 shares: distance 2^%.1f", l, k, log2(d))
					}
					if v := l.Variance() * float64(k) / 10; math.Abs(sum.Law.Variance()/v-1) > 1e-12 {
						t.Errorf("%v: variance of %d shares %v, want %v", l, k, sum.Law.Variance(), v)
					}
				}
			}
		}
	}
}

// TestGaussianShareSums does the same for discrete Gaussian shares, whose sum is
// within a factor exp(±τ) of the law, for one narrow enough that the factor shows.
func TestGaussianShareSums(t *testing.T) {
	for _, m := range []int{2, 10, 100} {
		for _, share := range []*big.Rat{big.NewRat(1, 2), big.NewRat(1, 1), big.NewRat(4, 1)} {
			v := new(big.Rat).Mul(share, big.NewRat(int64(m), 1))
			l, err := DiscreteGaussian(v)
			s := Shares{Parties: m, MinHonest: m, Law: must(t, l, err)}
			party, err := s.Party()
			if err != nil || party.Scale().Cmp(share) != 0 {
				t.Fatalf("share %v: %v", party, err)
			}
			tb, err := NewTable(party)
			if err != nil {
				t.Fatal(err)
			}
			sum, err := s.Sum(m)
			if err != nil {
				t.Fatal(err)
			}
			_, reach := l.extent(140)
			got := cascadeLaw(tb.cascade).power(m, int64(reach))
			enc, err := l.enclose(140, 0)
			if err != nil {
				t.Fatal(err)
			}
			// Where the probability exceeds 2^-60 the table's own distance changes
			// it by less than m·2^-100/2^-60 relative.
			most := 0.0
			for i, x := range got.p {
				k := got.lo + int64(i)
				p, _ := enc.p[max(k, -k)].Lo.Float64()
				if p < math.Ldexp(1, -60) {
					continue
				}
				q := new(big.Float).SetMantExp(new(big.Float).SetInt(x), -int(got.bits))
				f, _ := q.Quo(q, enc.p[max(k, -k)].Lo).Float64()
				most = max(most, math.Abs(math.Log(f)))
			}
			t.Logf("σ² = %s each, m = %d: largest |ln ratio| %.3g, τ = %.3g", share.RatString(), m, most,
				sum.Tau)
			if most > sum.Tau+1e-10 {
				t.Errorf("σ² = %s each, m = %d: |ln ratio| %g above τ = %g", share.RatString(), m, most,
					sum.Tau)
			}
		}
	}
}

type distributedRecord struct {
	Quantity string
	Params   struct {
		N      int
		Sigma2 float64 `json:"sigma2_local"`
	}
	PMF   []string
	Value float64
}

// TestGaussianSumsGolden compares convolved tables with the probabilities of sums of
// discrete Gaussians, and Tau with the published formula's values.
func TestGaussianSumsGolden(t *testing.T) {
	var file struct{ Records []distributedRecord }
	readJSON(t, "distributed.json", &file)
	taus, sums := 0, 0
	for _, r := range file.Records {
		switch r.Quantity {
		case "tau":
			taus++
			got, err := Tau(rat(t, r.Params.Sigma2), r.Params.N)
			if err != nil || got < r.Value || got > r.Value*(1+1e-8) {
				t.Errorf("%+v: τ = %v %v, want %v", r.Params, got, err, r.Value)
			}
		case "exact_pmf_of_sum":
			sums++
			l, err := DiscreteGaussian(rat(t, r.Params.Sigma2))
			tb, err2 := NewTable(must(t, l, err))
			if err2 != nil {
				t.Fatal(err2)
			}
			e := cascadeLaw(tb.cascade).power(r.Params.N, 400)
			slack := tb.Distance()*2*float64(r.Params.N) + math.Ldexp(1, -190)
			for k, s := range r.PMF {
				want, _, err := big.ParseFloat(s, 10, 120, big.ToNearestEven)
				if err != nil {
					t.Fatal(err)
				}
				got := new(big.Float).SetPrec(200)
				if i := int64(k) - e.lo; i < int64(len(e.p)) {
					got.SetMantExp(new(big.Float).SetInt(e.p[i]), -int(e.bits))
				}
				w, _ := want.Float64()
				d, _ := got.Sub(got, want).Float64()
				if math.Abs(d) > slack+1e-18*w {
					t.Errorf("%+v: P(%d) off by %g of %g", r.Params, k, d, w)
				}
			}
		}
	}
	if taus == 0 || sums == 0 {
		t.Fatal("no records")
	}
}

func TestSharesErrors(t *testing.T) {
	l, err := DiscreteLaplace(big.NewRat(1, 1))
	l = must(t, l, err)
	for _, c := range []struct {
		s    Shares
		want error
	}{
		{Shares{Parties: 3, MinHonest: 2}, ErrConfig},
		{Shares{Parties: 3, MinHonest: 0, Law: l}, ErrConfig},
		{Shares{Parties: 3, MinHonest: 4, Law: l}, ErrConfig},
		{Shares{Parties: -3, MinHonest: -4, Law: l}, ErrConfig},
		{Shares{Parties: 1<<20 + 1, MinHonest: 4, Law: l}, ErrTooLarge},
	} {
		if _, err := c.s.Party(); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.s, err)
		}
		if _, err := c.s.Sum(1); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
	s := Shares{Parties: 5, MinHonest: 3, Law: l}
	for _, k := range []int{-1, 0, 6} {
		if _, err := s.Sum(k); !errors.Is(err, ErrConfig) {
			t.Errorf("Sum(%d): %v", k, err)
		}
	}
	if _, err := Tau(nil, 3); !errors.Is(err, ErrConfig) {
		t.Errorf("Tau(nil): %v", err)
	}
	if _, err := Tau(big.NewRat(1, 1), 0); !errors.Is(err, ErrConfig) {
		t.Errorf("Tau(1, 0): %v", err)
	}
	if _, err := Tau(big.NewRat(1, 1), 1<<20+1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Tau of too many: %v", err)
	}
	if tau, err := Tau(big.NewRat(1, 1), 1); err != nil || tau != 0 {
		t.Errorf("τ of one share: %v %v", tau, err)
	}
	// A share below the smallest scale is refused, not rounded to nothing.
	small, err := DiscreteGaussian(big.NewRat(1, 1<<19))
	if _, err := (Shares{Parties: 9, MinHonest: 9, Law: must(t, small, err)}).
		Party(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("vanishing share: %v", err)
	}
}
