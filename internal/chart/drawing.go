// Package chart draws figures as SVG. Everything that colours show, words, shapes or dashes show
// too.
package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Drawing is an SVG in the making, in units of its own from the upper left. Its shapes have
// classes, which a style sheet colours.
type Drawing struct {
	Width, Height float64
	inside        strings.Builder
}

// Add adds markup, whose texts the caller has escaped.
func (d *Drawing) Add(format string, a ...any) { fmt.Fprintf(&d.inside, format, a...) }

// Text adds a text that begins, is centred or ends at a point: anchor is start, middle or end.
func (d *Drawing) Text(x, y float64, anchor, text string) {
	d.Add(`<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`, x, y, anchor,
		html.EscapeString(text))
}

// SVG returns the drawing as a part of a page, with a label for people who do not see it.
func (d *Drawing) SVG(label string) string {
	return fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">%s</svg>`, d.Width,
		d.Height, html.EscapeString(label), d.inside.String())
}

// Point is a point of a figure.
type Point struct{ X, Y float64 }

// Axis has the values at its ends, and whether it is one of powers of ten.
type Axis struct {
	Low, High float64
	Log       bool
}

// part returns where a value is between the ends, from 0 to 1.
func (a Axis) part(value float64) float64 {
	low, high := a.Low, a.High
	if a.Log {
		low, high, value = math.Log(low), math.Log(high), math.Log(value)
	}
	span := high - low
	if !(span > 0) {
		span = 1
	}
	return (value - low) / span
}

// Frame is a drawing with axes, so many units inside of its sides.
type Frame struct {
	Drawing
	Left, Right, Top, Bottom float64
	X, Y                     Axis
}

// AtX returns how far from the left a value of the horizontal axis is.
func (f *Frame) AtX(value float64) float64 {
	return f.Left + f.X.part(value)*(f.Width-f.Left-f.Right)
}

// AtY returns how far from the top a value of the vertical axis is.
func (f *Frame) AtY(value float64) float64 {
	return f.Height - f.Bottom - f.Y.part(value)*(f.Height-f.Top-f.Bottom)
}

// Axes adds both axes.
func (f *Frame) Axes() {
	f.Add(`<path class="axis" d="M%.1f %.1f V%.1f H%.1f"/>`, f.Left, f.Top, f.Height-f.Bottom,
		f.Width-f.Right)
}

// Path returns the way through points, for the attribute d of a path.
func (f *Frame) Path(points []Point) string {
	var path strings.Builder
	for i, p := range points {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(&path, "%c%.1f %.1f ", command, f.AtX(p.X), f.AtY(p.Y))
	}
	return strings.TrimRight(path.String(), " ")
}
