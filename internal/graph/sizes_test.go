package graph

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// refSizes is the definition at every size between two: one degree and one threshold for all of
// them. It takes each size from refInput.
func refSizes(c conditions, k int) (Params, bool) {
	p := Params{Neighbours: k, LiveNeighbours: k}
	for n := c.Least; n <= c.Most; n++ {
		dropped := n - c.Survivors
		if bad := c.Colluders + dropped; k <= bad && k < n-1 {
			cut := refPMF(n, bad, k, k)
			cut.Mul(cut, big.NewRat(int64(n)*int64(n-k-1), 2))
			if cut.Cmp(refBound(c.sigma+1, 1)) >= 0 {
				return Params{}, false
			}
		}
		t1, t2 := 0, k
		for refProb(n, c.Colluders, k, t1+1, k).Cmp(refBound(c.sigma+1, n)) > 0 {
			t1++
		}
		for refProb(n, c.Survivors, k, 0, t2-1).Cmp(refBound(c.eta, n)) > 0 {
			t2--
		}
		p.CorruptNeighbours = max(p.CorruptNeighbours, t1)
		p.LiveNeighbours = min(p.LiveNeighbours, t2)
	}
	p.Threshold = p.CorruptNeighbours + 1
	if c.adversary == SemiMalicious {
		p.Threshold = (p.CorruptNeighbours+k)/2 + 1
	}
	p.Threshold = max(p.Threshold, 2)
	return p, p.Threshold <= p.LiveNeighbours
}

// The degree that Parameters finds is the least that will do at every size, and those that it is
// given are judged at every size.
func TestParametersOfAllSizes(t *testing.T) {
	sparse := 0
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(3, 24).Draw(t, "least")
		survivors := rapid.IntRange(max(1, least/2), least).Draw(t, "survivors")
		c := conditions{
			Sizes: Sizes{
				Least:     least,
				Most:      least + rapid.IntRange(1, 12).Draw(t, "more"),
				Survivors: survivors,
				Colluders: rapid.IntRange(0, survivors-1).Draw(t, "colluders"),
			},
			sigma:     rapid.IntRange(1, 12).Draw(t, "sigma"),
			eta:       rapid.IntRange(1, 8).Draw(t, "eta"),
			adversary: rapid.SampledFrom([]Adversary{Curious, SemiMalicious}).Draw(t, "adversary"),
		}
		var first Params
		for k := 2; k < least; k += 2 {
			want, ok := refSizes(c, k)
			got, err := Parameters(c.Sizes, k, c.sigma, c.eta, c.adversary)
			if ok != (err == nil) || ok && got != want {
				t.Fatalf("%+v, degree %d: got %+v, %v, want %+v %v", c, k, got, err, want, ok)
			}
			if ok && first == (Params{}) {
				first = want
			}
		}
		got, err := Parameters(c.Sizes, 0, c.sigma, c.eta, c.adversary)
		if got != first || (err == nil) != (first != Params{}) {
			t.Fatalf("%+v: got %+v, %v, want %+v", c, got, err, first)
		}
		if err == nil {
			sparse++
		}
	})
	if sparse == 0 {
		t.Error("no graph would do: the test is too tame")
	}
}

// What is stated as the probability of a failure is at least that at each size, and that of one.
func TestFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(3, 40).Draw(t, "least")
		survivors := rapid.IntRange(max(1, least/2), least).Draw(t, "survivors")
		s := Sizes{least, least + rapid.IntRange(0, 20).Draw(t, "more"), survivors,
			rapid.IntRange(0, survivors-1).Draw(t, "colluders")}
		k := rapid.IntRange(2, least-1).Draw(t, "k")
		most := rapid.IntRange(0, k).Draw(t, "corrupt neighbours")
		var apart, around float64
		for n := s.Least; n <= s.Most; n++ {
			even := k - k%2 // without the parties opposite
			if bad := s.Colluders + n - s.Survivors; even <= bad && k < n-1 {
				cut := refPMF(n, bad, even, even)
				p, _ := cut.Mul(cut, big.NewRat(int64(n)*int64(n-even-1), 2)).Float64()
				apart = max(apart, min(1, p))
			}
			p := refProb(n, s.Colluders, k, most+1, k)
			sum, _ := p.Mul(p, big.NewRat(int64(n), 1)).Float64()
			around = max(around, sum)
		}
		// The sizes that are looked at have the worst among them, also where it is no probability.
		worst := 0.
		conditions{Sizes: s}.crowded(k, most, func(h hyp) bool {
			worst = max(worst, float64(h.n)*math.Exp(h.logTail(most)))
			return true
		})
		if math.Abs(worst-around) > 1e-9*around {
			t.Fatalf("%+v, k = %d, most %d: %v, want %v", s, k, most, worst, around)
		}
		around = min(1, around)
		for name, c := range map[string]struct {
			exact float64
			of    func() (float64, error)
		}{
			"apart":      {apart, func() (float64, error) { return Apart(s, k) }},
			"surrounded": {around, func() (float64, error) { return Surrounded(s, k, most) }},
		} {
			got, err := c.of()
			if err != nil || got < c.exact || got > c.exact*(1+1e-8) {
				t.Fatalf("%s, %+v, k = %d, most %d: %v, %v, want %v", name, s, k, most, got, err, c.exact)
			}
		}
	})
}

// Sizes of which the smallest alone does not decide: as the issue has them, and both ends.
func TestLargestSizeDecides(t *testing.T) {
	for _, c := range []struct {
		sizes Sizes
		want  int
	}{
		{Sizes{36, 60, 36, 1}, 26}, {Sizes{60, 60, 36, 1}, 26}, {Sizes{36, 36, 36, 1}, 2},
		{Sizes{80, 100, 80, 1}, 18},
	} {
		p, err := Parameters(c.sizes, 0, 40, 30, Curious)
		if err != nil || p.Neighbours != c.want {
			t.Errorf("%+v: %+v, %v, want %d neighbours", c.sizes, p, err, c.want)
		}
	}
}
