package normproof

import (
	"math"
	"math/big"
)

// meeting returns short sums that meet the tests of a key. Of the integers u with the residues of
// ⟨τ_t, u⟩ modulo q that these ask for it finds one near zero (Lenstra, Lenstra, Lovász 1982, and
// Babai's nearest plane).
func meeting(tests *tests, key []int64, q uint64) []int64 {
	const dimension = 20
	n := len(tests.totals)
	modulus := new(big.Int).SetUint64(q)
	// Rows of ⟨τ, u⟩ = target, made so that the first n columns are the identity.
	m := make([][]*big.Int, n)
	for t, tau := range tests.sums {
		target := new(big.Int).SetUint64(tests.totals[t])
		for j, x := range tests.keys[t] {
			target.Sub(target, new(big.Int).Mul(new(big.Int).SetUint64(x), big.NewInt(key[j])))
		}
		for _, x := range tau[:dimension] {
			m[t] = append(m[t], new(big.Int).SetUint64(x))
		}
		m[t] = append(m[t], target.Mod(target, modulus))
	}
	for i := range m {
		inverse := new(big.Int).ModInverse(m[i][i], modulus) // not zero, or the test says so
		for j := range m[i] {
			m[i][j].Mod(m[i][j].Mul(m[i][j], inverse), modulus)
		}
		for k := range m {
			factor := new(big.Int).Set(m[k][i])
			for j := range m[k] {
				if k != i {
					m[k][j].Sub(m[k][j], new(big.Int).Mul(factor, m[i][j]))
					m[k][j].Mod(m[k][j], modulus)
				}
			}
		}
	}
	basis := make([][]float64, dimension)
	u := make([]float64, dimension)
	for i := range basis {
		basis[i] = make([]float64, dimension)
		if i < n {
			basis[i][i] = float64(q)
			u[i] = float64(m[i][dimension].Int64())
			continue
		}
		basis[i][i] = 1
		for t := range m {
			basis[i][t] = -float64(m[t][i].Int64())
		}
	}
	reduce(basis)
	stars := orthogonal(basis)
	for i := dimension - 1; i >= 0; i-- {
		subtract(u, basis[i], math.Round(inner(u, stars[i])/inner(stars[i], stars[i])))
	}
	out := make([]int64, rows)
	for i, x := range u {
		out[i] = int64(x)
	}
	return out
}

func inner(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// subtract takes factor·b off a.
func subtract(a, b []float64, factor float64) {
	for i := range a {
		a[i] -= factor * b[i]
	}
}

func orthogonal(basis [][]float64) (stars [][]float64) {
	for _, b := range basis {
		star := append([]float64(nil), b...)
		for _, other := range stars {
			subtract(star, other, inner(b, other)/inner(other, other))
		}
		stars = append(stars, star)
	}
	return stars
}

// reduce is the algorithm of Lenstra, Lenstra and Lovász, which computes everything anew in each
// step: dimensions are small.
func reduce(basis [][]float64) {
	for k := 1; k < len(basis); {
		stars := orthogonal(basis[:k+1])
		for j := k - 1; j >= 0; j-- {
			subtract(basis[k], basis[j], math.Round(inner(basis[k], stars[j])/inner(stars[j], stars[j])))
		}
		below := inner(stars[k-1], stars[k-1])
		mu := inner(basis[k], stars[k-1]) / below
		if inner(stars[k], stars[k]) >= (0.75-mu*mu)*below {
			k++
			continue
		}
		basis[k], basis[k-1] = basis[k-1], basis[k]
		k = max(k-1, 1)
	}
}
