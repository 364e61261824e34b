package aggregation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is pruned stays pruned, the smallest go first, and what is fixed never goes.
func TestPrune(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(r, "weights")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		fixed := make([]bool, n)
		prunable := 0
		for i := range fixed {
			fixed[i] = rng.IntN(4) == 0
			if !fixed[i] {
				prunable++
			}
		}
		var kept []bool
		left := prunable
		for left > 0 {
			w := make([]float64, n)
			for i := range w {
				w[i] = float64(rng.IntN(9) - 4) // ties
			}
			count := 1 + rng.IntN(left)
			next, err := Prune(w, kept, fixed, count)
			if err != nil {
				r.Fatal(err)
			}
			gone, largest, smallest := 0, 0.0, math.Inf(1)
			for i := range w {
				was := kept == nil || kept[i]
				switch {
				case next[i] && !was:
					r.Fatalf("weight %d is back", i)
				case was && !next[i]:
					gone++
					largest = max(largest, math.Abs(w[i]))
					if fixed[i] {
						r.Fatalf("fixed weight %d is pruned", i)
					}
				case next[i] && !fixed[i]:
					smallest = min(smallest, math.Abs(w[i]))
				}
			}
			if gone != count || largest > smallest {
				r.Fatalf("%d pruned up to %v, want %d; the least kept is %v", gone, largest, count, smallest)
			}
			kept, left = next, left-count
		}
	})
	if got, err := Prune([]float64{2, -1, 1, 3}, nil, nil, 1); err != nil ||
		!slices.Equal(got, []bool{true, false, true, true}) {
		t.Errorf("of equal weights: %v, %v", got, err)
	}
	for _, c := range []struct {
		w           []float64
		kept, fixed []bool
		count       int
		want        error
	}{
		{nil, nil, nil, 0, ErrLength}, {[]float64{1}, []bool{true, true}, nil, 0, ErrLength},
		{[]float64{1}, nil, []bool{}, 0, ErrLength}, {[]float64{math.NaN()}, nil, nil, 0, ErrNotFinite},
		{[]float64{1}, nil, nil, 2, ErrConfig}, {[]float64{1}, nil, nil, -1, ErrConfig},
		{[]float64{1}, []bool{false}, nil, 1, ErrConfig}, {[]float64{1}, nil, []bool{true}, 1, ErrConfig},
	} {
		if got, err := Prune(c.w, c.kept, c.fixed, c.count); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// After t prunings by 0.1 a share of 1 − 0.9^t is gone if the step is of what remains,
// t/10 if it is of all; neither goes beyond the target.
func TestPruneCount(t *testing.T) {
	const n = 100000
	for _, ofAll := range []bool{false, true} {
		kept := n
		for round := 1; round <= 30; round++ {
			kept -= PruneCount(n, kept, 0.1, 0.9, ofAll)
			want := 1 - math.Pow(0.9, float64(round))
			if ofAll {
				want = float64(round) / 10
			}
			if got := 1 - float64(kept)/n; math.Abs(got-min(want, 0.9)) > 1e-4 {
				t.Errorf("of all %v, round %d: %v pruned, want %v", ofAll, round, got, min(want, 0.9))
			}
		}
		if PruneCount(n, kept, 0.1, 0.9, ofAll) != 0 {
			t.Error("pruning goes on beyond the target")
		}
	}
}

// The mean over owners is exact to rounding, in any split of weights over parties; and
// sums tell how many own a coordinate.
func TestOwners(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		parties, d := rapid.IntRange(1, 9).Draw(r, "parties"), rapid.IntRange(1, 30).Draw(r, "dimension")
		o := Owners{Parties: parties, Dimension: d, Range: 8, FractionBits: 20}
		layout, err := o.Layout()
		if err != nil {
			r.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		sum := [][]uint64{make([]uint64, d), make([]uint64, d)}
		total, count := make([]float64, d), make([]int, d)
		for range parties {
			values, kept := make([]float64, d), make([]bool, d)
			for i := range values {
				values[i], kept[i] = 16*rng.Float64()-8, rng.IntN(2) == 0
				if kept[i] {
					total[i] += values[i]
					count[i]++
				}
			}
			one, err := o.Encode(values, kept)
			if err != nil {
				r.Fatal(err)
			}
			for s := range one {
				for i, x := range one[s] {
					sum[s][i] = (sum[s][i] + x) & (1<<layout[s].Bits - 1)
				}
			}
		}
		mean, owners, err := o.Decode(sum)
		if err != nil {
			r.Fatal(err)
		}
		if !slices.Equal(owners, count) {
			r.Fatalf("owners %v, want %v", owners, count)
		}
		for i := range mean {
			want := total[i] / float64(max(1, count[i]))
			if math.Abs(mean[i]-want) > 1e-6 {
				r.Fatalf("coordinate %d: %v, want %v", i, mean[i], want)
			}
		}
	})
	o := Owners{Parties: 4, Dimension: 1, Range: 1, FractionBits: 4}
	for _, c := range []struct {
		sum  [][]uint64
		want error
	}{
		{[][]uint64{{0}}, ErrLength}, {[][]uint64{{0}, {0, 0}}, ErrLength}, {[][]uint64{{0}, {8}}, ErrRing},
		{[][]uint64{{0}, {5}}, ErrSum}, {[][]uint64{{1}, {0}}, ErrSum}, {[][]uint64{{40}, {2}}, ErrSum},
		{[][]uint64{{32}, {2}}, nil}, {[][]uint64{{0}, {0}}, nil},
	} {
		if _, _, err := o.Decode(c.sum); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.sum, err, c.want)
		}
	}
	if _, err := o.Encode([]float64{1}, nil); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if _, err := o.Encode([]float64{9}, []bool{true}); !errors.Is(err, ErrSaturated) {
		t.Error(err)
	}
	if _, err := o.Encode([]float64{9}, []bool{false}); err != nil {
		t.Errorf("what is not kept is not looked at: %v", err)
	}
}
