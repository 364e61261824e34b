package privacy

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// Sums over records spend what dp_accounting 0.6.0 computes for the Poisson-sampled Gaussian of the
// same multiplier and rate (pessimistic, connect-the-dots), to 1 %.
func TestRecordsSpendAsSampledGaussians(t *testing.T) {
	for _, c := range []struct {
		z      float64
		rounds int
		rate   float64
		want   float64
	}{
		{1, 100, 0.1, 7.046602877197491},
		{1.5, 100, 0.1, 3.5358703377295235},
		{3, 100, 0.1, 1.387843009019984},
		{1.5, 100, 0.5, 21.429517209081652},
		{3, 1000, 0.1, 4.883732843250211},
	} {
		for _, family := range []accounting.Family{accounting.FamilyDiscreteGaussian,
			accounting.FamilySkellam} {
			r := release()
			r.Noise.Family, r.Noise.Multiplier, r.Noise.Bits = family, c.z, 40
			r.Records = &Records{Count: 5000, Rate: c.rate}
			round, err := r.Round()
			if err != nil {
				t.Fatal(err)
			}
			s, err := round.Spent(accounting.ServerView, c.rounds, 1e-5)
			if err != nil {
				t.Fatal(err)
			}
			if s.Unit() != accounting.RecordUnit || math.Abs(s.Bare().Upper/c.want-1) > 0.01 {
				t.Errorf("%v, %+v: %v of a %v, want %v", family, c, s.Bare().Bound, s.Unit(), c.want)
			}
		}
	}
}

// Chernoff's bound is above the tail of the binomial law, computed exactly, and Most is where it
// falls below 2^-60.
func TestRecordsOverrun(t *testing.T) {
	for _, c := range []Records{{10, 0.5, ""}, {100, 0.1, ""}, {1000, 0.01, ""},
		{1000, 0.3, ""}, {300, 1, ""}, {1, 0.2, ""}} {
		most := c.Most()
		if most < 1 || most > c.Count || c.Overrun() > leastOverrun {
			t.Errorf("%+v: most %d, overrun %v", c, most, c.Overrun())
		}
		if most > 1 && c.tail(most-1) <= leastOverrun {
			t.Errorf("%+v: fewer than %d would do", c, most)
		}
		for _, k := range []int{int(float64(c.Count) * c.Rate), most / 2, most - 1, most} {
			exact := new(big.Float).SetPrec(200)
			for i := k + 1; i <= c.Count; i++ {
				x := new(big.Float).SetPrec(200).SetInt(new(big.Int).Binomial(int64(c.Count), int64(i)))
				for j := range c.Count {
					p := c.Rate
					if j >= i {
						p = 1 - c.Rate
					}
					x.Mul(x, big.NewFloat(p))
				}
				exact.Add(exact, x)
			}
			if p, _ := exact.Float64(); c.tail(k) < p {
				t.Errorf("%+v: more than %d with %v, bound %v", c, k, p, c.tail(k))
			}
		}
	}
}

func TestRecordsRefuse(t *testing.T) {
	for field, change := range map[string]func(*Release){
		"Records.Count": func(r *Release) { r.Records.Count = 0 },
		"Records.Rate":  func(r *Release) { r.Records.Rate = math.NaN() },
		"Signs":         func(r *Release) { r.Signs = Votes(100) },
	} {
		r := release()
		r.Records = &Records{Count: 100, Rate: 0.5}
		change(&r)
		var wrong *ConfigError
		if err := r.Validate(); !errors.As(err, &wrong) || wrong.Field != field || wrong.Advice == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	r := release()
	r.Records = &Records{Count: 1 << 30, Rate: 0.5}
	if err := r.Validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("more records than a sum has: %v", err)
	}
}
