package accounting

import "math"

// Sensitivity bounds how much one client can change a sum of integer vectors, in integer units and
// after rounding: bounds on the norms of the client's vector. These are the sensitivity when the
// vector is replaced by zeros, or the client is added or removed; when the vector is replaced by
// another, both norms are twice as large. Bounds are not rounded down.
type Sensitivity struct {
	// L1 is Δ₁, positive. Δ₁ ≤ Δ₂·min(√Dimension, Δ₂) always holds for integers; a larger L1 is
	// reduced to that bound, and 0 stands for it.
	L1 float64
	L2 float64 // Δ₂, positive
	// Dimension is the number of released coordinates, each with noise of its own; at least 1.
	Dimension int
}

func (s Sensitivity) check() (Sensitivity, error) {
	if err := checkPositive("L2", s.L2); err != nil {
		return Sensitivity{}, err
	}
	if s.Dimension < 1 {
		return Sensitivity{}, configError("dimension is %d, want at least 1", s.Dimension)
	}
	if s.L1 == 0 {
		s.L1 = math.Inf(1)
	}
	if !(s.L1 > 0) {
		return Sensitivity{}, configError("L1 is %v, want positive, or 0 for the bound from L2", s.L1)
	}
	s.L1 = math.Min(s.L1, RoundedL1(s.L2, s.Dimension))
	return s, nil
}

// doubled bounds the difference of two vectors that the bounds hold for.
func (s Sensitivity) doubled() Sensitivity {
	s.L1, s.L2 = 2*s.L1, 2*s.L2
	return s
}

// RoundedL1 returns the bound Δ₂·min(√d, Δ₂) of the L1 norm of an integer vector
// of L2 norm at most delta2 in dim coordinates.
func RoundedL1(delta2 float64, dim int) float64 {
	return delta2 * math.Min(math.Sqrt(float64(dim)), delta2)
}
