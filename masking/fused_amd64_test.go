//go:build amd64 && !purego

package masking

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// HUSHSUM_CPU chooses the path, where the processor has it.
func TestChoose(t *testing.T) {
	if choose("portable") != nil {
		t.Error("portable code is a path of its own")
	}
	for i, p := range paths {
		got := choose(p.name)
		if p.has() && got != p {
			t.Errorf("%s: another path is chosen", p.name)
		}
		if !p.has() && slices.Contains(paths[:i+1], got) {
			t.Errorf("%s: the processor does not have it, or what is chosen is faster", p.name)
		}
	}
	if choose("") != choose(paths[0].name) {
		t.Error("the fastest path is not chosen")
	}
	name := os.Getenv("HUSHSUM_CPU")
	known := name == "" || name == "portable" ||
		slices.ContainsFunc(paths, func(p *path) bool { return p.name == name })
	if !known || fused != choose(name) {
		t.Errorf("HUSHSUM_CPU=%s does not choose a path", name)
	}
}

// randomMasks draws masks for a layout.
func randomMasks(rng *rand.Rand, n int) []mask {
	masks := make([]mask, n)
	for i := range masks {
		for k := range masks[i].seed {
			masks[i].seed[k] = byte(rng.Uint32())
		}
		masks[i].subtract = rng.IntN(2) == 0
	}
	return masks
}

// comparePaths applies masks to a vector with the portable code and by every path that the
// processor has.
func comparePaths(t *testing.T, v *Vector, masks []mask) {
	t.Helper()
	want := v.Clone()
	for i := range masks {
		op := addStream
		if masks[i].subtract {
			op = subStream
		}
		want.stream(&masks[i].seed, 0, len(v.words), op)
	}
	before := slices.Clone(v.words)
	for _, p := range paths {
		if !p.has() {
			continue
		}
		copy(v.words, before)
		p.apply(v, masks, 0, len(v.words))
		if !slices.Equal(v.words, want.words) {
			t.Fatalf("%s: %d masks of %v differ from those of the portable code", p.name, len(masks),
				v.layout)
		}
	}
}

// Every path makes the masks of the portable code, for every width, about the edges of turns,
// windows and batches.
func TestPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(30, 1))
	for bits := 1; bits <= 64; bits++ {
		slots := 64 / bits
		for _, words := range []int{1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, windowWords - 1,
			windowWords, windowWords + 1, 2*windowWords + 65} {
			layout := Layout{{words*slots - rng.IntN(slots), bits}, {1 + rng.IntN(99), 65 - bits}}
			masks := 1 + rng.IntN(3)
			if words < 20 {
				masks = batchMasks - 1 + rng.IntN(3)
			}
			comparePaths(t, mustVector(t, layout, randomValues(rng, layout)...), randomMasks(rng, masks))
		}
	}
}

func FuzzPaths(f *testing.F) {
	f.Add(uint64(1), uint8(32), uint16(1000), uint8(64), uint16(5000), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, bits1 uint8, n1 uint16, bits2 uint8, n2 uint16, n uint8) {
		layout := Layout{{1 + int(n1)%6000, 1 + int(bits1)%64}, {1 + int(n2)%6000, 1 + int(bits2)%64}}
		rng := rand.New(rand.NewPCG(seed, 2))
		v := mustVector(t, layout, randomValues(rng, layout)...)
		comparePaths(t, v, randomMasks(rng, int(n)%(2*batchMasks)))
	})
}
