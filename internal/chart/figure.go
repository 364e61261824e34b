package chart

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

// Figure is a drawing of several series over two axes, with a legend to their right. The axes end
// where the data end. It is a file of its own.
type Figure struct {
	Title, X, Y string // what is shown, as a whole and on the axes
	LogX, LogY  bool   // an axis of powers of ten, of values above 0; LogX is nothing with Names
	Grid        bool
	Names       []string // of the places 0, 1, … of the horizontal axis, instead of numbers
	Series      []Series
}

// Series has the shapes of one colour.
type Series struct {
	Name   string // in the legend; empty: it has no place there
	Shapes []Shape
}

// Shape is a kind of shape through points. Points that an axis cannot show are left out.
type Shape struct {
	Kind   Kind
	Points []Point
}

// Kind says how points are drawn.
type Kind int

// Each series has dashes and a shape of dots of its own.
const (
	Line   Kind = iota // a line
	Dots               // a dot at each
	Area               // a closed line, and what is within
	Thin               // a thin line without dashes
	Spot               // a large dot at each
	Middle             // a short line in the colour of texts
)

// Trace returns a series of points with a line through them.
func Trace(name string, points []Point) Series {
	return Series{Name: name, Shapes: []Shape{{Line, points}, {Dots, points}}}
}

// colours is how many classes s0, s1, … style.css has: those of (Okabe 2008), which colour-blind
// people can distinguish, without the yellow, which is faint on white.
const colours = 7

//go:embed style.css
var style string

// dashes distinguish lines besides colours: those that coincide show each other through their gaps,
// and those below are wider.
var dashes = []string{"", ` stroke-dasharray="9 4"`, ` stroke-dasharray="2.5 2.5"`}

// The size of a figure between its axes, and the width of a letter, which few exceed.
const (
	plotWidth  = 560.
	plotHeight = 340.
	letter     = 6.7
)

func wide(text string) float64 { return letter * float64(utf8.RuneCountInString(text)) }

// Save writes the figure to a file.
func (f *Figure) Save(path string) error { return os.WriteFile(path, []byte(f.SVG()), 0o666) }

// SVG returns the figure.
func (f *Figure) SVG() string {
	d := Frame{Left: 34, Right: 20, Top: 34, Bottom: 46}
	var across, up []Tick
	d.X, d.Y = f.axes()
	across, up = ticksOf(d.X), ticksOf(d.Y)
	if f.Names != nil {
		across = nil
		for i, name := range f.Names {
			across = append(across, Tick{float64(i), name})
		}
	}
	labels := 0.
	for _, t := range up {
		labels = max(labels, wide(t.Label))
	}
	d.Left += labels
	if f.Names != nil { // which are written upwards
		for _, name := range f.Names {
			d.Bottom = max(d.Bottom, 50+wide(name)*math.Sin(math.Pi/8))
			d.Left = max(d.Left, 10+wide(name)*math.Cos(math.Pi/8)-plotWidth/(2*float64(len(f.Names))))
		}
	}
	for _, s := range f.Series {
		if s.Name != "" {
			d.Right = max(d.Right, 56+wide(s.Name))
		}
	}
	d.Width, d.Height = d.Left+plotWidth+d.Right, d.Top+plotHeight+d.Bottom
	f.frame(&d, across, up)
	for k, s := range f.Series {
		d.Add(`<g class="s%d">`, k%colours)
		for _, shape := range s.Shapes {
			f.shape(&d, k, shape)
		}
		d.Add("</g>\n")
	}
	f.legend(&d)
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%.0f" `+
		`height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, d.Width, d.Height, d.Width,
		d.Height, html.EscapeString(f.label()))
	return head + "\n<style>\n" + style + "</style>\n" + d.inside.String() + "</svg>\n"
}

// label tells people who do not see the figure what it shows.
func (f *Figure) label() string {
	text := f.Title + ": " + f.Y + " by " + f.X
	var names []string
	for _, s := range f.Series {
		if s.Name != "" {
			names = append(names, s.Name)
		}
	}
	if names = append(names, f.Names...); len(names) > 0 {
		text += "; " + strings.Join(names, ", ")
	}
	return text
}

// shown returns the points that the axes can show.
func (f *Figure) shown(points []Point) (some []Point) {
	for _, p := range points {
		if !math.IsNaN(p.X+p.Y) && !math.IsInf(p.X, 0) && !math.IsInf(p.Y, 0) &&
			(!f.LogX || f.Names != nil || p.X > 0) && (!f.LogY || p.Y > 0) {
			some = append(some, p)
		}
	}
	return some
}

// axes returns axes that end where the data end.
func (f *Figure) axes() (x, y Axis) {
	x = Axis{Low: math.Inf(1), High: math.Inf(-1), Log: f.LogX}
	y = Axis{Low: math.Inf(1), High: math.Inf(-1), Log: f.LogY}
	for _, s := range f.Series {
		for _, shape := range s.Shapes {
			for _, p := range f.shown(shape.Points) {
				x.Low, x.High = min(x.Low, p.X), max(x.High, p.X)
				y.Low, y.High = min(y.Low, p.Y), max(y.High, p.Y)
			}
		}
	}
	if f.Names != nil {
		x = Axis{Low: -0.5, High: float64(len(f.Names)) - 0.5}
	}
	return widened(x), widened(y)
}

// widened returns an axis of some length, also of one value and of none.
func widened(a Axis) Axis {
	switch {
	case a.Low > a.High && a.Log:
		a.Low, a.High = 1, 10
	case a.Low > a.High:
		a.Low, a.High = 0, 1
	case a.Low == a.High && a.Log:
		a.Low, a.High = a.Low/2, a.High*2
	case a.Low == a.High:
		a.Low, a.High = a.Low-1, a.High+1
	}
	return a
}

func ticksOf(a Axis) []Tick {
	if a.Log {
		return Powers(a.Low, a.High)
	}
	return Ticks(a.Low, a.High)
}

// frame draws what is not data.
func (f *Figure) frame(d *Frame, across, up []Tick) {
	bottom, right := d.Height-d.Bottom, d.Width-d.Right
	d.Add(`<rect class="paper" width="%.0f" height="%.0f"/>`+"\n", d.Width, d.Height)
	d.Add(`<text class="title" x="%.0f" y="20" text-anchor="middle">%s</text>`+"\n", d.Width/2,
		html.EscapeString(f.Title))
	var grid, marks strings.Builder
	for _, t := range across {
		x, length := d.AtX(t.Value), 3.
		if t.Label != "" {
			fmt.Fprintf(&grid, "M%.1f %.1f V%.1f ", x, d.Top, bottom)
			length = 6
		}
		fmt.Fprintf(&marks, "M%.1f %.1f v%.0f ", x, bottom, length)
		if f.Names != nil {
			d.Add(`<text transform="translate(%.1f %.1f) rotate(-22.5)" text-anchor="end">%s</text>`, x+4,
				bottom+16, html.EscapeString(t.Label))
		} else if t.Label != "" {
			d.Text(x, bottom+19, "middle", t.Label)
		}
	}
	for _, t := range up {
		y, length := d.AtY(t.Value), 3.
		if t.Label != "" {
			fmt.Fprintf(&grid, "M%.1f %.1f H%.1f ", d.Left, y, right)
			length = 6
			d.Text(d.Left-9, y+4, "end", t.Label)
		}
		fmt.Fprintf(&marks, "M%.1f %.1f h-%.0f ", d.Left, y, length)
	}
	if f.Grid {
		d.Add(`<path class="grid" d="%s"/>`, strings.TrimRight(grid.String(), " "))
	}
	d.Axes()
	d.Add(`<path class="axis" d="%s"/>`+"\n", strings.TrimRight(marks.String(), " "))
	d.Text((d.Left+right)/2, d.Height-8, "middle", f.X)
	d.Add(`<text transform="translate(15 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(d.Top+bottom)/2, html.EscapeString(f.Y))
}

// shape draws a shape of series k.
func (f *Figure) shape(d *Frame, k int, s Shape) {
	points := f.shown(s.Points)
	if len(points) == 0 {
		return
	}
	switch s.Kind {
	case Line:
		d.Add(`<path %s d="%s"/>`, f.line(k), d.Path(points))
	case Thin:
		d.Add(`<path class="thin" d="%s"/>`, d.Path(points))
	case Middle:
		d.Add(`<path class="middle" d="%s"/>`, d.Path(points))
	case Area:
		d.Add(`<path class="area" d="%s Z"/>`, d.Path(points))
	case Dots, Spot:
		glyph, size := k, 3.
		if s.Kind == Spot {
			glyph, size = 0, 5
		}
		var path strings.Builder
		for _, p := range points {
			path.WriteString(dot(glyph, d.AtX(p.X), d.AtY(p.Y), size))
		}
		d.Add(`<path class="%s" d="%s"/>`, dotClass(glyph), strings.TrimRight(path.String(), " "))
	}
}

// line returns the attributes of the line of series k.
func (f *Figure) line(k int) string {
	width := 1.6 + 0.7*float64(min(len(f.Series)-1-k, 3))
	return fmt.Sprintf(`class="line" stroke-width="%.1f"%s`, width, dashes[k%len(dashes)])
}

// Shapes of dots, by their paths around a point: the first are filled.
const (
	filledDots = 3
	allDots    = 7
)

func dotClass(k int) string {
	if k%allDots < filledDots {
		return "dots"
	}
	return "open"
}

// dot returns the path of series k's dot at a place.
func dot(k int, x, y, r float64) string {
	circle := fmt.Sprintf("M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 -%.1f 0z ", x-r, y, r, r,
		2*r, r, r, 2*r)
	square := fmt.Sprintf("M%.1f %.1fh%.1fv%.1fh-%.1fz ", x-r, y-r, 2*r, 2*r, 2*r)
	switch k % allDots {
	case 0, 3:
		return circle
	case 1, 4:
		return square
	case 2:
		return fmt.Sprintf("M%.1f %.1fl%.1f %.1fh-%.1fz ", x, y-r-1, r+1, 2*r, 2*(r+1))
	case 5:
		return fmt.Sprintf("M%.1f %.1fh%.1fM%.1f %.1fv%.1f ", x-r, y, 2*r, x, y-r, 2*r)
	}
	return fmt.Sprintf("M%.1f %.1fl%.1f %.1fM%.1f %.1fl%.1f -%.1f ", x-r, y-r, 2*r, 2*r, x-r, y+r, 2*r,
		2*r)
}

// legend names the series.
func (f *Figure) legend(d *Frame) {
	x, y := d.Width-d.Right+14, d.Top+8
	for k, s := range f.Series {
		if s.Name == "" {
			continue
		}
		d.Add(`<g class="s%d">`, k%colours)
		drawn := map[Kind]bool{}
		for _, shape := range s.Shapes {
			if drawn[shape.Kind] {
				continue
			}
			drawn[shape.Kind] = true
			switch shape.Kind {
			case Line:
				d.Add(`<path %s d="M%.1f %.1f h26"/>`, f.line(k), x, y)
			case Dots:
				d.Add(`<path class="%s" d="%s"/>`, dotClass(k), strings.TrimRight(dot(k, x+13, y, 3), " "))
			}
		}
		d.Add("</g>")
		d.Text(x+33, y+4, "start", s.Name)
		d.Add("\n")
		y += 19
	}
}
