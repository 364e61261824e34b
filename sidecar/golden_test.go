package sidecar

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/suite"
)

// goldenRecord is a record of the reference values that stand next to the checkout.
type goldenRecord struct {
	Mechanism string
	Quantity  string
	Params    map[string]any
	Delta     json.RawMessage
}

// number returns a parameter of a record, or what stands for nothing.
func (r *goldenRecord) number(name string, otherwise float64) float64 {
	switch x := r.Params[name].(type) {
	case float64:
		return x
	case string:
		if v, err := strconv.ParseFloat(x, 64); err == nil {
			return v
		}
	}
	return otherwise
}

// goldenCase is a case in the words of a call, and in those of package accounting.
type goldenCase struct {
	with      map[string]any
	mechanism accounting.Mechanism
	rounds    int
	delta     float64
}

// goldenCase translates a record; ok is false for what has no epsilon of a run.
func (r *goldenRecord) goldenCase() (c goldenCase, ok bool) {
	var delta float64
	known := r.Quantity == "epsilon" && json.Unmarshal(r.Delta, &delta) == nil
	if !known || !(delta >= 0 && delta < 1) {
		return c, false
	}
	rounds, rate := int(r.number("T", 1)), r.number("sampling_prob", 1)
	if rounds < 1 || !(rate > 0 && rate <= 1) {
		return c, false
	}
	with := map[string]any{"delta": delta, "rounds": rounds}
	var m accounting.Mechanism
	sensitivity := r.number("sensitivity", 1)
	switch r.Mechanism {
	case "gaussian", "poisson_subsampled_gaussian":
		z := r.number("noise_multiplier", 0)
		with["mechanism"], with["noise_multiplier"] = "gaussian", z
		m = accounting.Gaussian{NoiseMultiplier: z}
	case "laplace", "poisson_subsampled_laplace":
		b := r.number("scale_over_sensitivity", 0)
		with["mechanism"], with["noise_multiplier"] = "laplace", b
		m = accounting.Laplace{Scale: b}
	case "discrete_laplace":
		t := r.number("t", 0)
		with["mechanism"], with["scale"] = "discrete-laplace", t
		m = accounting.DiscreteLaplace{Scale: t, Sensitivity: int(sensitivity)}
	case "discrete_gaussian":
		sigma := r.number("sigma", math.Sqrt(r.number("sigma2", 0)))
		with["mechanism"], with["scale"] = "discrete-gaussian", sigma
		m = accounting.DiscreteGaussian{Sigma: sigma, Sensitivity: int(sensitivity)}
	case "skellam":
		v := r.number("total_variance", 0)
		with["mechanism"], with["variance"] = "skellam", v
		m = accounting.Skellam{Variance: v, Sensitivity: int(sensitivity)}
	default:
		return c, false
	}
	if sensitivity != 1 {
		with["sensitivity"] = sensitivity
	}
	if rate < 1 {
		with["rate"] = rate
		m = accounting.Sampled{Mechanism: m, Rate: rate}
	}
	return goldenCase{with, m, rounds, delta}, true
}

// goldenValue holds what other languages compare with: the same case by package
// accounting, without a sidecar, each bound in hexadecimal.
type goldenValue struct {
	With  map[string]any `json:"with"`
	Upper string         `json:"upper"`
	Lower string         `json:"lower"`
}

// The epsilon of every case of the reference files comes through a call bit for bit as
// package accounting has it. With HUSHSUM_GOLDEN_VALUES the values are written to that
// file, for the same test of the Python package; without -long it is every tenth.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "golden", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("the reference values are not next to the checkout")
	}
	c := start(t)
	seen := make(map[string]bool)
	var values []goldenValue
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Records []goldenRecord }
		if json.Unmarshal(text, &file) != nil {
			continue // a file of another form
		}
		for _, r := range file.Records {
			k, ok := r.goldenCase()
			id := fmt.Sprint(k.with)
			if !ok || seen[id] {
				continue
			}
			seen[id] = true
			if !suite.Long() && len(seen)%10 != 0 {
				continue
			}
			values = append(values, k.check(c))
		}
	}
	if n := len(seen); n < 500 {
		t.Errorf("%d cases: the test does not see them", n)
	}
	t.Logf("%d of %d cases", len(values), len(seen))
	if name := os.Getenv("HUSHSUM_GOLDEN_VALUES"); name != "" {
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// check compares a call with package accounting.
func (k *goldenCase) check(c *client) goldenValue {
	c.Helper()
	var want accounting.Bound
	run, err := accounting.Compose(accounting.Step{Mechanism: k.mechanism, Count: k.rounds})
	if err == nil {
		want, err = run.Epsilon(k.delta)
	}
	out := goldenValue{With: k.with, Upper: fmt.Sprintf("%x", want.Upper),
		Lower: fmt.Sprintf("%x", want.Lower)}
	a := c.try("account.epsilon", k.with)
	if err != nil {
		if a.Error == nil {
			c.Errorf("%v: answered, where package accounting fails: %v", k.with, err)
		}
		out.Upper, out.Lower = "error", newFault(err).Kind
		return out
	}
	var got claimed
	if a.Error != nil || json.Unmarshal(a.Result, &got) != nil {
		c.Errorf("%v: %+v", k.with, a.Error)
		return out
	}
	if is := got.Claim.Bare(); is.Upper != want.Upper || is.Lower != want.Lower {
		c.Errorf("%v: %v, want %v", k.with, got.Claim, want)
	}
	return out
}
