package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// falseAlarm is the probability with which each statistical test here would fail on
// a perfect implementation under a fresh seed. Seeds are fixed, so it does not.
const falseAlarm = 1e-6

func chiSquareLimit(freedom int) float64 {
	return distuv.ChiSquared{K: float64(freedom)}.Quantile(1 - falseAlarm)
}

// testSeed returns the i-th of a family of seeds.
func testSeed(family byte, i int) (s Seed) {
	s[0] = family
	binary.BigEndian.PutUint64(s[24:], uint64(i))
	return s
}

func TestPermutationKnownAnswers(t *testing.T) {
	var file struct {
		Cases []struct {
			N           int
			Seed        string
			Permutation []int
			SHA256      string
		}
	}
	readTestdata(t, "permutation.json", &file)
	if len(file.Cases) < 10 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		raw, err := hex.DecodeString(c.Seed)
		if err != nil || len(raw) != len(Seed{}) {
			t.Fatalf("seed %q", c.Seed)
		}
		p, err := Permutation(c.N, Seed(raw))
		if err != nil {
			t.Fatal(err)
		}
		if c.SHA256 == "" {
			if !slices.Equal(p, c.Permutation) {
				t.Errorf("n = %d, seed %s: got %v", c.N, c.Seed, p)
			}
			continue
		}
		var b []byte
		for _, v := range p {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != c.SHA256 {
			t.Errorf("n = %d, seed %s: hash %x", c.N, c.Seed, sum)
		}
	}
}

func TestPermutationIsOne(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100, 4097} {
		p, err := Permutation(n, testSeed(1, n))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(p)
		if !slices.Equal(p, span(n)) {
			t.Errorf("n = %d: not a permutation", n)
		}
	}
	for _, n := range []int{-1, 0, MaxParties + 1} {
		if _, err := Permutation(n, Seed{}); !errors.Is(err, ErrParties) {
			t.Errorf("n = %d: %v", n, err)
		}
	}
}

// permutationChiSquare counts all 24 orders of four parties under a shuffle.
func permutationChiSquare(shuffle func(i int) []int) float64 {
	const trials = 24_000
	counts := map[[4]int]float64{}
	for i := range trials {
		counts[[4]int(shuffle(i))]++
	}
	const expected = trials / 24.0
	chi := float64(24-len(counts)) * expected
	for _, c := range counts {
		chi += (c - expected) * (c - expected) / expected
	}
	return chi
}

func TestPermutationUniform(t *testing.T) {
	limit := chiSquareLimit(23)
	chi := permutationChiSquare(func(i int) []int {
		p, err := Permutation(4, testSeed(2, i))
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
	if chi > limit {
		t.Errorf("chi-square %.1f, limit %.1f", chi, limit)
	}
	// The test has teeth: exchanging with any position, not only those below, is the
	// usual mistake (4^4 outcomes do not split evenly into 24).
	chi = permutationChiSquare(func(i int) []int {
		w := newWords(4, testSeed(2, i))
		p := span(4)
		for a := range p {
			b := w.below(4)
			p[a], p[b] = p[b], p[a]
		}
		return p
	})
	if chi < 2*limit {
		t.Errorf("a biased shuffle passes: chi-square %.1f, limit %.1f", chi, limit)
	}
}

func TestBelowRejects(t *testing.T) {
	// Just above 2^31 almost half of all words are rejected; without rejection small
	// values would come up twice as often.
	const m, draws, cells = 1<<31 + 1, 40_000, 16
	w := newWords(1, testSeed(3, 0))
	var counts [cells]float64
	for range draws {
		v := w.below(m)
		if v >= m {
			t.Fatalf("draw %d out of range", v)
		}
		counts[uint64(v)*cells/m]++
	}
	chi := 0.0
	for _, c := range counts {
		chi += (c - draws/cells) * (c - draws/cells) / (draws / cells)
	}
	if limit := chiSquareLimit(cells - 1); chi > limit {
		t.Errorf("chi-square %.1f, limit %.1f", chi, limit)
	}
}
