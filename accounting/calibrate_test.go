package accounting

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestCalibrateReference(t *testing.T) {
	for _, r := range golden(t, "calibration").Records {
		if r.Accountant != "PLD" && r.Accountant != "analytic" || r.Value == nil || r.Delta == nil {
			continue
		}
		q, n := r.num("sampling_prob"), r.count()
		steps := func(z float64) []Step {
			if r.Mechanism == "laplace" {
				return []Step{{Laplace{z}, n}}
			}
			return []Step{{Sampled{Gaussian{z}, q}, n}}
		}
		got, err := CalibrateNoise(Target{r.TargetEpsilon, *r.Delta}, steps)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-*r.Value) > 3e-4**r.Value {
			t.Errorf("%s %v ε=%v δ=%v: %v, reference %v", r.Mechanism, r.Params, r.TargetEpsilon, *r.Delta,
				got, *r.Value)
		}
		if b := mustEpsilon(t, *r.Delta, steps(got)...); b.Upper > r.TargetEpsilon {
			t.Errorf("calibrated run spends %v, target %v", b.Upper, r.TargetEpsilon)
		}
	}
}

func TestCalibrateRoundsAndRate(t *testing.T) {
	target := Target{3, 1e-5}
	n, err := CalibrateRounds(target, Step{Sampled{Gaussian{1}, 0.01}, 1})
	if err != nil {
		t.Fatal(err)
	}
	if n < 2195 { // what the reference reaches by RDP
		t.Errorf("%d rounds", n)
	}
	if mustEpsilon(t, 1e-5, Step{Sampled{Gaussian{1}, 0.01}, n}).Upper > 3 ||
		mustEpsilon(t, 1e-5, Step{Sampled{Gaussian{1}, 0.01}, n + 1}).Upper <= 3 {
		t.Errorf("%d is not the last round within budget", n)
	}
	steps := func(q float64) []Step { return []Step{{Sampled{Gaussian{1}, q}, 500}} }
	q, err := CalibrateRate(target, steps)
	if err != nil {
		t.Fatal(err)
	}
	if b := mustEpsilon(t, 1e-5, steps(q)...); b.Upper > 3 || b.Upper < 2.99 {
		t.Errorf("rate %v spends %v", q, b)
	}
	if n, err := CalibrateRounds(Target{0.1, 1e-9}, Step{Gaussian{0.5}, 1}); n != 0 || err != nil {
		t.Error(n, err)
	}
	if _, err := CalibrateNoise(Target{1, 0},
		func(z float64) []Step { return []Step{{Gaussian{z}, 1}} }); !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
	for _, bad := range []Target{{0, 0.1}, {1, 1}, {math.NaN(), 0.1}} {
		if _, err := CalibrateNoise(bad, steps); !errors.Is(err, ErrConfig) {
			t.Error(bad, err)
		}
	}
}

// The setting of "Understanding Clipping for Federated Learning": 1920 clients, 80
// a round, δ = 1e-5. The noise multiplier of the sum, by three accounts. The
// theorem's constant is not given; v = 2 is its asymptotic value, and the
// last column is the v that would have been enough. The rounds are those of the
// reference calibration, which the RDP and PLD columns must not exceed.
func TestClippingPaperTable(t *testing.T) {
	const clients, per, delta = 1920, 80, 1e-5
	q := float64(per) / clients
	compared := 0
	var out strings.Builder
	fmt.Fprintf(&out, "\n  rounds    ε   theorem(v=2)      RDP      PLD   v needed\n")
	for _, rounds := range []int{100, 500} {
		for _, eps := range []float64{1.5, 5} {
			thm, err := ClippingTheorem(clients, per, rounds, eps, delta, 2)
			if err != nil {
				t.Fatal(err)
			}
			pld, err := CalibrateNoise(Target{eps, delta}, func(z float64) []Step {
				return []Step{{Sampled{Gaussian{z}, q}, rounds}}
			})
			if err != nil {
				t.Fatal(err)
			}
			rdp, err := narrow(4*pld, pld/2, func(z float64) (bool, error) {
				c, err := MechanismRDP(Sampled{Gaussian{z}, q}, nil)
				if err != nil {
					return false, err
				}
				e, _, err := c.Times(rounds).Epsilon(delta)
				return e <= eps, err
			})
			if err != nil {
				t.Fatal(err)
			}
			v := math.Pow(pld*eps/q, 2) / (float64(rounds) * math.Log(1/delta))
			fmt.Fprintf(&out, "  %6d  %3.1f   %12.4f %8.4f %8.4f   %8.3f\n", rounds, eps, thm, rdp, pld, v)
			for _, r := range golden(t, "calibration").Records {
				if r.Mechanism != "poisson_subsampled_gaussian" || r.Quantity != "noise_multiplier" ||
					r.num("sampling_prob") != q || r.count() != rounds || r.TargetEpsilon != eps {
					continue
				}
				ours := map[string]float64{"PLD": pld, "RDP": rdp}[r.Accountant]
				if compared++; ours > *r.Value*(1+1e-4) {
					t.Errorf("T=%d ε=%v: %v by %s, reference %v", rounds, eps, ours, r.Accountant, *r.Value)
				}
			}
			if pld > rdp {
				t.Errorf("PLD asks for more noise than RDP: %v, %v", pld, rdp)
			}
		}
	}
	if compared != 8 {
		t.Errorf("%d reference calibrations, want 8", compared)
	}
	t.Log(out.String())
}
