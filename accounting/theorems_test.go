package accounting

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// Values worked out by hand, or where they have many digits in 40 of them.
func TestClosedForms(t *testing.T) {
	gaussian := func(z, epsilon float64) func() (float64, error) {
		return func() (float64, error) {
			b, err := GaussianDelta(z, epsilon)
			if b.Upper-b.Lower > 1e-12*b.Upper {
				t.Errorf("δ(%v) at z = %v is from %v to %v", epsilon, z, b.Lower, b.Upper)
			}
			return (b.Lower + b.Upper) / 2, err
		}
	}
	// ρ(2) = 1, ρ(4) = 2
	curve := func(epsilon float64) func() (float64, error) {
		return func() (float64, error) {
			r, err := NewRDP([]float64{2, 4}, func(a float64) float64 { return a / 2 })
			if err != nil {
				return 0, err
			}
			return r.Delta(epsilon)
		}
	}
	zcdp := func(z float64) func() (float64, error) {
		return func() (float64, error) { rho, err := GaussianZCDP(z); return float64(rho), err }
	}
	for name, c := range map[string]struct {
		f    func() (float64, error)
		want float64
	}{
		// ∫ max(P − e^ε·Q, 0) by quadrature; at ε = 0, erf(1/(z·√8))
		"GaussianDelta(1, 0)":      {gaussian(1, 0), 0.38292492254802620728},
		"GaussianDelta(1, 1)":      {gaussian(1, 1), 0.1269367375066439458},
		"GaussianDelta(0.5, 3)":    {gaussian(0.5, 3), 0.18381307654447215597},
		"GaussianDelta(2, 0.25)":   {gaussian(2, 0.25), 0.11029839374852846569},
		"GaussianDelta(1, 8)":      {gaussian(1, 8), 3.6508216874217908585e-15},
		"RDP.Delta, by order 2":    {curve(0), math.E / 4},                // (1−1/α)^α/(α−1) = 1/4
		"RDP.Delta, by order 4":    {curve(3), math.Exp(-3) * 27 / 256},   // (1−1/α)^α/(α−1) = 27/256
		"RDP.Delta, order 4 again": {curve(30), math.Exp(-84) * 27 / 256}, // 3·(2 − 30)
		"GaussianZCDP(1)":          {zcdp(1), 0.5},
		"GaussianZCDP(4)":          {zcdp(4), 1.0 / 32},
	} {
		got, err := c.f()
		if err != nil || math.Abs(got-c.want) > 1e-13*c.want {
			t.Errorf("%s = %v, %v; want %v", name, got, err, c.want)
		}
	}
}

func TestDefaultOrders(t *testing.T) {
	orders := DefaultOrders()
	if len(orders) != 159 || orders[0] != 1.1 || orders[98] != 10.9 || orders[99] != 11 ||
		orders[158] != 1024 || !slices.IsSorted(orders) {
		t.Errorf("%d orders: %v", len(orders), orders)
	}
	orders[0] = 0
	r, err := NewRDP(nil, func(float64) float64 { return 0 })
	if err != nil || !slices.Equal(r.Orders(), DefaultOrders()) || r.Orders()[0] != 1.1 {
		t.Errorf("%v, %v", r.Orders(), err)
	}
}

func TestClosedFormErrors(t *testing.T) {
	nan := math.NaN()
	for name, f := range map[string]func() error{
		"multiplier of 0":      func() error { _, err := GaussianDelta(0, 1); return err },
		"epsilon below 0":      func() error { _, err := GaussianDelta(1, -1); return err },
		"epsilon not a number": func() error { _, err := RDP{}.Delta(nan); return err },
		"zCDP of no noise":     func() error { _, err := GaussianZCDP(0); return err },
	} {
		if err := f(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
