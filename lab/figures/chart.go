// Package figures draws series of points over two axes, for people who may not see all colours.
package figures

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/hushsum/hushsum/internal/chart"
)

// palette holds the colours of (Okabe 2008), which colour-blind people can distinguish, without the
// yellow, which is faint on white.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff},
	{0xd5, 0x5e, 0x00, 0xff},
	{0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff},
	{0x56, 0xb4, 0xe9, 0xff},
	{0x00, 0x00, 0x00, 0xff},
}

// Besides colours, these distinguish series: lines that coincide show each other through their
// gaps, and those below are wider.
var (
	dashes = [][]vg.Length{nil, {vg.Points(7), vg.Points(3)}, {vg.Points(2), vg.Points(2)}}
	glyphs = []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{},
		draw.BoxGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{},
	}
)

// Chart is a plot of several series with a legend to the right of its axes, which end where the
// data end.
type Chart struct {
	*plot.Plot
	legend plot.Legend
	of     int  // number of series to come
	added  int  // number of series added
	keyed  bool // whether the legend has an entry
}

// New makes a chart without series; so many are to come.
func New(title, x, y string, series int) *Chart {
	c := &Chart{Plot: plot.New(), legend: plot.NewLegend(), of: series}
	c.Title.Text, c.X.Label.Text, c.Y.Label.Text = title, x, y
	c.Title.Padding = vg.Points(6)
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	c.Title.TextStyle.Font = font.From(sans, 12)
	for _, axis := range []*plot.Axis{&c.X, &c.Y} {
		axis.Label.TextStyle.Font = font.From(sans, 10)
		axis.Tick.Label.Font = font.From(sans, 9)
		axis.Tick.Marker = ticker(chart.Ticks)
	}
	c.legend.TextStyle.Font = font.From(sans, 9)
	c.legend.Top, c.legend.Left = true, true
	c.legend.Padding = vg.Points(2)
	return c
}

// Style says how the next series is drawn.
func (c *Chart) Style() (shade color.RGBA, line draw.LineStyle, dots draw.GlyphStyle) {
	k := c.added
	c.added++
	shade = palette[k%len(palette)]
	line = draw.LineStyle{
		Color:  shade,
		Width:  vg.Points(1.2 + 0.5*float64(min(c.of-1-k, 3))),
		Dashes: dashes[k%len(dashes)],
	}
	dots = draw.GlyphStyle{Color: shade, Shape: glyphs[k%len(glyphs)], Radius: vg.Points(2.2)}
	return shade, line, dots
}

// Key adds an entry to the legend.
func (c *Chart) Key(label string, thumbs ...plot.Thumbnailer) {
	if label != "" {
		c.legend.Add(label, thumbs...)
		c.keyed = true
	}
}

// ticker has an axis marked by one of the laws of package chart, as the programs' figures are.
func ticker(law func(low, high float64) []chart.Tick) plot.Ticker {
	return plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		for _, at := range law(low, high) {
			ticks = append(ticks, plot.Tick{Value: at.Value, Label: at.Label})
		}
		return ticks
	})
}

// Logarithmic gives an axis powers of ten.
func Logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = plot.LogScale{}, ticker(chart.Powers)
}

// The size of a chart without its legend.
const (
	chartWidth  = 17 * vg.Centimeter
	chartHeight = 11 * vg.Centimeter
)

// fonts lists families with letters of the same widths, one of which is on every machine.
const fonts = "'Liberation Sans',Arial,Helvetica,sans-serif"

// Save writes the chart in the format named by the end of the path.
func (c *Chart) Save(path string) error {
	gap, beside := vg.Points(10), vg.Length(0)
	if c.keyed {
		beside = c.legend.Rectangle(draw.Canvas{}).Size().X + 2*gap
	}
	width := chartWidth + beside
	out, err := draw.NewFormattedCanvas(width, chartHeight,
		strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return err
	}
	canvas := draw.New(out)
	canvas.SetColor(c.BackgroundColor)
	canvas.Fill(canvas.Rectangle.Path())
	// The last number below an axis is centred on its end.
	c.Draw(draw.Crop(canvas, gap/2, -beside-gap, gap/2, -gap/2))
	if c.keyed {
		c.legend.Draw(draw.Crop(canvas, width-beside+gap/2, 0, 0, -vg.Points(28)))
	}
	var text bytes.Buffer
	if _, err := out.WriteTo(&text); err != nil {
		return err
	}
	named := bytes.ReplaceAll(text.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:"+fonts))
	return os.WriteFile(path, named, 0o666)
}
