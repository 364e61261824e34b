package page

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/hushsum/hushsum/service/runner"
)

// This file draws figures as SVG. Everything that colours show, words, shapes or dashes show too.

// figure is a drawing, with a name for the page's updates.
type figure struct {
	ID, Caption string
	Drawn       template.HTML
}

// figures draws all that can be drawn of a federation.
func figures(s *runner.Status) (out []figure) {
	for _, f := range []figure{
		{"figure-accuracy", "Accuracy by round", accuracies(s.History)},
		{"figure-epsilon", "ε left, by round", burnDown(s)},
		{"figure-parties", "Parties in the sum by round; dashed: the fewest that a sum takes; " +
			"✕: no sum", sums(s)},
		{"figure-steps", "Average seconds of each step since this node began to lead", steps(s.Steps)},
	} {
		if f.Drawn != "" {
			out = append(out, f)
		}
	}
	return out
}

// Of a drawing, in its own units.
const (
	drawWidth  = 360.
	drawHeight = 170.
	drawLeft   = 44.
	drawRight  = 10.
	drawTop    = 14.
	drawBottom = 28.
)

// drawing has rounds from left to right and values from low to high.
type drawing struct {
	first, last float64
	low, high   float64
	inside      strings.Builder
}

func (d *drawing) x(round float64) float64 {
	span := d.last - d.first
	if !(span > 0) {
		span = 1
	}
	return drawLeft + (round-d.first)/span*(drawWidth-drawLeft-drawRight)
}

func (d *drawing) y(value float64) float64 {
	part := (value - d.low) / (d.high - d.low)
	return drawHeight - drawBottom - part*(drawHeight-drawTop-drawBottom)
}

// svg returns the drawing of rounds, with numbers in a format at its axes and a label for people
// who do not see it.
func (d *drawing) svg(format, label string) template.HTML {
	return d.framed(format, fmt.Sprintf("round %.0f", d.first), fmt.Sprintf("round %.0f", d.last),
		label)
}

// framed returns the drawing with words at both ends of its horizontal axis.
func (d *drawing) framed(format, from, to, label string) template.HTML {
	const bottom = drawHeight - drawBottom
	text := func(x, y float64, anchor, format string, value any) {
		fmt.Fprintf(&d.inside, `<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`, x, y, anchor,
			template.HTMLEscapeString(fmt.Sprintf(format, value)))
	}
	text(drawLeft-5, drawTop+5, "end", format, d.high)
	text(drawLeft-5, bottom+4, "end", format, d.low)
	text(drawLeft, drawHeight-8, "start", "%s", from)
	text(drawWidth-drawRight, drawHeight-8, "end", "%s", to)
	fmt.Fprintf(&d.inside, `<path class="axis" d="M%.1f %.1f V%.1f H%.1f"/>`, drawLeft, drawTop, bottom,
		drawWidth-drawRight)
	return wrap(drawHeight, label, d.inside.String())
}

func wrap(height float64, label, inside string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">%s</svg>`,
		drawWidth, height, template.HTMLEscapeString(label), inside))
}

// curve draws a line through points of rounds and values.
func (d *drawing) curve(points [][2]float64) {
	var path strings.Builder
	for i, p := range points {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(&path, "%c%.1f %.1f ", command, d.x(p[0]), d.y(p[1]))
	}
	fmt.Fprintf(&d.inside, `<path class="curve" d="%s"/>`, path.String())
}

// accuracies draws the accuracy over the rounds, if it is measured.
func accuracies(history []runner.Past) template.HTML {
	var points [][2]float64
	d := drawing{low: math.Inf(1), high: math.Inf(-1)}
	for _, p := range history {
		y := p.Accuracy
		if y == 0 && p.Metric != nil {
			y = p.Metric.Accuracy
		}
		if p.Parties == 0 || y == 0 {
			continue
		}
		points = append(points, [2]float64{float64(p.Round), y})
		d.low, d.high = min(d.low, y), max(d.high, y)
	}
	if len(points) < 2 {
		return ""
	}
	if d.high-d.low < 0.01 {
		d.low, d.high = d.low-0.005, d.high+0.005
	}
	first, last := points[0], points[len(points)-1]
	d.first, d.last = first[0], last[0]
	d.curve(points)
	return d.svg("%.3f", fmt.Sprintf("accuracy over rounds: %.3f in round %.0f, %.3f in round %.0f",
		first[1], first[0], last[1], last[0]))
}

// burnDown draws the remaining epsilon against the rounds that have begun, and the rounds to come.
func burnDown(s *runner.Status) template.HTML {
	if s.Budget == 0 || len(s.History) == 0 {
		return ""
	}
	left := func(spent float64) float64 { return max(0, s.Budget-spent) }
	d := drawing{last: float64(s.Rounds), high: s.Budget}
	var points [][2]float64
	if s.History[0].Round == 1 {
		points = append(points, [2]float64{0, s.Budget})
	}
	for _, p := range s.History {
		if p.Epsilon > 0 {
			points = append(points, [2]float64{float64(p.Round), left(p.Epsilon)})
		}
	}
	points = append(points, [2]float64{float64(s.Round), left(s.Epsilon)})
	d.curve(points)
	fmt.Fprintf(&d.inside, `<circle class="bar" cx="%.1f" cy="%.1f" r="4"/>`, d.x(float64(s.Round)),
		d.y(left(s.Epsilon)))
	return d.svg("%.3g", fmt.Sprintf("epsilon left: %.3g of %.3g after round %d of %d",
		left(s.Epsilon), s.Budget, s.Round, s.Rounds))
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
	d := drawing{first: float64(history[0].Round), last: float64(last.Round), high: float64(s.Least)}
	lost := 0
	for _, p := range history {
		d.high = max(d.high, float64(p.Parties))
	}
	if d.high == 0 {
		d.high = 1
	}
	step := (drawWidth - drawLeft - drawRight) / max(1, d.last-d.first+1)
	width := max(1.5, 0.7*step)
	for _, p := range history {
		// A bar stands within the axis, even that of the first round and of the last.
		x := drawLeft + (float64(p.Round)-d.first+0.5)*step
		y, bottom := d.y(float64(p.Parties)), d.y(0)
		if p.Parties == 0 {
			lost++
			arm := min(5, width/2)
			fmt.Fprintf(&d.inside, `<path class="cross" d="M%.1f %.1f L%.1f %.1f M%.1f %.1f L%.1f %.1f"/>`,
				x-arm, bottom-2-2*arm, x+arm, bottom-2, x-arm, bottom-2, x+arm, bottom-2-2*arm)
			continue
		}
		fmt.Fprintf(&d.inside, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
			x-width/2, y, width, bottom-y)
	}
	fmt.Fprintf(&d.inside, `<path class="bound" d="M%.1f %.1f H%.1f"/>`, drawLeft,
		d.y(float64(s.Least)), drawWidth-drawRight)
	return d.svg("%.0f", fmt.Sprintf("parties in the sums of rounds %d to %d: %d in the last; "+
		"%d rounds without a sum; a sum takes %d", history[0].Round, last.Round, last.Parties, lost,
		s.Least))
}

// steps draws how long steps take on average.
func steps(all []runner.StepTimes) template.HTML {
	const row, below = 34., 16.
	longest, n := 0., 0
	var label []string
	mean := func(x *runner.StepTimes) float64 { return x.Seconds / float64(x.Within[len(x.Within)-1]) }
	for i := range all {
		longest = max(longest, mean(&all[i]))
	}
	var b strings.Builder
	for i := range all {
		x := &all[i]
		words := fmt.Sprintf("%s: %.3g s, %d times", x.Step, mean(x), x.Within[len(x.Within)-1])
		words = strings.TrimSuffix(words, ", 1 times")
		label = append(label, words)
		y := float64(n) * row
		fmt.Fprintf(&b, `<text x="0" y="%.0f">%s</text><rect class="bar" x="0" y="%.0f" width="%.1f" `+
			`height="10"/>`, y+below-4, template.HTMLEscapeString(words), y+below,
			max(1, mean(x)/max(longest, 1e-9)*(drawWidth-drawRight)))
		n++
	}
	if n == 0 {
		return ""
	}
	return wrap(float64(n)*row, "average seconds by step. "+strings.Join(label, "; "), b.String())
}
