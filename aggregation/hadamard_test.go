package aggregation

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"
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

// Known answers for the signs, from another implementation of the description
// (Python's hashlib): seed 00 01 … 1f, the first and the second block.
func TestSignStream(t *testing.T) {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(i)
	}
	v := make([]float64, 300)
	for i := range v {
		v[i] = 1
	}
	flipSigns(v, &seed)
	for _, c := range []struct {
		first int
		bytes []byte
	}{
		{0, []byte{0x34, 0xc9, 0x1f, 0x9d}},
		{256, []byte{0xd9, 0xe5, 0x18, 0x4f}},
	} {
		for k := range 8 * len(c.bytes) {
			want := 1 - 2*float64(c.bytes[k/8]>>(k%8)&1)
			if v[c.first+k] != want {
				t.Errorf("sign %d is %v, want %v", c.first+k, v[c.first+k], want)
			}
		}
	}
	flipSigns(v, &seed)
	for i, x := range v {
		if x != 1 {
			t.Fatalf("twice gives %v at %d", x, i)
		}
	}
}

// A rotation keeps the norm, and its inverse gives the vector back, both to
// rounding.
func TestRotationProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 1 << rapid.IntRange(0, 13).Draw(t, "log2 n")
		rng := newRandom(rapid.Uint64().Draw(t, "seed"))
		var seed [32]byte
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		v := normals(rng, n)
		if rapid.Bool().Draw(t, "spike") {
			clear(v)
			v[rng.IntN(n)] = 1
		}
		before := norm(v)
		w := append([]float64(nil), v...)
		flipSigns(w, &seed)
		hadamard(w)
		root := math.Sqrt(float64(n))
		for i := range w {
			w[i] /= root
		}
		if math.Abs(norm(w)-before) > 1e-14*before {
			t.Fatalf("norm %v, was %v", norm(w), before)
		}
		hadamard(w)
		flipSigns(w, &seed)
		for i := range w {
			if math.Abs(w[i]/root-v[i]) > 1e-14*before {
				t.Fatalf("coordinate %d: %v, was %v", i, w[i]/root, v[i])
			}
		}
	})
}

func TestPaddedLength(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1 << 28, 1 << 28}, {1<<27 + 1, 1 << 28}} {
		if got := paddedLength(c[0]); got != c[1] {
			t.Errorf("paddedLength(%d) = %d, want %d", c[0], got, c[1])
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
