package collusion

import (
	"math"
	"math/big"
	"testing"

	"github.com/hushsum/hushsum/attacks"
)

// The law of a view is a law, and the mean variance over what is seen is that of
// the estimate Leaking, Mean: 2λ², within 6 standard errors.
func TestPublishedLaw(t *testing.T) {
	const scale = 16
	p, err := newPublishedLaw(10, 9, scale, 1<<11)
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
	if mean, se := attacks.MeanAndError(variances); math.Abs(mean-2) > 6*se+0.01 {
		t.Errorf("variance %v ± %v, want 2", mean, se)
	}
	for _, bad := range []struct{ parties, colluders, scale, size int }{
		{1, 0, 16, 2048}, {5, 5, 16, 2048}, {5, -1, 16, 2048},
		{5, 4, 0, 2048}, {5, 4, 16, 512}, {5, 4, 16, 2000},
	} {
		_, err := newPublishedLaw(bad.parties, bad.colluders, bad.scale, bad.size)
		if err == nil {
			t.Errorf("%+v: no error", bad)
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
		got, want := law.hockeyStick(epsilon, scale), 1-math.Exp((epsilon-1)/2)
		if math.Abs(got-want) > 0.01 {
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
