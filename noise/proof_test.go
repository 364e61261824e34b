package noise

import (
	"fmt"
	"math"
	"math/big"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/noise/internal/fixed"
)

// exactLaw is a law with integer numerators: P(lo+i) = p[i]/2^bits.
type exactLaw struct {
	lo   int64
	p    []*big.Int
	bits uint
}

// stageLaw sums the law of one stage from the thresholds that the sampler
// scans, and from nothing else.
func stageLaw(s *stage) exactLaw {
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
		prev := uint32(0)
		sums := l.sums
		if i == len(s.levels)-1 {
			sums = append(append([]uint32(nil), sums...), 1<<wordBits)
		}
		for k := range m {
			m[k].Lsh(m[k], wordBits)
			if k < len(sums) {
				m[k].Add(m[k], new(big.Int).Mul(weight, new(big.Int).SetUint64(uint64(sums[k]-prev))))
				prev = sums[k]
			}
		}
		weight.Mul(weight, new(big.Int).SetUint64(uint64(1<<wordBits-prev)))
	}
	return exactLaw{0, m, uint(wordBits * len(s.levels))}
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
	sum := exactLaw{0, []*big.Int{big.NewInt(1)}, 0}
	switch p.how {
	case smoothed:
		return smoothedLaw(p)
	case signedDigits:
		for i := len(p.stages) - 1; i > 0; i-- {
			sum = sum.plus(stageLaw(p.stages[i]).scaled(p.weights[i]))
		}
		low := stageLaw(p.stages[0])
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
		sum = sum.plus(stageLaw(s).scaled(p.weights[i]))
	}
	sum.lo += p.offset
	return sum
}

// smoothedLaw adds up, over the grids, the table's part on each and the coins below it.
func smoothedLaw(p *cascade) exactLaw {
	table := stageLaw(p.stages[0])
	heads := exactLaw{-coins / 2, nil, coins}
	for k := range int64(coins + 1) {
		heads.p = append(heads.p, new(big.Int).Binomial(coins, k))
	}
	below := exactLaw{0, []*big.Int{big.NewInt(1)}, 0}
	var total exactLaw
	shift, finished := 0, uint32(0)
	for i := range len(p.grids) + 1 {
		to := finished + p.finest
		if i > 0 {
			to = finished + p.grids[i-1].step
		}
		for ; finished < to; finished++ {
			below = below.plus(heads.scaled(1 << finished))
		}
		part := table.p[shift:]
		if i < len(p.grids) {
			part = part[:p.grids[i].outcomes]
			shift += len(part)
		}
		n := len(part)
		e := exactLaw{int64(1 - n), make([]*big.Int, 2*n-1), table.bits + 1}
		for k := range part {
			e.p[n-1+k], e.p[n-1-k] = part[k], part[k]
		}
		e.p[n-1] = new(big.Int).Lsh(part[0], 1)
		total = total.mixed(e.scaled(1 << finished).plus(below))
	}
	return total
}

// mixed is the sum of two parts of a law.
func (e exactLaw) mixed(f exactLaw) exactLaw {
	if e.p == nil {
		return f
	}
	lo, hi := min(e.lo, f.lo), max(e.lo+int64(len(e.p)), f.lo+int64(len(f.p)))
	s := exactLaw{lo, make([]*big.Int, hi-lo), max(e.bits, f.bits)}
	for i := range s.p {
		s.p[i] = new(big.Int)
	}
	for _, part := range []exactLaw{e, f} {
		for i, x := range part.p {
			at := s.p[part.lo+int64(i)-lo]
			at.Add(at, new(big.Int).Lsh(x, s.bits-part.bits))
		}
	}
	return s
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
	add(DiscreteGaussian(r(1600, 1)))
	add(DiscreteGaussian(r(64*64+1, 1)))
	add(DiscreteGaussian(r(128*128-1, 1)))
	add(DiscreteGaussian(r(400001, 7)))
	add(Skellam(r(100, 1)))
	add(Skellam(r(64*64+1, 1)))
	add(Skellam(r(128*128-1, 1)))
	add(Skellam(r(400001, 7)))
	add(Poisson(r(3000, 1)))
	add(PolyaDifference(r(1, 10), r(31, 1)))
	add(PolyaDifference(r(1, 2), r(32, 1)))
	add(PolyaDifference(r(1, 100), r(60, 1)))
	add(PolyaDifference(r(3, 4), r(130, 1)))
	add(PolyaDifference(r(1, 3), r(257, 1))) // three grids
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
		for _, kind := range kindsOf(tb.cascade) {
			kinds[kind] = true
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
		"one stage, smoothed over 0 planes and 1 grids", "one stage, smoothed over 2 planes and 1 grids",
		"one stage, smoothed over 3 planes and 2 grids", "one stage, smoothed over 6 planes and 3 grids",
		"one stage, a sum", "stages, a sum", "one stage, digits", "stages, digits",
		"4 levels", "5 levels", "3 slots", "5 slots", "64 rows",
	} {
		if !kinds[kind] {
			t.Errorf("no table with %s among the proofs: %v", kind, kinds)
		}
	}
	t.Logf("%d tables, largest distance 2^%.2f (%s)", len(proofTables(t)), worst, widest)
}

// kindsOf says what a proof of the cascade covers.
func kindsOf(p *cascade) []string {
	number := "one stage"
	if len(p.stages) > 1 {
		number = "stages"
	}
	kinds := []string{number + ", " + map[combination]string{
		smoothed:     fmt.Sprintf("smoothed over %d planes and %d grids", p.planes, len(p.grids)+1),
		plainSum:     "a sum",
		signedDigits: "digits",
	}[p.how]}
	for _, s := range p.stages {
		kinds = append(kinds, fmt.Sprintf("%d levels", len(s.levels)), fmt.Sprintf("%d slots", s.slots),
			fmt.Sprintf("%d rows", s.share))
	}
	return kinds
}

// TestStageProbabilities: thresholds are ascending, below 2^31, and the stored
// probabilities are their differences.
func TestStageProbabilities(t *testing.T) {
	for _, tb := range proofTables(t) {
		l := tb.law
		for i, s := range tb.cascade.stages {
			for d, level := range s.levels {
				prev := uint64(0)
				for _, sum := range level.sums {
					x := uint64(sum)
					if x < prev || x >= 1<<wordBits {
						t.Fatalf("%v stage %d: thresholds out of order", l, i)
					}
					prev = x
				}
				if d < len(s.levels)-1 && (level.residual == 0 || prev != 1<<wordBits-level.residual) {
					t.Errorf("%v stage %d: residual %d", l, i, level.residual)
				}
			}
			from := stageLaw(s)
			for k, m := range from.p {
				if m.Cmp(s.mass(k)) != 0 {
					t.Errorf("%v stage %d: mass of %d", l, i, k)
				}
			}
		}
	}
}

// TestWideTables: the tables that are too wide to convolve state a distance within
// 2^-100 at all scales, by default at every third; that their composition is right is
// shown by narrower ones.
func TestWideTables(t *testing.T) {
	r := big.NewRat
	var laws []Law
	add := func(l Law, err error) { laws = append(laws, must(t, l, err)) }
	for k := 0; k < 41; k += suite.Size(3, 3, 1, 1) {
		x := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(k)))
		square := new(big.Rat).Mul(x, x)
		add(DiscreteLaplace(x))
		add(DiscreteGaussian(square))
		add(Skellam(square))
		if !testing.Short() && k%4 == 0 {
			add(PolyaDifference(r(1, 100), x))
		}
	}
	add(PolyaDifference(r(1, 2), r(1<<40, 1)))
	add(PolyaDifference(r(1, 1<<20), r(1<<40, 1)))
	add(DiscreteGaussian(r(1<<62+1, 3)))
	add(Skellam(r(1<<62+1, 3)))
	for _, l := range laws {
		tb, err := NewTable(l)
		if err != nil {
			t.Errorf("%v: %v", l, err)
			continue
		}
		if tb.Distance() > math.Ldexp(1, -100) || tb.Distance() <= 0 {
			t.Errorf("%v: distance %g", l, tb.Distance())
		}
		if sd := math.Sqrt(l.Variance()); float64(tb.Bound()) < 12*sd || tb.Bound() > 1<<50 {
			t.Errorf("%v: a bound of %d at a standard deviation of %g", l, tb.Bound(), sd)
		}
	}
}

// TestSmoothBound: the polynomials agree with the definition, by known
// coefficients, and a bound falls with the order until the aliases are all that is left.
func TestSmoothBound(t *testing.T) {
	r := big.NewRat
	for i, want := range []*big.Rat{r(1, 1), r(-1, 2), r(1, 6), r(0, 1), r(-1, 30), r(0, 1), r(1, 42),
		r(0, 1), r(-1, 30),
		r(0, 1), r(5, 66), r(0, 1), r(-691, 2730)} {
		if got := bernoulliNumbers(12)[i]; got.Cmp(want) != 0 {
			t.Errorf("B_%d = %v, want %v", i, got, want)
		}
	}
	for _, family := range []Family{FamilyDiscreteGaussian, FamilySkellam} {
		y := newEdgeworth(Law{family: family, scale: r(100*100, 1)}, 2)
		// ρ by its definition: the logarithm of the law's transform over that of the spline.
		rho := func(x float64) float64 {
			spline := math.Log(math.Sin(x/2) / (4 * math.Sin(x/8)))
			law := -625 * x * x / 2
			if family == FamilySkellam {
				law = -10000 * (1 - math.Cos(x/4))
			}
			s, _ := y.s.Float64()
			return law - coins*spline + s*x*x/2
		}
		for _, x := range []float64{0.3, 0.7, 1} {
			sum := 0.0
			for i := maxOrder; i >= 0; i-- {
				c, _ := y.t[i].Float64()
				sum = sum*x*x + c
			}
			if want := math.Exp(rho(x)); math.Abs(sum/want-1) > 1e-9 {
				t.Errorf("%v: exp(ρ(%v)) = %v, the polynomial is %v", family, x, want, sum)
			}
		}
		last := 0.0
		for order := 2; order < 30; order++ {
			b := y.bound(order)
			if b > last && b > smoothGoal {
				t.Errorf("%v: 2^%.1f at order %d, 2^%.1f before", family, b, order, last)
			}
			last = b
		}
	}
}

// TestMixture: the sums in place of integrals are the probabilities of the law, which
// a recurrence gives too, and of each grid what is left once its finer one is seen to;
// splines are the laws that tossed coins add up to.
func TestMixture(t *testing.T) {
	l, err := PolyaDifference(big.NewRat(1, 7), big.NewRat(33, 1))
	l = must(t, l, err)
	c, err := mixtureValues(l, mixtureGrids(33))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := l.enclose(200, int64(len(c[0])))
	if err != nil {
		t.Fatal(err)
	}
	for y, got := range c[0][1:] {
		off := farthest(enc, int64(y+1), got, fixed.Bits)
		if off.BitLen() > fixed.Bits-mixtureBits {
			t.Fatalf("P(%d) is off by 2^%d", y+1, off.BitLen()-fixed.Bits)
		}
	}
	for _, step := range []uint{1, 3} {
		h := splineCounts(1 << step)
		heads := exactLaw{0, []*big.Int{big.NewInt(1)}, 0}
		for plane := range step {
			one := exactLaw{0, nil, coins}
			for k := range int64(coins + 1) {
				one.p = append(one.p, new(big.Int).Binomial(coins, k))
			}
			heads = heads.plus(one.scaled(1 << plane))
		}
		for i, x := range heads.p {
			if x.Cmp(h[i]) != 0 {
				t.Fatalf("%d ways to draw %d, want %v", h[i], i, x)
			}
		}
	}
	// ε(λ)·e^{−λR} on a finer grid than the bound has.
	for _, b := range []int{8, 16, 32} {
		most := 0.0
		for a := 1e-4; a < 0.4; a += 1e-4 {
			alias := 0.0
			for n := 1; n < b; n++ {
				s := math.Sin(math.Pi*float64(n)/float64(b)) / math.Sinh(a)
				alias += math.Pow(1+s*s, -coins/2)
			}
			most = max(most, alias*math.Exp(-float64(coins*(b-1))*a))
		}
		if got := splineError(b); got < most || got > 1.2*most || got > 0x1p-112 {
			t.Errorf("b = %d: at most %g, bounded by %g", b, most, got)
		}
	}
}
