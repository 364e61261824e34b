package accounting

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// laplaceRound is a round of discrete Laplace noise of scale t over vectors with the L2
// bound alone.
func laplaceRound(t, l2 float64, dim int) Round {
	return Round{Family: FamilyDiscreteLaplace, Shares: 20, Honest: 20, Rate: 1,
		Update: Lane{SumScale: t, Sensitivity: Sensitivity{L2: l2, Dimension: dim}}}
}

// zcdpLaplace is a sound upper bound that owes nothing to the code under test: one
// coordinate that differs by k is k/t-differentially private, so (k/t)²/2-zCDP (Bun,
// Steinke 2016 Proposition 1.4), and squares add over coordinates and rounds.
func zcdpLaplace(t *testing.T, scale, l2 float64, rounds int, delta float64) float64 {
	t.Helper()
	e, err := ZCDP(float64(rounds) * l2 * l2 / (2 * scale * scale)).Epsilon(delta)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The L2 bound counts: a vector within it has not an L1 norm of √d times it and, at the
// same time, all of it in one coordinate. The lower bound is below every sound upper
// bound, the upper one is at most the simplest of them.
func TestLaplaceLowerBoundIsBelowSoundUpperBounds(t *testing.T) {
	const scale, l2 = 3126.8, 791.1 // simulate's 20 parties, 5 rounds, ε = 8 by L1 alone
	for _, rounds := range []int{1, 5, 20} {
		sound := zcdpLaplace(t, scale, l2, rounds, 1e-5)
		s, err := laplaceRound(scale, l2, 40).Spent(ServerView, rounds, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		if s.Bare().Lower > sound {
			t.Errorf("%d rounds: at least %v is printed, and no neighbour is above %v", rounds,
				s.Bare().Lower,
				sound)
		}
		if s.Bare().Upper > sound {
			t.Errorf("%d rounds: at most %v is printed, zCDP proves %v", rounds, s.Bare().Upper, sound)
		}
		t.Log(fmt.Sprint(rounds), " rounds: ", s.Bare().Lower, " to ", s.Bare().Upper, ", zCDP ", sound)
	}
	// So with very much noise, whose best orders are far above 1,000.
	s, err := laplaceRound(2e8, 1e5, 105).Spent(ServerView, 20, 1e-5)
	if sound := zcdpLaplace(t, 2e8, 1e5, 20, 1e-5); err != nil || s.Bare().Lower > sound ||
		s.Bare().Upper > sound {
		t.Errorf("%v to %v (%v), zCDP proves %v", s.Bare().Lower, s.Bare().Upper, err, sound)
	}
	// The multiplier for 20 rounds at ε = 8 over 40 coordinates; the L1 norm alone asks for
	// one of 20.1.
	z, err := CalibrateRound(Target{8, 1e-5}, ServerView, 20, func(z float64) Round {
		return laplaceRound(z*l2/math.Sqrt2, l2, 40)
	})
	if err != nil || z > 4.03 {
		t.Errorf("multiplier %v (%v), want 4.03 at most", z, err)
	}
}

// outcomes are the probabilities of each outcome with a client's vector and without it.
type outcomes [][2]float64

// cross is two independent releases.
func (a outcomes) cross(b outcomes) outcomes {
	out := make(outcomes, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, [2]float64{x[0] * y[0], x[1] * y[1]})
		}
	}
	return out
}

// times is this many independent releases.
func (a outcomes) times(n int) outcomes {
	out := nothing
	for range n {
		out = out.cross(a)
	}
	return out
}

// sampled is the release of a client that takes part with probability q.
func (a outcomes) sampled(q float64) outcomes {
	out := make(outcomes, len(a))
	for i, x := range a {
		out[i] = [2]float64{(1-q)*x[1] + q*x[0], x[1]}
	}
	return out
}

// delta is δ(ε) of the direction that spends more.
func (a outcomes) delta(eps float64) float64 {
	with, without := 0.0, 0.0
	for _, x := range a {
		with += math.Max(0, x[0]-math.Exp(eps)*x[1])
		without += math.Max(0, x[1]-math.Exp(eps)*x[0])
	}
	return math.Max(with, without)
}

var nothing = outcomes{{1, 1}}

// laplaceOutcomes is a vector under discrete Laplace noise. Outcomes at or beyond 0 and the
// shift have one ratio and are one.
func laplaceOutcomes(t float64, vector ...int) outcomes {
	rho := math.Exp(-1 / t)
	out := nothing
	for _, k := range vector {
		at := func(j int) float64 {
			switch j {
			case 0:
				return 1 / (1 + rho)
			case k:
				return math.Pow(rho, float64(k)) / (1 + rho)
			}
			return math.Pow(rho, float64(j)) * (1 - rho) / (1 + rho)
		}
		if k == 0 {
			continue
		}
		var one outcomes
		for j := range k + 1 {
			one = append(one, [2]float64{at(k - j), at(j)})
		}
		out = out.cross(one)
	}
	return out
}

// skellamOutcomes is one coordinate that differs by k, by the series of a Bessel function.
func skellamOutcomes(variance float64, k int) outcomes {
	mass := func(n int) float64 {
		n = max(n, -n)
		term := math.Exp(-variance + float64(n)*math.Log(variance/2))
		for i := 2; i <= n; i++ {
			term /= float64(i)
		}
		sum := 0.0
		for j := 1; term > 1e-40 || j < 40; j++ {
			sum += term
			term *= variance * variance / 4 / float64(j) / float64(j+n)
		}
		return sum
	}
	var out outcomes
	for n := -60; n <= 60+k; n++ {
		out = append(out, [2]float64{mass(n - k), mass(n)})
	}
	return out
}

// gaussianOutcomes is one coordinate that differs by k, under this many discrete Gaussian shares.
func gaussianOutcomes(shares int, sigma float64, k int) outcomes {
	return besides(slices.Repeat([]float64{sigma}, shares), k)
}

// besides is one coordinate that differs by k, under discrete Gaussians of these parameters.
func besides(sigmas []float64, k int) outcomes {
	const reach = 20
	law := map[int]float64{0: 1}
	for _, sigma := range sigmas {
		one := tabled(func(k float64) float64 { return math.Exp(-k * k / (2 * sigma * sigma)) }, reach)
		next := map[int]float64{}
		for a, p := range law {
			for b, q := range one {
				next[a+b] += p * q
			}
		}
		law = next
	}
	var out outcomes
	for n := -2 * reach; n <= 2*reach; n++ {
		if p, q := law[n-k], law[n]; p > 0 && q > 0 {
			out = append(out, [2]float64{p, q})
		}
	}
	return out
}

// Every lower bound that is printed has a neighbour: this lists what each adds, by name, and
// that it attains the bound. Where none is known the bound is 0.
func TestLowerBoundsAreAttained(t *testing.T) {
	lap := func(s Sensitivity) Round {
		return Round{Family: FamilyDiscreteLaplace, Shares: 3, Honest: 3, Rate: 1,
			Update: Lane{SumScale: 2, Sensitivity: s}}
	}
	skel := func(s Sensitivity) Round {
		return Round{Family: FamilySkellam, Shares: 3, Honest: 3, Rate: 1,
			Update: Lane{ShareVariance: 2, Sensitivity: s}}
	}
	gauss := func(shares int, sigma float64, s Sensitivity) Round {
		return Round{Family: FamilyDiscreteGaussian, Shares: shares, Honest: shares, Rate: 1,
			Update: Lane{ShareSigma: sigma, Sensitivity: s}}
	}
	with := func(r Round, change func(*Round)) Round {
		change(&r)
		return r
	}
	sampled := func(r *Round) { r.Rate, r.HiddenSchedule = 0.3, true }
	twoSigns := func(r *Round) {
		r.Signs = &Lane{SumScale: 4, Sensitivity: Sensitivity{L1: 2, L2: 1.5, Dimension: 2}}
	}
	const delta = 1e-2
	for _, c := range []struct {
		name      string
		round     Round
		rounds    int
		neighbour string // "": no lower bound
		one       outcomes
	}{
		{"Laplace, a number", lap(Sensitivity{L2: 4, Dimension: 1}), 3, "1 coordinate by 4",
			laplaceOutcomes(2, 4)},
		{"Laplace, L1 below L2", lap(Sensitivity{L1: 3, L2: 9, Dimension: 4}), 2, "1 coordinate by 3",
			laplaceOutcomes(2, 3)},
		{"Laplace, L2", lap(Sensitivity{L2: 2, Dimension: 4}), 2, "4 coordinates by 1",
			laplaceOutcomes(2, 1, 1, 1, 1)},
		{"Laplace, L2 no square", lap(Sensitivity{L2: 4.7, Dimension: 3}), 2,
			"2 coordinates by 3 and 1 by 2", laplaceOutcomes(2, 3, 3, 2)},
		{"Laplace, both norms", lap(Sensitivity{L1: 3.9, L2: 2.9, Dimension: 9}), 2,
			"1 coordinate by 2 and 1 by 1", laplaceOutcomes(2, 2, 1)},
		{"Laplace, no whole vector", lap(Sensitivity{L2: 0.9, Dimension: 3}), 2, "", nil},
		{"Laplace, more shares than the law is known for", with(lap(Sensitivity{L2: 2, Dimension: 1}),
			func(r *Round) { r.Honest = 4 }), 1, "", nil},
		{"Laplace, sampled", with(lap(Sensitivity{L2: 2, Dimension: 4}), sampled), 2,
			"1 coordinate by 2", laplaceOutcomes(2, 2).sampled(0.3)},
		{"Laplace, signs", with(lap(Sensitivity{L2: 2, Dimension: 2}), twoSigns), 2,
			"1 coordinate by 2, of the signs 2 coordinates by 1",
			laplaceOutcomes(2, 2).cross(laplaceOutcomes(4, 1, 1))},
		{"Laplace, signs, sampled", with(with(lap(Sensitivity{L2: 2, Dimension: 2}), twoSigns), sampled),
			2, "1 coordinate by 2", laplaceOutcomes(2, 2).sampled(0.3)},
		{"Laplace, from tables", with(lap(Sensitivity{L2: 2, Dimension: 4}), func(r *Round) {
			r.TableDistance, r.Samples = 1e-5, 10
		}), 2, "4 coordinates by 1", laplaceOutcomes(2, 1, 1, 1, 1)},
		{"Skellam, a number", skel(Sensitivity{L2: 2, Dimension: 1}), 2, "1 coordinate by 2",
			skellamOutcomes(6, 2)},
		{"Skellam, L1 below L2", skel(Sensitivity{L1: 1, L2: 3, Dimension: 1}), 2, "1 coordinate by 1",
			skellamOutcomes(6, 1)},
		{"Skellam, no whole number", skel(Sensitivity{L2: 0.9, Dimension: 1}), 2, "", nil},
		{"Skellam, more shares than calibrated to", with(skel(Sensitivity{L2: 2, Dimension: 1}),
			func(r *Round) { r.Honest = 5 }), 2, "1 coordinate by 2", skellamOutcomes(10, 2)},
		{"Skellam, sampled", with(skel(Sensitivity{L2: 2, Dimension: 1}), sampled), 2,
			"1 coordinate by 2", skellamOutcomes(6, 2).sampled(0.3)},
		{"Skellam, a vector", skel(Sensitivity{L2: 1.8, Dimension: 4}), 1,
			"3 coordinates by 1", skellamOutcomes(6, 1).times(3)},
		{"Skellam, a vector, sampled", with(skel(Sensitivity{L2: 2.3, Dimension: 3}), sampled), 2,
			"1 coordinate by 2", skellamOutcomes(6, 2).sampled(0.3)},
		{"Skellam, signs", with(skel(Sensitivity{L2: 2, Dimension: 1}), func(r *Round) {
			r.Signs = &Lane{ShareVariance: 1, Sensitivity: signs(2)}
		}), 1, "1 coordinate by 2, of the signs 2 coordinates by 1",
			skellamOutcomes(6, 2).cross(skellamOutcomes(3, 1).times(2))},
		{"Gaussian, a number", gauss(1, 2, Sensitivity{L2: 2, Dimension: 1}), 2, "1 coordinate by 2",
			gaussianOutcomes(1, 2, 2)},
		{"Gaussian, a sum of shares", gauss(3, 2, Sensitivity{L2: 2, Dimension: 1}), 2,
			"1 coordinate by 2", gaussianOutcomes(3, 2, 2)},
		{"Gaussian, a sum of small shares", gauss(3, 0.7, Sensitivity{L2: 2, Dimension: 1}), 2,
			"1 coordinate by 2", gaussianOutcomes(3, 0.7, 2)},
		{"Gaussian, shares that are too small", gauss(3, 0.05, Sensitivity{L2: 2, Dimension: 1}), 2, "",
			nil},
		{"Gaussian, four squares", gauss(1, 1.5, Sensitivity{L2: 2.7, Dimension: 9}), 1,
			"1 coordinate by 2 and 3 by 1",
			gaussianOutcomes(1, 1.5, 2).cross(gaussianOutcomes(1, 1.5, 1).times(3))},
		{"Gaussian, L1 in the way", gauss(1, 2, Sensitivity{L1: 3.9, L2: 2.9, Dimension: 9}), 2,
			"1 coordinate by 2 and 1 by 1", gaussianOutcomes(1, 2, 2).cross(gaussianOutcomes(1, 2, 1))},
		{"Gaussian, three coordinates", gauss(1, 2, Sensitivity{L2: 2.7, Dimension: 3}), 1,
			"1 coordinate by 2 and 2 by 1",
			gaussianOutcomes(1, 2, 2).cross(gaussianOutcomes(1, 2, 1).times(2))},
		{"Gaussian, more shares than calibrated to", with(gauss(1, 2, Sensitivity{L2: 2, Dimension: 4}),
			func(r *Round) { r.Honest = 3 }), 1, "1 coordinate by 2",
			gaussianOutcomes(3, 2, 2)},
		{"Gaussian, sampled", with(gauss(2, 1.5, Sensitivity{L2: 2.2, Dimension: 4}), sampled), 2,
			"1 coordinate by 2", gaussianOutcomes(2, 1.5, 2).sampled(0.3)},
		{"Gaussian, rounding adds no input", with(gauss(1, 2, Sensitivity{L2: 2.9, Dimension: 4}),
			func(r *Round) { r.Update.Attained = 2.2 }), 2, "1 coordinate by 2", gaussianOutcomes(1, 2, 2)},
		{"Gaussian, no input is certain", with(gauss(1, 2, Sensitivity{L2: 2.9, Dimension: 4}),
			func(r *Round) { r.Update.Attained = 0.9 }), 2, "", nil},
		{"Laplace, rounding adds no input", with(lap(Sensitivity{L1: 9, L2: 4, Dimension: 4}),
			func(r *Round) { r.Update.Attained = 2 }), 2, "4 coordinates by 1",
			laplaceOutcomes(2, 1, 1, 1, 1)},
		{"Skellam, rounding adds no input", with(skel(Sensitivity{L2: 2.9, Dimension: 1}),
			func(r *Round) { r.Update.Attained = 1.5 }), 2, "1 coordinate by 1", skellamOutcomes(6, 1)},
		{"Gaussian, noise that nobody can take out", with(gauss(2, 2, Sensitivity{L2: 3, Dimension: 1}),
			func(r *Round) { r.Own = 9 }), 1, "1 coordinate by 3", besides([]float64{2, 2, 3}, 3)},
		{"Gaussian, own noise too small to know", with(gauss(1, 2, Sensitivity{L2: 2, Dimension: 1}),
			func(r *Round) { r.Own = 0.25 }), 1, "", nil},
		{"Gaussian, a coin", with(gauss(1, 2, Sensitivity{L2: 2, Dimension: 1}), func(r *Round) {
			r.SecretRate = 0.3
		}), 2, "1 coordinate by 2", gaussianOutcomes(1, 2, 2).sampled(0.3)},
		{"Gaussian, signs", with(gauss(1, 2, Sensitivity{L2: 2, Dimension: 1}), func(r *Round) {
			r.Signs = &Lane{ShareSigma: 1.5, Sensitivity: signs(2)}
		}), 1, "1 coordinate by 2, of the signs 2 coordinates by 1",
			gaussianOutcomes(1, 2, 2).cross(gaussianOutcomes(1, 1.5, 1).times(2))},
		{"Gaussian, overruns", with(gauss(1, 2, Sensitivity{L2: 2, Dimension: 1}), func(r *Round) {
			r.Overrun = 1e-4
		}), 2, "1 coordinate by 2", gaussianOutcomes(1, 2, 2)},
	} {
		v := ServerView
		if c.round.HiddenSchedule {
			v = PublicView
		}
		s, err := c.round.Spent(v, c.rounds, delta)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if s.Bare().Neighbour != c.neighbour || (s.Bare().Lower > 0) != (c.neighbour != "") ||
			s.Bare().Lower > s.Bare().Upper {
			t.Errorf("%s: %v to %v, attained by %q, want %q", c.name, s.Bare().Lower, s.Bare().Upper,
				s.Bare().Neighbour,
				c.neighbour)
			continue
		}
		if c.one == nil {
			continue
		}
		all := nothing
		for range c.rounds {
			all = all.cross(c.one)
		}
		// What tables are off by works against the lower bound as well.
		want := delta + (1+math.Exp(s.Bare().Lower))*float64(c.rounds)*
			(c.round.Samples*c.round.TableDistance+c.round.Overrun)
		if d := all.delta(s.Bare().Lower); d < want*(1-1e-9) {
			t.Errorf("%s: at least %v, but %v has δ = %v there, below %v", c.name, s.Bare().Lower,
				c.neighbour, d,
				want)
		}
		if d := all.delta(s.Bare().Lower * 1.002); d > want && want == delta {
			t.Errorf("%s: %v has δ = %v a little above the bound %v", c.name, c.neighbour, d, s.Bare().Lower)
		}
	}
}

// No vector within the norms spends more than the upper bound, whatever it is in each
// round, and what a bound is named after is within the norms.
func TestVectorsSpendNoMoreThanTheUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 4).Draw(t, "dimension")
		scale := rapid.Float64Range(0.5, 8).Draw(t, "t")
		s := Sensitivity{L2: rapid.Float64Range(1, 4).Draw(t, "L2"), Dimension: dim}
		if rapid.Bool().Draw(t, "L1 stated") {
			s.L1 = rapid.Float64Range(1, 8).Draw(t, "L1")
		}
		r := laplaceRound(scale, 1, 1)
		r.Update.Sensitivity = s
		s, err := s.check()
		if err != nil {
			t.Fatal(err)
		}
		within := func(v []int) bool {
			l1, square := 0, 0
			for _, k := range v {
				l1, square = l1+k, square+k*k
			}
			return float64(l1) <= s.L1 && float64(square) <= s.L2*s.L2
		}
		for n := range dim {
			v := s.spread(n + 1)
			var vector []int
			for _, e := range v {
				for range e.coordinates {
					vector = append(vector, e.by)
				}
			}
			if len(vector) > dim || !within(vector) {
				t.Fatalf("%v is not within %v", v, s)
			}
		}
		delta := math.Pow(10, rapid.Float64Range(-6, -0.5).Draw(t, "log δ"))
		const rounds = 2
		spent, err := r.Spent(ServerView, rounds, delta)
		if err != nil {
			t.Fatal(err)
		}
		all := nothing
		for range rounds {
			v := rapid.SliceOfN(rapid.IntRange(0, 4), dim, dim).Draw(t, "vector")
			for i := 0; !within(v); i = (i + 1) % dim {
				v[i] = max(0, v[i]-1)
			}
			all = all.cross(laplaceOutcomes(scale, v...))
		}
		if d := all.delta(spent.Bare().Upper); d > delta*(1+1e-9) {
			t.Fatalf("δ = %v at ε = %v, above %v", d, spent.Bare().Upper, delta)
		}
		if spent.Bare().Lower > spent.Bare().Upper {
			t.Fatal(spent)
		}
	})
}

// Both other bounds are above the one divergence and the one curve that they are of: a
// coordinate and vectors, by direct sums.
func TestLaplaceVectorCurves(t *testing.T) {
	for _, scale := range []float64{0.3, 1, 4, 40} {
		for _, v := range [][]int{{1}, {3}, {1, 1}, {2, 1}, {3, 3}, {2, 2, 2}, {1, 1, 1, 1}} {
			l1, square := 0, 0
			for _, k := range v {
				l1, square = l1+k, square+k*k
			}
			s, err := Sensitivity{float64(l1), math.Sqrt(float64(square)), len(v)}.check()
			if err != nil {
				t.Fatal(err)
			}
			all := laplaceOutcomes(scale, v...)
			curve, err := laplaceVectorRDP(scale, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range curve.orders {
				if a > 64 {
					break
				}
				ln := math.Inf(-1)
				for _, x := range all {
					ln = logAdd(ln, a*math.Log(x[0])+(1-a)*math.Log(x[1]))
				}
				exact, got := ln/(a-1), curve.values[i]
				if got < exact*(1-1e-12)-1e-14 {
					t.Errorf("t=%v %v: order %v has %v, the bound is %v", scale, v, a, exact, got)
				}
				if equal := len(v)*v[0] == l1; equal && got > exact*(1+1e-9)+1e-12 {
					t.Errorf("t=%v %v: order %v has %v, equal entries attain the bound %v", scale, v, a, exact,
						got)
				}
			}
			mu := laplaceStep(scale) * s.norm()
			for _, eps := range []float64{0, 0.1, 1, 3, 10} {
				g, err := GaussianDelta(1/mu, eps)
				if err != nil {
					t.Fatal(err)
				}
				if d := all.delta(eps); d > g.Upper*(1+1e-9)+1e-15 {
					t.Errorf("t=%v %v: δ(%v) = %v, above the Gaussian's %v", scale, v, eps, d, g)
				}
			}
		}
	}
}

// A lower bound is below what an upper bound says of the same thing: the longest input against all
// noise of the smallest sum, as one share. That holds for few units and for many, with coins, and
// where rounding or a calibration to fewer shares leaves the charged bound far above.
func TestLowerBoundsAreBelowTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attained := math.Exp2(rapid.Float64Range(0, 20).Draw(t, "log attained"))
		dim := rapid.SampledFrom([]int{1, 3, 40, 5000}).Draw(t, "dimension")
		shares := rapid.IntRange(1, 7).Draw(t, "shares")
		z := rapid.Float64Range(0.7, 6).Draw(t, "multiplier")
		charged := attained + rapid.Float64Range(0, 1).Draw(t, "rounding")*math.Sqrt(float64(dim))
		r := Round{Family: FamilyDiscreteGaussian, Shares: shares, Rate: 1,
			Honest: shares + rapid.IntRange(0, 5).Draw(t, "more shares"),
			Own:    rapid.SampledFrom([]float64{0, 40.96, 409.6}).Draw(t, "own"),
			// Narrower shares than of 2 sum up to another law than one share has.
			Update: Lane{ShareSigma: math.Max(2, z*charged/math.Sqrt(float64(shares))),
				Sensitivity: Sensitivity{L2: charged, Dimension: dim}, Attained: attained}}
		if rapid.Bool().Draw(t, "coin") {
			r.SecretRate = 0.2
		}
		rounds := rapid.SampledFrom([]int{1, 5, 40}).Draw(t, "rounds")
		s, err := r.Spent(ServerView, rounds, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		sigma := r.Update.ShareSigma
		truth := r
		truth.Shares, truth.Honest, truth.Own = 1, 1, 0
		truth.Update.ShareSigma = math.Sqrt(float64(r.Honest)*sigma*sigma + r.Own)
		truth.Update.Sensitivity.L2 = attained
		most, err := truth.Spent(ServerView, rounds, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		if s.Bare().Lower > most.Bare().Upper {
			t.Fatalf("at least %v is said to be attained, and at most %v is", s.Bare().Lower,
				most.Bare().Upper)
		}
		if s.Bare().Lower == 0 && sigma > 4 && attained > 2 {
			t.Fatal("nothing is attained")
		}
	})
}
