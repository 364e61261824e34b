package privacy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
)

func newBand(t *testing.T, length, rounds int) Band {
	t.Helper()
	b, err := NewBand(length, rounds)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Independent noise over correlated noise, in prefix sums: the figures of the design, within 1 %.
func TestBandGains(t *testing.T) {
	for _, c := range []struct {
		rounds, length int
		gain, p        float64
	}{
		{100, 5, 1.963, 0.490}, {100, 20, 2.753, 0.645}, {100, 100, 3.032, 0.736},
		{500, 5, 2.133, 0.298}, {500, 20, 3.593, 0.445}, {500, 100, 5.065, 0.591},
		{2000, 5, 2.194, 0.191}, {2000, 20, 4.044, 0.309}, {2000, 100, 6.826, 0.470},
	} {
		b := newBand(t, c.length, c.rounds)
		gain := math.Sqrt(float64(c.rounds+1)/2) / b.Error(c.rounds)
		p := -math.Log2(b[1] / b[0])
		t.Logf("%d rounds, band %d: %.3f with p = %.3f", c.rounds, c.length, gain, p)
		if math.Abs(gain/c.gain-1) > 0.01 || math.Abs(p-c.p) > 0.02 {
			t.Errorf("%d rounds, band %d: %.3f with p = %.3f, want %.3f with %.3f", c.rounds, c.length,
				gain, p, c.gain, c.p)
		}
		squares := 0.0
		for _, x := range b {
			squares += x * x
		}
		if math.Abs(squares-1) > 1e-12 {
			t.Errorf("a norm of %v", math.Sqrt(squares))
		}
	}
	for _, c := range [][2]int{{1, 10}, {0, 10}, {-3, 10}, {11, 10}} {
		if _, err := NewBand(c[0], c[1]); !errors.Is(err, ErrConfig) {
			t.Errorf("bands of %d in %d rounds: %v", c[0], c[1], err)
		}
	}
	newBand(t, 2, 1<<30) // the fit does not take for ever
}

// Each party is at the offset that its number and the round say, and its bands do not overlap.
func TestBandTurns(t *testing.T) {
	b := newBand(t, 4, 12)
	for party := range 9 {
		at := 3
		for round := uint64(1); round <= 13; round++ {
			offset, ok := b.Offset(party, round)
			if first := uint64(party%4) + 1; ok != (round >= first) {
				t.Fatalf("party %d, round %d: %v", party, round, ok)
			}
			if ok && offset != (at+1)%4 {
				t.Errorf("party %d, round %d: offset %d after %d", party, round, offset, at)
			}
			if ok {
				at = offset
			}
		}
	}
}

// play begins one vector in each round and returns what is decoded of the sums, without the lost
// rounds. kept says whether those who began in a lost round go on.
func play(b Band, vectors [][]float64, lost []int, kept bool) (decoded [][]float64) {
	var earlier []Decoded
	decoded = make([][]float64, len(vectors))
	for t := range vectors {
		if slices.Contains(lost, t) {
			continue
		}
		sum := make([]float64, len(vectors[0]))
		for j := 0; j < len(b) && j <= t; j++ {
			if j > 0 && slices.Contains(lost, t-j) && !kept {
				continue
			}
			for i, x := range vectors[t-j] {
				sum[i] += b[j] * x
			}
		}
		decoded[t] = b.Decode(uint64(t+1), sum, earlier)
		earlier = append(earlier, Decoded{uint64(t + 1), decoded[t]})
	}
	return decoded
}

// Decoding is exact, also where rounds are lost, if their vectors are given up with them.
func TestBandDecodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := newBand(t, 5, 30)
	vectors := make([][]float64, 30)
	for s := range vectors {
		vectors[s] = []float64{rng.NormFloat64(), rng.NormFloat64()}
	}
	far := func(lost []int, kept bool) (most float64) {
		for s, v := range play(b, vectors, lost, kept) {
			for i, x := range v {
				most = math.Max(most, math.Abs(x-vectors[s][i]))
			}
		}
		return most
	}
	for _, lost := range [][]int{nil, {0}, {3}, {4, 5, 6, 7, 8}, {1, 9, 11, 20, 29}} {
		if off := far(lost, false); off > 1e-9 {
			t.Errorf("lost %v: off by %v", lost, off)
		}
	}
	if off := far([]int{7}, true); off < 0.1 {
		t.Errorf("a vector that is not given up with its round does no harm: %v", off)
	}
}

// The error with lost rounds, T = 100 and b = 20: the design's 2.59, and 2.60, 2.63 and 2.73 with
// 1, 5 and 20 lost, with the root's coefficients.
func TestBandLosesLittle(t *testing.T) {
	const rounds, length = 100, 20
	b := make(Band, length)
	squares := 0.0
	for j := range b {
		b[j] = 1
		if j > 0 {
			b[j] = b[j-1] * (float64(j) - 0.5) / float64(j)
		}
		squares += b[j] * b[j]
	}
	for j := range b {
		b[j] /= math.Sqrt(squares)
	}
	// Noise of each round is one coordinate, so that squares of what is decoded are variances.
	errorWith := func(lost []int) float64 {
		prefix := make([]float64, rounds)
		var earlier []Decoded
		total, count := 0.0, 0
		for t := range rounds {
			if slices.Contains(lost, t) {
				continue
			}
			sum := make([]float64, rounds)
			sum[t] = 1
			d := b.Decode(uint64(t+1), sum, earlier)
			earlier = append(earlier, Decoded{uint64(t + 1), d})
			for i, x := range d {
				prefix[i] += x
				total += prefix[i] * prefix[i]
			}
			count++
		}
		return math.Sqrt(total / float64(count))
	}
	if got := errorWith(nil); math.Abs(got/b.Error(rounds)-1) > 1e-9 {
		t.Errorf("%v, and by the series %v", got, b.Error(rounds))
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		lost int
		want float64
	}{{0, 2.59}, {1, 2.60}, {5, 2.63}, {20, 2.73}} {
		mean := 0.0
		for range 20 {
			mean += errorWith(rng.Perm(rounds)[:c.lost]) / 20
		}
		t.Logf("%d lost: %.3f", c.lost, mean)
		if math.Abs(mean/c.want-1) > 0.01 {
			t.Errorf("%d lost: %.3f, want %.2f", c.lost, mean, c.want)
		}
	}
}

// bandRelease is that of Adult's 400 parties.
func bandRelease(t *testing.T, bits int) *Release {
	return &Release{
		Promise:   Assumed(400, 400),
		Noise:     Noise{Family: accounting.FamilyDiscreteGaussian, Clip: 0.1, Bits: bits},
		Dimension: 105,
		Band:      newBand(t, 20, 100),
	}
}

// Five bands cost what five submissions of the whole clip do, and the rounding of each offset:
// z = 8.34 at ε = 1, where 100 submissions would take 37.3.
func TestBandCalibrates(t *testing.T) {
	r := bandRelease(t, 32)
	z, err := r.Calibrate(Budget{Epsilon: 1}, 5)
	if err != nil || math.Abs(z/8.34-1) > 0.01 {
		t.Fatalf("z = %v, want 8.34 (%v)", z, err)
	}
	r.Noise.Multiplier = z
	m, err := r.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := m.Round().Views(5, DefaultDelta)
	if err != nil || server.Bare().Upper > 1 || server.Bare().Width() > 0.01 {
		t.Errorf("%+v, %v", server, err)
	}
	// Rounding is counted at every offset, and is little with 32 bits; with 16 it is not.
	if more := m.MaxNorm() / 0.1; more > 1.005 {
		t.Errorf("rounding adds %v", more)
	}
	coarse := bandRelease(t, 16)
	coarse.Noise.Multiplier = z
	c, err := coarse.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	square := 0.0
	for j := range coarse.Band {
		s, err := coarse.Band.at(c.Encoder, j).Sensitivity()
		if err != nil {
			t.Fatal(err)
		}
		square += math.Floor(s.L2 * s.L2)
	}
	single, err := c.Encoder.Sensitivity()
	if err != nil {
		t.Fatal(err)
	}
	scale := c.Encoder.Scale
	t.Logf("16 bits: a band has %.4g clips, one vector %.4g", c.MaxNorm()/0.1,
		single.L2/scale/0.1)
	got := c.Round().Update.Sensitivity.L2
	if math.Abs(got*got/square-1) > 1e-9 || got <= 1.001*single.L2 {
		t.Errorf("the band's norm is %v, and its offsets' %v", got, math.Sqrt(square))
	}
}

// What leaves is within the bound of its offset, before noise, and noise is new each time.
func TestBandEncodes(t *testing.T) {
	r := bandRelease(t, 32)
	r.Noise.Multiplier = 1e-9
	m, err := r.mechanism(1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for j := range r.Band {
		x := make([]float64, r.Dimension)
		for i := range x {
			x[i] = 9 * rng.NormFloat64() // clipped
		}
		clipped, _, err := aggregation.Clip(x, m.Encoder.Clip)
		if err != nil {
			t.Fatal(err)
		}
		for i := range clipped {
			clipped[i] *= r.Band[j]
		}
		e := r.Band.at(m.rotated([32]byte{1}), j)
		out, err := e.Encode(clipped, make([]int64, r.Dimension), nil)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := e.Sensitivity()
		if err != nil {
			t.Fatal(err)
		}
		square := 0.0
		for _, v := range out[0] {
			integer := float64(int64(v<<32) >> 32)
			square += integer * integer
		}
		if square > math.Floor(ring.L2*ring.L2) || square < 0.9*ring.L2*ring.L2 {
			t.Errorf("offset %d: a square of %v, at most %v", j, square, ring.L2*ring.L2)
		}
	}

	r.Noise.Multiplier = 1
	if m, err = r.Mechanism(); err != nil {
		t.Fatal(err)
	}
	zeros := make([]float64, r.Dimension)
	one, err1 := m.EncodeAt([32]byte{}, 3, zeros, nil)
	two, err2 := m.EncodeAt([32]byte{}, 4, zeros, nil)
	if err := errors.Join(err1, err2); err != nil || slices.Equal(one[0], two[0]) {
		t.Errorf("the same share twice, %v", err)
	}
	for _, offset := range []int{-1, 20} {
		if _, err := m.EncodeAt([32]byte{}, offset, zeros, nil); !errors.Is(err, aggregation.ErrConfig) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	if _, err := m.Encode([32]byte{}, zeros, nil, nil); !errors.Is(err, aggregation.ErrConfig) {
		t.Errorf("a vector without an offset: %v", err)
	}
}

// Counter-examples: what no theorem covers is refused.
func TestBandsRefused(t *testing.T) {
	for name, change := range map[string]func(r *Release){
		"Noise.Family": func(r *Release) { r.Noise.Family = accounting.FamilyDiscreteLaplace },
		"Records":      func(r *Release) { r.Records = &Records{Count: 10, Rate: 0.5} },
		"Signs":        func(r *Release) { r.Signs = Votes(10) },
		"Rate":         func(r *Release) { r.Rate = 0.5 },
		"Band":         func(r *Release) { r.Band = Band{1, 1} },
	} {
		r := bandRelease(t, 32)
		r.Noise.Multiplier = 1
		change(r)
		var c *ConfigError
		if err := r.Validate(); !errors.As(err, &c) || c.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Columns at a separation below the band's length are not orthogonal: what a participation costs on
// top, T = 100 and b = 20. That is why cohorts take turns.
func TestOverlapCosts(t *testing.T) {
	const rounds = 100
	b := newBand(t, 20, rounds)
	var seen []string
	for _, separation := range []int{20, 10, 5, 1} {
		square, starts := 0.0, 0
		y := make([]float64, rounds)
		for s := 0; s < rounds; s += separation {
			starts++
			for j := 0; j < len(b) && s+j < rounds; j++ {
				y[s+j] += b[j]
			}
		}
		for _, x := range y {
			square += x * x
		}
		seen = append(seen, fmt.Sprintf("%.1f", square/float64(starts)))
	}
	t.Log(seen)
	if want := []string{"1.0", "1.5", "2.7", "12.3"}; !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
}
