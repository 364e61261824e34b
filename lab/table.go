package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hushsum/hushsum/lab/experiments"
)

// width is that of a terminal, in columns.
const width = 80

// wrapped breaks a text into lines of at most so many columns.
func wrapped(text string, columns int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// printTable prints a table for people.
func printTable(w io.Writer, t *experiments.Table, files []string, took time.Duration) {
	say := func(text string) { fmt.Fprintln(w, strings.Join(wrapped(text, width), "\n")) }
	item := func(text string) {
		for i, line := range wrapped(text, width-2) {
			fmt.Fprintf(w, "%s%s\n", [2]string{"- ", "  "}[min(i, 1)], line)
		}
	}
	say(t.Title)
	fmt.Fprintln(w)
	for _, s := range t.Settings {
		item(s)
	}
	if t.Seeds > 0 {
		item(fmt.Sprintf("seeds: %d; mean and standard deviation", t.Seeds))
	}
	if !t.Complete {
		item("INCOMPLETE: the run ended early")
	}
	fmt.Fprintln(w)
	for _, line := range columns(t) {
		fmt.Fprintln(w, line)
	}
	for _, text := range t.Notes {
		fmt.Fprintln(w)
		say(text)
	}
	if len(t.Findings) > 0 {
		fmt.Fprintln(w)
		for _, f := range t.Findings {
			item(f.String())
		}
	}
	fmt.Fprintln(w)
	if len(files) > 0 {
		say("Written: " + strings.Join(files, ", "))
	}
	fmt.Fprintf(w, "The run took %.1f s in all.\n", took.Seconds())
}

// columns lays out the rows of a table.
func columns(t *experiments.Table) []string {
	published := map[string]bool{}
	for _, r := range t.Rows {
		for name := range r.Published {
			published[name] = true
		}
	}
	header := append([]string(nil), t.Labels...)
	for _, m := range t.Measures {
		name := m.Name
		if m.Percent {
			name += " %"
		}
		header = append(header, name)
		if published[m.Name] {
			header = append(header, "published")
		}
	}
	grid := [][]string{header}
	for i := range t.Rows {
		r := &t.Rows[i]
		line := append([]string(nil), r.Labels...)
		for k, m := range t.Measures {
			line = append(line, meanText(r, k, m))
			if !published[m.Name] {
				continue
			}
			text := "-"
			if p, ok := r.Published[m.Name]; ok {
				text = measured(p, m, 1)
			}
			line = append(line, text)
		}
		grid = append(grid, line)
	}
	widths := make([]int, len(header))
	for _, line := range grid {
		for k, cell := range line {
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	var lines []string
	for _, row := range grid {
		line := ""
		for k, cell := range row {
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell))
			switch {
			case k < len(t.Labels):
				line += cell + pad + "  "
			default:
				line += pad + cell + "  "
			}
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// meanText returns the mean, with the standard deviation over seeds if they differ.
func meanText(r *experiments.Row, measure int, m experiments.Measure) string {
	mean, spread, n := r.Mean(measure)
	if n == 0 {
		return "-"
	}
	text := measured(mean, m, m.Digits)
	switch {
	case spread == 0:
		return text
	case strings.Contains(text, "e"):
		return text + fmt.Sprintf(" ± %.0e", spread)
	case m.Percent:
		spread *= 100
	}
	return text + fmt.Sprintf(" ± %.*f", m.Digits, spread)
}

// measured prints a number as its measure says, and with an exponent if it is too small for that.
func measured(x float64, m experiments.Measure, digits int) string {
	if m.Percent {
		x *= 100
	}
	if x != 0 && math.Abs(x) < math.Pow10(-digits)/2 {
		return fmt.Sprintf("%.1e", x)
	}
	return fmt.Sprintf("%.*f", digits, x)
}
