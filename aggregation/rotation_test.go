package aggregation

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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
	flipSigns(v, &seed, 0)
	for _, c := range []struct {
		first int
		bytes []byte
	}{
		{0, []byte{0xce, 0x2c, 0xba, 0xf6}},
		{256, []byte{0x09, 0x81, 0xe1, 0xb3}},
	} {
		for k := range 8 * len(c.bytes) {
			want := 1 - 2*float64(c.bytes[k/8]>>(k%8)&1)
			if v[c.first+k] != want {
				t.Errorf("sign %d is %v, want %v", c.first+k, v[c.first+k], want)
			}
		}
	}
	flipSigns(v, &seed, 0)
	for i, x := range v {
		if x != 1 {
			t.Fatalf("twice gives %v at %d", x, i)
		}
	}
}

// Where a stream of signs begins: with the hash of its first sign, or the next.
func TestSignStreamFrom(t *testing.T) {
	seed := rotationSeed(1)
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	all := ones(3000)
	flipSigns(all, seed, 0)
	for _, c := range [][2]int{{0, 0}, {1, 256}, {255, 256}, {256, 256}, {257, 512}, {1024, 1024},
		{2000, 2048}} {
		v := ones(300)
		flipSigns(v, seed, c[0])
		if !slices.Equal(v, all[c[1]:c[1]+300]) {
			t.Errorf("signs from %d on are not those from %d on", c[0], c[1])
		}
	}
}

// rotate applies a rotation to a whole vector.
func rotate(r rotation, v []float64, step func(rotation, []float64, int)) {
	for from, to := range r.spans() {
		step(r, v[from:to], from)
	}
	for i := range v {
		v[i] /= math.Sqrt(float64(r.block))
	}
}

// By the definition: the matrix of each step, written out.
func TestRotationDefinition(t *testing.T) {
	rng := newRandom(3)
	for _, c := range []struct{ d, block int }{
		{1, 1}, {2, 2}, {3, 2}, {4, 4}, {5, 4}, {7, 4}, {100, 64}, {256, 256}, {257, 256}, {300, 256},
		{256 * 3, 256}, {256*3 + 1, 256}, {256*4 - 1, 256}, // several blocks
	} {
		r := newRotation(rotationSeed(byte(c.d)), c.d)
		if r.block < c.block {
			t.Fatalf("d = %d: blocks of %d", c.d, r.block)
		}
		r.block = c.block
		got := normals(rng, c.d)
		want := slices.Clone(got)
		signs := slices.Repeat([]float64{1}, 2*c.d+256+c.block)
		flipSigns(signs, r.seed, 0)
		mix := func(v, signs []float64) {
			out := make([]float64, len(v))
			for i := range out {
				for j, x := range v {
					if parity(i&j) == 1 {
						x = -x
					}
					out[i] += x * signs[j] / math.Sqrt(float64(len(v)))
				}
			}
			copy(v, out)
		}
		L := c.block
		for from := 0; from+L <= c.d; from += L {
			mix(want[from:from+L], signs[from:])
		}
		if c.d%L != 0 {
			mix(want[c.d-L:], signs[(c.d+255)/256*256:])
		}
		rotate(r, got, rotation.forward)
		for i := range got {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Fatalf("d = %d, blocks of %d: coordinate %d is %v, want %v", c.d, L, i, got[i], want[i])
			}
		}
	}
}

func parity(i int) int {
	p := 0
	for ; i > 0; i &= i - 1 {
		p ^= 1
	}
	return p
}

// A rotation keeps the norm, its inverse gives the vector back, both to rounding, and
// what was one spike is nowhere larger than the wrap bound says (2^-41 that it is: the
// seeds are fixed).
func TestRotationProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 20_000).Draw(t, "d")
		rng := newRandom(rapid.Uint64().Draw(t, "seed"))
		var seed [32]byte
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		r := newRotation(&seed, d)
		if r.block > 256 && rapid.Bool().Draw(t, "several blocks") {
			r.block = 256
		}
		v := normals(rng, d)
		if rapid.Bool().Draw(t, "spike") {
			clear(v)
			v[rng.IntN(d)] = 1
		}
		before := norm(v)
		w := slices.Clone(v)
		rotate(r, w, rotation.forward)
		if math.Abs(norm(w)-before) > 1e-14*before {
			t.Fatalf("norm %v, was %v", norm(w), before)
		}
		peak := before * math.Sqrt(2*noisyLane{dimension: d}.tailExponent()/float64(r.block))
		if slices.Max(w) > peak || slices.Min(w) < -peak {
			t.Fatalf("%v to %v, more than %v", slices.Min(w), slices.Max(w), peak)
		}
		rotate(r, w, rotation.inverse)
		for i := range w {
			if math.Abs(w[i]-v[i]) > 1e-14*before {
				t.Fatalf("coordinate %d: %v, was %v", i, w[i], v[i])
			}
		}
	})
}

// Blocks are as long as they can be, and cover the vector.
func TestSpans(t *testing.T) {
	for _, c := range []struct{ d, block, longest, spans int }{
		{1, 1, 1, 1}, {2, 2, 2, 1}, {3, 2, 3, 1}, {1023, 512, 1023, 1}, {1024, 1024, 1024, 1},
		{1 << 20, 1 << 20, 1 << 20, 1},
		{1<<21 - 1, 1 << 20, 1<<21 - 1, 1},
		{1 << 21, 1 << 20, 1 << 20, 2},
		{25_000_000, 1 << 20, 1<<20 + 25_000_000%(1<<20), 23},
	} {
		r := newRotation(nil, c.d)
		n, at, longest := 0, 0, 0
		for from, to := range r.spans() {
			if from != at || to-from < r.block {
				t.Errorf("d = %d: a span from %d to %d", c.d, from, to)
			}
			n, at, longest = n+1, to, max(longest, to-from)
		}
		if r.block != c.block || n != c.spans || at != c.d || longest != c.longest ||
			r.longest() != longest {
			t.Errorf("d = %d: blocks of %d, %d spans up to %d, the longest %d and not %d", c.d, r.block, n,
				at, longest, r.longest())
		}
	}
}
