package normproof

import (
	"math/rand/v2"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/dudect"
)

// What the prover does with key and vector takes a time that does not depend on them: zeros, or
// random. Commitments are package pedersen's, and four squares are the exception.
func TestTiming(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	prepare := func(class int) []int64 {
		out := make([]int64, 64)
		for i := range out {
			out[i] = (r.Int64N(1<<20) - 1<<19) * int64(class)
		}
		return out
	}
	s := tinyScheme()
	check := func(name string, leaks bool, run func([]int64)) {
		dudect.Check(t, name, leaks, 1<<12, prepare, run)
	}
	sums := make([]int64, rows)
	h := [32]byte{1}
	check("times", false, func(v []int64) {
		(&matrix{rows: rows, stream: stream(&h, 0)}).times(sums, v)
	})
	check("times with a branch", true, func(v []int64) {
		m := matrix{rows: rows, stream: stream(&h, 0)}
		for i := range v {
			if v[i] != 0 {
				m.times(sums, v[i:i+1])
			}
		}
	})
	check("within", false, func(v []int64) {
		for range 20 {
			within(v, 1<<20)
		}
	})
	scalars := make([]*edwards25519.Scalar, 64)
	check("signed", false, func(v []int64) {
		for i, x := range v {
			scalars[i] = signed(x)
		}
	})
	tests := &tests{totals: make([]uint64, 1), sums: make([][rows]uint64, 1),
		keys: [][]uint64{make([]uint64, s.Degree)}}
	check("divide", false, func(v []int64) {
		p := prover{Scheme: s, small: make([]int64, s.flood)}
		copy(p.small, v)
		p.divide(tests)
	})
}
