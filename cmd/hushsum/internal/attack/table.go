package attack

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
)

// attackFormat is a row of the table: 79 characters.
const attackFormat = "%-18s %-19s %9s %9s %9s %-10s"

// heading prints the head of the table.
func (b *battery) heading() {
	fmt.Fprintf(b.Std.Out, attackFormat+"\n",
		"attack", "metric", "undefended", "defended", "bound", "verdict")
}

// caseName returns the name of a row's attack, with the variant.
func caseName(a attacks.Attack, row attacks.Row) string {
	if row.Case == "" {
		return a.Name
	}
	return a.Name + ": " + row.Case
}

// summary prints one of an attack's rows with the worst verdict: a row on both targets, or on the
// real code, if there is one.
func (b *battery) summary(a attacks.Attack, rows []attacks.Row) {
	if len(rows) == 0 {
		fmt.Fprintf(b.Std.Out, "%-18s nothing to measure\n", a.Name)
		return
	}
	worst := rows[0].Verdict()
	for _, r := range rows {
		worst = max(worst, r.Verdict())
	}
	row := telling(slices.DeleteFunc(slices.Clone(rows), func(r attacks.Row) bool {
		return r.Verdict() != worst
	}))
	metric := row.Metric
	if row.Case != "" {
		metric += ", " + row.Case
	}
	b.show(a.Name, metric, row, worst)
	more := ""
	if len(rows) > 1 {
		more = fmt.Sprintf("; %d more", len(rows)-1)
	}
	fmt.Fprintf(b.Std.Out, "  by: %s%s\n", a.Adversary, more)
}

// telling returns the first row that is measured on both targets, or on the real code, or the first
// of all.
func telling(rows []attacks.Row) attacks.Row {
	chosen := rows[0]
	for _, r := range slices.Backward(rows) {
		if !r.Defended.Missing() && (chosen.Defended.Missing() || !r.Undefended.Missing()) {
			chosen = r
		}
	}
	return chosen
}

// show prints a row, on several lines if necessary.
func (b *battery) show(name, metric string, row attacks.Row, verdict attacks.Verdict) {
	names, metrics := cli.Wrap(name, 18), cli.Wrap(metric, 19)
	figures := []any{figure(row.Undefended), figure(row.Defended), bound(row.Defended), verdict}
	for i := range max(len(names), len(metrics)) {
		at := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return ""
		}
		if i > 0 {
			figures = []any{"", "", "", ""}
		}
		cells := append([]any{at(names), at(metrics)}, figures...)
		line := fmt.Sprintf(attackFormat, cells...)
		fmt.Fprintln(b.Std.Out, strings.TrimRight(line, " "))
	}
}

// bound prints the bound on a value, at the end that an attack would cross.
func bound(m attacks.Measure) string {
	switch {
	case m.Missing():
		return "-"
	case m.Min == m.Max:
		return fmt.Sprintf("= %.3g", m.Max)
	case math.IsInf(m.Max, 1):
		return fmt.Sprintf(">= %.3g", m.Min)
	}
	return fmt.Sprintf("<= %.3g", m.Max)
}

// figure prints a value, or a dash.
func figure(m attacks.Measure) string {
	if m.Missing() {
		return "-"
	}
	return fmt.Sprintf("%.4g", m.Value)
}

// total prints the outcomes of the measurements of a given number of attacks.
func (b *battery) total(of int) {
	rows := 0
	var parts []string
	for v := attacks.Shown; v <= attacks.Broken; v++ {
		rows += b.counts[v]
		if n := b.counts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, v))
		}
	}
	if rows == 0 {
		parts = []string{"nothing"}
	}
	fmt.Fprintf(b.Std.Out, "\n%d of %s, %s: %s; %.1f s.\n",
		len(b.done), show.Plural(of, "attack"), show.Plural(rows, "measurement"),
		strings.Join(parts, ", "), time.Since(b.start).Seconds())
}

// progress shows how far an attack has come.
func (b *battery) progress(name string, done, of int) {
	if !b.Std.Live || b.json || of < 1 {
		return
	}
	b.Over(fmt.Sprintf("%-31s %3d%%", name, 100*done/of))
}
