package accounting

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// full compares with every reference value, read from goldenDir, instead of a
// part of those under testdata.
var (
	full      = flag.Bool("golden.full", false, "compare with every reference value in -golden.dir")
	goldenDir = flag.String("golden.dir", "../../shared/golden", "folder of the reference values")
)

// A record is one reference value; the files under testdata name their source.
type record struct {
	Mechanism       string
	Params          map[string]any
	Quantity        string
	Accountant      string
	Neighbouring    string
	Delta           *float64
	Epsilon         *float64
	Alpha           float64
	Value           *float64
	TargetEpsilon   float64 `json:"target_epsilon"`
	AchievedEpsilon float64 `json:"achieved_epsilon"`
	OptimalOrder    float64 `json:"optimal_order"`
	WallS           float64 `json:"wall_s"`
	Remove, Add     *float64
	Lower, Upper    *float64
	Estimate        string
	Orders          orderList
	RDP             []*float64 `json:"rdp"`
}

// orderList reads a list of orders; some records say "default" instead.
type orderList []float64

func (o *orderList) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return nil
	}
	return json.Unmarshal(b, (*[]float64)(o))
}

func (r record) num(name string) float64 {
	v, _ := r.Params[name].(float64)
	return v
}

func (r record) count() int {
	if _, ok := r.Params["T"]; !ok {
		return 1
	}
	return int(r.num("T"))
}

type goldenFile struct {
	Meta struct {
		Source string
		Orders []float64
	}
	Records []record
}

func golden(t testing.TB, name string) goldenFile {
	t.Helper()
	dir := "testdata"
	if *full {
		dir = *goldenDir
	}
	b, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f goldenFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(name, err)
	}
	return f
}

// mechanism builds the step of a golden record, or nil if it has none here.
func (r record) step() *Step {
	var m Mechanism
	switch r.Mechanism {
	case "gaussian":
		m = Gaussian{r.num("noise_multiplier")}
	case "poisson_subsampled_gaussian":
		g := Gaussian{r.num("noise_multiplier")}
		m = Sampled{g, r.num("sampling_prob")}
		if r.Neighbouring == "REPLACE_ONE" {
			m = ReplaceOne{g, r.num("sampling_prob")}
		}
	case "laplace":
		m = Laplace{r.num("scale_over_sensitivity")}
	case "poisson_subsampled_laplace":
		m = Sampled{Laplace{r.num("scale_over_sensitivity")}, r.num("sampling_prob")}
	case "discrete_laplace":
		m = DiscreteLaplace{r.num("t"), int(r.num("sensitivity"))}
	case "discrete_gaussian":
		s := r.num("sigma")
		if s == 0 {
			s = math.Sqrt(r.num("sigma2"))
		}
		m = DiscreteGaussian{s, int(r.num("sensitivity"))}
	case "skellam":
		m = Skellam{r.num("total_variance"), int(r.num("sensitivity"))}
	case "polya_difference_partial":
		m = polyaPair(r.num("t"), r.num("r"), int(r.num("sensitivity")))
	case "pure_dp":
		m = RandomisedResponse{r.num("epsilon0"), 2}
	default:
		return nil
	}
	if q := r.num("sampling_prob"); q > 0 && q < 1 {
		if b, ok := m.(baser); ok {
			m = Sampled{b, q}
		}
	}
	return &Step{m, r.count()}
}

// polyaPair is the difference of two negative binomials of shape r and
// parameter e^{−1/t}, tabulated by convolution, against its shift by d.
func polyaPair(t, r float64, d int) Pair {
	p := math.Exp(-1 / t)
	n := int(60*t) + 50
	nb := make([]float64, n)
	nb[0] = math.Pow(1-p, r)
	for k := 1; k < n; k++ {
		nb[k] = nb[k-1] * p * (r + float64(k) - 1) / float64(k)
	}
	half := make([]float64, n)
	for k := range n {
		for j := 0; j+k < n; j++ {
			half[k] += nb[j] * nb[j+k]
		}
	}
	at := func(k int) float64 {
		if k < 0 {
			k = -k
		}
		if k >= n {
			return 0
		}
		return half[k]
	}
	var pr Pair
	m := n - d - 1
	for k := -m; k <= m+d; k++ {
		pr.P = append(pr.P, at(k-d))
		pr.Q = append(pr.Q, at(k))
	}
	pr.TailP, pr.TailQ = 1e-22, 1e-22
	return pr
}

func bound(t testing.TB, r record) (Bound, float64, bool) {
	t.Helper()
	s := r.step()
	if s == nil || r.Value == nil {
		return Bound{}, 0, false
	}
	c, err := Compose(*s)
	if err != nil {
		t.Fatalf("%v %v: %v", r.Mechanism, r.Params, err)
	}
	var b Bound
	switch {
	case r.Quantity == "epsilon" && r.Delta != nil:
		b, err = c.Epsilon(*r.Delta)
	case r.Quantity == "delta" && r.Epsilon != nil:
		b, err = c.Delta(*r.Epsilon)
	case r.Quantity == "pure_epsilon":
		b, err = c.Epsilon(0)
	default:
		return Bound{}, 0, false
	}
	if err != nil {
		t.Fatalf("%v %v: %v", r.Mechanism, r.Params, err)
	}
	return b, *r.Value, true
}

// The certified interval contains every exact value.
func TestExactValuesInside(t *testing.T) {
	for _, name := range []string{"exact_gaussian", "exact_sampled_gaussian_one_step",
		"exact_discrete"} {
		n, worst := 0, 0.0
		for i, r := range golden(t, name).Records {
			if i%3 != 0 && !*full {
				continue
			}
			b, v, ok := bound(t, r)
			if !ok {
				continue
			}
			n++
			// value is the exact figure rounded to float64.
			ulp := 2e-16 * v
			if r.Quantity == "delta" && v < 1e-36 && name == "exact_discrete" {
				// Below this the table behind the file ends before the law does:
				// it has δ > 0 beyond the pure ε of a discrete Laplace.
				continue
			}
			if b.Lower > v+ulp || b.Upper < v-ulp {
				t.Errorf("%s %v %s δ=%v ε=%v: [%v, %v] misses exact %v", r.Mechanism, r.Params, r.Quantity,
					show(r.Delta), show(r.Epsilon), b.Lower, b.Upper, v)
			}
			if r.Quantity == "epsilon" && v > 1e-3 {
				w := b.Width() / v
				worst = math.Max(worst, w)
			}
		}
		t.Logf("%s: %d exact values inside, widest interval of ε %.2g relative", name, n, worst)
	}
}

func show(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// Against the field's reference PLD accountant: our upper bound is within 0.1 %
// or 1e-4 of its value or smaller, and the lower bound does not exceed it by
// more than its own error.
func TestReferencePLD(t *testing.T) {
	for _, name := range []string{"pld_gaussian", "pld_sampled_gaussian", "laplace",
		"pld_discrete_gaussian", "pld_discrete_laplace", "without_replacement_and_replace_one"} {
		n, below, seen, deltas := 0, 0, 0, 0
		worst, width := math.Inf(-1), 0.0
		for _, r := range golden(t, name).Records {
			if r.Accountant != "PLD" {
				continue
			}
			if seen++; seen%12 != 1 && !*full {
				continue
			}
			b, v, ok := bound(t, r)
			if !ok {
				continue
			}
			if r.Quantity == "delta" {
				// The library cuts 1e-15 or so off its tails.
				if deltas++; b.Lower > v*(1+1e-4)+1e-12 || b.Upper > v*(1+1e-3)+1e-10 {
					t.Errorf("%s %v ε=%v: δ in [%v, %v], reference %v", r.Mechanism, r.Params, show(r.Epsilon),
						b.Lower, b.Upper, v)
				}
				continue
			}
			n++
			slack := math.Max(1e-3*v, 1e-4)
			if b.Upper > v+slack {
				t.Errorf("%s %v δ=%v: upper %v above reference %v", r.Mechanism, r.Params, show(r.Delta),
					b.Upper, v)
			}
			if b.Lower > v*(1+3e-6)+1e-8 {
				t.Errorf("%s %v δ=%v: lower %v above reference %v", r.Mechanism, r.Params, show(r.Delta),
					b.Lower, v)
			}
			if b.Upper <= v {
				below++
			}
			worst = math.Max(worst, (b.Upper-v)/math.Max(v, 0.1))
			if v > 1e-2 {
				width = math.Max(width, b.Width()/v)
			}
		}
		t.Logf("%s: %d values of ε, ours smaller in %d, largest excess %.2g relative, widest interval "+
			"%.2g; %d values of δ", name, n, below, worst, width, deltas)
	}
}
