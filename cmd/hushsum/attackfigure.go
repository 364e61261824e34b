package main

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/hushsum/hushsum/attacks"
)

// drawAttack writes a figure as SVG.
func drawAttack(f attacks.Figure, path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Legend.Top = true
	var names []string
	for i, s := range f.Series {
		shade := palette[i%len(palette)]
		var err error
		switch s.Kind {
		case attacks.Line:
			err = addLine(p, s.Label, pairs(s.X, s.Y), shade)
		case attacks.Points:
			err = addPoints(p, s.Label, pairs(s.X, s.Y), shade)
		case attacks.Density:
			err = addLine(p, s.Label, density(s.Y, 0), shade)
		case attacks.Violin:
			err = addViolin(p, float64(len(names)), s.Y, shade)
			names = append(names, s.Label)
		}
		if err != nil {
			return err
		}
	}
	if names != nil {
		p.NominalX(names...)
		p.X.Tick.Label.Rotation = math.Pi / 8
		p.X.Tick.Label.XAlign = draw.XRight
	}
	return p.Save(18*vg.Centimeter, 11*vg.Centimeter, path)
}

func pairs(x, y []float64) plotter.XYs {
	out := make(plotter.XYs, 0, len(x))
	for i := range x {
		if !math.IsNaN(x[i]+y[i]) && !math.IsInf(x[i], 0) && !math.IsInf(y[i], 0) {
			out = append(out, plotter.XY{X: x[i], Y: y[i]})
		}
	}
	return out
}

func addLine(p *plot.Plot, label string, xy plotter.XYs, shade color.Color) error {
	line, err := plotter.NewLine(xy)
	if err != nil {
		return err
	}
	line.Color, line.Width = shade, vg.Points(1.5)
	p.Add(line)
	p.Legend.Add(label, line)
	return nil
}

func addPoints(p *plot.Plot, label string, xy plotter.XYs, shade color.Color) error {
	points, err := plotter.NewScatter(xy)
	if err != nil {
		return err
	}
	points.Color, points.Radius = shade, vg.Points(2)
	p.Add(points)
	p.Legend.Add(label, points)
	return nil
}

// addViolin draws the density of a sample to both sides of a vertical line, with
// its median.
func addViolin(p *plot.Plot, at float64, sample []float64, shade color.RGBA) error {
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
	sorted := slices.Sorted(slices.Values(sample))
	median := sorted[len(sorted)/2]
	middle, err := plotter.NewLine(plotter.XYs{{X: at - .1, Y: median}, {X: at + .1, Y: median}})
	if err != nil {
		return err
	}
	middle.Width = vg.Points(1.5)
	p.Add(body, middle)
	return nil
}

// density is a Gaussian kernel estimate with the bandwidth of (Silverman 1986),
// over the middle 99.8 % of the sample; top, if above 0, is the height to scale to.
func density(sample []float64, top float64) plotter.XYs {
	s := slices.Sorted(slices.Values(sample))
	s = slices.DeleteFunc(s, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	if len(s) < 2 {
		return plotter.XYs{{}, {X: 1}}
	}
	quantile := func(p float64) float64 { return s[int(p*float64(len(s)-1))] }
	var mean, square float64
	for _, x := range s {
		mean += x / float64(len(s))
	}
	for _, x := range s {
		square += (x - mean) * (x - mean) / float64(len(s))
	}
	width := math.Sqrt(square)
	if spread := (quantile(.75) - quantile(.25)) / 1.34; spread > 0 {
		width = min(width, spread)
	}
	width *= .9 * math.Pow(float64(len(s)), -.2)
	if !(width > 0) {
		width = 1e-9 + math.Abs(mean)*1e-6
	}
	low, high := quantile(.001)-3*width, quantile(.999)+3*width
	const steps = 200
	out := make(plotter.XYs, steps)
	highest := 0.0
	for i := range out {
		x := low + (high-low)*float64(i)/(steps-1)
		first, _ := slices.BinarySearch(s, x-5*width)
		sum := 0.0
		for _, v := range s[first:] {
			z := (v - x) / width
			if z > 5 {
				break
			}
			sum += math.Exp(-z * z / 2)
		}
		out[i] = plotter.XY{X: x, Y: sum / (width * math.Sqrt(2*math.Pi) * float64(len(s)))}
		highest = max(highest, out[i].Y)
	}
	if top > 0 {
		for i := range out {
			out[i].Y *= top / highest
		}
	}
	return out
}
