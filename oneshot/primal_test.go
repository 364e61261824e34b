package oneshot

import (
	"math"
	"testing"
)

// TestPrimalPublished compares block sizes with those that others published.
func TestPrimalPublished(t *testing.T) {
	kyber := func(n int, eta float64) ringLWE {
		sigma := math.Sqrt(eta / 2) // of a centred binomial variable
		return ringLWE{n, math.Log2(3329), sigma, sigma, n}
	}
	for _, c := range []struct {
		name           string
		in             ringLWE
		block, lattice int
		source         string
	}{
		{"Kyber512", kyber(512, 3), 406, 998, "lattice-estimator, README: LWE.estimate.rough, 2^118.6"},
		{"Kyber768", kyber(768, 2), 624, 1427, "Albrecht, FHE.org 2024: LWE.estimate.rough, 2^182.2"},
	} {
		cost := primal(c.in)
		if math.Abs(float64(cost.BlockSize-c.block)) > 2 ||
			math.Abs(float64(cost.Lattice-c.lattice)) > 30 {
			t.Errorf("%s: blocks of %d in dimension %d; published are %d in %d (%s)",
				c.name, cost.BlockSize, cost.Lattice, c.block, c.lattice, c.source)
		}
	}
}

// TestPrimalStandard: the largest moduli for 128 bits that the Homomorphic Encryption
// Standard (Albrecht et al. 2018, tables 1 and 2: ternary secrets, σ = 3.19) allows come
// out at 128 bits, less a half, and not much more, classical and quantum.
func TestPrimalStandard(t *testing.T) {
	for _, c := range []struct {
		n                  int
		classical, quantum float64 // log₂ q
	}{{1024, 27, 25}, {2048, 54, 51}, {4096, 109, 101}} {
		in := ringLWE{Dimension: c.n, SecretSigma: math.Sqrt(2.0 / 3), ErrorSigma: 3.19,
			Samples: 4 * c.n}
		in.LogModulus = c.classical
		if got := primal(in).Classical; got < 127.5 || got > 134 {
			t.Errorf("degree %d, %v bits: 2^%.1f classical", c.n, c.classical, got)
		}
		in.LogModulus = c.quantum
		if got := primal(in).Quantum; got < 127.5 || got > 134 {
			t.Errorf("degree %d, %v bits: 2^%.1f quantum", c.n, c.quantum, got)
		}
	}
}

// TestPrimalMonotone: a larger modulus is worse, more noise is better, more samples do
// not help once there are enough.
func TestPrimalMonotone(t *testing.T) {
	base := ringLWE{2048, 33, 3.2, 3.2, 6000}
	cost := primal(base).BlockSize
	for _, c := range []struct {
		change func(*ringLWE)
		sign   int
	}{
		{func(in *ringLWE) { in.LogModulus++ }, -1},
		{func(in *ringLWE) { in.ErrorSigma *= 2 }, 1},
		{func(in *ringLWE) { in.SecretSigma *= 2 }, 1},
		{func(in *ringLWE) { in.Samples *= 10 }, 0},
		{func(in *ringLWE) { in.Samples = 1000 }, 1},
	} {
		in := base
		c.change(&in)
		if d := primal(in).BlockSize - cost; d*c.sign < 0 || (d == 0) != (c.sign == 0) {
			t.Errorf("%+v: blocks change by %d", in, d)
		}
	}
}
