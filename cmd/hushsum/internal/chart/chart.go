// Package chart draws series of points over two axes, for people who may not see all colours.
package chart

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

func New(title, x, y string, series int) *Chart {
	c := &Chart{Plot: plot.New(), legend: plot.NewLegend(), of: series}
	c.Title.Text, c.X.Label.Text, c.Y.Label.Text = title, x, y
	c.Title.Padding = vg.Points(6)
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	c.Title.TextStyle.Font = font.From(sans, 12)
	for _, axis := range []*plot.Axis{&c.X, &c.Y} {
		axis.Label.TextStyle.Font = font.From(sans, 10)
		axis.Tick.Label.Font = font.From(sans, 9)
		axis.Tick.Marker = plot.TickerFunc(round)
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
		Width:  vg.Points(1.2 + .5*float64(min(c.of-1-k, 3))),
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

// round returns ticks that are 1, 2 or 5 times a power of ten apart, four to nine of them.
func round(low, high float64) (ticks []plot.Tick) {
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', 4, 64)}}
	}
	exponent := int(math.Floor(math.Log10((high - low) / 4)))
	step := math.Pow10(exponent)
	for _, m := range []float64{5, 2} {
		if m*step <= (high-low)/4 {
			step *= m
			break
		}
	}
	for k := math.Ceil(low / step); k*step <= high; k++ {
		// With as many digits as the step has.
		x := k*step + 0 // 0 has no sign
		label := strconv.FormatFloat(x, 'f', max(0, -exponent), 64)
		if x != 0 && (math.Abs(x) >= 1e6 || step < 1e-5) {
			digits := int(math.Floor(math.Log10(math.Abs(x)))) - exponent + 1
			label = strconv.FormatFloat(x, 'g', digits, 64)
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: label})
	}
	return ticks
}

// Logarithmic gives an axis powers of ten.
func Logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = plot.LogScale{}, plot.TickerFunc(powers)
}

// powers returns ticks at the powers of ten, without labels between them; over little more than a
// decade 2 and 5 times a power have labels too.
func powers(low, high float64) (ticks []plot.Tick) {
	narrow := high < 30*low
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1; m < 10; m++ {
			x, err := strconv.ParseFloat(strconv.Itoa(m)+"e"+strconv.Itoa(int(e)), 64)
			if err != nil || x < low*(1-1e-12) || x > high*(1+1e-12) {
				continue
			}
			tick := plot.Tick{Value: x}
			if m == 1 || narrow && (m == 2 || m == 5) {
				tick.Label = strconv.FormatFloat(x, 'g', -1, 64)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// The size of a chart without its legend.
const (
	chartWidth  = 17 * vg.Centimeter
	chartHeight = 11 * vg.Centimeter
)

// Fonts lists families with letters of the same widths, one of which is on every machine.
const Fonts = "'Liberation Sans',Arial,Helvetica,sans-serif"

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
		[]byte("font-family:"+Fonts))
	return os.WriteFile(path, named, 0o666)
}

// FinitePairs returns the points that can be shown.
func FinitePairs(x, y []float64, positive bool) plotter.XYs {
	points := make(plotter.XYs, 0, len(x))
	for i := range x {
		if math.IsNaN(x[i]+y[i]) || math.IsInf(x[i], 0) || math.IsInf(y[i], 0) || positive &&
			!(min(x[i], y[i]) > 0) {
			continue
		}
		points = append(points, plotter.XY{X: x[i], Y: y[i]})
	}
	return points
}

// AddTrace adds points with a line through them.
func (c *Chart) AddTrace(name string, points plotter.XYs) error {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	_, line.LineStyle, dots.GlyphStyle = c.Style()
	c.Add(line, dots)
	c.Key(name, line, dots)
	return nil
}
