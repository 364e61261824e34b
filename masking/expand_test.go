package masking

import (
	"bytes"
	"crypto/aes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// referenceMask writes the expansion out with single AES blocks and single
// values: it shares nothing with AddMask but the specification.
func referenceMask(t testing.TB, layout Layout, seed *Seed) [][]uint64 {
	t.Helper()
	block, err := aes.NewCipher(seed[:16])
	if err != nil {
		t.Fatal(err)
	}
	masks := make([][]uint64, len(layout))
	for i, s := range layout {
		slots := 64 / s.Bits
		for k := range s.Length {
			word := k / slots
			var counter, out [16]byte
			copy(counter[:12], seed[16:])
			counter[8] ^= byte(i >> 24)
			counter[9] ^= byte(i >> 16)
			counter[10] ^= byte(i >> 8)
			counter[11] ^= byte(i)
			binary.BigEndian.PutUint32(counter[12:], uint32(word/2))
			block.Encrypt(out[:], counter[:])
			stream := new(big.Int)
			half := slices.Clone(out[word%2*8 : word%2*8+8])
			slices.Reverse(half)
			stream.SetBytes(half)
			stream.Rsh(stream, uint(k%slots*s.Bits))
			stream.And(stream, new(big.Int).
				Sub(new(big.Int).Lsh(big.NewInt(1), uint(s.Bits)), big.NewInt(1)))
			masks[i] = append(masks[i], stream.Uint64())
		}
	}
	return masks
}

func TestMaskMatchesSpecification(t *testing.T) {
	seed := Seed(bytes.Repeat([]byte{0x5a}, 28))
	for layout := range layouts {
		v, err := NewVector(layout)
		if err != nil {
			t.Fatal(err)
		}
		v.AddMask(&seed)
		if !equalValues(v.Values(), referenceMask(t, layout, &seed)) {
			t.Fatalf("%v: the mask is not that of the specification", layout)
		}
		v.SubMask(&seed)
		if slices.Max(v.words) != 0 {
			t.Fatalf("%v: a mask does not cancel itself", layout)
		}
	}
}

// One figure over masks of every b: what other implementations compare with.
func TestMaskAccumulated(t *testing.T) {
	h := sha256.New()
	for bits := 1; bits <= 64; bits++ {
		v, err := NewVector(Layout{{1000 + bits, bits}, {10, 65 - bits}})
		if err != nil {
			t.Fatal(err)
		}
		seed := Seed{byte(bits), 27: 0xfe}
		v.AddMask(&seed)
		h.Write(v.AppendPacked(nil))
	}
	const want = "2bf70c05fba1a1795031d79330496748dd9ffe71079eb38bcec47fbccfa4368c"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("masks hash to %s, want %s", got, want)
	}
}

// Pairwise masks of n parties cancel in the sum, for every b and n from 2 to 50.
func TestPairwiseMasksCancel(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for bits := 1; bits <= 64; bits++ {
		layout := Layout{{37, bits}}
		n := 2 + (bits-1)*48/63
		total, want := mustVector(t, layout, make([]uint64, 37)),
			mustVector(t, layout, make([]uint64, 37))
		for self := range n {
			v := mustVector(t, layout, randomValues(rng, layout)...)
			if err := want.Add(v); err != nil {
				t.Fatal(err)
			}
			plain := v.Clone()
			for peer := range n {
				if peer != self {
					seed := Seed{byte(min(self, peer)), byte(max(self, peer)), byte(bits)}
					v.MaskPair(&seed, self, peer)
				}
			}
			if bits > 3 && slices.Equal(v.words, plain.words) {
				t.Fatalf("b = %d: party %d is not masked", bits, self)
			}
			if err := total.AddPacked(v.AppendPacked(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(total.words, want.words) {
			t.Fatalf("b = %d, n = %d: the sum is not that of the inputs", bits, n)
		}
	}
}

// Many masks together are those one by one, also more than wait.
func TestMasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(30, 5))
	layout := Layout{{700, 20}, {99, 32}, {1, 64}}
	v := mustVector(t, layout, randomValues(rng, layout)...)
	want := v.Clone()
	masks := NewMasks(v)
	for n := range 2*maxGathered + 7 {
		seed := Seed{byte(n), byte(n >> 8), 27: byte(n)}
		switch rng.IntN(3) {
		case 0:
			masks.Add(&seed)
			want.AddMask(&seed)
		case 1:
			masks.Sub(&seed)
			want.SubMask(&seed)
		default:
			self, peer := rng.IntN(9), 9+rng.IntN(9)
			if n%2 == 0 {
				self, peer = peer, self
			}
			masks.Pair(&seed, self, peer)
			want.MaskPair(&seed, self, peer)
		}
		if n%100 == 0 {
			masks.Apply()
			if !slices.Equal(v.words, want.words) {
				t.Fatalf("after %d masks: the vector differs", n+1)
			}
		}
	}
	masks.Apply()
	if !slices.Equal(v.words, want.words) {
		t.Fatal("the vector differs")
	}
	for _, left := range masks.list[:cap(masks.list)] {
		if left != (mask{}) {
			t.Fatal("a seed is left")
		}
	}
}

// Different seeds, segments and coordinates have unrelated masks: over 2^16
// coordinates of 16 bits, equal pairs at any small shift are as rare as chance
// has them (mean 1, more than 12 has probability below 1e-9 for each of 21
// comparisons).
func TestMasksAreDistinct(t *testing.T) {
	const n = 1 << 16
	layout := Layout{{n, 16}, {n, 16}}
	one, two := Seed{1}, Seed{2}
	a, b := mustVector(t, layout, make([]uint64, n), make([]uint64, n)),
		mustVector(t, layout, make([]uint64, n), make([]uint64, n))
	a.AddMask(&one)
	b.AddMask(&two)
	va, vb := a.Values(), b.Values()
	compare := func(name string, x, y []uint64) {
		t.Helper()
		equal := 0
		for i := range min(len(x), len(y)) {
			if x[i] == y[i] {
				equal++
			}
		}
		if equal > 12 {
			t.Errorf("%s: %d of %d masks are equal", name, equal, n)
		}
	}
	compare("segments", va[0], va[1])
	compare("seeds", va[0], vb[0])
	compare("segments and seeds", va[0], vb[1])
	for shift := 1; shift <= 18; shift++ {
		compare(fmt.Sprintf("coordinates %d apart", shift), va[0], va[0][shift:])
	}
}

// Masking allocates the cipher and nothing that grows with the vector.
func TestMaskAllocations(t *testing.T) {
	seed := &Seed{1}
	measure := func(n int) float64 {
		v, err := NewVector(Layout{{n, 32}})
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(20, func() { v.AddMask(seed) })
	}
	if short, long := measure(10), measure(1<<20); long > short || long > 4 {
		t.Errorf("%v allocations for 10 coordinates, %v for a million", short, long)
	}
}

// Masks are the same whatever parts of the vector the cores take, by the path in use and by the
// portable code.
func TestParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(30, 4))
	draw := func() (v *Vector, masks []mask) {
		layout := Layout{{1 + rng.IntN(40_000), 1 + rng.IntN(64)}, {1 + rng.IntN(5), 64},
			{1 + rng.IntN(40_000), 1 + rng.IntN(64)}}
		masks = make([]mask, 1+rng.IntN(3))
		for i := range masks {
			for k := range masks[i].seed {
				masks[i].seed[k] = byte(rng.Uint32())
			}
			masks[i].subtract = rng.IntN(2) == 0
		}
		return mustVector(t, layout, randomValues(rng, layout)...), masks
	}
	for range 40 {
		v, masks := draw()
		whole := v.Clone()
		whole.applyPart(masks, 0, len(v.words))
		for _, parts := range []int{1, 2, 3, 8, 1000} {
			got := v.Clone()
			if got.applyParts(masks, parts); !slices.Equal(got.words, whole.words) {
				t.Fatalf("%v: %d parts differ from the whole", v.layout, parts)
			}
		}
		// The part of one window in the middle, and nothing else.
		got, want := v.Clone(), v.Clone()
		from := min(windowWords, len(v.words)) / windowWords * windowWords
		to := min(from+windowWords, v.layout[0].words())
		if from >= to {
			continue
		}
		for i := range masks {
			op := addStream
			if masks[i].subtract {
				op = subStream
			}
			got.stream(&masks[i].seed, from, to, op)
		}
		copy(want.words[from:to], whole.words[from:to])
		if !slices.Equal(got.words, want.words) {
			t.Fatalf("%v: the portable code touches what it was not given, or differs", v.layout)
		}
	}
}
