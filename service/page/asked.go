package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/internal/chart"
	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/service/federation"
)

// This file draws the queries that a federation asks, and their answers.

// asked holds what the page shows of a federation that asks queries.
type asked struct {
	*federation.Asked
	Expected []query.Expected // nil once there are answers
	Assumes  string           // what they are for
}

// mostLines is how many numbers of an answer the page shows; the file has all.
const mostLines = 200

// tableLine is a number in the table of answers.
type tableLine struct{ Query, Of, Value, Interval, Spends string }

// Lines returns the lines of the table.
func (a *asked) Lines() (out []tableLine) {
	for _, x := range a.Answers {
		title := x.Name
		if x.Unit != "" {
			title += ", " + x.Unit
		}
		spends := answers.Spends(x.Spends)
		if len(x.Cells) == 0 {
			out = append(out, tableLine{Query: title, Of: answers.None, Spends: spends})
		}
		for i, c := range x.Cells {
			if i == mostLines {
				of := fmt.Sprintf("… and %s", numbers.Plural(len(x.Cells)-i, "other"))
				out = append(out, tableLine{Query: title, Of: of})
				break
			}
			interval := answers.Interval(c)
			if c.Unknown != "" {
				interval += "; " + c.Unknown
			}
			out = append(out, tableLine{title, answers.Label(x, c), answers.Value(c), interval, spends})
		}
	}
	return out
}

// Figures draws the answers of more than one number.
func (a *asked) Figures() (out []figure) {
	for i, x := range a.Answers {
		for k, table := range x.Tables[:min(len(x.Tables), mostROC)] {
			caption := x.Name
			if table.Group != "" {
				caption += ", " + table.Group
			}
			out = append(out, figure{ID: fmt.Sprintf("answer-%d-%d", i, k), Caption: caption,
				Unit: "the ROC curve of rounded scores", Drawn: roc(&table)})
		}
		// The numbers of a model have units of their own.
		if len(x.Cells) < 2 || x.Errors != nil || x.Tables != nil {
			continue
		}
		f := figure{ID: "answer-" + strconv.Itoa(i), Caption: x.Name, Unit: strings.TrimSuffix(x.Kind+
			", "+x.Unit, ", ") + "; lines are 95 % intervals", Drawn: cellBars(x)}
		if x.Kind == "quantiles" || x.Kind == "survival" {
			f.Drawn = curve(x)
		}
		out = append(out, f)
	}
	return out
}

// mostROC is how many groups of an evaluation have their curve drawn.
const mostROC = 8

// roc draws the share of rows with the event above a score against that of the others.
func roc(t *query.ScoreTable) template.HTML {
	f := frame(0, 1, 0, 1)
	var points []chart.Point
	for _, p := range t.ROC() {
		points = append(points, chart.Point{X: p[0], Y: p[1]})
	}
	grid(f)
	drawCurve(f, points)
	return framed(f, f.AtX, "share of the rows without the event", "ROC curve")
}

// mostAnswerBars is how many cells of an answer are drawn.
const mostAnswerBars = 40

// cellBars draws the cells of an answer, one below another, each with its interval.
func cellBars(a query.Answer) template.HTML {
	const row, below, thick = 34., 16., 10.
	cells := a.Cells[:min(len(a.Cells), mostAnswerBars)]
	low, high := 0., 0.
	for _, c := range cells {
		if c.Unknown == "" {
			low, high = min(low, c.Low), max(high, c.High)
		}
	}
	if high == low {
		high = low + 1
	}
	x := func(value float64) float64 {
		value = min(max(value, low), high)
		return 2 + (value-low)/(high-low)*(drawWidth-drawRight-2)
	}
	d := chart.Drawing{Width: drawWidth}
	var words []string
	for i, c := range cells {
		text := fmt.Sprintf("%s: %s (%s)", answers.Label(a, c), answers.Value(c), answers.Interval(c))
		words = append(words, text)
		y := float64(i)*row + below
		d.Text(0, y-4, "start", text)
		if c.Unknown != "" {
			continue
		}
		from, to := min(x(0), x(c.Value)), max(x(0), x(c.Value))
		d.Add(`<rect class="bar" x="%.1f" y="%.0f" width="%.1f" height="%.0f"/>`, from, y,
			max(0.5, to-from), thick)
		reach(&d, x(c.Low), x(c.High), y+thick/2)
	}
	d.Height = float64(len(cells)) * row
	if more := len(a.Cells) - len(cells); more > 0 {
		d.Text(0, d.Height+12, "start", "… and "+numbers.Plural(more, "other")+": see the table")
		d.Height += 18
	}
	return template.HTML(d.SVG(a.Name + ". " + strings.Join(words, "; ")))
}

// reach draws an interval as a line with ends.
func reach(d *chart.Drawing, low, high, y float64) {
	d.Add(`<path class="reach" d="M%.1f %.1f H%.1f M%.1f %.1f V%.1f M%.1f %.1f V%.1f"/>`, low,
		y, high, low, y-4, y+4, high, y-4, y+4)
}

// curve draws quantiles against the part of the rows below, and survival against time, each with
// its interval.
func curve(a query.Answer) template.HTML {
	f := frame(math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1))
	var points []chart.Point
	var places []float64
	var words []string
	for _, c := range a.Cells {
		at, err := strconv.ParseFloat(c.Label, 64)
		if err != nil {
			return cellBars(a)
		}
		places = append(places, at)
		if c.Unknown == "" {
			points = append(points, chart.Point{X: at, Y: c.Value})
		}
		f.X.Low, f.X.High = min(f.X.Low, at), max(f.X.High, at)
		f.Y.Low, f.Y.High = min(f.Y.Low, c.Low), max(f.Y.High, c.High)
		words = append(words, fmt.Sprintf("%s: %s (%s)", answers.Label(a, c), answers.Value(c),
			answers.Interval(c)))
	}
	if f.Y.High == f.Y.Low {
		f.Y.High = f.Y.Low + 1
	}
	name := "time"
	if a.Kind == "quantiles" {
		f.X.Low, f.X.High, name = 0, 1, "share of the rows below"
	}
	grid(f)
	drawCurve(f, points)
	for i, c := range a.Cells {
		x := f.AtX(places[i])
		f.Add(`<path class="reach" d="M%.1f %.1f V%.1f M%.1f %.1f H%.1f `+
			`M%.1f %.1f H%.1f"/>`, x, f.AtY(c.Low), f.AtY(c.High), x-4, f.AtY(c.Low), x+4, x-4, f.AtY(c.High),
			x+4)
	}
	return framed(f, f.AtX, name, a.Name+". "+strings.Join(words, "; "))
}
