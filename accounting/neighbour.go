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
// differ, nor than hold the whole L1 norm, of which fewer coordinates spend more, nor than an
// encoder keeps apart (docs/privacy-proofs.md, P6).
func (s Sensitivity) widest() int {
	l1, square := math.Floor(s.L1), floorSquare(s.L2)
	if l1 < 1 || square < 1 {
		return 0
	}
	n := math.Min(math.Min(l1, square), math.Ceil(l1*l1/square))
	return int(math.Min(math.Min(n, float64(s.Dimension)), 1<<24))
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
// not known exactly, its logarithm is off by at most slack in all steps together; and δ of the
// neighbour may be below that of the steps by lost.
type witness struct {
	steps       []Step
	slack, lost float64
	name        string
}

// read is the lower bound for every law of the noise within the slack: if all probabilities are
// within e^{±a} of those at hand, δ(ε) is at least e^{−a} times that at ε + 2a.
func (w witness) read(of epsilonOf) epsilonOf {
	if w.slack == 0 && w.lost == 0 {
		return of
	}
	return func(delta float64) (Bound, error) {
		grown := (delta*math.Exp(math.Min(w.slack, 1)) + w.lost) * (1 + 4*unit)
		if !(w.slack < 1e-3 && grown < 1) {
			return Bound{Upper: math.Inf(1), Reason: reasonOverflow}, nil
		}
		b, err := of(grown)
		b.Lower = math.Max(0, b.Lower-2*w.slack)
		return b, err
	}
}

// noiseOf returns the noise of the smallest sum in one coordinate, and by how much the logarithm of
// its law may be off; it returns nil if no law is known.
func (r Round) noiseOf(l Lane) (noise func(by int) Mechanism, off float64) {
	shares := r.Honest
	switch r.Family {
	case FamilyDiscreteLaplace:
		if shares == r.Shares {
			return func(by int) Mechanism { return DiscreteLaplace{l.SumScale, by} }, 0
		}
	case FamilySkellam:
		variance := float64(shares) * l.ShareVariance
		return func(by int) Mechanism { return Skellam{variance, by} }, 0
	default:
		if v, tau, ok := r.together(l); ok {
			sigma := math.Sqrt(v)
			return func(by int) Mechanism { return DiscreteGaussian{sigma, by} }, tau
		}
		if theta, ok := shareTheta(shares, l.ShareSigma*l.ShareSigma); ok && r.Own == 0 {
			return func(by int) Mechanism { return shareSum{theta, by} }, 0
		}
	}
	return nil, 0
}

// together returns the parameter of a discrete Gaussian that the shares of the smallest sum make
// together with Round.Own, and by how much the logarithm of their law is off; ok = false if that
// is more than nothing. The mass of k is e^{−k²/2(a+b)} times a sum of e^{−n²/2w²} over shifted
// integers n, w² = ab/(a+b), which by the Poisson summation formula is off by 2.1·e^{−2π²w²}.
func (r Round) together(l Lane) (v, off float64, ok bool) {
	const up = 1 + 0x1p-48 // the noise may have been rounded down
	variance, shares := l.ShareSigma*l.ShareSigma, r.Honest
	off, err := SumTau(shares, variance)
	if err != nil {
		return 0, 0, false
	}
	v = float64(shares) * variance * up
	if r.Own > 0 {
		off += 5 * math.Exp(-2*math.Pi*math.Pi*v*r.Own/(v+r.Own))
		v += r.Own * up
	}
	return v, off, off < 1e-12
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
// the longest. A round of which exactly Honest shares are is the one that spends most; if
// their noise is of no law that is known, nothing is shown. Lanes are sampled together, and
// vectors whole: then all but one coordinate of one lane may be zeros.
func (r Round) attained(v View, n int) witness {
	q := r.rate(v)
	lanes := r.lanes()
	longest, single := make([]neighbour, len(lanes)), make([]neighbour, len(lanes))
	for i, l := range lanes {
		s, err := l.inputs()
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
	if r.Messages > 1 {
		return r.smoothedBand()
	}
	if w, ok := r.smoothed(longest, single, q); ok {
		return w
	}
	if q < 1 {
		longest = single
	}
	out := witness{name: nameOf(longest)}
	for i, l := range lanes {
		noise, off := r.noiseOf(l)
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
func (r Round) smoothed(longest, single []neighbour, q float64) (w witness, ok bool) {
	if r.Family != FamilyDiscreteGaussian {
		return witness{}, false
	}
	all, one, large := 0.0, 0.0, false
	for i, l := range r.lanes() {
		v, tau, ok := r.together(l)
		if !ok || v < 16 {
			return witness{}, false
		}
		all += longest[i].square() / (v + smoothing)
		one += single[i].square() / v
		large = large || v > 1<<16
		for _, e := range longest[i] {
			w.slack += (tau + smooth(v)) * float64(e.coordinates)
		}
	}
	if all == 0 || !large && (q == 1 || all < one) {
		return witness{}, false
	}
	z := (1 + 8*unit) / math.Sqrt(all)
	return witness{
		steps: []Step{{Sampled{Gaussian{z}, q}, 1}}, slack: w.slack, name: nameOf(longest),
	}, true
}

// Rounding a coordinate of a vector moves it by a variance of at most ¼. On a condition that holds
// with a probability of at least 1 − e^{−1/2} that is at most roundedSquare, along any direction,
// and the mean moves by at most roundedMean, its root.
const (
	roundedSquare = 0.25 / (1 - 0.6065306597126334)
	roundedMean   = 0.7972
)

// smoothedBand returns what every vector that is as long as the clip spends in a band, however it
// is rounded. Along the vector, in all sums together, the sum of all noise is a Gaussian, but for
// the slack, and rounding adds something of small variance: the test by a threshold, whose power
// is Φ of what it is moved by, loses no more than half of sup|Φ″| times that variance.
func (r Round) smoothedBand() witness {
	v, tau, ok := r.together(r.Update)
	s, err := r.Update.inputs()
	sums := float64(r.Messages)
	norm := s.L2 - roundedMean*math.Sqrt(sums)
	if r.Family != FamilyDiscreteGaussian || !ok || err != nil || v < 16 || !(norm > 0) {
		return witness{}
	}
	v += smoothing
	return witness{
		steps: []Step{{Gaussian{(1 + 8*unit) * math.Sqrt(v) / norm}, 1}},
		slack: float64(s.Dimension) * (tau + smooth(v-smoothing)),
		lost:  0.122 * roundedSquare / v,
		name: fmt.Sprintf("vectors in the %d sums of a band, of a squared norm of %.0f together",
			r.Messages, math.Floor(s.L2*s.L2)),
	}
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
		out.lost += one.lost // of all rounds of the charge together
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
		if s, err := c.Round.Update.inputs(); err == nil {
			n = max(n, s.widest())
		}
	}
	return n
}
