package collusion

import (
	"context"
	"errors"
	"math"
	"math/big"
	"path/filepath"
	"testing"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/realdata"
	"github.com/hushsum/hushsum/oblivious"
	"gonum.org/v1/gonum/stat"
)

// The closed formulas of the table, and its figures at n = 100.
func TestCollusionFormulas(t *testing.T) {
	want := map[string]struct {
		formula func(n float64) float64
		at100   float64
		r2      float64
	}{
		"T Naive":  {func(n float64) float64 { return 2 * n }, 200, .078},
		"T Random": {func(n float64) float64 { return 2 * (n*n - n + 1) / n }, 198, .079},
		"T Diff":   {func(n float64) float64 { return 2 * (3*(n-1)*(n-1) + n) / n }, 590, .028},
		"T Mean":   {func(n float64) float64 { return (n-1)*(n-1)/n + 2 }, 100, .144},
		"F Naive":  {func(n float64) float64 { return 2 * (2*n - 1) / n }, 3.98, .81},
		"F Random": {func(n float64) float64 { return 2 * (2*n - 1) / n }, 3.98, .81},
		"F Diff":   {func(n float64) float64 { return 2 * (4*n - 3) / n }, 7.94, .68},
		"F Mean":   {func(n float64) float64 { return (3*n - 1) / n }, 2.99, .85},
		"L Naive":  {func(n float64) float64 { return (3*n - 1) / n }, 2.99, .85},
		"L Random": {func(n float64) float64 { return (3*n - 1) / n }, 2.99, .85},
		"L Diff":   {func(n float64) float64 { return (7*n - 5) / n }, 6.95, .71},
		"L Mean":   {func(float64) float64 { return 2 }, 2, .894},
		"Sybil":    {func(n float64) float64 { return (n + 1) / n }, 1.01, .944},
		"Transfer": {func(float64) float64 { return 2 }, 2, .894},
	}
	for _, n := range []int{2, 3, 7, 100} {
		for _, c := range tableCases(n) {
			w, ok := want[c.name]
			if !ok {
				t.Fatalf("no formula for %s", c.name)
			}
			left := c.form.left(c.pooling, c.guess).second
			if math.Abs(left-w.formula(float64(n))) > 1e-9*left {
				t.Errorf("%s at n = %d: %v, want %v", c.name, n, left, w.formula(float64(n)))
			}
			if n != 100 {
				continue
			}
			if math.Abs(left-w.at100) > .005*w.at100 {
				t.Errorf("%s: %v, the table has %v", c.name, left, w.at100)
			}
			digits := 2000.0 // of r², to half a unit in the third place
			if w.r2 == .81 || w.r2 == .68 || w.r2 == .85 || w.r2 == .71 {
				digits = 200
			}
			if r2 := determination(left); math.Abs(r2-w.r2) > 1/digits+1e-9 {
				t.Errorf("%s: r² = %v, the table has %v", c.name, r2, w.r2)
			}
		}
	}
	for left, r2 := range map[float64]float64{2: .894, 0.02: .999} {
		if got := determination(left); math.Abs(got-r2) > .0005 {
			t.Errorf("variance %v: r² = %v, the table has %v", left, got, r2)
		}
	}
}

func TestLaplaceSumAbsolute(t *testing.T) {
	for _, c := range []struct {
		m    int
		want float64
	}{{1, 1}, {2, 1.5}, {3, 1.875}, {99, 11.2}} {
		if got := laplaceSumAbsolute(c.m, 1); math.Abs(got-c.want) > 1e-9 && (c.m < 99 || math.Abs(got-c.want) > .05) {
			t.Errorf("m = %d: %v, want %v", c.m, got, c.want)
		}
	}
}

func TestThesisClaim(t *testing.T) {
	c := thesisClaim{epsilon: 0.1, parties: 100, records: 200, smallest: 100, dimension: 25, rounds: 3, recordsOfClient: 200}
	if got, want := c.pure(), 0.1*100*2*5*3*200; math.Abs(got-want) > 1e-9 {
		t.Errorf("ε = %v, want %v", got, want)
	}
}

// The law of a view is a law, and the mean variance over what is seen is that of
// the estimate Leaking, Mean: 2λ², within 6 standard errors.
func TestProtocolLaw(t *testing.T) {
	const scale = 16
	p, err := newProtocolLaw(10, 9, scale, 1<<11)
	if err != nil {
		t.Fatal(err)
	}
	r := attacks.Options{}.Rand(9)
	var variances []float64
	for range 400 {
		law := p.view(r)
		sum := 0.0
		for _, q := range law {
			sum += q
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("probabilities add to %v", sum)
		}
		variances = append(variances, law.variance()/(scale*scale))
	}
	if mean, se := attacks.MeanAndError(variances); math.Abs(mean-2) > 6*se+.01 {
		t.Errorf("variance %v ± %v, want 2", mean, se)
	}
	for _, bad := range [][4]int{{1, 0, 16, 2048}, {5, 5, 16, 2048}, {5, -1, 16, 2048}, {5, 4, 0, 2048}, {5, 4, 16, 512}, {5, 4, 16, 2000}} {
		if _, err := newProtocolLaw(bad[0], bad[1], bad[2], bad[3]); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

// A Laplace law gives ε = Δ/λ and nothing beyond, and between it δ(ε) = 1 −
// e^((ε−Δ/λ)/2) up to the lattice.
func TestHockeyStick(t *testing.T) {
	const scale = 64
	law, err := latticeLaw(big.NewRat(1, 1), big.NewRat(scale, 1), 1<<13)
	if err != nil {
		t.Fatal(err)
	}
	for _, epsilon := range []float64{0, 0.25, 0.5, 0.75} {
		if got, want := law.hockeyStick(epsilon, scale), 1-math.Exp((epsilon-1)/2); math.Abs(got-want) > .01 {
			t.Errorf("δ(%v) = %v, want %v", epsilon, got, want)
		}
	}
	if got := law.hockeyStick(1+1e-12, scale); got > 1e-12 {
		t.Errorf("δ(1) = %v, want 0", got)
	}
	if got := epsilonOf([]noiseLaw{law}, scale, 1e-9); math.Abs(got-1) > 1e-3 {
		t.Errorf("ε = %v, want 1", got)
	}
}

// What the colluders piece together is what went into the sum: with the honest
// party's own terms and choices nothing but its input is left.
func TestColluderViews(t *testing.T) {
	const n, d = 4, 50
	for _, equal := range []bool{false, true} {
		p, err := runPublished(n, d, equal, attacks.Options{}.Rand(1))
		if err != nil {
			t.Fatal(err)
		}
		views, err := p.colluders()
		if err != nil {
			t.Fatal(err)
		}
		inScale := func(x uint64) float64 { return centred(x, obliviousBits) / obliviousScale }
		honest := p.parties[0].View()
		for k, v := range views {
			left := v.Masked - v.Own - inScale(honest.Own[k])
			for i, c := range v.Among {
				left -= c[v.AmongBits[i]]
			}
			for i, c := range v.ToHonest {
				left -= c[honest.Choices[i+1][k]^p.server.Swaps()[i+1][0][k]]
				if equal && c[0] != c[1] {
					t.Fatalf("coordinate %d: the candidates are not equal", k)
				}
			}
			for i, bit := range v.FromHonestBits {
				pair := honest.Terms[i+1]
				if math.Abs(v.FromHonest[i]) != math.Abs(inScale(pair[0][k]-pair[1][k])) {
					t.Fatalf("coordinate %d: a wrong difference", k)
				}
				left -= inScale(pair[bit^p.server.Swaps()[0][i+1][k]][k])
			}
			if len(v.Among) != (n-1)*(n-2) || math.Abs(left-p.inputs[k]) > 1e-9 {
				t.Fatalf("equal %v, coordinate %d: %v is left, the input is %v", equal, k, left, p.inputs[k])
			}
		}
	}
	p, err := runPublished(3, 1, false, attacks.Options{}.Rand(2))
	if err != nil {
		t.Fatal(err)
	}
	p.parties[2].View().Received[1][0][0]++ // a difference that party 1 did not send
	if _, err := p.colluders(); !errors.Is(err, errViews) {
		t.Errorf("views that do not fit: %v", err)
	}
	for _, bad := range []struct {
		honest, bits int
		scale        float64
	}{{-1, 8, 1}, {3, 8, 1}, {0, 0, 1}, {0, 65, 1}, {0, 8, 0}} {
		if _, err := colluderViews(make([]oblivious.PublishedView, 3), bad.honest, nil, bad.bits, bad.scale); !errors.Is(err, errViews) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// The terms of an exchange are repeated, and its offers rewritten, exactly: with
// equal candidates throughout, the sum of corrections is that of known terms.
func TestTransferSession(t *testing.T) {
	const n, d = 3, 64
	s, err := newTransferSession(n, d, attacks.Options{}.Rand(1))
	if err != nil {
		t.Fatal(err)
	}
	for round := uint64(1); round <= 2; round++ {
		s.carry = func(from, to int, message []byte) ([]byte, error) {
			if message[1] != transferOffer {
				return message, nil
			}
			return s.equalise(from, to, round, message)
		}
		corrections, own, err := s.round(round)
		if err != nil {
			t.Fatal(err)
		}
		for k := range d {
			left := uint64(0)
			for i := range n {
				left += corrections[i][k] - own[i][k]
				for j := range n {
					if j != i {
						left -= s.made[i][j][0][k]
					}
				}
			}
			if centred(left, obliviousBits) != 0 {
				t.Fatalf("round %d, coordinate %d: %v is left", round, k, centred(left, obliviousBits))
			}
		}
	}
}

// Weights are scaled to the variance of the table, with the data and without.
func TestAdultInputs(t *testing.T) {
	for name, folder := range map[string]func(t *testing.T) string{
		"made up": func(*testing.T) string { return "" },
		"Adult":   func(t *testing.T) string { return filepath.Dir(realdata.Dir(t, "adult")) },
	} {
		t.Run(name, func(t *testing.T) {
			options := attacks.Options{Data: folder(t)}
			inputs, scale, err := adultInputs(context.Background(), options, 3, 100, 2)
			if err != nil {
				t.Fatal(err)
			}
			variance := stat.PopVariance(inputs, nil)
			if math.Abs(variance-weightVariance) > 1e-9 || !(scale > 0) {
				t.Errorf("variance %v, λ = %v", variance, scale)
			}
		})
	}
}
