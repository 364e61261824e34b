package oneshot

import "math"

// ringLWE is Ring-LWE, seen as LWE without structure, for which no better attack is
// known.
type ringLWE struct {
	Dimension   int     // of the secret
	LogModulus  float64 // log₂ q
	SecretSigma float64 // standard deviation of a coefficient of the secret
	ErrorSigma  float64 // and of an error
	Samples     int     // coefficients that the attacker may use
}

// attackCost states what the cheapest primal attack takes.
type attackCost struct {
	BlockSize int // of the reduction, β
	Lattice   int // dimension of the lattice

	// Logarithms to base 2. Core-SVP counts one call of a sieve in dimension β and
	// nothing else. The others are in the cost model of the Homomorphic Encryption
	// Standard (Albrecht et al. 2018): 8 calls for each dimension of the
	// lattice, 2^16.4 operations more in each.
	CoreSVP, CoreSVPQuantum float64
	Classical, Quantum      float64
}

// The exponents of sieving for each dimension (Becker, Ducas, Gama, Laarhoven 2016;
// Laarhoven 2015).
const (
	sieve        = 0.292
	sieveQuantum = 0.265
)

// The model of reduction is good from about this block size on.
const minBlock = 50

// primal estimates what the cheapest primal attack on Ring-LWE costs: the shortest vector of an
// embedding, found by block reduction (Alkim, Ducas, Pöppelmann, Schwabe 2016, "Post-quantum key
// exchange: a new hope", §6.3; Bai, Galbraith 2014 for secrets and errors of different size). It is
// a model with constants that everybody uses and nobody has proved. The tests compare it with
// published estimates.
func primal(in ringLWE) attackCost {
	low, high := minBlock, max(minBlock, in.Dimension) // beyond that nobody attacks
	for low < high {
		if middle := (low + high) / 2; in.lattice(middle) > 0 {
			high = middle
		} else {
			low = middle + 1
		}
	}
	c := attackCost{BlockSize: low, Lattice: max(in.lattice(low), low+1)}
	beta, tours := float64(low), 16.4+math.Log2(8*float64(c.Lattice))
	c.CoreSVP, c.CoreSVPQuantum = sieve*beta, sieveQuantum*beta
	c.Classical, c.Quantum = c.CoreSVP+tours, c.CoreSVPQuantum+tours
	return c
}

// lattice returns the smallest dimension in which blocks of size beta find the secret,
// or 0 if they do in none: the projection of the secret to the last block,
// of length σ·√β, is shorter than that block's first vector,
//
//	σ·√β ≤ δ^(2β − d)·Vol^(1/d),  d = m + n + 1,
//
// where the n coordinates of the secret are scaled up to the error's deviation.
func (in ringLWE) lattice(beta int) int {
	b := float64(beta)
	logDelta := math.Log2(math.Pow(math.Pi*b, 1/b)*b/(2*math.Pi*math.E)) / (2 * (b - 1))
	n := float64(in.Dimension)
	for m := 1; m <= in.Samples; m++ {
		d := n + float64(m) + 1
		if d <= b {
			continue
		}
		volume := float64(m)*in.LogModulus + n*math.Log2(in.ErrorSigma/in.SecretSigma)
		if (2*b-d)*logDelta+volume/d >= math.Log2(in.ErrorSigma*math.Sqrt(b)) {
			return int(d)
		}
	}
	return 0
}
