package experiment

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/experiments"
)

// printExperiment prints a table for people.
func printExperiment(t *experiments.Table, files []string, took time.Duration, std cli.Streams) {
	say := func(text string) { fmt.Fprintln(std.Out, strings.Join(cli.Wrap(text, cli.Width), "\n")) }
	item := func(text string) {
		for i, line := range cli.Wrap(text, cli.Width-2) {
			fmt.Fprintf(std.Out, "%s%s\n", [2]string{"- ", "  "}[min(i, 1)], line)
		}
	}
	say(t.Title)
	fmt.Fprintln(std.Out)
	for _, s := range t.Settings {
		item(s)
	}
	if t.Seeds > 0 {
		item(fmt.Sprintf("%s; mean and standard deviation", show.Plural(t.Seeds, "seed")))
	}
	if !t.Complete {
		item("INCOMPLETE: the run ended early")
	}
	fmt.Fprintln(std.Out)
	for _, line := range columns(t) {
		fmt.Fprintln(std.Out, line)
	}
	for _, text := range t.Notes {
		fmt.Fprintln(std.Out)
		say(text)
	}
	if len(t.Findings) > 0 {
		fmt.Fprintln(std.Out)
		for _, f := range t.Findings {
			item(f.String())
		}
	}
	fmt.Fprintln(std.Out)
	if len(files) > 0 {
		say("Written: " + strings.Join(files, ", "))
	}
	if took < time.Second {
		fmt.Fprintf(std.Out, "The run took %s ms in all.\n", show.Short(took))
		return
	}
	fmt.Fprintf(std.Out, "The run took %.0f s in all.\n", took.Seconds())
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
