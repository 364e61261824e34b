package main

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/hushsum/hushsum/internal/experiments"
)

// palette has the colours of (Okabe, Ito 2008), which the colour-blind can tell
// apart, less the yellow, which is faint on white.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x00, 0x00, 0xff},
}

// drawFigure writes a figure as SVG: the mean over seeds of each line, with bars of
// one standard deviation if there are several seeds.
func drawFigure(path string, f *experiments.Figure) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Add(plotter.NewGrid())
	if f.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(powers)
	}
	for k := range f.Series {
		s := &f.Series[k]
		points := errorPoints{}
		for i, x := range s.X {
			mean, spread, n := s.Mean(i)
			if n == 0 {
				continue
			}
			if f.Percent {
				mean, spread = mean*100, spread*100
			}
			points.XYs = append(points.XYs, plotter.XY{X: x, Y: mean})
			points.YErrors = append(points.YErrors, struct{ Low, High float64 }{spread, spread})
		}
		if len(points.XYs) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		// Beyond the colours lines are dashed.
		line.Color, dots.Color = palette[k%len(palette)], palette[k%len(palette)]
		if k >= len(palette) {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		dots.Shape, dots.Radius = draw.CircleGlyph{}, vg.Points(2)
		p.Add(line, dots)
		p.Legend.Add(s.Name, line, dots)
		if len(s.Runs) > 1 {
			bars, err := plotter.NewYErrorBars(points)
			if err != nil {
				return err
			}
			bars.Color = line.Color
			p.Add(bars)
		}
	}
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	// Lines run into a legend inside the plot: it has room of its own on the right.
	p.X.Max += (p.X.Max - p.X.Min) * .55
	if f.LogX {
		p.X.Max = f.Series[0].X[len(f.Series[0].X)-1] * math.Pow(p.X.Max/p.X.Min, .35)
	}
	return p.Save(24*vg.Centimeter, 14*vg.Centimeter, path)
}

// errorPoints are points with error bars.
type errorPoints struct {
	plotter.XYs
	plotter.YErrors
}

// powers are ticks at 1, 2 and 5 times powers of ten.
func powers(low, high float64) (ticks []plot.Tick) {
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if x := m * decade; x >= low && x <= high {
				ticks = append(ticks, plot.Tick{Value: x, Label: strconv.FormatFloat(x, 'g', -1, 64)})
			}
		}
	}
	return ticks
}
