package graph

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The reference is the definition written out: exact rationals, every degree tried
// in turn, every threshold tried in turn, no shortcut shared with the fast path.

// refPMF returns P[Hyp(n, m, k) = x] exactly.
func refPMF(n, m, k, x int) *big.Rat {
	if x < 0 || x > m || x > k || k-x > n-m {
		return new(big.Rat)
	}
	a := new(big.Int).Binomial(int64(m), int64(x))
	a.Mul(a, new(big.Int).Binomial(int64(n-m), int64(k-x)))
	return new(big.Rat).SetFrac(a, new(big.Int).Binomial(int64(n), int64(k)))
}

// refProb returns the probability that the count is in [from, to].
func refProb(n, m, k, from, to int) *big.Rat {
	p := new(big.Rat)
	for x := from; x <= to; x++ {
		p.Add(p, refPMF(n, m, k, x))
	}
	return p
}

// refBound returns 2^-bits / div.
func refBound(bits, div int) *big.Rat {
	d := new(big.Int).Lsh(big.NewInt(int64(div)), uint(bits))
	return new(big.Rat).SetFrac(big.NewInt(1), d)
}

type refInput struct {
	n, corrupt, dropped, sigma, eta int
	adversary                       Adversary
}

// degree tries one degree. stated skips the test that max(t1+1, 2) is itself at most
// t2, as the golden file words the condition.
func (in refInput) degree(k int, stated bool) (Params, bool) {
	n, bad, live := in.n, in.corrupt+in.dropped, in.n-in.dropped
	if k <= bad && k < n-1 {
		cut := refPMF(n, bad, k, k) // C(B,k)/C(n,k)
		cut.Mul(cut, big.NewRat(int64(n)*int64(n-k-1), 2))
		if cut.Cmp(refBound(in.sigma+1, 1)) >= 0 {
			return Params{}, false
		}
	}
	t1 := 0
	for refProb(n, in.corrupt, k, t1+1, k).Cmp(refBound(in.sigma+1, n)) > 0 {
		t1++
	}
	t2 := k
	for refProb(n, live, k, 0, t2-1).Cmp(refBound(in.eta, n)) > 0 {
		t2--
	}
	last := t1
	if in.adversary == SemiMalicious {
		// ceil((t1 + k - 1.25)/2) = ceil((4·t1 + 4k - 5)/8)
		last = (4*t1 + 4*k - 5 + 7) / 8
	}
	t := max(last+1, 2)
	if last >= t2 || !stated && t > t2 {
		return Params{}, false
	}
	return Params{k, t, t1, t2}, true
}

func (in refInput) parameters(stated bool) (Params, bool) {
	for k := 2; k <= in.n-1; k += 2 {
		if p, ok := in.degree(k, stated); ok {
			return p, true
		}
	}
	if in.n%2 == 0 {
		return in.degree(in.n-1, stated)
	}
	return Params{}, false
}

func (in refInput) fast() (Params, bool) {
	sizes := Sizes{in.n, in.n, in.n - in.dropped, in.corrupt}
	return conditions{sizes, in.sigma, in.eta, in.adversary}.smallest()
}

func TestParametersAgainstReference(t *testing.T) {
	// Every split of small n, at bits small enough that sparse graphs occur.
	for _, adversary := range []Adversary{Curious, SemiMalicious} {
		for n := 2; n <= 16; n++ {
			for corrupt := 0; corrupt < n; corrupt++ {
				for dropped := 0; corrupt+dropped <= n; dropped++ {
					in := refInput{n, corrupt, dropped, 1 + (n+corrupt)%5, 1 + dropped%4, adversary}
					want, wantOK := in.parameters(false)
					got, ok := in.fast()
					if got != want || ok != wantOK {
						t.Fatalf("%+v: got %+v %v, want %+v %v", in, got, ok, want, wantOK)
					}
				}
			}
		}
	}
}

// Cases that random tests once found to differ.
func TestParametersOnceWrong(t *testing.T) {
	for name, in := range map[string]refInput{
		"half of eight drop out":    {8, 0, 4, 1, 4, SemiMalicious},
		"one of three is corrupt":   {3, 1, 0, 1, 1, Curious},
		"two of seventy, two bits":  {70, 2, 0, 2, 1, SemiMalicious},
		"one of three, cheats late": {3, 1, 0, 1, 1, SemiMalicious},
	} {
		want, wantOK := in.parameters(false)
		if got, ok := in.fast(); got != want || ok != wantOK {
			t.Errorf("%s: got %+v %v, want %+v %v", name, got, ok, want, wantOK)
		}
	}
}

func TestParametersAgainstReferenceRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 70).Draw(t, "n")
		corrupt := rapid.IntRange(0, n/2).Draw(t, "corrupt")
		in := refInput{
			n:         n,
			corrupt:   corrupt,
			dropped:   rapid.IntRange(0, (n-corrupt)/2).Draw(t, "dropped"),
			sigma:     rapid.IntRange(1, 45).Draw(t, "sigma"),
			eta:       rapid.IntRange(1, 25).Draw(t, "eta"),
			adversary: rapid.SampledFrom([]Adversary{Curious, SemiMalicious}).Draw(t, "adversary"),
		}
		want, wantOK := in.parameters(false)
		if got, ok := in.fast(); got != want || ok != wantOK {
			t.Fatalf("%+v: got %+v %v, want %+v %v", in, got, ok, want, wantOK)
		}
	})
}

// TestSearchSkipsNothing compares the jumping search with one that visits every
// degree, at sizes where the rational reference is too slow.
func TestSearchSkipsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	gaps, falls := 0, 0
	for range 60 {
		n := 300 + rng.IntN(3000)
		c := conditions{
			Sizes: Sizes{n - rng.IntN(n/9), n, 0, rng.IntN(n / 3)},
			sigma: 20 + rng.IntN(60), eta: 5 + rng.IntN(30),
			adversary: Curious + Adversary(rng.IntN(2)),
		}
		c.Survivors = c.Least - rng.IntN(n/8)
		var want Params
		found := false
		for k := 2; k <= c.Least-1; k += 2 {
			if !c.connected(k) {
				continue
			}
			// From scratch at each degree: no warm start.
			p, short := c.judge(c.advance(quantiles{}, k))
			if short <= 0 && !found {
				want, found = p, true
			}
			if found && short > 0 {
				falls++
			}
			if found && k > want.Neighbours+40 {
				break
			}
			gaps++
		}
		if !found && c.Least == n && n%2 == 0 {
			if p, short := c.judge(c.advance(quantiles{}, n-1)); short <= 0 {
				want, found = p, true
			}
		}
		if got, ok := c.smallest(); got != want || ok != found {
			t.Errorf("%+v: got %+v %v, want %+v %v", c, got, ok, want, found)
		}
	}
	// The reason why the search is not a bisection.
	if falls == 0 {
		t.Errorf("no degree failed above a degree that passed, in %d: the test is too tame", gaps)
	}
}
