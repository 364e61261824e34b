package accounting

import (
	"fmt"
	"math"
	"strings"
)

// A neighbour is an integer vector that one client may add to a sum: so many coordinates
// by a number, so many others by the next smaller one. What it spends is a lower bound
// of what the release spends.
type neighbour struct {
	by          int // 0: none
	coordinates int // that differ by so much
	others      int // that differ by one less
}

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
		return neighbour{}
	}
	k := float64(n)
	x := math.Floor(math.Min(math.Sqrt(square/k), l1/k))
	if x < 1 || x > 1<<20 {
		return neighbour{}
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
		return neighbour{}
	}
	if more < 1 {
		return neighbour{by: int(x), coordinates: n}
	}
	return neighbour{by: int(x) + 1, coordinates: int(more), others: n - int(more)}
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
	switch {
	case n.by == 0:
		return "none"
	case n.others == 0:
		return fmt.Sprintf("%s by %d", coordinates(n.coordinates), n.by)
	}
	return fmt.Sprintf("%s by %d and %d by %d", coordinates(n.coordinates), n.by, n.others, n.by-1)
}

func coordinates(n int) string {
	if n == 1 {
		return "1 coordinate"
	}
	return fmt.Sprintf("%d coordinates", n)
}

// steps are what the vector spends under noise of one coordinate.
func (n neighbour) steps(noise func(by int) Mechanism) []Step {
	var out []Step
	if n.by > 0 {
		out = append(out, Step{noise(n.by), n.coordinates})
	}
	if n.others > 0 && n.by > 1 {
		out = append(out, Step{noise(n.by - 1), n.others})
	}
	return out
}

// attained returns what a vector spread over at most n coordinates spends in one round,
// which nothing that holds for all vectors is below, and its name. A round of which
// exactly MinSurvivors take part is the one that spends most; if their noise is of no
// law that is known, or vectors are sampled whole, less or nothing is shown.
func (r Round) attained(v View, n int) (steps []Step, name string) {
	shares := r.MinSurvivors - r.Colluders
	var names []string
	for i, l := range r.lanes() {
		s, err := l.Sensitivity.check()
		if err != nil {
			return nil, ""
		}
		var noise func(by int) Mechanism
		switch {
		case r.Family == FamilyDiscreteLaplace && shares == r.Shares:
			noise = func(by int) Mechanism { return DiscreteLaplace{l.SumScale, by} }
		case r.Family == FamilySkellam && s.Dimension == 1:
			noise = func(by int) Mechanism { return Skellam{float64(shares) * l.ShareVariance, by} }
		default:
			return nil, ""
		}
		q, wide := r.rate(v), n
		if q < 1 {
			if i > 0 {
				break // lanes are sampled together: this one may be all zeros
			}
			wide = 1
		} else if i > 0 {
			wide = s.widest() // a vector of signs differs by 1
		}
		vector := s.spread(wide)
		if vector.by == 0 {
			continue
		}
		for _, step := range vector.steps(noise) {
			steps = append(steps, Step{Sampled{step.Mechanism, q}, step.Count})
		}
		if i == 0 {
			names = append(names, vector.String())
		} else {
			names = append(names, "of the signs "+vector.String())
		}
	}
	return steps, strings.Join(names, ", ")
}

// attainedBy returns what the charges spend if each round's vector is spread over at most
// n coordinates, or nil if a charge has no vector to show.
func attainedBy(charges []charge, v View, n int) (steps []Step, name string) {
	rounds := 0
	for _, c := range charges {
		if c.Count == 0 {
			continue
		}
		if c.Step != nil {
			k, err := c.steps()
			if err != nil {
				return nil, ""
			}
			steps = append(steps, Step{c.seen(v), k})
			continue
		}
		one, who := c.Round.attained(v, n)
		if one == nil {
			return nil, ""
		}
		for _, s := range one {
			if s.Count > maxCount/c.Count {
				return nil, ""
			}
			steps = append(steps, Step{s.Mechanism, s.Count * c.Count})
		}
		switch rounds++; {
		case rounds == 1:
			name = who
		case name != who:
			name = fmt.Sprintf("at most %s, in each of several kinds of rounds", coordinates(n))
		}
	}
	return steps, name
}

// widest is in how many coordinates a vector of a charge can differ, at most.
func widest(charges []charge) int {
	n := 1
	for _, c := range charges {
		if c.Round == nil {
			continue
		}
		if s, err := c.Round.Update.Sensitivity.check(); err == nil {
			n = max(n, s.widest())
		}
	}
	return n
}
