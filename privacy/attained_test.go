package privacy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/noise"
)

// attaining are releases of which a vector attains the lower bound, by name.
func attaining() map[string]Release {
	out := map[string]Release{}
	add := func(name string, change func(r *Release)) {
		r := release()
		r.Noise.Multiplier = 3
		change(&r)
		out[name] = r
	}
	add("a vector", func(*Release) {})
	add("a vector of 2^24 units", func(r *Release) { r.Noise.Bits = 32 })
	add("a number", func(r *Release) { r.Dimension = 1 })
	add("17 bits", func(r *Release) { r.Noise.Bits, r.Dimension = 17, 777 })
	add("three coordinates", func(r *Release) { r.Dimension = 3 })
	add("Laplace", func(r *Release) { r.Noise.Family = accounting.FamilyDiscreteLaplace })
	add("Skellam", func(r *Release) { r.Noise.Family = accounting.FamilySkellam })
	add("none as long as the clip", func(r *Release) { r.Longest = 0.9 })
	add("colluders", func(r *Release) { r.Promise = Assumed(100, 80) })
	add("records", func(r *Release) { r.Records = &Records{Count: 500, Rate: 0.1} })
	add("records, 18 bits", func(r *Release) {
		r.Records, r.Noise.Bits, r.Dimension = &Records{Count: 500, Rate: 1}, 18, 2754
	})
	dealt := func(parties int) Promise { return byCommittee(parties, 13, 3, 1).Promise }
	add("a committee", func(r *Release) { r.Promise = dealt(20) })
	add("a committee, few units", func(r *Release) {
		r.Promise, r.Noise.Bits, r.Dimension = dealt(2), 9, 40
	})
	return out
}

var entries = regexp.MustCompile(`(\d+)(?: coordinates?)? by (\d+)`)

// vectorOf is the vector of a name, and how many entries it has.
func vectorOf(t *testing.T, name string, dimension int) (vector []float64, support int) {
	t.Helper()
	vector = make([]float64, dimension)
	for _, x := range entries.FindAllStringSubmatch(name, -1) {
		n, _ := strconv.Atoi(x[1])
		by, _ := strconv.ParseFloat(x[2], 64)
		for range n {
			vector[support] = by
			support++
		}
	}
	if support == 0 {
		t.Fatalf("%q names no vector", name)
	}
	return vector, support
}

// rotatedBack is the update that the encoder turns into a vector.
func rotatedBack(t *testing.T, e aggregation.Encoder, vector []float64) []float64 {
	t.Helper()
	ring := make([]uint64, len(vector))
	for i, x := range vector {
		ring[i] = uint64(x)
	}
	out, err := e.Decode([][]uint64{ring}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every vector that is said to attain a lower bound is an input: rotated back, a little away from
// zero, and encoded by a thousand dithers it comes out as no less in any of its entries, and where
// units are few as itself. What zeros come out as is left to chance, and no bound relies on it.
func TestNamedVectorsAreInputs(t *testing.T) {
	for name, r := range attaining() {
		m, err := r.mechanism(r.Noise.Multiplier)
		if err != nil {
			t.Fatal(name, err)
		}
		s, err := m.Round().Spent(accounting.ServerView, 3, 1e-5)
		if err != nil || !(s.Bare().Lower > 0 && s.Bare().Lower <= s.Bare().Upper) {
			t.Fatalf("%s: %+v, %v", name, s, err)
		}
		vector, support := vectorOf(t, s.Bare().Neighbour, r.Dimension)
		rotation := [32]byte{byte(len(name))}
		e := m.rotated(rotation)
		e.NoiseStdDev = 0
		ones, square := make([]float64, r.Dimension), 0.0
		for i, x := range vector {
			if square += x * x; x > 0 {
				ones[i] = 1
			}
		}
		if most := min(r.Noise.Clip, cmp.Or(r.Longest, 1)) * e.Scale; square > most*most {
			t.Errorf("%s: %s is longer than the clip, %v units", name, s.Bare().Neighbour, most)
		}
		input, away := rotatedBack(t, e, vector), rotatedBack(t, e, ones)
		for i := range input {
			input[i] += math.Ldexp(math.Sqrt(square/float64(support)), -34) * away[i]
		}
		layout, err := e.Layout()
		if err != nil {
			t.Fatal(name, err)
		}
		random, other := rand.NewChaCha8([32]byte{1}), 0
		for range 1000 {
			out, err := e.Encode(input, nil, random)
			if err != nil {
				t.Fatal(name, err)
			}
			got, err := aggregation.Integers(out[0], layout[0].Bits)
			if err != nil {
				t.Fatal(name, err)
			}
			for i, x := range got {
				if vector[i] > 0 && float64(x) < vector[i] {
					t.Fatalf("%s: an entry of %v comes out as %d", name, vector[i], x)
				}
				if float64(x) != vector[i] {
					other++
				}
			}
		}
		if square < 1e8 && other > 0 || other > 100 {
			t.Errorf("%s: %d entries of 1,000 encodings of %s are others", name, other, s.Bare().Neighbour)
		}
	}
}

// A party's whole submission, with its noise taken off, is that vector too.
func TestNamedVectorIsSubmitted(t *testing.T) {
	r := attaining()["17 bits"]
	m, err := r.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Round().Spent(accounting.ServerView, 3, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	vector, _ := vectorOf(t, s.Bare().Neighbour, r.Dimension)
	rotation := [32]byte{7}
	input := rotatedBack(t, m.rotated(rotation), vector)
	for i := range input {
		input[i] *= 1 + 0x1p-34
	}
	for seed := range byte(50) {
		out, err := m.Encode(rotation, input, nil, rand.NewChaCha8([32]byte{seed}))
		if err != nil {
			t.Fatal(err)
		}
		share, err := m.Vector.share(rand.NewChaCha8([32]byte{seed}))
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range out[0] {
			if got := (x - uint64(share[i])) & (1<<17 - 1); got != uint64(vector[i]) {
				t.Fatalf("coordinate %d is %d, want %v", i, got, vector[i])
			}
		}
	}
}

// With few bits a party's own noise counts, and integers are far apart.
func TestFewBitsFigures(t *testing.T) {
	for bits, want := range map[int]float64{32: 7.995, 16: 7.985, 11: 7.36} {
		r := byCommittee(20, 13, 3, 2.6856)
		r.Noise.Bits, r.Dimension = bits, 50
		round, err := r.Round()
		if err != nil {
			t.Fatal(err)
		}
		s, err := round.Spent(accounting.ServerView, 20, DefaultDelta)
		x := s.Bare()
		if err != nil || math.Abs(x.Upper-7.995) > 1e-3 || math.Abs(x.Lower-want) > 1e-3 {
			t.Errorf("%d bits: %v to %v, want %v to 7.995 (%v)", bits, x.Lower, x.Upper, want, err)
		}
	}
}

// What a lower bound allows for is the noise of the smallest sum: that of the shares which nobody
// in league with the server can take out, and where a committee adds them that of the party alone.
// The variance of 40,000 numbers of such sums says so up to five deviations of it.
func TestLowerBoundsCountTheSmallestSum(t *testing.T) {
	const samples, delta = 40_000, 1e-5
	random := rand.NewChaCha8([32]byte{2})
	own, err := lawOf(accounting.FamilyDiscreteGaussian, ownNoise)
	if err != nil {
		t.Fatal(err)
	}
	table, err := noise.NewTable(own)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"colluders", "17 bits", "a committee, few units"} {
		r := attaining()[name]
		m, err := r.Mechanism()
		if err != nil {
			t.Fatal(name, err)
		}
		least := m.promise.honest
		squares, n, owners := 0.0, 0, 0
		if r.Promise.members {
			owners = 1
		}
		for n < samples {
			sum := make([]int64, r.Dimension)
			for k := range least + owners {
				share := make([]int64, r.Dimension)
				if k < least {
					share, err = m.Vector.share(random)
				} else {
					err = table.NewSampler(random).Fill(share)
				}
				if err != nil {
					t.Fatal(name, err)
				}
				for i, x := range share {
					sum[i] += x
				}
			}
			for _, x := range sum {
				squares += float64(x * x)
			}
			n += r.Dimension
		}
		s, err := m.Round().Spent(accounting.ServerView, 1, delta)
		if err != nil {
			t.Fatal(name, err)
		}
		vector, _ := vectorOf(t, s.Bare().Neighbour, r.Dimension)
		norm := 0.0
		for _, x := range vector {
			norm = math.Hypot(norm, x)
		}
		at := func(deviations float64) float64 {
			variance := squares / float64(n) * (1 + deviations*math.Sqrt(2/float64(n)))
			b, err := accounting.GaussianEpsilon(math.Sqrt(variance)/norm, delta)
			if err != nil {
				t.Fatal(name, err)
			}
			return b.Upper
		}
		if s.Bare().Lower < at(5) || s.Bare().Lower > at(-5) {
			t.Errorf("%s: at least %v, and sums have %v to %v", name, s.Bare().Lower, at(5), at(-5))
		}
		t.Logf("%s: at least %.4f, sums have %.4f", name, s.Bare().Lower, at(0))
	}
}
