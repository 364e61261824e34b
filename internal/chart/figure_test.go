package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Ticks are at round numbers within the axis, and no two have the same label.
func TestTicks(t *testing.T) {
	for _, c := range []struct{ low, high float64 }{
		{0, 1}, {1, 1.272}, {-87, 95}, {0.0005, 0.0005001}, {0, 4e7}, {3, 3}, {-1e-9, 1e-9},
	} {
		ticks := Ticks(c.low, c.high)
		labels := map[string]bool{}
		for _, tick := range ticks {
			labels[tick.Label] = true
			if !(tick.Value >= c.low && tick.Value <= c.high) || tick.Label == "-0" {
				t.Errorf("%v to %v: a tick at %v, %q", c.low, c.high, tick.Value, tick.Label)
			}
		}
		if len(labels) != len(ticks) || c.high > c.low && (len(ticks) < 4 || len(ticks) > 10) {
			t.Errorf("%v to %v: %v", c.low, c.high, ticks)
		}
	}
	var labels []string
	for _, tick := range Powers(5e-4, 1) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	if want := []string{"0.001", "0.01", "0.1", "1"}; !slices.Equal(labels, want) {
		t.Errorf("powers of ten %q, want %q", labels, want)
	}
}

// Axes end where the data end, of the points that they can show.
func TestAxes(t *testing.T) {
	f := Figure{LogX: true, Series: []Series{Trace("a", []Point{{2, -1}, {5, 4}, {-7, 9},
		{3, math.NaN()}, {math.Inf(1), 20}})}}
	x, y := f.axes()
	if x != (Axis{2, 5, true}) || y != (Axis{Low: -1, High: 4}) {
		t.Errorf("axes %v and %v", x, y)
	}
	d := Frame{Drawing: Drawing{Width: 100, Height: 50}, Left: 10, Right: 20, Top: 5, Bottom: 15,
		X: Axis{1, 100, true}, Y: Axis{Low: 0, High: 4}}
	for _, c := range []struct{ got, want float64 }{
		{d.AtX(1), 10}, {d.AtX(10), 45}, {d.AtX(100), 80}, {d.AtY(0), 35}, {d.AtY(4), 5},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	if got := d.Path([]Point{{1, 0}, {100, 4}}); got != "M10.0 35.0 L80.0 5.0" {
		t.Errorf("path %q", got)
	}
}

// Whatever is drawn, a figure is XML without a number that is none, names everything, and has the
// colours of a dark screen too.
func TestFigure(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.StringMatching(`[ -~äε]{0,30}`)
		f := Figure{Title: name.Draw(r, "title"), X: name.Draw(r, "x"), Y: name.Draw(r, "y"),
			LogX: rapid.Bool().Draw(r, "log x"), LogY: rapid.Bool().Draw(r, "log y"),
			Grid: rapid.Bool().Draw(r, "grid")}
		number := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Just(0.), rapid.Just(math.NaN()),
			rapid.Just(math.Inf(-1)), rapid.Float64Range(1e-9, 1e-3))
		for range rapid.IntRange(0, 9).Draw(r, "series") {
			s := Series{Name: name.Draw(r, "name")}
			for range rapid.IntRange(0, 3).Draw(r, "shapes") {
				shape := Shape{Kind: Kind(rapid.IntRange(int(Line), int(Middle)).Draw(r, "kind"))}
				for range rapid.IntRange(0, 4).Draw(r, "points") {
					shape.Points = append(shape.Points, Point{number.Draw(r, "x"), number.Draw(r, "y")})
				}
				s.Shapes = append(s.Shapes, shape)
			}
			f.Series = append(f.Series, s)
		}
		if rapid.Bool().Draw(r, "named") {
			f.Names = rapid.SliceOfN(name, 1, 4).Draw(r, "names")
		}
		text := f.SVG()
		var texts []string
		in := xml.NewDecoder(strings.NewReader(text))
		for {
			token, err := in.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				r.Fatal(err)
			}
			switch token := token.(type) {
			case xml.StartElement:
				for _, a := range token.Attr {
					if a.Name.Local != "aria-label" &&
						(strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")) {
						r.Fatalf("%s has %s", token.Name.Local, a.Value)
					}
				}
			case xml.CharData:
				texts = append(texts, string(token))
			}
		}
		want := append([]string{f.Title, f.X, f.Y}, f.Names...)
		for _, s := range f.Series {
			want = append(want, s.Name)
		}
		for _, w := range want {
			if w != "" && !slices.Contains(texts, w) {
				r.Errorf("%q is missing in %q", w, texts)
			}
		}
		if !strings.Contains(text, "prefers-color-scheme:dark") {
			r.Error("it has no colours of a dark screen")
		}
	})
}

// Each series has a class that the style sheet colours on light and on dark screens, and another
// line or dot than those of the same colour.
func TestColours(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media")
	for k := range colours {
		class := fmt.Sprintf(".s%d{color:", k)
		if !strings.Contains(light, class) || !strings.Contains(dark, class) {
			t.Errorf("no colour of %s", class)
		}
	}
	if strings.Contains(style, fmt.Sprintf(".s%d{", colours)) {
		t.Error("a colour is not used")
	}
	f := Figure{Series: make([]Series, 10)}
	for k := colours; k < 10; k++ {
		if f.line(k) == f.line(k-colours) {
			t.Errorf("series %d looks like %d", k, k-colours)
		}
	}
}
