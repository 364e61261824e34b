package aggregation

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"testing"
)

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

func normals(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func norm(v []float64) float64 {
	return math.Sqrt(sumSquares(v, 1, 1))
}

// By the definition: entry (i, j) is −1 to the number of ones in i AND j. With
// integers both are exact, so equality is asked for.
func TestHadamardDefinition(t *testing.T) {
	rng := newRandom(1)
	for n := 1; n <= 1024; n *= 2 {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(rng.IntN(2001) - 1000)
		}
		want := make([]float64, n)
		for i := range want {
			for j, x := range v {
				if bits.OnesCount(uint(i&j))%2 == 1 {
					x = -x
				}
				want[i] += x
			}
		}
		got := append([]float64(nil), v...)
		hadamard(got)
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("n = %d: coordinate %d is %v, want %v", n, i, got[i], want[i])
			}
		}
		hadamard(got)
		for i := range got {
			if got[i] != v[i]*float64(n) {
				t.Fatalf("n = %d: twice gives %v, want %v", n, got[i], v[i]*float64(n))
			}
		}
	}
}

func BenchmarkHadamard(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 14, 1 << 17, 1 << 20} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			v := normals(newRandom(1), n)
			scale := 1 / float64(n)
			for b.Loop() {
				hadamard(v)
				hadamard(v)
				for i := range v {
					v[i] *= scale
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N*n), "ns/coordinate")
		})
	}
}
