package noise

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"testing"
)

func rat(t testing.TB, x float64) *big.Rat {
	t.Helper()
	r, err := Rational(x)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t testing.TB, l Law, err error) Law {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

type pmfRecord struct {
	Family string
	Params struct {
		T, Sigma2, R, Variance, Mean float64
		N                            int64
	}
	K0       int64
	PMF      []string
	Variance string
}

// law is the record's law, with the shape as the fraction that the reference
// used (n parties, r·n of them).
func (r pmfRecord) law(t *testing.T) Law {
	p := r.Params
	shape := func() *big.Rat { return big.NewRat(int64(math.Round(p.R*float64(p.N))), p.N) }
	var l Law
	var err error
	switch r.Family {
	case "discrete_laplace":
		l, err = DiscreteLaplace(rat(t, p.T))
	case "discrete_gaussian":
		l, err = DiscreteGaussian(rat(t, p.Sigma2))
	case "polya_nb":
		l, err = Polya(shape(), rat(t, p.T))
	case "polya_difference", "polya_difference_partial":
		l, err = PolyaDifference(shape(), rat(t, p.T))
	case "skellam":
		l, err = Skellam(rat(t, p.Variance))
	case "poisson":
		l, err = Poisson(rat(t, p.Mean))
	default:
		t.Fatalf("unknown family %q", r.Family)
	}
	return must(t, l, err)
}

func TestProbabilitiesGolden(t *testing.T) {
	var file struct{ Records []pmfRecord }
	readJSON(t, "pmf.json", &file)
	worst := 0.0
	for _, r := range file.Records {
		l := r.law(t)
		got, err := l.Probabilities(r.K0, r.K0+int64(len(r.PMF))-1)
		if err != nil {
			t.Fatalf("%v: %v", l, err)
		}
		for i, s := range r.PMF {
			want, ok := new(big.Float).SetPrec(200).SetString(s)
			if !ok {
				t.Fatalf("bad reference %q", s)
			}
			if want.Sign() == 0 {
				if got[i] != 0 {
					t.Errorf("%v: P(%d) = %g, want 0", l, r.K0+int64(i), got[i])
				}
				continue
			}
			d := new(big.Float).SetPrec(200).SetFloat64(got[i])
			e, _ := d.Quo(d.Sub(d, want), want).Float64()
			if worst = max(worst, math.Abs(e)); math.Abs(e) > 1e-15 {
				t.Errorf("%v: P(%d) = %g, want %s (relative %.1e)", l, r.K0+int64(i), got[i], s, e)
			}
		}
		want, _, err := big.ParseFloat(r.Variance, 10, 80, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		if w, _ := want.Float64(); math.Abs(l.Variance()/w-1) > 1e-13 {
			t.Errorf("%v: variance %v, want %v", l, l.Variance(), w)
		}
	}
	t.Logf("%d laws × 61 values, largest relative error %.2e", len(file.Records), worst)
}

// TestSkellamDivergence checks the Skellam probabilities once more, through the
// exact Rényi divergences of another source.
func TestSkellamDivergence(t *testing.T) {
	var file struct {
		Records []struct {
			Mechanism, Quantity string
			Params              struct {
				TotalVariance float64 `json:"total_variance"`
				DeltaSens     int     `json:"delta_sens"`
				Alpha         float64
			}
			Value float64
		}
	}
	readJSON(t, "distributed.json", &file)
	n := 0
	for _, r := range file.Records {
		if r.Mechanism != "skellam" || r.Quantity != "exact_renyi" {
			continue
		}
		n++
		const reach = 400
		sk, err := Skellam(rat(t, r.Params.TotalVariance))
		p, err2 := must(t, sk, err).Probabilities(-reach, reach)
		if err2 != nil {
			t.Fatal(err2)
		}
		sum := 0.0
		for i := range p[:len(p)-r.Params.DeltaSens] {
			a, b := p[i], p[i+r.Params.DeltaSens]
			if a > 0 && b > 0 {
				sum += math.Exp(r.Params.Alpha*math.Log(a) - (r.Params.Alpha-1)*math.Log(b))
			}
		}
		if got := math.Log(sum) / (r.Params.Alpha - 1); math.Abs(got-r.Value) > 1e-9*r.Value {
			t.Errorf("%v: divergence %.15g, want %.15g", r.Params, got, r.Value)
		}
	}
	if n == 0 {
		t.Fatal("no records")
	}
}

func TestProbabilitiesEdges(t *testing.T) {
	g, err := DiscreteGaussian(big.NewRat(4, 1))
	g = must(t, g, err)
	if _, err := g.Probabilities(1, 0); !errors.Is(err, ErrConfig) {
		t.Errorf("empty range: %v", err)
	}
	for _, r := range [][2]int64{{0, 1 << 20}, {-1 << 20, 0}, {math.MinInt64, math.MaxInt64}} {
		if _, err := g.Probabilities(r[0], r[1]); !errors.Is(err, ErrTooLarge) {
			t.Errorf("range %v: %v", r, err)
		}
	}
	if _, err := (Law{}).Probabilities(0, 1); !errors.Is(err, ErrConfig) {
		t.Errorf("zero Law: %v", err)
	}
	// Far below a wide Poisson's mean the numbers are there too.
	po, err := Poisson(big.NewRat(5000, 1))
	p, err2 := must(t, po, err).Probabilities(-2, 5200)
	if err2 != nil {
		t.Fatal(err2)
	}
	lg, _ := math.Lgamma(4001)
	if want := math.Exp(4000*math.Log(5000) - 5000 - lg); math.Abs(p[4002]/want-1) > 1e-9 ||
		p[0] != 0 {
		t.Errorf("P(4000) = %g, want %g", p[4002], want)
	}
	far, err := Poisson(big.NewRat(1<<26, 1))
	if _, err := must(t, far, err).Probabilities(0, 9); !errors.Is(err, ErrTooLarge) {
		t.Errorf("far below a wide Poisson: %v", err)
	}
	// One-sided reach: only negative values of a symmetric law.
	q, err := g.Probabilities(-7, -5)
	if err != nil {
		t.Fatal(err)
	}
	if w, _ := g.Probabilities(5, 7); q[0] != w[2] || q[2] != w[0] {
		t.Error("not symmetric")
	}
}

func TestLawParameters(t *testing.T) {
	one := big.NewRat(1, 1)
	makers := map[string]func(x *big.Rat) (Law, error){
		"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian, "skellam": Skellam, "poisson": Poisson,
		"polya t":            func(x *big.Rat) (Law, error) { return Polya(one, x) },
		"polya r":            func(x *big.Rat) (Law, error) { return Polya(x, one) },
		"polya difference t": func(x *big.Rat) (Law, error) { return PolyaDifference(one, x) },
		"polya difference r": func(x *big.Rat) (Law, error) { return PolyaDifference(x, one) },
	}
	huge := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 81))
	long := new(big.Rat).SetFrac(new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 300), big.NewInt(1)),
		new(big.Int).Lsh(big.NewInt(1), 300))
	for name, f := range makers {
		for _, c := range []struct {
			x    *big.Rat
			want error
		}{
			{nil, ErrConfig}, {new(big.Rat), ErrConfig}, {big.NewRat(-1, 2), ErrConfig},
			{huge, ErrTooLarge}, {new(big.Rat).Inv(huge), ErrTooLarge}, {long, ErrTooLarge},
		} {
			if l, err := f(c.x); !errors.Is(err, c.want) || l.family != 0 {
				t.Errorf("%s(%v): %v %v, want %v", name, c.x, l, err, c.want)
			}
		}
		x := big.NewRat(3, 7)
		l, err := f(x)
		l = must(t, l, err)
		if x.SetInt64(5); l.Scale().Cmp(x) == 0 || l.Shape() != nil && l.Shape().Cmp(x) == 0 {
			t.Errorf("%s keeps the caller's number", name)
		}
		l.Scale().SetInt64(9)
		if l.String() == "" || l.Scale().Cmp(big.NewRat(9, 1)) == 0 {
			t.Errorf("%s gives its own number away", name)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := Rational(x); !errors.Is(err, ErrConfig) {
			t.Errorf("Rational(%v): %v", x, err)
		}
	}
	var zero Law
	if !math.IsNaN(zero.Mean()) || !math.IsNaN(zero.Variance()) || zero.Scale() != nil ||
		zero.String() != "none" {
		t.Error("the zero Law claims to be something")
	}
}
