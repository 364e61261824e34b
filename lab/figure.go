package main

import (
	"gonum.org/v1/plot/plotter"

	"github.com/hushsum/hushsum/lab/experiments"
	"github.com/hushsum/hushsum/lab/figures"
)

// drawFigure writes a figure of an experiment: the mean over seeds of each line, with
// bars of one standard deviation if there are several seeds.
func drawFigure(path string, f *experiments.Figure) error {
	c := figures.New(f.Title, f.X, f.Y, len(f.Series))
	c.Add(plotter.NewGrid())
	if f.LogX {
		figures.Logarithmic(&c.X)
	}
	for k := range f.Series {
		s := &f.Series[k]
		points := means(s, f.Percent)
		if len(points.XYs) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		_, line.LineStyle, dots.GlyphStyle = c.Style()
		if f.Points {
			c.Add(dots)
			c.Key(s.Name, dots)
			continue
		}
		c.Add(line, dots)
		c.Key(s.Name, line, dots)
		if len(s.Runs) > 1 {
			bars, err := plotter.NewYErrorBars(points)
			if err != nil {
				return err
			}
			bars.Color = line.Color
			c.Add(bars)
		}
	}
	return c.Save(path)
}

// errorPoints holds points with error bars.
type errorPoints struct {
	plotter.XYs
	plotter.YErrors
}

// means returns the points of a series that were measured.
func means(s *experiments.Series, percent bool) errorPoints {
	var points errorPoints
	for i, x := range s.X {
		mean, spread, n := s.Mean(i)
		if n == 0 {
			continue
		}
		if percent {
			mean, spread = mean*100, spread*100
		}
		points.XYs = append(points.XYs, plotter.XY{X: x, Y: mean})
		points.YErrors = append(points.YErrors, struct{ Low, High float64 }{spread, spread})
	}
	return points
}
