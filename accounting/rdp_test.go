package accounting

import (
	"errors"
	"math"
	"testing"
)

func one(t testing.TB, m Mechanism, alpha float64) float64 {
	t.Helper()
	r, err := MechanismRDP(m, []float64{alpha})
	if err != nil {
		t.Fatal(err)
	}
	return r.Values()[0]
}

// Sampled Gaussian RDP against 30-digit quadrature, integer and fractional.
func TestSampledGaussianRDPExact(t *testing.T) {
	worst := 0.0
	for _, r := range golden(t, "exact_sampled_gaussian_rdp").Records {
		got := one(t, Sampled{Gaussian{r.num("noise_multiplier")}, r.num("sampling_prob")}, r.Alpha)
		rel := math.Abs(got-*r.Value) / *r.Value
		worst = math.Max(worst, rel)
		if rel > 1e-9 {
			t.Errorf("%v α=%v: %v, want %v (%.2g)", r.Params, r.Alpha, got, *r.Value, rel)
		}
	}
	t.Logf("worst relative error %.2g", worst)
}

// Integer orders by binomial sum agree with the quadrature of fractional ones.
func TestIntegerOrdersAgreeWithQuadrature(t *testing.T) {
	for _, q := range []float64{1e-6, 1e-3, 0.1, 0.9} {
		for _, z := range []float64{0.3, 1, 10} {
			for _, a := range []int{2, 3, 17, 64} {
				x, y := sampledGaussianInteger(q, 1/z, a), sampledGaussianQuadrature(q, 1/z, float64(a))
				if math.Abs(x-y) > 2e-10*x {
					t.Errorf("q=%v z=%v α=%d: %v and %v", q, z, a, x, y)
				}
			}
		}
	}
}

// ε by RDP never exceeds the reference's, whose fractional orders are bounds.
func TestRDPEpsilonReference(t *testing.T) {
	f := golden(t, "rdp_epsilon")
	n, equal := 0, 0
	curves := map[string]RDP{}
	for _, r := range f.Records {
		if r.Quantity != "epsilon" || r.Value == nil || r.Delta == nil {
			continue
		}
		s := r.step()
		k := s.Mechanism.key()
		if _, ok := curves[k]; !ok {
			c, err := MechanismRDP(s.Mechanism, f.Meta.Orders)
			if err != nil {
				t.Fatal(err)
			}
			curves[k] = c
		}
		e, order, err := curves[k].Times(s.Count).Epsilon(*r.Delta)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if e > *r.Value*(1+1e-9)+1e-12 && *r.Value > 0 {
			t.Errorf("%v δ=%v: %v at order %v, reference %v at %v", r.Params, *r.Delta, e, order, *r.Value,
				r.OptimalOrder)
		}
		if math.Abs(e-*r.Value) <= 1e-9**r.Value {
			equal++
		}
	}
	t.Logf("%d values, %d equal to 1e-9, the rest smaller", n, equal)
}

func TestFixedSizeReference(t *testing.T) {
	orders := golden(t, "rdp_epsilon").Meta.Orders
	worst := 0.0
	for _, r := range golden(t, "without_replacement_and_replace_one").Records {
		if r.Mechanism != "wor_subsampled_gaussian" || r.Quantity != "rdp_vector" {
			continue
		}
		c, err := FixedSizeGaussianRDP(r.num("noise_multiplier"), int(r.num("m")), int(r.num("n")),
			orders)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range c.Values() {
			if r.RDP[i] == nil || *r.RDP[i] == 0 {
				continue
			}
			rel := (v - *r.RDP[i]) / *r.RDP[i]
			worst = math.Max(worst, rel)
			if rel > 1e-6 {
				t.Errorf("%v α=%v: %v above reference %v", r.Params, orders[i], v, *r.RDP[i])
			}
		}
	}
	t.Logf("largest excess over the reference %.2g", worst)
}

func TestDistributedDiscreteReference(t *testing.T) {
	for _, r := range golden(t, "distributed_discrete").Records {
		agree := func(got, tol float64) {
			t.Helper()
			if math.Abs(got-*r.Value) > tol*(math.Abs(*r.Value)+1e-300) {
				t.Errorf("%s %s %v: %v, want %v", r.Mechanism, r.Quantity, r.Params, got, *r.Value)
			}
		}
		switch r.Quantity {
		case "tau":
			got, err := SumTau(int(r.num("n")), r.num("sigma2_local"))
			if err != nil {
				t.Fatal(err)
			}
			agree(got, 1e-12)
		case "rounded_l1_norm_bound":
			agree(RoundedL1(r.num("l2"), int(r.num("dim"))), 1e-12)
		case "exact_renyi":
			d := r.num("delta_sens")
			s := Sensitivity{d, d, 1}
			var c RDP
			var err error
			if r.Mechanism == "skellam" {
				c, err = SkellamRDP(r.num("total_variance"), s, []float64{r.num("alpha")})
			} else {
				c, err = DistributedGaussianRDP(int(r.num("n")), r.num("sigma2_local"), s,
					[]float64{r.num("alpha")})
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Values()[0] < *r.Value*(1-1e-12) {
				t.Errorf("%s %v: bound %v below exact %v", r.Mechanism, r.Params, c.Values()[0], *r.Value)
			}
		case "rdp_vector":
			if q := r.num("q"); q > 0 && q < 1 {
				// The file samples without the factor 3 of the general bound.
				continue
			}
			s := Sensitivity{r.num("l1"), r.num("l2"), 1}
			s.Dimension = int(math.Max(1, r.num("dim")))
			if r.Mechanism == "skellam" {
				s.Dimension = math.MaxInt >> 23 // the L1 norm in the file stands on its own
			}
			var c RDP
			var err error
			if r.Mechanism == "skellam" {
				c, err = SkellamRDP(r.num("total_variance"), s, r.Orders)
			} else {
				c, err = DistributedGaussianRDP(int(r.num("n")), r.num("sigma_local")*r.num("sigma_local"), s,
					r.Orders)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range c.Values() {
				if math.Abs(v-*r.RDP[i]) > 1e-9**r.RDP[i] {
					t.Errorf("%s %v α=%v: %v, want %v", r.Mechanism, r.Params, r.Orders[i], v, *r.RDP[i])
				}
			}
		}
	}
}

func TestZCDPReference(t *testing.T) {
	for _, r := range golden(t, "without_replacement_and_replace_one").Records {
		if r.Mechanism != "zcdp" {
			continue
		}
		z := ZCDP(r.num("rho") * r.num("T"))
		opt, err := z.Epsilon(*r.Delta)
		if err != nil {
			t.Fatal(err)
		}
		if opt > *r.Value*(1+1e-9) {
			t.Errorf("%v %s: %v above %v", r.Params, r.Accountant, opt, *r.Value)
		}
		// Bun, Steinke 2016 Proposition 1.3
		classic := float64(z) + 2*math.Sqrt(float64(z)*math.Log(1 / *r.Delta))
		if opt > classic {
			t.Errorf("%v: optimal %v above classic %v", r.Params, opt, classic)
		}
	}
}

// RDP converted to ε is never below the PLD's lower bound.
func TestRDPAbovePLD(t *testing.T) {
	ms := []Mechanism{
		Gaussian{1}, Sampled{Gaussian{0.8}, 0.1}, Laplace{2}, Sampled{Laplace{2}, 0.1},
		DiscreteLaplace{3, 2},
		Sampled{DiscreteLaplace{3, 2}, 0.2}, DiscreteGaussian{2, 1}, Sampled{DiscreteGaussian{2, 1}, 0.1},
		Skellam{5, 1}, Sampled{Skellam{5, 1}, 0.1}, RandomisedResponse{1, 4},
	}
	for _, m := range ms {
		c, err := Compose(Step{m, 20})
		if err != nil {
			t.Fatal(err)
		}
		r, err := MechanismRDP(m, nil)
		if err != nil {
			t.Fatal(m.key(), err)
		}
		e, _, err := r.Times(20).Epsilon(1e-6)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Epsilon(1e-6)
		if err != nil {
			t.Fatal(err)
		}
		if e < b.Lower {
			t.Errorf("%s: RDP %v below certified lower bound %v", m.key(), e, b.Lower)
		}
	}
}

func TestRDPErrors(t *testing.T) {
	if _, err := MechanismRDP(ReplaceOne{Gaussian{1}, 0.1}, nil); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	for _, f := range []func() error{
		func() error { _, err := MechanismRDP(nil, nil); return err },
		func() error { _, err := MechanismRDP(Gaussian{1}, []float64{1}); return err },
		func() error { _, err := MechanismRDP(Gaussian{1}, []float64{}); return err },
		func() error { _, err := SkellamRDP(-1, Sensitivity{1, 1, 1}, nil); return err },
		func() error { _, err := SumTau(0, 1); return err },
		func() error { _, err := FixedSizeGaussianRDP(1, 5, 4, nil); return err },
		func() error { _, err := ZCDP(-1).Epsilon(0.1); return err },
		func() error { _, _, err := (RDP{}).Epsilon(0); return err },
		func() error { _, err := ClippingTheorem(10, 20, 1, 1, 0.1, 2); return err },
	} {
		if err := f(); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
	}
}
