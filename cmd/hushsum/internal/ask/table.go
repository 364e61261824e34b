package ask

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/query"
)

// figure writes a number for people: whole ones in full, others to so many digits that the last
// says something next to the interval's width.
func figure(x, width float64) string {
	if math.Abs(x) >= 1e15 {
		return show.Short4(x)
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
	if text = show.Grouped(n); dot {
		text += "." + rest
	}
	if x < 0 && strings.Trim(text, "0.") != "" {
		text = "-" + text
	}
	return text
}

// width is that of a cell's interval; of whole numbers, which need no digits behind the point, 0.
func width(c query.Cell) float64 {
	if c.Value == math.Trunc(c.Value) && c.Low == math.Trunc(c.Low) && c.High == math.Trunc(c.High) {
		return 0
	}
	return c.High - c.Low
}

// interval writes a cell's.
func interval(c query.Cell) string {
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

// head says what is asked of whom.
func (w *world) head(s *show.Screen) error {
	j := w.job
	s.Field("job", "%s: %s in one sum of %s", j.Name, queries(len(j.Query)),
		show.Plural(w.plan.Length(), "number"))
	s.Field("parties", "%s, of each %s at most; protocol %s", show.Grouped(len(w.parties)),
		show.Plural(j.Parties.Rows, "row"), j.Sum.Protocol)
	spent, err := w.plan.Spent()
	if err != nil {
		return err
	}
	if math.IsInf(spent.Upper, 1) {
		s.Field("epsilon", "none: answers are exact, and protect nobody whose row shows in them")
		return nil
	}
	s.Field("epsilon", "%s of %s for all together, at delta %v, against %s",
		show.Epsilon(spent.Upper), j.Protects(), j.Privacy.Delta, j.Against())
	return nil
}

func queries(n int) string {
	if n == 1 {
		return "1 query"
	}
	return fmt.Sprintf("%d queries", n)
}

// plannedJSON is an element of what --plan --json prints.
type plannedJSON struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Numbers int      `json:"numbers"`
	Share   float64  `json:"share"`
	Epsilon *float64 `json:"epsilon"`
	Margin  float64  `json:"margin"`
	Of      string   `json:"of"`
}

// showPlan says what it would cost and give.
func (v *asked) showPlan(w *world, std cli.Streams) error {
	expected := w.plan.Expected()
	if v.json {
		out := []plannedJSON{}
		for _, e := range expected {
			out = append(out, plannedJSON{e.Name, e.Kind, e.Numbers, e.Share, show.Finite(e.Epsilon),
				e.Margin, e.Of})
		}
		show.JSON(std, out)
		return nil
	}
	s := &show.Screen{Std: std}
	if err := w.head(s); err != nil {
		return err
	}
	s.Printf("\n%-22s %-9s %7s %7s %8s  %s\n", "query", "kind", "numbers", "share", "epsilon",
		"95 % margin")
	for _, e := range expected {
		epsilon, margin := "-", "exact"
		if !math.IsInf(e.Epsilon, 1) {
			epsilon = show.Epsilon(e.Epsilon)
		}
		if e.Of == "share of rows" && e.Margin > 0 {
			margin = fmt.Sprintf("± %.2g %% of rows", 100*e.Margin)
		} else if e.Margin > 0 {
			margin = strings.TrimSpace(fmt.Sprintf("± %s %s", figure(e.Margin, e.Margin), e.Of))
		}
		s.Printf("%-22s %-9s %7d %6.1f%% %8s  %s\n", clip(e.Name, 22), e.Kind, e.Numbers, 100*e.Share,
			epsilon, clip(margin, 22))
	}
	s.Sentence("Margins are half of 95 %% intervals with no party missing; of means, variances and "+
		"quantiles for %s and values spread evenly over the range.", show.Plural(w.plan.Rows(), "row"))
	return nil
}

// mostCells is how many cells of an answer a table shows.
const mostCells = 40

// show prints the answers.
func (v *asked) show(w *world, std cli.Streams) error {
	if v.json {
		show.JSON(std, w.answers)
		return nil
	}
	s := &show.Screen{Std: std}
	if err := w.head(s); err != nil {
		return err
	}
	if missing := len(w.parties) - w.present; missing > 0 {
		s.Field("missing", "%s of the parties: intervals hold whatever their rows may be",
			show.Grouped(missing))
	}
	s.Printf("\n%-30s %12s   %-24s %7s\n", "query", "answer", "95 % interval", "epsilon")
	for _, a := range w.answers {
		epsilon := "-"
		if !math.IsInf(a.Epsilon, 1) {
			epsilon = show.Epsilon(a.Epsilon)
		}
		title := fmt.Sprintf("%s (%s)", a.Name, a.Kind)
		if a.Unit != "" {
			title = fmt.Sprintf("%s (%s, %s)", a.Name, a.Kind, a.Unit)
		}
		if len(a.Cells) == 1 && a.Cells[0].Label == "" {
			line(s, title, a.Cells[0], epsilon)
			continue
		}
		s.Printf("%-68s %7s\n", clip(title, 68), epsilon)
		for i, c := range a.Cells {
			if i == mostCells {
				s.Printf("  … and %s: see --json\n", show.Plural(len(a.Cells)-i, "other"))
				break
			}
			label := c.Label
			if a.Kind == "quantiles" {
				label = "at " + label
			}
			if c.By != "" {
				label += ", " + c.By
			}
			line(s, "  "+label, c, "")
		}
	}
	return nil
}

// line prints one number.
func line(s *show.Screen, title string, c query.Cell, epsilon string) {
	text := fmt.Sprintf("%-30s %12s   %-24s %7s", clip(title, 30), figure(c.Value, width(c)),
		interval(c), epsilon)
	s.Printf("%s\n", strings.TrimRight(text, " "))
}
