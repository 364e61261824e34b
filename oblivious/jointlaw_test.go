package oblivious

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/suite"
)

// jointOutcomes is the law of the noise of levels of coins, by enumeration of all of them.
func jointOutcomes(levels []int) []float64 {
	law := []float64{1}
	for j, m := range levels {
		for range m {
			next := make([]float64, len(law)+1<<j)
			for k, p := range law {
				next[k] += p / 2
				next[k+1<<j] += p / 2
			}
			law = next
		}
	}
	return law
}

// shiftDelta is the hockey-stick divergence of a law shifted by each of the given numbers in a
// coordinate of its own, and not.
func shiftDelta(law []float64, shifts []int, epsilon float64) (delta float64) {
	at := func(k int) float64 {
		if k < 0 || k >= len(law) {
			return 0
		}
		return law[k]
	}
	var sum func(rest []int, p, q float64)
	sum = func(rest []int, p, q float64) {
		if len(rest) == 0 {
			delta += max(0, p-math.Exp(epsilon)*q)
			return
		}
		for k := -len(law); k < 2*len(law); k++ {
			if a, b := at(k-rest[0]), at(k); a > 0 || b > 0 {
				sum(rest[1:], p*a, q*b)
			}
		}
	}
	sum(shifts, 1, 1)
	return delta
}

// At the ε that is claimed no difference of inputs within the sensitivity, in either direction
// and in one or two coordinates, has a larger δ than it was asked for.
func TestJointEpsilonHolds(t *testing.T) {
	for _, c := range []struct {
		levels                   []int
		sensitivity, coordinates int
	}{
		{[]int{12}, 1, 1}, {[]int{40}, 3, 1}, {[]int{14}, 1, 2}, {[]int{4, 9}, 1, 1},
		{[]int{1, 12}, 2, 1}, {[]int{1, 1, 10}, 4, 1}, {[]int{1, 1, 10}, 3, 1},
		{[]int{2, 3, 10}, 2, 1}, {[]int{3, 4, 5}, 1, 2}, {[]int{1, 9}, 2, 2},
	} {
		config, law := JointConfig{Coins: c.levels}, jointOutcomes(c.levels)
		for _, delta := range []float64{0.2, 0.01} {
			bound, err := config.Epsilon(c.sensitivity, c.coordinates, delta)
			if err != nil {
				t.Fatal(c, err)
			}
			worst := 0.0
			for a := -c.sensitivity; a <= c.sensitivity; a++ {
				if c.coordinates == 1 {
					worst = max(worst, shiftDelta(law, []int{a}, bound.Upper))
					continue
				}
				for b := -c.sensitivity; b <= c.sensitivity; b++ {
					worst = max(worst, shiftDelta(law, []int{a, b}, bound.Upper))
				}
			}
			if worst > delta*(1+1e-9) || math.IsInf(bound.Upper, 1) {
				t.Errorf("%+v: δ = %g at ε = %g, asked for %g", c, worst, bound.Upper, delta)
			}
			// The bound is attained, where levels are not rounded up.
			tight := (len(c.levels) == 1 || c.sensitivity == 1) && bound.Lower > 0
			if tight && worst < delta*(1-1e-3) {
				t.Errorf("%+v: δ = %g at ε = %g, asked for %g: the bound is loose", c, worst,
					bound.Upper, delta)
			}
		}
	}
}

// Coins of one level are package accounting's binomial, and of Coins with nobody else's; lower
// levels make the sensitivity one of the level above.
func TestJointEpsilonIsBinomial(t *testing.T) {
	want, err := Coins{Parties: 2, Colluders: 1, Malicious: true, PerPair: 80}.Epsilon(1, 1, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		levels      []int
		sensitivity int
	}{{[]int{80}, 1}, {[]int{1, 1, 1, 1, 80}, 16}, {[]int{1, 1, 1, 1, 80}, 9}} {
		config := JointConfig{Coins: c.levels}
		got, err := config.Epsilon(c.sensitivity, 1, 1e-6)
		if err != nil || got != want {
			t.Errorf("%+v: %+v, %v, want %+v", c, got, err, want)
		}
	}
	for _, c := range []struct {
		levels      []int
		sensitivity int
		want        error
	}{
		{[]int{0, 80}, 2, ErrNoBound}, {[]int{1, 80}, 3, ErrNoBound}, {[]int{80}, 0, ErrConfig},
		{nil, 1, ErrConfig}, {[]int{1, 20: 2}, 1, ErrNoBound}, {[]int{3, -1, 2}, 1, ErrConfig},
	} {
		config := JointConfig{Coins: c.levels}
		if _, err := config.Epsilon(c.sensitivity, 1, 1e-6); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	config := JointConfig{Coins: []int{80}}
	if _, err := config.Epsilon(1, 0, 1e-6); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	if _, err := config.Epsilon(1, 1, -1); !errors.Is(err, accounting.ErrConfig) {
		t.Error(err)
	}
}

// The table of docs/joint-noise.md: ε is at most 1, and one coin less in the last level would
// be too few. In its long form the test finds the coins anew.
func TestJointCoinsOfThePage(t *testing.T) {
	for _, c := range []struct {
		what                     string
		sensitivity, coordinates int
		coins                    []int
	}{
		{"a count", 1, 1, []int{80}},
		{"a sum of numbers from 0 to 16", 16, 1, []int{1, 1, 1, 1, 80}},
		{"a histogram in which somebody moves", 1, 2, []int{148}},
		{"100 bits of one party", 1, 100, []int{4, 4, 4, 4, 27}},
		{"1,000 bits of one party", 1, 1000, []int{4, 4, 4, 4, 4, 69}},
	} {
		config := JointConfig{Coins: c.coins}
		bound, err := config.Epsilon(c.sensitivity, c.coordinates, 1e-6)
		if err != nil || bound.Upper > 1 {
			t.Errorf("%s: %+v, %v", c.what, bound, err)
		}
		t.Logf("%s: %d coins %v, variance %g, ε = %.4f", c.what, config.coins(), c.coins,
			config.variance(), bound.Upper)
		last := len(c.coins) - 1
		fewer := append(append([]int(nil), c.coins[:last]...), c.coins[last]-1)
		if b, err := (&JointConfig{Coins: fewer}).Epsilon(c.sensitivity, c.coordinates,
			1e-6); err != nil || b.Upper <= 1 {
			t.Errorf("%s: %v are enough, %+v, %v", c.what, fewer, b, err)
		}
		if suite.Long() || c.coordinates <= 100 {
			if got, err := LeastJointCoins(c.sensitivity, c.coordinates, 1, 1e-6); err != nil ||
				!slices.Equal(got, c.coins) {
				t.Errorf("%s: %v, %v", c.what, got, err)
			}
		}
	}
	for _, epsilon := range []float64{0, -1, math.NaN()} {
		if _, err := LeastJointCoins(1, 1, epsilon, 1e-6); !errors.Is(err, ErrConfig) {
			t.Error(epsilon, err)
		}
	}
}
