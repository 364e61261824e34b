package accounting

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A neighbour is an integer vector that one client may add to a sum. Its spending is a lower
// bound of what the release spends.
type neighbour []entries

// entries are a number of coordinates that all differ by the same amount, which is not 0.
type entries struct{ coordinates, by int }

// spread returns the vector of equal whole entries in at most n coordinates that is the
// largest within both norms, with as many entries enlarged by one as there is room for.
// Unlike an upper bound it takes no norm for larger than it is.
func (s Sensitivity) spread(n int) neighbour {
	l1, square := math.Floor(s.L1), floorSquare(s.L2)
	if square >= 1<<53 { // sums below are rounded from here on
		l1, square = math.Floor(l1*(1-8*unit)), square*(1-8*unit)
	}
	n = int(math.Min(float64(n), math.Min(math.Min(l1, square), float64(s.Dimension))))
	if n < 1 {
		return nil
	}
	k := float64(n)
	x := math.Floor(math.Min(math.Sqrt(square/k), l1/k))
	if x < 1 || x > 1<<20 {
		return nil
	}
	for k*x*x > square || k*x > l1 {
		x--
	}
	more := math.Floor(math.Min((square-k*x*x)/(2*x+1), l1-k*x))
	more = math.Min(more, k)
	for more > 0 && k*x*x+more*(2*x+1) > square {
		more--
	}
	if x < 1 {
		return nil
	}
	var out neighbour
	out = out.with(int(more), int(x)+1)
	return out.with(n-int(more), int(x))
}

// with returns the vector with more coordinates, each of which differs by the given amount.
func (n neighbour) with(coordinates, by int) neighbour {
	last := len(n) - 1
	switch {
	case coordinates < 1 || by == 0:
		return n
	case last >= 0 && n[last].by == by:
		return append(n[:last:last], entries{n[last].coordinates + coordinates, by})
	}
	return append(n, entries{coordinates, by})
}

// square is the square of the vector's L2 norm.
func (n neighbour) square() float64 {
	out := 0.0
	for _, e := range n {
		out += float64(e.coordinates) * float64(e.by) * float64(e.by)
	}
	return out
}

// longest returns a vector within both norms whose L2 norm is the largest that up to four
// coordinates find: of four, every whole square of the L2 norm is the sum of their squares
// (Lagrange), unless the L1 norm is in the way.
func (s Sensitivity) longest() neighbour {
	l1, square := math.Floor(s.L1), floorSquare(s.L2)
	var best neighbour
	if square >= 1 && square < 1<<53 {
		sum := 0.0
		for _, x := range squares(int(square), min(s.Dimension, 4)) {
			sum += float64(x)
			best = best.with(1, x)
		}
		if sum > l1 {
			best = nil
		}
	}
	for n := range 4 {
		if v := s.spread(n + 1); v.square() > best.square() {
			best = v
		}
	}
	return best
}

// squares returns at most the given number of positive integers, in descending order, whose
// squares add up to total, or else to the largest sum below it that a search near its root finds.
func squares(total, most int) (out []int) {
	best := -1
	x := int(math.Sqrt(float64(total)))
	for x*x > total {
		x--
	}
	for tries := 0; tries < 100 && x*x*most >= total && x > 0; tries++ {
		rest, sum := []int(nil), x*x
		if most > 1 && sum < total {
			rest = squares(total-sum, most-1)
			for _, y := range rest {
				sum += y * y
			}
		}
		if sum > best && (len(rest) == 0 || rest[0] <= x) {
			best, out = sum, append([]int{x}, rest...)
		}
		if best == total {
			break
		}
		x--
	}
	return out
}

// widest is over how many coordinates to spread a vector at most: no more than can
// differ, nor than hold the whole L1 norm, of which fewer coordinates spend more.
func (s Sensitivity) widest() int {
	l1, square := math.Floor(s.L1), floorSquare(s.L2)
	if l1 < 1 || square < 1 {
		return 0
	}
	n := math.Min(math.Min(l1, square), math.Ceil(l1*l1/square))
	return int(math.Min(math.Min(n, float64(s.Dimension)), maxCount))
}

// floorSquare is ⌊x²⌋, of the exact square.
func floorSquare(x float64) float64 {
	p := x * x
	f := math.Floor(p)
	if f == p && math.FMA(x, x, -p) < 0 {
		f--
	}
	return f
}

func (n neighbour) String() string {
	if len(n) == 0 {
		return "none"
	}
	out := fmt.Sprintf("%s by %d", coordinates(n[0].coordinates), n[0].by)
	for i, e := range n[1:] {
		word := ", "
		if i == len(n)-2 {
			word = " and "
		}
		out += fmt.Sprintf("%s%d by %d", word, e.coordinates, e.by)
	}
	return out
}

func coordinates(n int) string {
	if n == 1 {
		return "1 coordinate"
	}
	return fmt.Sprintf("%d coordinates", n)
}

// A witness has the steps that a neighbour spends, and their name. Where the law of the noise is
// not known exactly, its logarithm is off by at most slack in all steps together.
type witness struct {
	steps []Step
	slack float64
	name  string
}

// read is the lower bound for every law of the noise within the slack: if all probabilities are
// within e^{±a} of those at hand, δ(ε) is at least e^{−a} times that at ε + 2a.
func (w witness) read(of epsilonOf) epsilonOf {
	if w.slack == 0 {
		return of
	}
	return func(delta float64) (Bound, error) {
		grown := delta * math.Exp(math.Min(w.slack, 1)) * (1 + 4*unit)
		if !(w.slack < 1e-3 && grown < 1) {
			return Bound{Upper: math.Inf(1), Reason: reasonOverflow}, nil
		}
		b, err := of(grown)
		b.Lower = math.Max(0, b.Lower-2*w.slack)
		return b, err
	}
}

// noiseOf returns the noise of the given number of shares in one coordinate, and by how much the
// logarithm of its law may be off; it returns nil if no law is known.
func (l Lane) noiseOf(f Family, shares, calibrated int) (
	noise func(by int) Mechanism, off float64,
) {
	switch f {
	case FamilyDiscreteLaplace:
		if shares == calibrated {
			return func(by int) Mechanism { return DiscreteLaplace{l.SumScale, by} }, 0
		}
	case FamilySkellam:
		variance := float64(shares) * l.ShareVariance
		return func(by int) Mechanism { return Skellam{variance, by} }, 0
	default:
		variance := l.ShareSigma * l.ShareSigma
		tau, err := SumTau(shares, variance)
		if err == nil && tau < 1e-12 {
			sigma := math.Sqrt(float64(shares)) * l.ShareSigma
			return func(by int) Mechanism { return DiscreteGaussian{sigma, by} }, tau
		}
		if theta, ok := shareTheta(shares, variance); ok {
			return func(by int) Mechanism { return shareSum{theta, by} }, 0
		}
	}
	return nil, 0
}

// smoothing is the variance of the continuous Gaussian that turns a discrete one of variance V,
// parameter V ≥ 16, into one of V + smoothing, but for a factor of e^{±smooth(V)}: by the Poisson
// summation formula the law is off by 1 ± 2.1·e^{−2π²w²}, w² = smoothing·V/(V+smoothing).
const smoothing = 2

func smooth(v float64) float64 {
	return 5 * math.Exp(-2*math.Pi*math.Pi*smoothing*v/(v+smoothing))
}

// attained returns what a vector spends in one round, which nothing that holds for all vectors
// is below: of discrete Laplace noise one that is spread over at most n coordinates, of others
// the longest. A round of which exactly MinSurvivors take part is the one that spends most; if
// their noise is of no law that is known, nothing is shown. Lanes are sampled together, and
// vectors whole: then all but one coordinate of one lane may be zeros.
func (r Round) attained(v View, n int) witness {
	q, shares := r.rate(v), r.MinSurvivors-r.Colluders
	lanes := r.lanes()
	longest, single := make([]neighbour, len(lanes)), make([]neighbour, len(lanes))
	for i, l := range lanes {
		s, err := l.Sensitivity.check()
		switch {
		case err != nil:
			return witness{}
		case i > 0: // a vector of signs differs by 1
			longest[i] = s.spread(s.widest())
		case r.Family == FamilyDiscreteLaplace:
			longest[i], single[i] = s.spread(n), s.spread(1)
		default:
			longest[i], single[i] = s.longest(), s.spread(1)
			if r.Family == FamilySkellam && single[i].square() > 0.999*longest[i].square() {
				longest[i] = single[i] // of whose noise one table is enough
			}
		}
	}
	if w, ok := r.smoothed(longest, single, q, shares); ok || r.Messages > 1 {
		return w
	}
	if q < 1 {
		longest = single
	}
	out := witness{name: nameOf(longest)}
	for i, l := range lanes {
		noise, off := l.noiseOf(r.Family, shares, r.Shares)
		if noise == nil {
			return witness{}
		}
		for _, e := range longest[i] {
			out.steps = append(out.steps, Step{Sampled{noise(e.by), q}, e.coordinates})
			out.slack += off * float64(e.coordinates)
		}
	}
	return out
}

// smoothed returns what vectors spend if continuous noise is added to each release, which makes
// all of it one Gaussian: ok where tables would be large, or where sampling leaves these one
// coordinate and that shows less.
func (r Round) smoothed(longest, single []neighbour, q float64, shares int) (w witness, ok bool) {
	if r.Family != FamilyDiscreteGaussian {
		return witness{}, false
	}
	all, one, large := 0.0, 0.0, false
	for i, l := range r.lanes() {
		variance := l.ShareSigma * l.ShareSigma
		tau, err := SumTau(shares, variance)
		v := float64(shares) * variance * (1 + 4*unit)
		if err != nil || v < 16 || tau > 1e-12 {
			return witness{}, false
		}
		all += longest[i].square() / (v + smoothing)
		one += single[i].square() / v
		large = large || v > 1<<16
		for _, e := range longest[i] {
			w.slack += (tau + smooth(v)) * float64(e.coordinates)
		}
		if r.Messages > 1 {
			return r.smoothedBand(longest[i].square(), v, tau)
		}
	}
	if all == 0 || !large && (q == 1 || all < one) {
		return witness{}, false
	}
	z := (1 + 8*unit) / math.Sqrt(all)
	return witness{[]Step{{Sampled{Gaussian{z}, q}, 1}}, w.slack, nameOf(longest)}, true
}

// smoothedBand is smoothed for a band. Each of its sums has a vector whose square is a whole number
// of its own, in four coordinates (Lagrange), and all together have the square of the longest.
func (r Round) smoothedBand(square, v, tau float64) (w witness, ok bool) {
	if r.Update.Sensitivity.Dimension < 4*r.Messages || square == 0 {
		return witness{}, false
	}
	z := (1 + 8*unit) * math.Sqrt((v+smoothing)/square)
	name := fmt.Sprintf("vectors in the %d sums of a band, of a squared norm of %.0f together",
		r.Messages, square)
	return witness{[]Step{{Gaussian{z}, 1}}, 4 * float64(r.Messages) * (tau + smooth(v)), name}, true
}

func nameOf(lanes []neighbour) string {
	var names []string
	for i, vector := range lanes {
		switch {
		case len(vector) == 0:
		case i == 0:
			names = append(names, vector.String())
		default:
			names = append(names, "of the signs "+vector.String())
		}
	}
	return strings.Join(names, ", ")
}

// attainedBy returns what the charges spend if each round has the vector of [Round.attained], or
// nothing if a charge has none to show.
func attainedBy(charges []charge, v View, n int) (out witness) {
	var names []string
	for _, c := range charges {
		if c.Count == 0 {
			continue
		}
		if c.Step != nil {
			k, err := c.steps()
			if err != nil {
				return witness{}
			}
			out.steps = append(out.steps, Step{c.seen(v), k})
			continue
		}
		one := c.Round.attained(v, n)
		if one.steps == nil {
			return witness{}
		}
		out.slack += one.slack * float64(c.Count)
		for _, s := range one.steps {
			if added, ok := addedUp(s, c.Count); ok {
				out.steps = append(out.steps, added)
				continue
			}
			if s.Count > maxCount/c.Count {
				return witness{}
			}
			out.steps = append(out.steps, Step{s.Mechanism, s.Count * c.Count})
		}
		if !slices.Contains(names, one.name) {
			names = append(names, one.name)
		}
	}
	if out.name = strings.Join(names, ", or "); len(names) > 1 {
		out.name += ", by the kind of round"
	}
	return out
}

// addedUp returns the one step that rounds of wide Skellam noise make if all are added up. That
// loses next to nothing, since losses are nearly linear, and saves their composition.
func addedUp(s Step, rounds int) (Step, bool) {
	m, ok := unsampled(s.Mechanism).(Skellam)
	variance := m.Variance * float64(rounds)
	if !ok || rateOf(s.Mechanism) < 1 || m.Variance < 1<<12 || variance > 1e9 {
		return Step{}, false
	}
	return Step{Skellam{variance, m.Sensitivity * rounds}, s.Count}, true
}

// widest is over how many coordinates it may take to spread a vector of a charge.
func widest(charges []charge) int {
	n := 1
	for _, c := range charges {
		if c.Round == nil || c.Round.Family != FamilyDiscreteLaplace {
			continue
		}
		if s, err := c.Round.Update.Sensitivity.check(); err == nil {
			n = max(n, s.widest())
		}
	}
	return n
}
