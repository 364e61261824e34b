package aggregation

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// reference computes |x|·k·2^f with rationals and rounds it in three ways.
func reference(x float64, k uint64, f int) (floor, nearest, ceiling *big.Int) {
	r := new(big.Rat).SetFloat64(math.Abs(x))
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).SetUint64(k)))
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(f))))
	floor, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	nearest, ceiling = new(big.Int).Set(floor), new(big.Int).Set(floor)
	if rest.Sign() != 0 {
		ceiling.Add(ceiling, big.NewInt(1))
	}
	switch rest.Lsh(rest, 1).Cmp(r.Denom()) {
	case 1:
		nearest.Add(nearest, big.NewInt(1))
	case 0:
		nearest.Add(nearest, new(big.Int).And(floor, big.NewInt(1)))
	}
	return floor, nearest, ceiling
}

func checkScale(t interface{ Fatalf(string, ...any) }, x float64, k uint64, f int) {
	floor, nearest, ceiling := reference(x, k, f)
	s, ok := scale(x, k, f)
	if want := floor.BitLen() <= 63; ok != want {
		t.Fatalf("scale(%v, %d, %d): ok = %v for %v", x, k, f, ok, floor)
	}
	if !ok {
		return
	}
	if got := new(big.Int).SetUint64(s.nearest()); got.Cmp(nearest) != 0 {
		t.Fatalf("scale(%v, %d, %d) rounds to %v, want %v", x, k, f, got, nearest)
	}
	if got := new(big.Int).SetUint64(s.ceiling()); got.Cmp(ceiling) != 0 {
		t.Fatalf("scale(%v, %d, %d) rounds up to %v, want %v", x, k, f, got, ceiling)
	}
}

func TestScaleEdges(t *testing.T) {
	values := []float64{
		0, math.Copysign(0, -1), 0.25, 0.5, math.Nextafter(0.5, 0), math.Nextafter(0.5, 1), 0.75, 1, 1.5,
		2.5, -2.5, 3.5,
		1 << 52, 1<<52 + 0.5, 1<<53 - 1, 1 << 62, 1 << 63, math.Nextafter(1<<63, 0), 1 << 64,
		math.SmallestNonzeroFloat64, 0x1p-1022, math.Nextafter(0x1p-1022, 0), math.MaxFloat64, math.Pi,
		-math.E,
		0x1p-63, 0x1p-64, 0x1p-65, 0x1.8p-64, 0x1p-126, 0x1p-127, 0x1p-128, 0x1p-129, 0x1p-130,
	}
	for _, x := range values {
		for _, k := range []uint64{1, 2, 3, 200, 1<<32 - 1, 1 << 63, math.MaxUint64} {
			for _, f := range []int{0, 1, 10, 52, 53, 62} {
				checkScale(t, x, k, f)
			}
		}
	}
}

func TestScaleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Significand and exponent apart, so that ties and every shift turn up.
		m := rapid.Uint64Range(0, 1<<53-1).Draw(t, "significand")
		m &^= 1<<rapid.IntRange(0, 52).Draw(t, "zeros") - 1
		x := math.Ldexp(float64(m), rapid.IntRange(-190, 30).Draw(t, "exponent"))
		k := rapid.Uint64().Draw(t, "k") >> rapid.IntRange(0, 63).Draw(t, "drop")
		checkScale(t, x, k, rapid.IntRange(0, maxFractionBits).Draw(t, "f"))
	})
}
