package normproof

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// kernel returns a vector of numbers modulo q that a matrix with fewer rows than columns takes to
// zeros.
func kernel(r *rand.Rand, matrix [][]int64, q int64) []int64 {
	columns := len(matrix[0])
	m := make([][]int64, len(matrix))
	for i, row := range matrix {
		m[i] = make([]int64, columns)
		for j, x := range row {
			m[i][j] = (x + q) % q
		}
	}
	inverse := func(x int64) int64 {
		return new(big.Int).ModInverse(big.NewInt(x), big.NewInt(q)).Int64()
	}
	var pivots []int // of rows
	for j, row := 0, 0; j < columns && row < len(m); j++ {
		at := row
		for at < len(m) && m[at][j] == 0 {
			at++
		}
		if at == len(m) {
			continue
		}
		m[row], m[at] = m[at], m[row]
		by := inverse(m[row][j])
		for k := range m[row] {
			m[row][k] = m[row][k] * by % q
		}
		for i := range m {
			if times := m[i][j]; i != row && times != 0 {
				for k := range m[i] {
					m[i][k] = (m[i][k] + (q-times)*m[row][k]) % q
				}
			}
		}
		pivots, row = append(pivots, j), row+1
	}
	out := make([]int64, columns)
	for j := range out {
		out[j] = r.Int64N(q)
	}
	for _, j := range pivots {
		out[j] = 0
	}
	for i, j := range pivots {
		sum := int64(0)
		for k, x := range out {
			if k != j {
				sum = (sum + m[i][k]*x) % q
			}
		}
		out[j] = (q - sum) % q
	}
	for j, x := range out {
		if x > q/2 {
			out[j] -= q
		}
	}
	return out
}

// least returns the square of the length of R·z, with least absolute values modulo q.
func least(matrix [][]int64, z []int64, q int64) (square float64) {
	for _, row := range matrix {
		sum := int64(0)
		for j, x := range row {
			sum += x * z[j]
		}
		if sum = ((sum % q) + q) % q; sum > q/2 {
			sum -= q
		}
		square += float64(sum) * float64(sum)
	}
	return square
}

// TestRowsKnown: were R known before the key is committed to, or the vector masked, a vector of any
// length would have sums of zero. R is a hash over both, and by the R of its own statement that
// vector is far beyond the limit.
func TestRowsKnown(t *testing.T) {
	p := tiny
	p.Length = 300
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(41, 42))
	q := int64(s.Modulus)
	limit, _ := new(big.Float).SetInt(s.limit(0)).Float64()
	known := entries(&[32]byte{9}, 0, rows, s.Length)
	z := kernel(r, known, q)
	length := 0.
	for _, x := range z {
		length += float64(x) * float64(x)
	}
	if length < 1000*float64(s.Bound) {
		t.Fatalf("‖z‖² is %g", length)
	}
	if got := least(known, z, q); got != 0 {
		t.Fatalf("the attack does not work where R is known: ‖u‖² is %g", got)
	}
	key := make([]int64, s.Degree)
	n := instanceOf(s, 3, key, z)
	c := new(cheat)
	d, encoded := c.prove(t, s, n)
	own := entries(&c.h1, 0, rows, s.Length)
	if got := least(own, z, q); got < 1000*limit {
		t.Errorf("‖u‖² is %g, and the limit %g", got, limit)
	}
	if err := s.Verify(n.statement, d, encoded); err == nil {
		t.Error("a vector of any length passes")
	}
	// Both are in the hash.
	h0 := s.dealingHash(n.statement, d.Key[:], d.Mask[:])
	other := s.dealingHash(n.statement, d.Mask[:], d.Key[:])
	changed := *n.statement
	changed.Digest[0] ^= 1
	third := s.dealingHash(&changed, d.Key[:], d.Mask[:])
	if h0 == other || h0 == third {
		t.Error("rows are of no commitment or no vector")
	}
}
