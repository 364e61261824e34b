package accounting

import (
	"fmt"
	"hash/fnv"
	"math"
)

// RandomisedResponse reports the true one of Categories values with
// probability e^ε/(e^ε+Categories−1) and each other value with equal
// probability. One client changes its value (replace-one by nature).
type RandomisedResponse struct {
	Epsilon    float64 // ε of one answer, positive
	Categories int     // at least 2
}

func (m RandomisedResponse) key() string {
	return fmt.Sprintf("randomised response %x %d", m.Epsilon, m.Categories)
}

func (m RandomisedResponse) law() (law, error) { return plainLaw(m) }

func (m RandomisedResponse) base() (base, error) {
	if err := checkPositive("randomised response epsilon", m.Epsilon); err != nil {
		return nil, err
	}
	if m.Categories < 2 {
		return nil, configError("%d categories, want at least 2", m.Categories)
	}
	e, k := m.Epsilon, float64(m.Categories)
	yes := 1 / (1 + (k-1)*math.Exp(-e))
	no := math.Exp(-e) * yes
	b := &table{relative: 16 * unit * (1 + e), maxP: e, maxQ: e, off: -e, step: 2 * e}
	b.list = []atom{{-e, no, yes}, {e, yes, no}}
	if m.Categories > 2 {
		b.step = e
		b.list = append(b.list, atom{0, (k - 2) * no, (k - 2) * no})
	}
	return b, nil
}

// Pair is any two laws on the same finite set: P[i] and Q[i] are the
// probabilities of outcome i with and without the client. TailP and TailQ are
// upper bounds of the probability that the tables leave out; that mass is
// treated as a total loss of privacy. Each table must sum to one, less at most
// its tail, to within 1e-9; it is then scaled to do so exactly.
type Pair struct {
	P, Q         []float64
	TailP, TailQ float64
}

func (m Pair) key() string {
	h := fnv.New128a()
	_, _ = fmt.Fprintf(h, "%x %x %x %x", m.P, m.Q, m.TailP, m.TailQ)
	return fmt.Sprintf("pair %x", h.Sum(nil))
}

func (m Pair) law() (law, error) { return plainLaw(m) }

func (m Pair) base() (base, error) {
	if len(m.P) != len(m.Q) || len(m.P) == 0 {
		return nil, configError("pair has %d and %d outcomes, want equal and at least one", len(m.P),
			len(m.Q))
	}
	if err := checkAtoms(float64(len(m.P))); err != nil {
		return nil, err
	}
	sp, err := checkTable("P", m.P, m.TailP)
	if err != nil {
		return nil, err
	}
	sq, err := checkTable("Q", m.Q, m.TailQ)
	if err != nil {
		return nil, err
	}
	b := &table{relative: 8 * unit, lostP: m.TailP, lostQ: m.TailQ}
	if m.TailP > 0 {
		b.maxP = math.Inf(1)
	}
	if m.TailQ > 0 {
		b.maxQ = math.Inf(1)
	}
	for i := range m.P {
		p, q := m.P[i]/sp, m.Q[i]/sq
		if p == 0 && q == 0 {
			continue
		}
		l := math.Log(p) - math.Log(q)
		b.maxP, b.maxQ = math.Max(b.maxP, l), math.Max(b.maxQ, -l)
		b.list = append(b.list, atom{l, p, q})
	}
	return b, nil
}

func checkTable(name string, t []float64, tail float64) (scale float64, err error) {
	if !(tail >= 0 && tail < 1) {
		return 0, configError("tail of %s is %v, want 0 ≤ tail < 1", name, tail)
	}
	sum := 0.0
	for i, v := range t {
		if !(v >= 0 && v <= 1) {
			return 0, configError("%s[%d] is %v, want a probability", name, i, v)
		}
		sum += v
	}
	if sum > 1+1e-9 || sum < 1-tail-1e-9 {
		return 0, configError("%s sums to %v, want between 1−tail and 1", name, sum)
	}
	if sum > 1 {
		return sum, nil
	}
	if sum < 1-tail {
		return sum / (1 - tail), nil
	}
	return 1, nil
}
