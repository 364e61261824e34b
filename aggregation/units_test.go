package aggregation

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// oneSource gives the same bytes to every rounding: for a coordinate each, and always the same to
// those that are decided by a second one. So it stands for one dither u.
type oneSource struct{ seed uint64 }

func (s oneSource) Read(b []byte) (int, error) {
	rng := rand.New(rand.NewPCG(s.seed, 0))
	for i := range b {
		if b[i] = 0x55; len(b) != len(byteSource{}.buffer) {
			b[i] = byte(rng.Uint32())
		}
	}
	return len(b), nil
}

// For each dither, but for one in 2^60, one vector more moves an encoded sum by at most the
// sensitivity, however many others are in the sum: by the vector's norm and √d, or by less.
// Coordinates are not negative here, so that the bytes are the dither.
func TestUnitsBoundWhatOneVectorMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]int{1, 2, 7, 100}).Draw(t, "coordinates")
		e := Encoder{Parties: 3, Dimension: d, Clip: rapid.Float64Range(0.1, 3).Draw(t, "clip"),
			Units: rapid.SampledFrom([]int{1, 2, 50, 1000}).Draw(t, "units")}
		e.Scale = rapid.Float64Range(1, 200).Draw(t, "units of a clip") / e.Clip
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "vectors"), 0))
		vector := func() []float64 {
			v := make([]float64, d)
			sum := 0.0
			for j := range v {
				if rng.IntN(3) > 0 {
					v[j] = rng.ExpFloat64()
				}
				sum += v[j] * v[j]
			}
			for j := range v {
				v[j] *= e.Clip / math.Sqrt(max(sum, 1e-300)) * rng.Float64()
			}
			return v
		}
		without, with := make([]float64, d), vector()
		for range min(e.Units, 20) - 1 {
			for j, x := range vector() {
				without[j] += x
				with[j] += x
			}
		}
		s, err := e.Sensitivity()
		if err != nil {
			t.Fatal(err)
		}
		// Squared norms are whole.
		c, root := e.Clip*e.Scale, math.Sqrt(float64(d))
		always := (c + root) * (c + root)
		want := math.Sqrt(min(always, c*c+root*root/4+math.Sqrt(120*math.Ln2)*(c+root/2)))
		if s.L2*s.L2 < math.Floor(want*want)*(1-1e-12) || s.L2 > want*(1+1e-6) {
			t.Fatalf("sensitivity %v, the theorem has %v", s.L2, want)
		}
		if rare, err := e.Overlong(); err != nil || (rare > 0) != (want*want < always*(1-1e-9)) {
			t.Fatalf("it may be more with probability %v (%v), for %v of %v", rare, err, want,
				math.Sqrt(always))
		}
		source := oneSource{rapid.Uint64().Draw(t, "dither")}
		var encoded [2][]int64
		for k, v := range [][]float64{without, with} {
			out, err := e.Encode(v, nil, source)
			if err != nil {
				t.Fatal(err)
			}
			layout, _ := e.Layout()
			if encoded[k], err = Integers(out[0], layout[0].Bits); err != nil {
				t.Fatal(err)
			}
		}
		moved := 0.0
		for j := range encoded[0] {
			moved = math.Hypot(moved, float64(encoded[1][j]-encoded[0][j]))
		}
		if moved > s.L2 {
			t.Fatalf("it moved by %v, above %v", moved, s.L2)
		}
	})
}

// The table of docs/privacy-proofs.md, P5.
func TestUnitsFigures(t *testing.T) {
	for d, want := range map[int][4]float64{
		42:     {15.20, 104.65, 1004.6, 10_005},
		2754:   {33.45, 108.81, 1005.0, 10_005},
		54_314: {121.79, 159.85, 1011.8, 10_005},
	} {
		for i, c := range []float64{10, 100, 1000, 10_000} {
			s, err := Encoder{Parties: 1, Dimension: d, Clip: 1, Units: 1, Scale: c}.Sensitivity()
			if err != nil || math.Abs(s.L2/want[i]-1) > 5e-4 {
				t.Errorf("c = %v, d = %d: %v, want %v (%v)", c, d, s.L2, want[i], err)
			}
		}
	}
}

// Rounding a vector lengthens it no more often than the bound of likely lengths says, for the real
// encoder and vectors that stretch the bound: halves in all coordinates, a large coordinate, both.
func TestUnitsSeldomMoveMore(t *testing.T) {
	const tries = 8000
	random := chacha(5)
	vector := func(d int, most, rest float64) []float64 {
		v := make([]float64, d)
		for i := range v {
			if v[i] = rest; i%2 > 0 {
				v[i] = -rest
			}
		}
		v[0] = most
		return v
	}
	for _, v := range [][]float64{
		vector(1000, 0.5, 0.5), vector(40, 6.5, 0.5), vector(1, 2.5, 0), vector(100, 10.5, 10.5),
		vector(30, -2.5, 2.3),
	} {
		square := 0.0
		for _, x := range v {
			square += x * x
		}
		e := Encoder{Parties: 1, Dimension: len(v), Clip: math.Sqrt(square) * (1 + 1e-9), Units: 1,
			Scale: 1}
		layout, err := e.Layout()
		if err != nil {
			t.Fatal(err)
		}
		lengths := make([]float64, tries)
		for i := range lengths {
			out, err := e.Encode(v, nil, random)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Integers(out[0], layout[0].Bits)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range w {
				lengths[i] += float64(x * x)
			}
		}
		for _, p := range []float64{0.3, 0.05, 0.002} {
			bound := squaredNormBound(e.Clip, len(v), kappaOf(p))
			above := 0.0
			for _, x := range lengths {
				if x > bound {
					above++
				}
			}
			if above > p*tries+5*math.Sqrt(p*tries) {
				t.Errorf("%d coordinates, the first %v: %v of %d are above a bound for %v", len(v), v[0], above,
					tries, p)
			}
		}
	}
}

// Sums come back, without bias, from as many vectors as are declared, and fit their ring with all
// of them in one direction.
func TestUnitsDecode(t *testing.T) {
	var seed [32]byte
	e := Encoder{Parties: 4, Dimension: 5, Clip: 0.5, Units: 300, Scale: 100, Rotate: &seed}
	sum := make([]uint64, 5)
	layout, err := e.Layout()
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		out, err := e.Encode([]float64{150, 0, 0, 0, 0}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for j, x := range out[0] {
			sum[j] = (sum[j] + x) & (1<<layout[0].Bits - 1)
		}
	}
	got, err := e.Decode([][]uint64{sum}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for j, want := range []float64{150, 0, 0, 0, 0} {
		if math.Abs(got[j]-want) > math.Sqrt(5)/100 {
			t.Errorf("coordinate %d is %v, want %v", j, got[j], want)
		}
	}
	one := e
	one.Units = 0
	if l, err := one.Layout(); err != nil || l[0].Bits >= layout[0].Bits {
		t.Errorf("one vector takes %v, a sum of 300 %v (%v)", l, layout, err)
	}
}

func TestUnitsRefuse(t *testing.T) {
	e := Encoder{Parties: 4, Dimension: 2, Clip: 0.5, Units: MaxUnits + 1, Scale: 100}
	if err := e.Validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("too many units: %v", err)
	}
	e.Units = -1
	if err := e.Validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("fewer than none: %v", err)
	}
	e.Units = 2
	if err := checkUpdate(e, []float32{1, 2}); !errors.Is(err, ErrConfig) {
		t.Errorf("float32: %v", err)
	}
}
