//go:build !purego

package ring

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// HUSHSUM_CPU chooses the path, where the processor has it.
func TestChoose(t *testing.T) {
	if choose("portable") != nil {
		t.Error("portable code is a path of its own")
	}
	for name, from := range map[string]int{"": 0, "avx512": 0, "avx2": 1, "aesni": 1} {
		i := slices.IndexFunc(paths[from:], func(p *path) bool { return p.has() })
		if got := choose(name); i < 0 && got != nil || i >= 0 && got != paths[from+i] {
			t.Errorf("%q does not choose the fastest path from %d on", name, from)
		}
	}
	if fast != choose(os.Getenv("HUSHSUM_CPU")) {
		t.Error("HUSHSUM_CPU is not heeded")
	}
}

// comparePaths multiplies by the portable code and by every path that the processor has.
func comparePaths(t *testing.T, r *Ring, a []uint64, c []int64) {
	t.Helper()
	before, want := slices.Clone(a), make([]uint64, r.n)
	r.mulInto(nil, want, a, r.newFactor(nil, c))
	for _, p := range paths {
		if !p.has() || !p.serves(r.n) {
			continue
		}
		copy(a, before)
		f := r.newFactor(p, c)
		got := make([]uint64, r.n)
		r.mulInto(p, got, a, f)
		if !slices.Equal(got, want) || !slices.Equal(a, before) {
			t.Fatalf("%s, degree %d modulo %d: another product", p.name, r.n, r.q)
		}
		if r.mulInto(p, a, a, f); !slices.Equal(a, want) {
			t.Fatalf("%s, degree %d modulo %d: another product in place", p.name, r.n, r.q)
		}
	}
}

// fill draws entries: all alike, at the edges, or all at random.
func fill(random *rand.Rand, kind, n int, q uint64) []uint64 {
	a := make([]uint64, n)
	edges := []uint64{0, 1, q / 2, q/2 + 1, q - 1}
	one := edges[random.IntN(len(edges))]
	for i := range a {
		switch kind % 3 {
		case 0:
			a[i] = random.Uint64N(q)
		case 1:
			a[i] = edges[random.IntN(len(edges))]
		default:
			a[i] = one
		}
	}
	return a
}

// centre makes signed coefficients of entries.
func centre(r *Ring, a []uint64) []int64 {
	c := make([]int64, len(a))
	for i, x := range a {
		c[i] = r.Centred(x)
	}
	return c
}

// A prime of 38 bits is not reduced between the levels of 2^12 entries, one of 39 is.
var pathModuli = append([]uint64{0x3ffffeb001, 0x7ffffff001}, moduli...)

func TestPaths(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 1))
	for _, q := range pathModuli {
		for n := 8; n <= maxDegree; n *= 2 {
			if q%(2*uint64(n)) != 1 {
				continue
			}
			r := New(n, q)
			for i := range suite.Size(3, 9, 300, 300) {
				comparePaths(t, r, fill(random, i, n, q), centre(r, fill(random, i/3, n, q)))
			}
		}
	}
}

func FuzzPaths(f *testing.F) {
	f.Add(uint64(1), uint8(8), uint8(0), uint8(1), uint8(0))
	f.Add(uint64(2), uint8(4), uint8(4), uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, log, modulus, kind, other uint8) {
		n, q := 8<<(log%9), pathModuli[int(modulus)%len(pathModuli)]
		if n > maxDegree || q%(2*uint64(n)) != 1 {
			return
		}
		random := rand.New(rand.NewPCG(seed, 2))
		r := New(n, q)
		comparePaths(t, r, fill(random, int(kind), n, q),
			centre(r, fill(random, int(other), n, q)))
	})
}

// Entries stay within what is exact also where they are the largest that can come: for the largest
// modulus all products of ±(q − 1)/2 with factors of either sign.
func TestPathsAtBounds(t *testing.T) {
	q := moduli[len(moduli)-1]
	r := New(2048, q)
	a, c := make([]uint64, r.n), make([]int64, r.n)
	for shift := range 11 {
		for i := range a {
			a[i], c[i] = q/2+uint64(i>>shift&1), r.Centred(q/2+uint64(i>>(10-shift)&1))
		}
		comparePaths(t, r, a, c)
	}
}

// BenchmarkPaths is a product of degree 2048 modulo a prime of 33 bits, and of 50, by every path.
func BenchmarkPaths(b *testing.B) {
	for _, q := range moduli[1:] {
		r := New(2048, q)
		a, c := make([]uint64, r.n), make([]int64, r.n)
		r.NewExpander(new([32]byte)).Expand(a, 0)
		for _, p := range append([]*path{nil}, paths...) {
			name := "portable"
			if p != nil {
				if name = p.name; !p.has() {
					continue
				}
			}
			f := r.newFactor(p, c)
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					r.mulInto(p, a, a, f)
				}
			})
		}
	}
}
