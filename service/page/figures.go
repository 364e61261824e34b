package page

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/hushsum/hushsum/internal/chart"
	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/service/runner"
)

// This file draws what is measured of a federation.

// figure is a drawing, with a name for the page's updates.
type figure struct {
	ID, Caption string
	Unit        string // and what else the caption says, less loudly
	Drawn       template.HTML
}

// figures draws all that can be drawn of a federation.
func figures(s *runner.Status) (out []figure) {
	for _, f := range []figure{
		{"figure-accuracy", "Accuracy", "", accuracies(s.History)},
		{"figure-epsilon", "Budget left", "in percent", burnDown(s)},
		{"figure-parties", "Parties in the sum", "dashed: the fewest it takes; ✕: no sum", sums(s)},
		{"figure-steps", "Time of each step", "average since this node began to lead", steps(s.Steps)},
	} {
		if f.Drawn != "" {
			out = append(out, f)
		}
	}
	return out
}

// Of a drawing, in its own units.
const (
	drawWidth = 400.
	drawRight = 12.
)

// frame returns a drawing of rounds from left to right and values from low to high.
func frame(first, last, low, high float64) *chart.Frame {
	return &chart.Frame{Drawing: chart.Drawing{Width: drawWidth, Height: 190}, Left: 40,
		Right: drawRight, Top: 10, Bottom: 38, X: chart.Axis{Low: first, High: last},
		Y: chart.Axis{Low: low, High: high}}
}

// most labels a drawing has on an axis.
const mostLabels = 6

// sparse leaves out places of an axis until there are few enough.
func sparse(ticks []chart.Tick) []chart.Tick {
	for len(ticks) > mostLabels {
		var fewer []chart.Tick
		for i := 0; i < len(ticks); i += 2 {
			fewer = append(fewer, ticks[i])
		}
		ticks = fewer
	}
	return ticks
}

// grid begins a drawing with lines behind it, at values of the vertical axis.
func grid(f *chart.Frame) {
	for _, t := range sparse(chart.Ticks(f.Y.Low, f.Y.High)) {
		y := f.AtY(t.Value)
		f.Add(`<path class="grid" d="M%.1f %.1f H%.1f"/>`, f.Left, y, f.Width-f.Right)
		f.Text(f.Left-6, y+4, "end", t.Label)
	}
}

// ofRounds ends a drawing of rounds, with a label for people who do not see it.
func ofRounds(f *chart.Frame, label string) template.HTML {
	return framed(f, f.AtX, "round", label)
}

// framed ends a drawing with numbers of its horizontal axis, at where at has them, and the name of
// that axis.
func framed(f *chart.Frame, at func(x float64) float64, name, label string) template.HTML {
	for _, t := range sparse(chart.Ticks(f.X.Low, f.X.High)) {
		if t.Value == math.Trunc(t.Value) || name != "round" {
			f.Text(at(t.Value), f.Height-f.Bottom+15, "middle", t.Label)
		}
	}
	f.Text((f.Left+f.Width-f.Right)/2, f.Height-6, "middle", name)
	f.Axes()
	return template.HTML(f.SVG(label))
}

// drawCurve draws a line through points of rounds and values.
func drawCurve(f *chart.Frame, points []chart.Point) {
	f.Add(`<path class="curve" d="%s"/>`, f.Path(points))
}

// accuracies draws the accuracy over the rounds, if it is measured.
func accuracies(history []runner.Past) template.HTML {
	var points []chart.Point
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range history {
		y := p.Accuracy
		if y == 0 && p.Metric != nil {
			y = p.Metric.Accuracy
		}
		if p.Parties == 0 || y == 0 {
			continue
		}
		points = append(points, chart.Point{X: float64(p.Round), Y: y})
		low, high = min(low, y), max(high, y)
	}
	if len(points) < 2 {
		return ""
	}
	if high-low < 0.01 {
		low, high = low-0.005, high+0.005
	}
	first, last := points[0], points[len(points)-1]
	f := frame(first.X, last.X, low, high)
	grid(f)
	drawCurve(f, points)
	return ofRounds(f, fmt.Sprintf("accuracy over rounds: %.3f in round %.0f, %.3f in round "+
		"%.0f", first.Y, first.X, last.Y, last.X))
}

// burnDown draws the part of the budget that is left against the rounds that have begun, and the
// rounds to come.
func burnDown(s *runner.Status) template.HTML {
	if s.Budget == nil || s.Spent == nil || len(s.History) == 0 {
		return ""
	}
	share, err := s.Spent.Share(*s.Budget)
	if err != nil {
		return ""
	}
	left := func(share float64) float64 { return 100 * max(0, 1-share) }
	f := frame(0, float64(s.Rounds), 0, 100)
	grid(f)
	var points []chart.Point
	if s.History[0].Round == 1 {
		points = append(points, chart.Point{Y: 100})
	}
	for _, p := range s.History {
		if p.Share > 0 {
			points = append(points, chart.Point{X: float64(p.Round), Y: left(p.Share)})
		}
	}
	now := chart.Point{X: float64(s.Round), Y: left(share)}
	points = append(points, now)
	drawCurve(f, points)
	f.Add(`<circle class="bar" cx="%.1f" cy="%.1f" r="4"/>`, f.AtX(now.X), f.AtY(now.Y))
	return ofRounds(f, fmt.Sprintf("%.1f %% of the budget left after round %d of %d",
		now.Y, s.Round, s.Rounds))
}

// mostBars is how many rounds are drawn as bars.
const mostBars = 60

// sums draws how many parties the last sums had.
func sums(s *runner.Status) template.HTML {
	history := s.History[max(0, len(s.History)-mostBars):]
	if len(history) == 0 {
		return ""
	}
	last := history[len(history)-1]
	most, lost := s.Least, 0
	for _, p := range history {
		most = max(most, p.Parties)
	}
	f := frame(float64(history[0].Round), float64(last.Round), 0, float64(max(1, most)))
	grid(f)
	step := (f.Width - f.Left - f.Right) / max(1, f.X.High-f.X.Low+1)
	at := func(round float64) float64 { return f.Left + (round-f.X.Low+0.5)*step }
	width := max(1.5, 0.7*step)
	for _, p := range history {
		// A bar stands within the axis, even that of the first round and of the last.
		x := at(float64(p.Round))
		y, bottom := f.AtY(float64(p.Parties)), f.AtY(0)
		if p.Parties == 0 {
			lost++
			arm := min(5, width/2)
			f.Add(`<path class="cross" d="M%.1f %.1f L%.1f %.1f M%.1f %.1f L%.1f %.1f"/>`,
				x-arm, bottom-2-2*arm, x+arm, bottom-2, x-arm, bottom-2, x+arm, bottom-2-2*arm)
			continue
		}
		f.Add(`<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x-width/2, y, width, bottom-y)
	}
	f.Add(`<path class="bound" d="M%.1f %.1f H%.1f"/>`, f.Left, f.AtY(float64(s.Least)),
		f.Width-f.Right)
	label := fmt.Sprintf("parties in the sums of rounds %d to %d: %d in the last; %d rounds without "+
		"a sum; a sum takes %d", history[0].Round, last.Round, last.Parties, lost, s.Least)
	return framed(f, at, "round", label)
}

// steps draws how long steps take on average.
func steps(all []runner.StepTimes) template.HTML {
	const row, left, right = 30., 92., 88.
	longest := 0.
	var label []string
	times := func(x *runner.StepTimes) uint64 { return x.Within[len(x.Within)-1] }
	mean := func(x *runner.StepTimes) float64 { return x.Seconds / float64(times(x)) }
	for i := range all {
		longest = max(longest, mean(&all[i]))
	}
	d := chart.Drawing{Width: drawWidth}
	for i := range all {
		x, y := &all[i], float64(i)*row+row/2
		label = append(label, fmt.Sprintf("%s: %s, %s", x.Step, took(mean(x)),
			numbers.Plural(int(times(x)), "time")))
		width := drawWidth - left - right
		d.Add(`<g class="said">`)
		d.Text(left-8, y+4, "end", x.Step)
		d.Text(drawWidth-right+8, y+4, "start", took(mean(x)))
		d.Add(`</g><rect class="room" x="%.0f" y="%.1f" width="%.1f" height="12"/>`, left, y-6, width)
		d.Add(`<rect class="bar" x="%.0f" y="%.1f" width="%.1f" height="12"/>`, left, y-6,
			max(1, mean(x)/max(longest, 1e-9)*width))
	}
	if len(all) == 0 {
		return ""
	}
	d.Height = float64(len(all)) * row
	return template.HTML(d.SVG("average seconds by step. " + strings.Join(label, "; ")))
}
