package noise

import (
	"fmt"
	"math"
	"math/big"
	"sync"
	"testing"
)

// exactLaw is a law with integer numerators: P(lo+i) = p[i]/2^bits.
type exactLaw struct {
	lo   int64
	p    []*big.Int
	bits uint
}

// stageLaw sums the law of one stage from the thresholds that the sampler
// scans, and from nothing else. Signed stages give ±k with half of k's mass each.
func stageLaw(s *stage, signed bool) exactLaw {
	n := 0
	for i, l := range s.levels {
		if len(l.sums) > n {
			n = len(l.sums)
		}
		if i == len(s.levels)-1 {
			n = max(n, len(l.sums)+1)
		}
	}
	m := make([]*big.Int, n)
	for k := range m {
		m[k] = new(big.Int)
	}
	weight := big.NewInt(1)
	for i, l := range s.levels {
		prev := uint64(0)
		sums := l.sums
		if i == len(s.levels)-1 {
			sums = append(append([]uint64(nil), sums...), 1<<wordBits)
		}
		for k := range m {
			m[k].Lsh(m[k], wordBits)
			if k < len(sums) {
				m[k].Add(m[k], new(big.Int).Mul(weight, new(big.Int).SetUint64(sums[k]-prev)))
				prev = sums[k]
			}
		}
		weight.Mul(weight, new(big.Int).SetUint64(1<<wordBits-prev))
	}
	unit := uint(wordBits * len(s.levels))
	if !signed {
		return exactLaw{0, m, unit}
	}
	e := exactLaw{int64(1 - n), make([]*big.Int, 2*n-1), unit + 1}
	for k := range m {
		e.p[n-1+k], e.p[n-1-k] = m[k], m[k]
	}
	e.p[n-1] = new(big.Int).Lsh(m[0], 1)
	return e
}

// scaled is the law of w·X.
func (e exactLaw) scaled(w int64) exactLaw {
	s := exactLaw{e.lo * w, make([]*big.Int, int64(len(e.p)-1)*w+1), e.bits}
	for i := range s.p {
		s.p[i] = new(big.Int)
	}
	for i, x := range e.p {
		s.p[int64(i)*w] = x
	}
	return s
}

// plus is the law of the sum of independent variables, by one multiplication of
// integers that hold the numerators side by side.
func (e exactLaw) plus(f exactLaw) exactLaw {
	slot := (e.bits+f.bits)/64*64 + 128
	prod := new(big.Int).Mul(pack(e.p, slot), pack(f.p, slot))
	s := exactLaw{e.lo + f.lo, make([]*big.Int, len(e.p)+len(f.p)-1), e.bits + f.bits}
	words, per := prod.Bits(), int(slot/64)
	for i := range s.p {
		w := words[min(i*per, len(words)):min((i+1)*per, len(words))]
		s.p[i] = new(big.Int).SetBits(append([]big.Word(nil), w...))
	}
	return s
}

func pack(p []*big.Int, slot uint) *big.Int {
	per := int(slot / 64)
	words := make([]big.Word, per*len(p))
	for i, x := range p {
		copy(words[i*per:], x.Bits())
	}
	return new(big.Int).SetBits(words)
}

// rounded keeps |value| ≤ reach and the given number of bits, always downwards:
// what is lost shows as a total below one.
func (e exactLaw) rounded(reach int64, bits uint) exactLaw {
	s := exactLaw{max(e.lo, -reach), nil, min(bits, e.bits)}
	for i, x := range e.p {
		if k := e.lo + int64(i); k >= -reach && k <= reach {
			s.p = append(s.p, new(big.Int).Rsh(x, e.bits-s.bits))
		}
	}
	return s
}

// cascadeLaw composes the stages as fillBlock does.
func cascadeLaw(p *cascade) exactLaw {
	signed := p.how == signedSum
	sum := exactLaw{0, []*big.Int{big.NewInt(1)}, 0}
	if p.how == signedDigits {
		for i := len(p.stages) - 1; i > 0; i-- {
			sum = sum.plus(stageLaw(p.stages[i], false).scaled(p.weights[i]))
		}
		low := stageLaw(p.stages[0], false)
		zero := low.p[0]
		low.p = append([]*big.Int{new(big.Int)}, low.p[1:]...)
		abs := low.plus(sum)
		n := len(abs.p)
		e := exactLaw{int64(1 - n), make([]*big.Int, 2*n-1), abs.bits + 1}
		for k := range abs.p {
			e.p[n-1+k], e.p[n-1-k] = abs.p[k], abs.p[k]
		}
		e.p[n-1] = new(big.Int).Lsh(zero, abs.bits-low.bits+1)
		return e
	}
	for i, s := range p.stages {
		sum = sum.plus(stageLaw(s, signed).scaled(p.weights[i]))
	}
	sum.lo += p.offset
	return sum
}

// distanceTo is an upper bound on the statistical distance between e, whose
// missing mass may lie anywhere, and l.
func (e exactLaw) distanceTo(t *testing.T, l Law) *big.Rat {
	t.Helper()
	const fixed = 220
	enc, err := l.enclose(160, 0)
	if err != nil {
		t.Fatal(err)
	}
	unit := new(big.Int).Lsh(big.NewInt(1), fixed)
	sum, listed := new(big.Int), new(big.Int)
	seen := make(map[int64]bool)
	for i, x := range e.p {
		k := e.lo + int64(i)
		q := new(big.Int).Lsh(x, fixed)
		q.Rsh(q, e.bits) // rounded down: joins the missing mass
		listed.Add(listed, q)
		j := k
		if l.symmetric() && j < 0 {
			j = -j
		}
		if j -= enc.offset; j < 0 || j >= int64(len(enc.p)) {
			sum.Add(sum, q)
			continue
		}
		seen[k] = true
		sum.Add(sum, farthest(enc, j, q, fixed))
	}
	for j := range enc.p {
		for _, k := range []int64{enc.offset + int64(j), -enc.offset - int64(j)} {
			if !seen[k] && (k >= 0 || l.symmetric()) {
				seen[k] = true
				sum.Add(sum, farthest(enc, int64(j), new(big.Int), fixed))
			}
		}
	}
	tail, _ := new(big.Float).SetMantExp(enc.tail, fixed).Int(nil)
	sum.Add(sum, tail.Add(tail, big.NewInt(1)))
	sum.Add(sum, unit.Sub(unit, listed))
	return new(big.Rat).SetFrac(sum, new(big.Int).Lsh(big.NewInt(1), fixed+1))
}

// farthest is at least |q − p_j|.
func farthest(enc *enclosure, j int64, q *big.Int, fixed int) *big.Int {
	lo, hi := enc.p[j].Fixed(fixed)
	lo.Sub(q, lo)
	hi.Sub(hi, q)
	if lo.Cmp(hi) < 0 {
		return hi
	}
	return lo
}

func log2(x *big.Rat) float64 {
	f := new(big.Float).SetPrec(64).SetRat(x)
	m := new(big.Float)
	e := f.MantExp(m)
	v, _ := m.Float64()
	return math.Log2(v) + float64(e)
}

// proofLaws are the laws whose tables the proofs go through, at least one
// for each way of composing stages, with one and two slots, two and three levels.
func proofLaws(t testing.TB) []Law {
	r := big.NewRat
	var laws []Law
	add := func(l Law, err error) { laws = append(laws, must(t, l, err)) }
	for _, x := range []*big.Rat{r(1, 1<<20), r(1, 100), r(1, 3), r(1, 1), r(5, 2), r(10, 1)} {
		add(DiscreteLaplace(x))
		add(DiscreteGaussian(x))
		add(Skellam(x))
		add(Poisson(x))
		add(Polya(r(1, 1), x))
		add(Polya(r(1, 10), x))
		add(PolyaDifference(r(1, 100), x))
		add(PolyaDifference(r(7, 2), x))
	}
	add(DiscreteLaplace(r(70, 1)))
	add(DiscreteGaussian(r(100, 1)))
	add(DiscreteGaussian(r(14*14+1, 1)))
	add(DiscreteGaussian(r(1600, 1)))
	add(DiscreteGaussian(r(40001, 7)))
	add(Skellam(r(100, 1)))
	add(Skellam(r(30000, 1)))
	add(Poisson(r(3000, 1)))
	add(PolyaDifference(r(1, 10), r(40, 1)))
	add(PolyaDifference(r(1, 100), r(150, 1)))
	return laws
}

// proofTables are the tables of proofLaws, built once for all tests.
func proofTables(t testing.TB) []*Table {
	t.Helper()
	buildProofTables.Do(func() {
		for _, l := range proofLaws(t) {
			tb, err := NewTable(l)
			if err != nil {
				t.Fatalf("%v: %v", l, err)
			}
			builtProofTables = append(builtProofTables, tb)
		}
	})
	return builtProofTables
}

var (
	buildProofTables sync.Once
	builtProofTables []*Table
)

// TestTableLaw sums each table's law from its thresholds, by integer arithmetic,
// and compares it with certified enclosures of the exact law: the distance lies
// within the exported one, and that within 2^-100.
func TestTableLaw(t *testing.T) {
	goal := math.Ldexp(1, -100)
	kinds := map[string]bool{}
	worst, widest := math.Inf(-1), ""
	for _, tb := range proofTables(t) {
		l := tb.law
		for _, s := range tb.cascade.stages {
			kinds[fmt.Sprintf("%d stages combined %d, %d slots, %d levels", min(len(tb.cascade.stages), 2),
				tb.cascade.how, s.slots, len(s.levels))] = true
		}
		e := cascadeLaw(tb.cascade)
		total := new(big.Int)
		for _, x := range e.p {
			total.Add(total, x)
		}
		if total.Cmp(new(big.Int).Lsh(big.NewInt(1), e.bits)) != 0 {
			t.Errorf("%v: the table's probabilities do not sum to one", l)
		}
		d := e.distanceTo(t, l)
		if d.Cmp(tb.cascade.distance) > 0 {
			t.Errorf("%v: distance 2^%.2f, stated 2^%.2f", l, log2(d), log2(tb.cascade.distance))
		}
		if f := tb.Distance(); f > goal || new(big.Rat).SetFloat64(f).Cmp(tb.cascade.distance) < 0 {
			t.Errorf("%v: exported distance %g", l, f)
		}
		if x := log2(d); x > worst {
			worst, widest = x, l.String()
		}
		lo, hi := e.lo, e.lo+int64(len(e.p))-1
		if tb.Bound() < max(hi, -lo) {
			t.Errorf("%v: bound %d, values %d to %d", l, tb.Bound(), lo, hi)
		}
	}
	for _, kind := range []string{
		"1 stages combined 0, 1 slots, 2 levels", "1 stages combined 0, 2 slots, 2 levels",
		"1 stages combined 0, 2 slots, 3 levels",
		"2 stages combined 0, 1 slots, 2 levels", "1 stages combined 1, 1 slots, 2 levels",
		"2 stages combined 1, 1 slots, 2 levels",
		"1 stages combined 2, 1 slots, 2 levels", "2 stages combined 2, 1 slots, 2 levels",
	} {
		if !kinds[kind] {
			t.Errorf("no table with %s among the proofs: %v", kind, kinds)
		}
	}
	t.Logf("%d tables, largest distance 2^%.2f (%s)", len(proofTables(t)), worst, widest)
}

// TestStageProbabilities: thresholds are ascending, below 2^63, and the stored
// probabilities are their differences.
func TestStageProbabilities(t *testing.T) {
	for _, tb := range proofTables(t) {
		l := tb.law
		for i, s := range tb.cascade.stages {
			for d, level := range s.levels {
				prev := uint64(0)
				for _, x := range level.sums {
					if x < prev || x >= 1<<63 {
						t.Fatalf("%v stage %d: thresholds out of order", l, i)
					}
					prev = x
				}
				if d < len(s.levels)-1 && (level.residual == 0 || prev != 1<<63-level.residual) {
					t.Errorf("%v stage %d: residual %d", l, i, level.residual)
				}
			}
			from := stageLaw(s, false)
			for k, m := range from.p {
				if m.Cmp(s.mass(k)) != 0 {
					t.Errorf("%v stage %d: mass of %d", l, i, k)
				}
			}
		}
	}
}

// TestWideTables: the tables that are too wide to convolve keep the stated
// distance per stage; that their composition is right is shown by narrower ones.
func TestWideTables(t *testing.T) {
	r := big.NewRat
	var laws []Law
	for k := range 41 {
		x := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(k)))
		l, err := DiscreteLaplace(x)
		laws = append(laws, must(t, l, err))
		l, err = DiscreteGaussian(x.Mul(x, x))
		laws = append(laws, must(t, l, err))
	}
	l, err := Skellam(r(1000000, 1))
	laws = append(laws, must(t, l, err))
	l, err = PolyaDifference(r(1, 100), r(707, 1))
	laws = append(laws, must(t, l, err))
	for _, l := range laws {
		tb, err := NewTable(l)
		if err != nil {
			t.Errorf("%v: %v", l, err)
			continue
		}
		if tb.Distance() > math.Ldexp(1, -100) || tb.Distance() <= 0 {
			t.Errorf("%v: distance %g", l, tb.Distance())
		}
		if l.family != FamilyDiscreteGaussian {
			continue
		}
		// The variances of the pieces add up to σ² exactly, and each step has
		// σ₃² ≥ 3.76.
		p := tb.cascade
		want := new(big.Rat).Set(l.scale)
		for i := range p.stages[:len(p.stages)-1] {
			k := p.weights[i+1] / p.weights[i]
			gotK, s1 := splitGaussian(want)
			next := new(big.Rat).Sub(want, s1)
			s3 := new(big.Rat).Mul(s1, new(big.Rat).Quo(next, r(k*k, 1)))
			if gotK != k || next.Sign() <= 0 || s3.Quo(s3, want).Cmp(minSigma3Squared) < 0 {
				t.Errorf("%v: step %d breaks the smoothing condition", l, i)
			}
			want = next.Quo(next, r(k*k, 1))
		}
	}
	// The constant behind it: ε/(1−ε) ≤ 2^-106 with ε = 2·Σ exp(−2π²·3.76·j²).
	eps := 2 * math.Exp(-2*math.Pi*math.Pi*3.76)
	if eps*(1+1e-9) > math.Ldexp(1, -convolutionBits) {
		t.Errorf("ε = %g exceeds 2^-%d", eps, convolutionBits)
	}
}
