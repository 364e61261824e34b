// Package answers writes what queries cost and what came of them as tables for people.
package answers

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/table"
)

// figure writes a number for people: whole ones in full, others with as many digits as still say
// something next to the interval's width.
func figure(x, width float64) string {
	if math.Abs(x) >= 1e15 {
		return numbers.Short4(x)
	}
	digits := 0
	if width > 0 {
		digits = max(0, 1-int(math.Floor(math.Log10(width))))
	} else if x != math.Trunc(x) {
		digits = 4
	}
	text := strconv.FormatFloat(math.Abs(x), 'f', min(digits, 8), 64)
	whole, rest, dot := strings.Cut(text, ".")
	n, err := strconv.Atoi(whole)
	if err != nil {
		return text
	}
	if text = numbers.Grouped(n); dot {
		text += "." + rest
	}
	if x < 0 && strings.Trim(text, "0.") != "" {
		text = "-" + text
	}
	return text
}

// width returns the width of a cell's interval; 0 for whole numbers, which need no decimals.
func width(c query.Cell) float64 {
	if c.Value == math.Trunc(c.Value) && c.Low == math.Trunc(c.Low) && c.High == math.Trunc(c.High) {
		return 0
	}
	return c.High - c.Low
}

// interval writes a cell's.
func interval(c query.Cell) string {
	if c.High == math.MaxFloat64 {
		return "anything"
	}
	width := width(c)
	return figure(c.Low, width) + " to " + figure(c.High, width)
}

// clip cuts a text to fit a column.
func clip(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// WritePlan writes a table of what queries will cost and give, and what that counts for.
func WritePlan(w io.Writer, expected []query.Expected) {
	fmt.Fprintf(w, "%-20s %-11s %7s %7s %8s  %s\n", "query", "kind", "numbers", "share", "epsilon",
		"95 % margin")
	for _, e := range expected {
		fmt.Fprintf(w, "%-20s %-11s %7d %6.1f%% %8s  %s\n", clip(e.Name, 20), e.Kind, e.Numbers,
			100*e.Share, cmp.Or(Spends(e.Spends), "-"), clip(Margin(e), 22))
	}
}

// Spends writes what a query would spend by itself, empty without noise.
func Spends(c *accounting.Claim) string {
	if c == nil {
		return ""
	}
	return c.Most()
}

// mostNamed is how many queries a sentence names.
const mostNamed = 4

// Together says which queries of a plan are answered together, and what that gains: a sentence for
// each joint measurement, none if there is no such measurement.
func Together(expected []query.Expected) (sentences []string) {
	for group := 1; ; group++ {
		var names []string
		measured, ratio := 0, 0.0 // of squares, by themselves over together
		for _, e := range expected {
			if e.Together != group {
				continue
			}
			names, measured = append(names, e.Name), e.Numbers
			if e.Margin > 0 {
				ratio += e.Alone * e.Alone / (e.Margin * e.Margin)
			}
		}
		if names == nil {
			return sentences
		}
		n := len(names)
		first, last := names[:n-1], names[n-1]
		if n > mostNamed {
			first, last = names[:2], fmt.Sprint(n-2, " others")
		}
		sentences = append(sentences, fmt.Sprintf("%s and %s are answered together, from %d numbers: by "+
			"themselves their margins would be %.2f times as large in the root mean square.",
			strings.Join(first, ", "), last, measured,
			math.Sqrt(ratio/float64(n))))
	}
}

// Margin writes half of the 95 % interval that an answer will have.
func Margin(e query.Expected) string {
	switch {
	case !(e.Margin > 0):
		return "exact"
	case e.Margin == math.MaxFloat64:
		return "anything"
	case e.Of == "share of rows":
		return fmt.Sprintf("± %.2g %% of rows", 100*e.Margin)
	}
	return strings.TrimSpace(fmt.Sprintf("± %s %s", figure(e.Margin, e.Margin), e.Of))
}

// Assumes says which rows the margins of a plan assume.
func Assumes(rows int) string {
	return fmt.Sprintf("Margins are half of 95 %% intervals with no party missing; of means, "+
		"variances and quantiles for %s and values spread evenly over the range.",
		numbers.Plural(rows, "row"))
}

// None says that an answer has no numbers: of frequent words none stands out.
const None = "no word has rows enough to stand out"

// mostCells is how many cells of an answer a table shows.
const mostCells = 40

// Write writes a table of answers.
func Write(w io.Writer, all []query.Answer) {
	fmt.Fprintf(w, "%-30s %12s   %-24s %7s\n", "query", "answer", "95 % interval", "epsilon")
	for _, a := range all {
		epsilon := cmp.Or(Spends(a.Spends), "-")
		title := fmt.Sprintf("%s (%s)", a.Name, a.Kind)
		if a.Unit != "" {
			title = fmt.Sprintf("%s (%s, %s)", a.Name, a.Kind, a.Unit)
		}
		if len(a.Cells) == 1 && a.Cells[0].Label == "" {
			line(w, title, a.Cells[0], epsilon)
			continue
		}
		fmt.Fprintf(w, "%-68s %7s\n", clip(title, 68), epsilon)
		if len(a.Cells) == 0 {
			fmt.Fprintf(w, "  %s\n", None)
		}
		for i, c := range a.Cells {
			if i == mostCells {
				fmt.Fprintf(w, "  … and %s: see --json\n", numbers.Plural(len(a.Cells)-i, "other"))
				break
			}
			line(w, "  "+Label(a, c), c, "")
		}
	}
}

// Label names a cell of an answer: a bin, two of them, or a quantile; empty: there is one number.
func Label(a query.Answer, c query.Cell) string {
	label := c.Label
	switch a.Kind {
	case "quantiles":
		label = "at " + label
	case "survival":
		label = "by " + label
	}
	if c.By != "" {
		label += ", " + c.By
	}
	return label
}

// Value writes a cell with as many digits as its interval gives sense.
func Value(c query.Cell) string { return figure(c.Value, width(c)) }

// Interval writes the interval of a cell, with as many digits.
func Interval(c query.Cell) string { return interval(c) }

// line writes one number.
func line(w io.Writer, title string, c query.Cell, epsilon string) {
	text := fmt.Sprintf("%-30s %12s   %-24s %7s", clip(title, 30), Value(c), Interval(c), epsilon)
	fmt.Fprintf(w, "%s\n", strings.TrimRight(text, " "))
}

// WriteReport says what reading a file found, for the owner of the rows.
func WriteReport(w io.Writer, r *query.Report) {
	for _, text := range Told(r) {
		fmt.Fprintln(w, text)
	}
}

// Told says each finding of a report in a line.
func Told(r *query.Report) []string {
	told := []string{}
	for _, f := range r.Findings {
		lines := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.Lines)), ", "), "[]")
		if f.Rows > len(f.Lines) {
			lines += " …"
		}
		where := "line"
		if r.Table {
			where = "row"
		}
		told = append(told, fmt.Sprintf("%s: %s: %s %s, at %s %s%s", filepath.Base(r.File), f.Column,
			numbers.Plural(f.Rows, "value"), f.What, where, lines, differing(&f)))
	}
	return told
}

// differing quotes the first values of a finding, and what is declared in their place; empty: it
// has none.
func differing(f *query.Finding) string {
	if len(f.Values) == 0 {
		return ""
	}
	text := ": " + table.List(f.Values)
	switch {
	case len(f.Declared) > 0:
		text += ", where the job declares " + table.List(f.Declared)
	case len(f.Range) == 2:
		text += fmt.Sprintf(", where the job declares numbers from %v to %v", f.Range[0], f.Range[1])
	}
	return text
}

// Planned is a query in the JSON form of a plan.
type Planned struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Numbers int     `json:"numbers"`
	Share   float64 `json:"share"`
	// Spends bounds what the query would spend if it were the only one; null without noise.
	Spends *accounting.Claim `json:"spends"`
	Margin float64           `json:"margin"`
	Of     string            `json:"of"`
	// Together numbers the queries that are answered together, and Alone is the margin of this one by
	// itself.
	Together int     `json:"together,omitempty"`
	Alone    float64 `json:"alone,omitempty"`
}

// Plan returns what is expected in its JSON form.
func Plan(expected []query.Expected) []Planned {
	out := []Planned{}
	for _, e := range expected {
		out = append(out, Planned{e.Name, e.Kind, e.Numbers, e.Share, e.Spends, e.Margin, e.Of,
			e.Together, e.Alone})
	}
	return out
}
