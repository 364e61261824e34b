package query

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// This file has the log-rank test (Mantel 1966): whether groups of rows have the same survival
// curve. The vector has the numbers of a curve for each group. At each bin the events that came are
// compared with those that a group would have if all rows at risk were alike; the test is that of
// the times rounded up to the ends of bins.

// Test has the result of a test of a hypothesis.
type Test struct {
	// ChiSquare is the statistic. Without noise it is that of the rows; noise only makes it smaller,
	// as its variance is added to that by which rows were drawn.
	ChiSquare float64 `json:"chi_square"`
	Degrees   int     `json:"degrees"` // of freedom: groups less one
	P         float64 `json:"p"`       // of a statistic as large if groups do not differ
}

// ranks holds how far groups are from what they would have if they did not differ.
type ranks struct {
	off   []float64   // events observed less those expected
	drawn [][]float64 // covariances by chance (hypergeometric in each bin)
	noise [][]float64 // by noise of deviation 1 in each number
	used  int         // bins with enough rows at risk
}

// newRanks compares groups by the numbers of a curve for each, in bins in which more rows are at
// risk than noise of a deviation leaves to tell.
func newRanks(x []float64, groups int, deviation float64) (r ranks) {
	bins := len(x) / 2 / groups
	var came, risk [][]float64
	for g := range groups {
		_, d, n := lifetimes(x[2*bins*g:][:2*bins])
		came, risk = append(came, d), append(risk, n)
	}
	r.off = make([]float64, groups)
	r.drawn, r.noise = square(groups), square(groups)
	// Of group g, along is the derivative by rows of group h at risk in all bins up to this one.
	along := square(groups)
	for k := range bins {
		all, events := 0.0, 0.0
		for g := range groups {
			all += risk[g][k]
			events += came[g][k]
		}
		tell := leastRows * deviation * math.Sqrt(2*float64(groups*(bins-k)))
		use := all > max(1, tell) && r.used == k
		var share []float64
		if use {
			r.used++
			within := min(max(events, 0), all)
			for g := range groups {
				share = append(share, risk[g][k]/all)
				r.off[g] += came[g][k] - events*share[g]
			}
			spread := within * (all - within) / (all - 1)
			for g, p := range share {
				p = min(max(p, 0), 1)
				for h, q := range share {
					r.drawn[g][h] -= spread * p * min(max(q, 0), 1)
					along[g][h] += events / all * share[g]
				}
				r.drawn[g][g] += spread * p
				along[g][g] -= events / all
			}
		}
		// A lost row of this bin was at risk in all up to it; so was one with the event.
		for g := range groups {
			for f := range groups {
				for h := range groups {
					direct := func(of int) float64 {
						out := along[of][h]
						if use {
							out -= share[of]
							if of == h {
								out++
							}
						}
						return out
					}
					r.noise[g][f] += along[g][h]*along[f][h] + direct(g)*direct(f)
				}
			}
		}
	}
	return r
}

func square(n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
	}
	return out
}

// test divides what is off by its variance, of chance and of noise; nil if that is 0.
func (r *ranks) test(deviation float64) *Test {
	n := len(r.off) - 1 // the last follows from the others
	a := square(n)
	for i := range a {
		for j := range a {
			a[i][j] = r.drawn[i][j] + deviation*deviation*r.noise[i][j]
		}
	}
	inv := inverse(a, 0)
	if inv == nil {
		return nil
	}
	out := &Test{Degrees: n}
	for i := range inv {
		for j := range inv {
			out.ChiSquare += r.off[i] * inv[i][j] * r.off[j]
		}
	}
	out.P = distuv.ChiSquared{K: float64(n)}.Survival(out.ChiSquare)
	return out
}

// logrank reads the test, and of each group how many more events it has than it would if groups did
// not differ. Intervals are of the rows, by noise; standard errors have chance in them.
func (s *sum) logrank(a *ask, x []float64, deviation float64) (out Answer) {
	r := newRanks(x, a.by.bins, deviation)
	out.Test = r.test(deviation)
	for g, word := range a.by.Words() {
		if out.Test == nil || r.used == 0 {
			out.Cells = append(out.Cells, hides("how many rows of each group are at risk", deviation, word,
				math.Inf(-1), math.Inf(1)))
			out.Errors = append(out.Errors, math.NaN())
			continue
		}
		noise := deviation * math.Sqrt(r.noise[g][g])
		out.Cells = append(out.Cells, Cell{Label: word, Value: r.off[g], Low: r.off[g] - z95*noise,
			High: r.off[g] + z95*noise})
		out.Errors = append(out.Errors, math.Hypot(noise, math.Sqrt(max(0, r.drawn[g][g]))))
	}
	if out.Cells[0].Unknown != "" {
		out.Test = nil
	}
	return out
}

// rankedEvenly returns how far noise and chance move the first group's events, as half of 95 %
// intervals, if groups of the same size have their rows evenly over bins, half with the event.
func (a *ask) rankedEvenly(rows, deviation float64) (margin, chance float64) {
	x := make([]float64, a.length)
	for i := range x {
		x[i] = rows / float64(len(x))
	}
	r := newRanks(x, a.by.bins, deviation)
	if r.used == 0 {
		return math.Inf(1), 0
	}
	return z95 * deviation * math.Sqrt(r.noise[0][0]), z95 * math.Sqrt(r.drawn[0][0])
}
