package aggregation

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/hushsum/hushsum/internal/suite"
)

// chacha is a deterministic source of random bytes.
func chacha(seed byte) io.Reader {
	return rand.NewChaCha8([32]byte{seed, 1})
}

// The bound against the published formula evaluated elsewhere: all the records
// "rounding" of the golden file distributed_discrete.
func TestNormBoundGolden(t *testing.T) {
	for _, c := range []struct {
		l2   float64
		beta float64
		dim  int
		want float64
	}{
		{100, 0.6065306597126334, 1024, 101.84301645179212},
		{1000, 0.6065306597126334, 4096, 1001.02747215049},
		{100, 0.6065306597126334, 65536, 163.1318485152424},
		{200, 0, 1024, 232}, // no condition: c + √d
	} {
		if got := math.Sqrt(squaredNormBound(c.l2, c.dim,
			kappaOf(c.beta))); math.Abs(got-c.want) > 1e-13*c.want {
			t.Errorf("c = %v, d = %d, β = %v: %v, want %v", c.l2, c.dim, c.beta, got, c.want)
		}
		// Rounded down to an integer square, the bound is tighter by less than 1.
		limit := integerNormBound(c.l2, c.dim, c.beta)
		if below := c.want*c.want - float64(limit); below < -1e-8 || below >= 1 {
			t.Errorf("c = %v, d = %d: Δ₂² = %d, want ⌊%v⌋", c.l2, c.dim, limit, c.want*c.want)
		}
	}
	for _, c := range []struct {
		l2, dim uint64
		want    float64
	}{{100, 1024, 3200}, {1000, 4096, 64000}, {200, 1024, 6400}, {3, 1024, 9}} {
		p := coding{limit: c.l2 * c.l2, rotation: rotation{dimension: int(c.dim)}}
		if got := p.sensitivity().L1; got != c.want {
			t.Errorf("Δ₂ = %d, d = %d: Δ₁ = %v, want %v", c.l2, c.dim, got, c.want)
		}
	}
}

func TestProductRoot(t *testing.T) {
	rng := newRandom(2)
	for range 100_000 {
		r := rng.Uint64N(1<<50-2) + 1
		// (r−1)(r+1) is just below r², r·r is it, r(r+1) is between r² and (r+1)².
		if productRoot(r, r) != r || productRoot(r-1, r+1) != r-1 || productRoot(r, r+1) != r {
			t.Fatalf("r = %d: %d, %d, %d", r, productRoot(r, r), productRoot(r-1, r+1), productRoot(r, r+1))
		}
	}
	if productRoot(0, 5) != 0 || productRoot(1, 1) != 1 || productRoot(3, 1) != 1 {
		t.Error("small roots are wrong")
	}
}

func TestRootUp(t *testing.T) {
	rng := newRandom(3)
	for range 20_000 {
		x := rng.Uint64() >> (2 + rng.IntN(60))
		up := rootUp(x)
		exact := squaredNorm(nil).SetUint64(x)
		if squaredNorm([]float64{up}).Cmp(exact) < 0 {
			t.Fatalf("√%d is above %v", x, up)
		}
		if x > 0 && squaredNorm([]float64{up * (1 - 0x1p-50)}).Cmp(exact) >= 0 {
			t.Fatalf("%v is far above √%d", up, x)
		}
	}
	if rootUp(144) != 12 || rootUp(0) != 0 {
		t.Error("a perfect square is not exact")
	}
}

// With every pair of bytes in turn in place of randomness, a fraction of k/2^16
// rounds up in exactly k cases of 2^16.
func TestRoundingIsExact(t *testing.T) {
	for _, k := range []int{0, 1, 2, 255, 256, 257, 0x1234, 0x8000, 0x80ff, 0xfffe, 0xffff} {
		for _, whole := range []float64{0, 1, 5000} {
			for _, sign := range []float64{1, -1} {
				// 256 coordinates get all the first bytes at once; the one whose first
				// byte does not decide takes the second.
				y := slices.Repeat([]float64{sign * (whole + float64(k)/65536)}, 256)
				first := make([]byte, 256)
				for i := range first {
					first[i] = byte(i)
				}
				ups := 0
				out := make([]uint64, 256)
				for second := range 256 {
					source := byteSource{random: bytes.NewReader(first), left: []byte{byte(second)}}
					sum, err := roundOnce(out, y, 1, &source)
					if err != nil {
						t.Fatal(err)
					}
					var want uint64
					for _, x := range out {
						got := int64(x) * int64(sign)
						if got != int64(whole) && got != int64(whole)+1 {
							t.Fatalf("%v rounds to %d", y[0], int64(x))
						}
						want += uint64(got * got)
						ups += int(got) - int(whole)
					}
					if sum != want {
						t.Fatalf("a sum of squares of %d, want %d", sum, want)
					}
				}
				if ups != k {
					t.Fatalf("%v rounds up %d times of 65536, want %d", y[0], ups, k)
				}
			}
		}
	}
}

// The comparison goes on below the first byte, at any depth.
func TestBelow(t *testing.T) {
	for _, c := range []struct {
		fraction float64
		bytes    []byte
		want     int64
		read     int
	}{
		{0, nil, 0, 0},
		{0x1p-1074, []byte{0, 0, 1}, 0, 3},
		{0x1p-24, []byte{0, 0, 0}, 1, 3},
		{0x1p-24, []byte{0, 0, 1}, 0, 3},
		{0x1.000001p-8, []byte{1, 0, 0}, 1, 4},
		{0x1.000001p-8, []byte{1, 0, 0, 16}, 0, 4},
		{0.5, []byte{127}, 1, 1},
		{0.5, []byte{128}, 0, 1},
		{0.5, []byte{129}, 0, 1},
		{1 - 0x1p-53, []byte{255, 255, 255, 255, 255, 255, 247}, 1, 7},
		{1 - 0x1p-53, []byte{255, 255, 255, 255, 255, 255, 248}, 0, 7},
	} {
		source := byteSource{left: append(append([]byte{}, c.bytes...), make([]byte, 8)...)}
		got, err := source.below(c.fraction)
		if read := len(c.bytes) + 8 - len(source.left); err != nil || got != c.want || read != c.read {
			t.Errorf("below(%v) = %d, %v after %d of the bytes %d; want %d after %d", c.fraction, got, err,
				read, c.bytes, c.want, c.read)
		}
	}
}

// Unconditional rounding has no bias. 200,000 roundings for each of 14 fractions;
// a sound rounding is off by 7 standard deviations of a binomial, or for the rare
// ones by as much by Chernoff's bound, with a probability below 14·2^-38 < 1e-10.
func TestRoundingUnbiased(t *testing.T) {
	const trials = 200_000
	fractions := []float64{0, 0x1p-20, 0x1p-9, 1.0 / 256, 0.1, 0.25, 1.0 / 3, 0.5, 0.7, 0.9,
		255.0 / 256, 1 - 0x1p-9, 1 - 0x1p-12, math.Pi - 3}
	y := make([]float64, len(fractions))
	for i, f := range fractions {
		y[i] = f + float64(i%3)
		if i%2 == 1 {
			y[i] = -y[i]
		}
	}
	source := byteSource{random: chacha(4)}
	sums := make([]int64, len(y))
	out := make([]uint64, len(y))
	for range trials {
		if _, err := roundOnce(out, y, 1, &source); err != nil {
			t.Fatal(err)
		}
		for i, x := range out {
			sums[i] += int64(x)
		}
	}
	for i, sum := range sums {
		f := fractions[i]
		allowed := 7*math.Sqrt(trials*f*(1-f)) + 10
		if f == 0 {
			allowed = 0
		}
		if off := math.Abs(float64(sum) - trials*y[i]); off > allowed+1e-6 {
			t.Errorf("%v: the sum of %d roundings is off by %v, more than %v", y[i], trials, off, allowed)
		}
	}
}

// adversarial are vectors for which rounding lengthens as much as it can.
func adversarial() map[string][]float64 {
	fill := func(n int, x float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = x
			if i%2 == 1 {
				v[i] = -x
			}
		}
		return v
	}
	spiked := append([]float64{40.5}, fill(127, 0.5)...)
	return map[string][]float64{
		"halves":         fill(60, 0.5),
		"halves above 3": fill(60, 3.5),
		"many halves":    fill(1024, 0.5),
		"small":          fill(256, 0x1p-6),
		"nearly one":     fill(60, 1-0x1p-30),
		"spike":          spiked,
		"one coordinate": {1.5},
		"tiny":           fill(60, 1e-300),
		"zero":           fill(16, 0),
	}
}

// 10^5 conditional roundings of each adversarial vector, c being its norm: no
// integer vector is longer than the bound, in integers. Of the tries, at most a
// share of β is refused; a sound rounding fails that by 7 standard deviations
// with a probability below 1e-11 each.
func TestNormNeverExceeded(t *testing.T) {
	trials := suite.Size(5_000, 20_000, 100_000, 100_000)
	for name, y := range adversarial() {
		for _, beta := range []float64{defaultBeta, 0.1, 0.99} {
			trials := trials
			if beta != defaultBeta || len(y) > 128 {
				trials /= 20
			}
			c := norm(y)
			limit := integerNormBound(c, len(y), beta)
			bound := math.Min(c+math.Sqrt(float64(len(y))),
				math.Sqrt(c*c+float64(len(y))/4+math.Sqrt(2*math.Log(1/beta))*(c+math.Sqrt(float64(len(y)))/2)))
			reader := &countingReader{reader: chacha(5), length: len(y)}
			out := make([]uint64, len(y))
			for range trials {
				if err := roundWhole(out, y, limit, beta, reader); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				var sum int64
				for i, x := range out {
					if math.Abs(float64(int64(x))-y[i]) >= 1 {
						t.Fatalf("%s: %v rounds to %d", name, y[i], int64(x))
					}
					sum += int64(x) * int64(x)
				}
				if sum < 0 || uint64(sum) > limit || math.Sqrt(float64(sum)) > bound*(1+1e-12) {
					t.Fatalf("%s: a norm of √%d, above √%d", name, sum, limit)
				}
			}
			tries := float64(reader.count)
			refused := (tries - float64(trials)) / tries
			if refused > beta+7*math.Sqrt(beta*(1-beta)/tries) {
				t.Errorf("%s: %.4f of the tries refused, more than β = %v", name, refused, beta)
			}
		}
	}
}

// roundWhole is roundConditionally for a vector that is there as a whole.
func roundWhole(dst []uint64, y []float64, limit uint64, beta float64, random io.Reader) error {
	return roundConditionally(limit, beta, random, func(source *byteSource) (uint64, error) {
		return roundOnce(dst, y, 1, source)
	})
}

// countingReader counts the reads of a given length: a try of rounding reads a
// byte per coordinate at once, what a tie takes comes 64 bytes at a time.
type countingReader struct {
	reader io.Reader
	length int
	count  int
}

func (r *countingReader) Read(b []byte) (int, error) {
	if len(b) == r.length {
		r.count++
	}
	return r.reader.Read(b)
}

// The condition brings in a bias, within β/(1−β)·√d in L2 norm. It does show for
// halves, where long roundings are refused; 7 standard deviations of slack.
func TestConditionalBias(t *testing.T) {
	const trials = 20_000
	y := adversarial()["halves"]
	d := float64(len(y))
	for _, beta := range []float64{0.1, defaultBeta, 0.9} {
		limit := integerNormBound(norm(y), len(y), beta)
		sums := make([]float64, len(y))
		out := make([]uint64, len(y))
		reader := chacha(6)
		for range trials {
			if err := roundWhole(out, y, limit, beta, reader); err != nil {
				t.Fatal(err)
			}
			for i, x := range out {
				sums[i] += float64(int64(x))
			}
		}
		for i := range sums {
			sums[i] = sums[i]/trials - y[i]
		}
		if got, most := norm(sums), beta/(1-beta)*math.Sqrt(d)+7*math.Sqrt(d/4/trials); got > most {
			t.Errorf("β = %v: a bias of %v, more than %v", beta, got, most)
		}
	}
}

// zeros is a broken source.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestBrokenRandomness(t *testing.T) {
	y := adversarial()["halves"]
	limit := integerNormBound(norm(y), len(y), defaultBeta)
	out := make([]uint64, len(y))
	own := errors.New("no entropy")
	for _, c := range []struct {
		name   string
		reader io.Reader
		also   error
	}{
		{"constant", zeros{}, nil},
		{"empty", bytes.NewReader(nil), io.EOF},
		{"short", bytes.NewReader(make([]byte, 59)), io.ErrUnexpectedEOF},
		{"failing", iotest.ErrReader(own), own},
		{"failing at the second try", io.MultiReader(bytes.NewReader(make([]byte, 60)), iotest.ErrReader(own)), own},
	} {
		err := roundWhole(out, y, limit, defaultBeta, c.reader)
		if !errors.Is(err, ErrRandom) || c.also != nil && !errors.Is(err, c.also) {
			t.Errorf("%s: %v, want %v", c.name, err, ErrRandom)
		}
	}
	// One byte at a time is slow and not wrong.
	if err := roundWhole(out, y, limit, defaultBeta, iotest.OneByteReader(chacha(7))); err != nil {
		t.Error(err)
	}
}
