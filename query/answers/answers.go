// Package answers writes what queries cost and what came of them as tables for people.
package answers

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/numbers"
	"github.com/hushsum/hushsum/internal/script"
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

// cellWidth returns the width of a cell's interval; 0 for whole numbers, which need no decimals.
func cellWidth(c query.Cell) float64 {
	if c.Value == math.Trunc(c.Value) && c.Low == math.Trunc(c.Low) && c.High == math.Trunc(c.High) {
		return 0
	}
	return c.High - c.Low
}

// interval writes a cell's.
func interval(c query.Cell) string {
	if math.IsInf(c.High, 0) || math.IsInf(c.Low, 0) {
		return "anything"
	}
	width := c.High - c.Low
	if c.Unknown == "" {
		width = cellWidth(c)
	}
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

// Notes says in sentences what the table of a plan has no room for: which queries are answered
// together, and what that gains; what bins leave of a curve; and when a slope cannot be known.
func Notes(expected []query.Expected) []string {
	sentences := together(expected)
	for _, e := range expected {
		switch {
		case e.Chance > 0 && e.Margin > 0:
			sentences = append(sentences, fmt.Sprintf("%s: chance alone moves it by ± %s events; a margin "+
				"that is larger leaves little to find.", e.Name, figure(e.Chance, e.Chance)))
		case e.Grid > 0:
			sentences = append(sentences, fmt.Sprintf("%s: ± %.2g %% of rows are left by bins, whatever "+
				"the noise; more bins leave less.", e.Name, 100*e.Grid))
		case e.Limit > 0:
			narrow := ""
			if !math.IsInf(e.Narrow, 1) {
				narrow = strings.Join(strings.Fields(fmt.Sprintf("± %s %s if the first column's deviation is "+
					"a tenth of its range; ", figure(e.Narrow, e.Narrow), e.Of)), " ")
			}
			sentences = append(sentences, strings.Join(strings.Fields(fmt.Sprintf("%s: %s the slope of a "+
				"column whose deviation is below %.2g %% of its range cannot be known.", e.Name, narrow,
				100*e.Limit)), " "))
		}
	}
	return sentences
}

// together has a sentence for each joint measurement.
func together(expected []query.Expected) (sentences []string) {
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
	case math.IsInf(e.Margin, 1):
		return "cannot be known"
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
			unknowns(w, a)
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
		tested(w, a.Test)
		unknowns(w, a)
	}
}

// tested says what a test found.
func tested(w io.Writer, t *query.Test) {
	if t != nil {
		fmt.Fprintf(w, "  chi-square %.4g with %s of freedom, p = %.2g\n", t.ChiSquare,
			numbers.Plural(t.Degrees, "degree"), t.P)
	}
}

// unknowns says why numbers of an answer cannot be known, each reason once.
func unknowns(w io.Writer, a query.Answer) {
	var told []string
	for _, c := range a.Cells {
		if c.Unknown == "" || slices.Contains(told, c.Unknown) {
			continue
		}
		told = append(told, c.Unknown)
		for _, text := range script.Wrap("cannot be known: "+c.Unknown, 72) {
			fmt.Fprintf(w, "    %s\n", text)
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
// One that cannot be known is none.
func Value(c query.Cell) string {
	if c.Unknown != "" {
		return "unknown"
	}
	return figure(c.Value, cellWidth(c))
}

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
	// Margin is null where the answer would not be known.
	Margin *float64 `json:"margin"`
	Of     string   `json:"of"`
	// Grid, Narrow and Limit are those of a survival curve and of a linear model.
	Grid   float64  `json:"grid,omitempty"`
	Narrow *float64 `json:"narrow,omitempty"`
	Limit  float64  `json:"limit,omitempty"`
	Chance float64  `json:"chance,omitempty"`
	// Together numbers the queries that are answered together, and Alone is the margin of this one by
	// itself.
	Together int     `json:"together,omitempty"`
	Alone    float64 `json:"alone,omitempty"`
}

// known returns a margin, or nil in place of one that an answer will not have.
func known(margin float64) *float64 {
	if math.IsInf(margin, 1) {
		return nil
	}
	return &margin
}

// Plan returns what is expected in its JSON form.
func Plan(expected []query.Expected) []Planned {
	out := []Planned{}
	for _, e := range expected {
		out = append(out, Planned{Name: e.Name, Kind: e.Kind, Numbers: e.Numbers, Share: e.Share,
			Spends: e.Spends, Margin: known(e.Margin), Of: e.Of, Grid: e.Grid, Narrow: known(e.Narrow),
			Limit: e.Limit, Chance: e.Chance, Together: e.Together, Alone: e.Alone})
	}
	return out
}
