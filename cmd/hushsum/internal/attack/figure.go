package attack

import (
	"image/color"
	"math"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/chart"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawAttack writes a figure of an attack.
func drawAttack(f attacks.Figure, path string) error {
	c := chart.New(f.Title, f.X, f.Y, len(f.Series))
	if f.LogX {
		chart.Logarithmic(&c.X)
	}
	if f.LogY {
		chart.Logarithmic(&c.Y)
	}
	spread := extent(f.Series)
	heights := highestDensity(f.Series, spread)
	var names []string
	for _, s := range f.Series {
		var err error
		switch s.Kind {
		case attacks.Line:
			err = addLine(c, s.Label, chart.FinitePairs(s.X, s.Y, f.LogX || f.LogY))
		case attacks.Points:
			err = addPoints(c, s.Label, chart.FinitePairs(s.X, s.Y, f.LogX || f.LogY))
		case attacks.Density:
			err = addLine(c, s.Label, densityOrMass(s.Y, spread, heights))
		case attacks.Violin:
			err = addViolin(c, float64(len(names)), s.Y, spread)
			names = append(names, s.Label)
		}
		if err != nil {
			return err
		}
	}
	if names != nil {
		c.NominalX(names...)
		c.X.Tick.Label.Rotation = math.Pi / 8
		c.X.Tick.Label.XAlign = draw.XRight
	}
	return c.Save(path)
}

func addLine(c *chart.Chart, label string, points plotter.XYs) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	_, line.LineStyle, _ = c.Style()
	c.Add(line)
	c.Key(label, line)
	return nil
}

func addPoints(c *chart.Chart, label string, points plotter.XYs) error {
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	_, _, dots.GlyphStyle = c.Style()
	c.Add(dots)
	c.Key(label, dots)
	return nil
}

// addViolin draws the density of a sample on both sides of a vertical line, with its median; a
// sample that is mostly in one place becomes a dot there, with a line over the rest.
func addViolin(c *chart.Chart, at float64, sample []float64, spread float64) error {
	shade, style, dots := c.Style()
	middle := median(sample)
	if isMass(sample, spread) {
		mass, err := plotter.NewScatter(plotter.XYs{{X: at, Y: middle}})
		if err != nil {
			return err
		}
		mass.GlyphStyle = dots
		mass.Shape, mass.Radius = draw.CircleGlyph{}, vg.Points(4)
		c.Add(mass)
		sorted := finiteSorted(sample)
		if len(sorted) == 0 {
			return nil
		}
		rest, err := plotter.NewLine(plotter.XYs{
			{X: at, Y: quantile(sorted, .001)},
			{X: at, Y: quantile(sorted, .999)},
		})
		if err != nil {
			return err
		}
		rest.Color, rest.Width = style.Color, vg.Points(1)
		c.Add(rest)
		return nil
	}
	curve := density(sample, .4)
	outline := make(plotter.XYs, 0, 2*len(curve))
	for _, v := range curve {
		outline = append(outline, plotter.XY{X: at + v.Y, Y: v.X})
	}
	for _, v := range slices.Backward(curve) {
		outline = append(outline, plotter.XY{X: at - v.Y, Y: v.X})
	}
	body, err := plotter.NewPolygon(outline)
	if err != nil {
		return err
	}
	body.Color, body.LineStyle.Color = color.NRGBA{shade.R, shade.G, shade.B, 96}, shade
	line, err := plotter.NewLine(plotter.XYs{{X: at - .1, Y: middle}, {X: at + .1, Y: middle}})
	if err != nil {
		return err
	}
	line.Width = vg.Points(1.5)
	c.Add(body, line)
	return nil
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
	return len(sorted) < 2 || quantile(sorted, .75)-quantile(sorted, .25) <= 1e-3*spread
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
func densityOrMass(sample []float64, spread, height float64) plotter.XYs {
	if isMass(sample, spread) {
		at := median(sample)
		return plotter.XYs{{X: at}, {X: at, Y: height}}
	}
	return density(sample, 0)
}

// density returns a Gaussian kernel estimate with the bandwidth of (Silverman 1986), over the
// middle 99.8 % of a sample that is not mostly in one place; top, if above 0, is the height to
// scale to.
func density(sample []float64, top float64) plotter.XYs {
	const steps = 200
	sorted := finiteSorted(sample)
	low, high := quantile(sorted, .001), quantile(sorted, .999)
	// No peak may be narrower than the steps can show.
	width := max(bandwidth(sorted), 2*(high-low)/steps)
	low, high = low-3*width, high+3*width
	out := make(plotter.XYs, steps)
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
		out[i] = plotter.XY{X: x, Y: sum / (width * math.Sqrt(2*math.Pi) * float64(len(sorted)))}
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
	if spread := (quantile(sorted, .75) - quantile(sorted, .25)) / 1.34; spread > 0 {
		width = min(width, spread)
	}
	return width * .9 * math.Pow(n, -.2)
}
