package attack

import (
	"math"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/chart"
)

// figureOf draws a figure of an attack.
func figureOf(f attacks.Figure) *chart.Figure {
	c := &chart.Figure{Title: f.Title, X: f.X, Y: f.Y, LogX: f.LogX, LogY: f.LogY}
	spread := extent(f.Series)
	heights := highestDensity(f.Series, spread)
	for _, s := range f.Series {
		drawn := chart.Series{Name: s.Label}
		switch s.Kind {
		case attacks.Line:
			drawn.Shapes = []chart.Shape{{Kind: chart.Line, Points: pairs(s.X, s.Y)}}
		case attacks.Points:
			drawn.Shapes = []chart.Shape{{Kind: chart.Dots, Points: pairs(s.X, s.Y)}}
		case attacks.Density:
			drawn.Shapes = []chart.Shape{{Kind: chart.Line, Points: densityOrMass(s.Y, spread, heights)}}
		case attacks.Violin:
			drawn.Name, drawn.Shapes = "", violin(float64(len(c.Names)), s.Y, spread)
			c.Names = append(c.Names, s.Label)
		}
		c.Series = append(c.Series, drawn)
	}
	return c
}

func pairs(x, y []float64) []chart.Point {
	points := make([]chart.Point, len(x))
	for i := range x {
		points[i] = chart.Point{X: x[i], Y: y[i]}
	}
	return points
}

// violin draws the density of a sample on both sides of a vertical line, with its median; a sample
// that is mostly in one place becomes a dot there, with a line over the rest.
func violin(at float64, sample []float64, spread float64) []chart.Shape {
	middle := median(sample)
	if isMass(sample, spread) {
		shapes := []chart.Shape{{Kind: chart.Spot, Points: []chart.Point{{X: at, Y: middle}}}}
		if sorted := finiteSorted(sample); len(sorted) > 0 {
			shapes = append(shapes, chart.Shape{Kind: chart.Thin, Points: []chart.Point{
				{X: at, Y: quantile(sorted, 0.001)}, {X: at, Y: quantile(sorted, 0.999)}}})
		}
		return shapes
	}
	curve := density(sample, 0.4)
	outline := make([]chart.Point, 0, 2*len(curve))
	for _, v := range curve {
		outline = append(outline, chart.Point{X: at + v.Y, Y: v.X})
	}
	for _, v := range slices.Backward(curve) {
		outline = append(outline, chart.Point{X: at - v.Y, Y: v.X})
	}
	return []chart.Shape{{Kind: chart.Area, Points: outline}, {Kind: chart.Middle,
		Points: []chart.Point{{X: at - 0.1, Y: middle}, {X: at + 0.1, Y: middle}}}}
}

// finiteSorted returns the finite values of a sample, in order.
func finiteSorted(sample []float64) []float64 {
	sorted := slices.Sorted(slices.Values(sample))
	return slices.DeleteFunc(sorted, func(x float64) bool {
		return math.IsNaN(x) || math.IsInf(x, 0)
	})
}

// median returns the median of a sample, 0 if it is empty.
func median(sample []float64) float64 {
	sorted := finiteSorted(sample)
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

// extent returns how far the samples of all densities and violins reach together.
func extent(series []attacks.Series) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		if s.Kind != attacks.Density && s.Kind != attacks.Violin {
			continue
		}
		if sorted := finiteSorted(s.Y); len(sorted) > 0 {
			low, high = min(low, sorted[0]), max(high, sorted[len(sorted)-1])
		}
	}
	return max(0, high-low)
}

// isMass reports whether the middle half of a sample is in one place, as far as a figure of the
// given extent can show.
func isMass(sample []float64, spread float64) bool {
	sorted := finiteSorted(sample)
	return len(sorted) < 2 || quantile(sorted, 0.75)-quantile(sorted, 0.25) <= 1e-3*spread
}

// highestDensity returns the greatest height of the densities, 1 if each is a point mass.
func highestDensity(series []attacks.Series, spread float64) float64 {
	highest := 0.0
	for _, s := range series {
		if s.Kind == attacks.Density && !isMass(s.Y, spread) {
			for _, v := range density(s.Y, 0) {
				highest = max(highest, v.Y)
			}
		}
	}
	if highest == 0 {
		return 1
	}
	return highest
}

// densityOrMass returns the density of a sample; if that is mostly in one place, a vertical line of
// the given height there.
func densityOrMass(sample []float64, spread, height float64) []chart.Point {
	if isMass(sample, spread) {
		at := median(sample)
		return []chart.Point{{X: at}, {X: at, Y: height}}
	}
	return density(sample, 0)
}

// density returns a Gaussian kernel estimate with the bandwidth of (Silverman 1986), over the
// middle 99.8 % of a sample that is not mostly in one place; top, if above 0, is the height to
// scale to.
func density(sample []float64, top float64) []chart.Point {
	const steps = 200
	sorted := finiteSorted(sample)
	low, high := quantile(sorted, 0.001), quantile(sorted, 0.999)
	// No peak may be narrower than the steps can show.
	width := max(bandwidth(sorted), 2*(high-low)/steps)
	low, high = low-3*width, high+3*width
	out := make([]chart.Point, steps)
	highest := 0.0
	for i := range out {
		x := low + (high-low)*float64(i)/(steps-1)
		first, _ := slices.BinarySearch(sorted, x-5*width)
		sum := 0.0
		for _, v := range sorted[first:] {
			z := (v - x) / width
			if z > 5 {
				break
			}
			sum += math.Exp(-z * z / 2)
		}
		out[i] = chart.Point{X: x, Y: sum / (width * math.Sqrt(2*math.Pi) * float64(len(sorted)))}
		highest = max(highest, out[i].Y)
	}
	if top > 0 {
		for i := range out {
			out[i].Y *= top / highest
		}
	}
	return out
}

func quantile(sorted []float64, p float64) float64 { return sorted[int(p*float64(len(sorted)-1))] }

// bandwidth returns 0.9·min(σ, IQR/1.34)·n^(−1/5).
func bandwidth(sorted []float64) float64 {
	n := float64(len(sorted))
	var mean, square float64
	for _, x := range sorted {
		mean += x / n
	}
	for _, x := range sorted {
		square += (x - mean) * (x - mean) / n
	}
	width := math.Sqrt(square)
	if spread := (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.34; spread > 0 {
		width = min(width, spread)
	}
	return width * 0.9 * math.Pow(n, -0.2)
}
