package aggregation

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// squaredNorm is Σ(x·k)² without any rounding: 4400 bits hold every sum of
// squares of float64s.
func squaredNorm(v []float64) *big.Float {
	sum := new(big.Float).SetPrec(4400)
	square := new(big.Float).SetPrec(4400)
	for _, x := range v {
		square.SetFloat64(x)
		sum.Add(sum, square.Mul(square, square))
	}
	return sum
}

// normAtMost reports whether the norm of v is at most c, exactly.
func normAtMost(v []float64, c float64) bool {
	return squaredNorm(v).Cmp(squaredNorm([]float64{c})) <= 0
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		name   string
		update []float64
		clip   float64
		want   []float64 // to 1e-12
		norm   float64
	}{
		{"below", []float64{0.3, -0.4}, 1, []float64{0.3, -0.4}, 0.5},
		{"above", []float64{3, -4}, 1, []float64{0.6, -0.8}, 5},
		{"zero", []float64{0, 0, 0}, 1, []float64{0, 0, 0}, 0},
		{"negative zero", []float64{math.Copysign(0, -1)}, 1, []float64{0}, 0},
		{"empty", nil, 1, nil, 0},
		{"one coordinate", []float64{-7}, 2, []float64{-2}, 7},
		{"subnormal", []float64{3 * 0x1p-1074, 4 * 0x1p-1074}, 1,
			[]float64{3 * 0x1p-1074, 4 * 0x1p-1074}, 5 * 0x1p-1074},
		{"squares underflow", []float64{3e-200, 4e-200}, 1e-150, []float64{3e-200, 4e-200}, 5e-200},
		{"squares overflow", []float64{3e200, 4e200}, 5, []float64{3, 4}, 5e200},
		{"norm overflows", []float64{math.MaxFloat64, math.MaxFloat64}, math.Sqrt2, []float64{1, 1}, math.Inf(1)},
		{"large and small", []float64{1e308, 5e-324}, 1, []float64{1, 0}, 1e308},
	} {
		before := slices.Clone(c.update)
		got, norm, err := Clip(c.update, c.clip)
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%s: %v, %v", c.name, got, err)
			continue
		}
		for i, x := range got {
			if math.Abs(x-c.want[i]) > 1e-12*math.Abs(c.want[i]) {
				t.Errorf("%s: coordinate %d is %v, want %v", c.name, i, x, c.want[i])
			}
		}
		if norm != c.norm && !(math.Abs(norm-c.norm) <= 1e-13*c.norm) {
			t.Errorf("%s: norm %v, want %v", c.name, norm, c.norm)
		}
		if !normAtMost(got, c.clip) {
			t.Errorf("%s: the norm is above %v", c.name, c.clip)
		}
		if !slices.Equal(before, c.update) {
			t.Errorf("%s: the input has changed", c.name)
		}
	}
}

func TestClipErrors(t *testing.T) {
	for _, c := range []struct {
		update []float64
		clip   float64
		want   error
	}{
		{[]float64{1, math.NaN()}, 1, ErrNotFinite},
		{[]float64{math.Inf(-1)}, 1, ErrNotFinite},
		{[]float64{1}, 0, ErrConfig},
		{[]float64{1}, -1, ErrConfig},
		{[]float64{1}, math.NaN(), ErrConfig},
		{[]float64{1}, math.Inf(1), ErrConfig},
		{[]float64{1}, 1e-200, ErrConfig},
		{[]float64{1}, 1e200, ErrConfig},
	} {
		got, norm, err := Clip(c.update, c.clip)
		if !errors.Is(err, c.want) || got != nil || norm != 0 {
			t.Errorf("Clip(%v, %v) = %v, %v, %v; want %v", c.update, c.clip, got, norm, err, c.want)
		}
	}
}

// The norm never exceeds the limit, not by one unit in the last place, and what
// is clipped loses no more than the slack and points where it did.
func TestClipProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "coordinates")
		size := rapid.IntRange(-1060, 1000).Draw(t, "exponent")
		width := rapid.IntRange(0, 70).Draw(t, "width")
		c := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "clip"),
			rapid.IntRange(-490, 490).Draw(t, "clip exponent"))
		rng := newRandom(rapid.Uint64().Draw(t, "seed"))
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Ldexp(rng.Float64()*2-1, size-rng.IntN(width+1))
		}
		if rapid.Bool().Draw(t, "near the limit") {
			// A norm next to c, where a slip would be above it.
			for range 2 {
				w, _, err := Clip(v, c)
				if err != nil {
					t.Fatal(err)
				}
				v = w
			}
			for i := range v {
				v[i] *= 1 + (rng.Float64()-0.5)*0x1p-42
			}
		}
		got, norm, err := Clip(v, c)
		if err != nil {
			t.Fatal(err)
		}
		if !normAtMost(got, c) {
			t.Fatal("the norm is above the limit")
		}
		if !math.IsInf(norm, 0) && norm > 0x1p-1000 {
			exact := new(big.Float).Sqrt(squaredNorm(v))
			off := new(big.Float).Quo(new(big.Float).Sub(exact, big.NewFloat(norm)), exact)
			if f, _ := off.Float64(); math.Abs(f) > 0x1p-46 {
				t.Fatalf("the norm is off by %v", f)
			}
		}
		if norm <= c*(1-slack) {
			if !slices.Equal(got, v) {
				t.Fatal("changed, though short enough")
			}
			return
		}
		if normAtMost(got, c*(1-0x1p-42)) {
			t.Fatal("clipped by more than the slack")
		}
		for i := range v {
			if want := v[i] / norm * c; !math.IsInf(norm, 0) &&
				math.Abs(got[i]-want) > 0x1p-43*math.Abs(want)+0x1p-1070*(1+c) {
				t.Fatalf("coordinate %d is %v, want %v", i, got[i], want)
			}
		}
	})
}
