package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"testing"
)

func readTestdata(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

type goldenCase struct {
	Adversary     string
	N             int
	Corrupt, Drop float64
	Sigma, Eta    int
	K, T          int
}

func goldenCases(t *testing.T) []goldenCase {
	var file struct{ Cases []goldenCase }
	readTestdata(t, "secagg_plus.json", &file)
	if len(file.Cases) != 14 {
		t.Fatalf("%d golden cases, want 14", len(file.Cases))
	}
	return file.Cases
}

func (c goldenCase) adversary(t *testing.T) Adversary {
	switch c.Adversary {
	case "semi-honest":
		return Curious
	case "semi-malicious":
		return SemiMalicious
	}
	t.Fatalf("unknown adversary %q", c.Adversary)
	return 0
}

func TestParametersGolden(t *testing.T) {
	for _, c := range goldenCases(t) {
		p, err := Parameters(c.N, c.Corrupt, c.Drop, c.Sigma, c.Eta, c.adversary(t))
		if err != nil || p.Neighbours != c.K || p.Threshold != c.T {
			t.Errorf("%+v: got %+v, %v", c, p, err)
		}
	}
}

// TestParametersGoldenExactly checks each golden answer, and the degree below it, in
// integers only.
func TestParametersGoldenExactly(t *testing.T) {
	for _, g := range goldenCases(t) {
		in := conditions{g.N, share(g.Corrupt, g.N), share(g.Drop, g.N), g.Sigma, g.Eta, g.adversary(t)}
		exactly := func(k int) (Params, bool) {
			q := quantiles{k: k}
			for !(hyp{in.n, in.corrupt, k}).tailAtMostExact(q.corrupt, in.sigma+1) {
				q.corrupt++
			}
			for !(hyp{in.n, in.dropped, k}).tailAtMostExact(q.dropped, in.eta) {
				q.dropped++
			}
			p, short := in.judge(q)
			return p, short <= 0 && in.connectedExact(k)
		}
		if p, ok := exactly(g.K); !ok || p.Threshold != g.T {
			t.Errorf("%+v: the answer breaks its conditions: %+v", g, p)
		}
		if p, ok := exactly(g.K - 2); ok {
			t.Errorf("%+v: a smaller degree would do: %+v", g, p)
		}
	}
}

func TestParametersKeepTheThresholdRule(t *testing.T) {
	for _, adversary := range []Adversary{Curious, SemiMalicious} {
		for n := 3; n < 3000; n += 1 + n/7 {
			for _, f := range [][2]float64{{0, 0}, {0.1, 0}, {0, 0.3}, {0.05, 0.05}, {0.3, 0.3},
				{0.6, 0.2}} {
				p, err := Parameters(n, f[0], f[1], 40, 20, adversary)
				if errors.Is(err, ErrInfeasible) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if p.Threshold < 2 || p.Threshold > p.LiveNeighbours || p.LiveNeighbours > p.Neighbours ||
					p.Neighbours > n-1 {
					t.Errorf("n = %d, %v, %v: %+v", n, f, adversary, p)
				}
				if err := CheckThreshold(adversary, p.Threshold, p.Neighbours,
					p.CorruptNeighbours); err != nil {
					t.Errorf("n = %d, %v: %+v: %v", n, f, p, err)
				}
				if p.Neighbours%2 == 1 && p.Neighbours != n-1 {
					t.Errorf("n = %d, %v: odd degree: %+v", n, f, p)
				}
				if _, err := NewGraph(span(n), p.Neighbours, Seed{}); err != nil {
					t.Errorf("n = %d: %+v: %v", n, p, err)
				}
			}
		}
	}
}

// span returns 0, 1, …, n−1.
func span(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestThresholdOfTwo is where the golden file's wording falls short. It asks for
// t1 < t2 and then raises t to 2. With no corrupt party t1 is 0, and t2 may be 1: the
// threshold of 2 then fails more often than 2^-η.
func TestThresholdOfTwo(t *testing.T) {
	in := refInput{n: 100, corrupt: 0, dropped: 5, sigma: 40, eta: 20, adversary: Curious}
	stated, _ := in.parameters(true)
	if stated.Neighbours != 6 || stated.Threshold != 2 || stated.LiveNeighbours != 1 {
		t.Errorf("as worded: %+v", stated)
	}
	p, err := Parameters(100, 0, 0.05, 40, 20, Curious)
	if want := (Params{Neighbours: 8, Threshold: 2, LiveNeighbours: 3}); err != nil || p != want {
		t.Errorf("got %+v, %v, want %+v", p, err, want)
	}
}

func TestParametersFallBackToComplete(t *testing.T) {
	// One corrupt, one dropped, of four: each party needs all three others.
	p, err := Parameters(4, 0.25, 0.25, 40, 20, Curious)
	if want := (Params{3, 2, 1, 2}); err != nil || p != want {
		t.Errorf("got %+v, %v, want %+v", p, err, want)
	}
}

func TestParametersMinimalGraphs(t *testing.T) {
	if p, err := Parameters(3, 0, 0, 1, 1, Curious); err != nil || p != (Params{2, 2, 0, 2}) {
		t.Errorf("three parties: %+v, %v", p, err)
	}
	// Nobody corrupt, nobody leaving: a ring is enough at any size.
	if p, err := Parameters(MaxParties, 0, 0, 256, 256, SemiMalicious); err != nil ||
		p != (Params{2, 2, 0, 2}) {
		t.Errorf("ring: %+v, %v", p, err)
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		f    float64
		n    int
		want int
	}{
		{0, 10, 0}, {0.05, 100, 5}, {0.29, 100, 29}, {0.57, 100, 57}, {0.58, 100, 58},
		{1.0 / 3, 3, 1}, {1.0 / 3, 100, 33}, {0.7, 10, 7}, {0.069, 1000, 69}, {0.33, 1_000_000, 330_000},
		{0.999, 100, 99}, {math.Nextafter(1, 0), MaxParties, MaxParties}, {0.0999, 10, 0},
	} {
		if got := share(c.f, c.n); got != c.want {
			t.Errorf("share(%v, %d) = %d, want %d", c.f, c.n, got, c.want)
		}
	}
	// a/n comes back as a, whatever the rounding did.
	for n := 2; n < 400; n++ {
		for a := range n {
			if got := share(float64(a)/float64(n), n); got != a {
				t.Fatalf("share(%d/%d) = %d", a, n, got)
			}
		}
	}
}

func TestParametersErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		n             int
		corrupt, drop float64
		sigma, eta    int
		adversary     Adversary
		want          error
	}{
		{-1, 0, 0, 40, 20, Curious, ErrParties},
		{1, 0, 0, 40, 20, Curious, ErrParties},
		{MaxParties + 1, 0, 0, 40, 20, Curious, ErrParties},
		{100, -0.1, 0, 40, 20, Curious, ErrCorrupt},
		{100, 1, 0, 40, 20, Curious, ErrCorrupt},
		{100, nan, 0, 40, 20, Curious, ErrCorrupt},
		{100, inf, 0, 40, 20, Curious, ErrCorrupt},
		{100, 0, -0.1, 40, 20, Curious, ErrDrop},
		{100, 0, 1, 40, 20, Curious, ErrDrop},
		{100, 0, nan, 40, 20, Curious, ErrDrop},
		{100, 0.5, 0.5, 40, 20, Curious, ErrFractions},
		{100, 0.1, 0.1, 0, 20, Curious, ErrSecurity},
		{100, 0.1, 0.1, 257, 20, Curious, ErrSecurity},
		{100, 0.1, 0.1, 40, 0, Curious, ErrCorrectness},
		{100, 0.1, 0.1, 40, 257, Curious, ErrCorrectness},
		{100, 0.1, 0.1, 40, 20, 0, ErrAdversary},
		{100, 0.1, 0.1, 40, 20, Cheating, ErrAdversary},
		{100, 0.1, 0.1, 40, 20, 9, ErrAdversary},
		{2, 0, 0, 1, 1, Curious, ErrInfeasible},
		{100, 0.3, 0.4, 40, 20, SemiMalicious, ErrInfeasible}, // corrupt + 2·drop > 1
		{10, math.Nextafter(1, 0), 0, 40, 20, Curious, ErrInfeasible},
		{10, 0.7, 0.29999999999999993, 40, 20, Curious, ErrInfeasible},
		{MaxParties, 0.5, 0.49, 40, 20, SemiMalicious, ErrInfeasible},
	} {
		p, err := Parameters(c.n, c.corrupt, c.drop, c.sigma, c.eta, c.adversary)
		if !errors.Is(err, c.want) || p != (Params{}) {
			t.Errorf("%+v: got %+v, %v", c, p, err)
		}
	}
}

// TestConnectivityBound removes every set of B parties from small Harary graphs and
// counts how often the rest falls apart: never more often than the bound of
// Parameters says, which holds for even degrees.
func TestConnectivityBound(t *testing.T) {
	for n := 5; n <= 13; n++ {
		for k := 2; k < n-1; k += 2 {
			g, err := Harary(span(n), k)
			if err != nil {
				t.Fatal(err)
			}
			for bad := 1; bad < n; bad++ {
				cut, all := 0, 0
				for removed := uint(0); removed < 1<<n; removed++ {
					if bits.OnesCount(removed) != bad {
						continue
					}
					all++
					if !connectedWithout(g, removed) {
						cut++
					}
				}
				bound := 0.0
				if bad >= k {
					bound = float64(n*(n-k-1)) / 2 * math.Exp(hyp{n, bad, k}.logPMF(k))
				}
				if got := float64(cut) / float64(all); got > bound*(1+1e-12) {
					t.Errorf("n = %d, k = %d, B = %d: disconnected with probability %v, bound %v", n, k, bad, got,
						bound)
				}
				// With k bad parties there is nothing to count twice: the bound is met.
				if bad == k && cut != n*(n-k-1)/2 {
					t.Errorf("n = %d, k = %d: cut in %d ways", n, k, cut)
				}
			}
		}
	}
}

// connectedWithout reports whether the members whose bit is not set form one piece;
// none and one count as such.
func connectedWithout(g *Graph, removed uint) bool {
	left := (uint(1)<<g.Size() - 1) &^ removed
	if left == 0 {
		return true
	}
	seen, queue := left&-left, []int{bits.TrailingZeros(left)}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, w := range g.Neighbours(v) {
			if b := uint(1) << w; left&b != 0 && seen&b == 0 {
				seen |= b
				queue = append(queue, w)
			}
		}
	}
	return seen == left
}

func BenchmarkParameters(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		for _, adversary := range []Adversary{Curious, SemiMalicious} {
			b.Run(fmt.Sprintf("n=%d/%v", n, adversary), func(b *testing.B) {
				for b.Loop() {
					if _, err := Parameters(n, 0.2, 0.2, 40, 20, adversary); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	// Close to the edge of what can be done: the degree is most of n.
	b.Run("n=1000000/curious/hard", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parameters(1_000_000, 0.5, 0.499, 40, 20, Curious); err != nil {
				b.Fatal(err)
			}
		}
	})
}
