package simulate

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
)

// grid prints a table: of rounds, of parties, or of the combinations of a sweep.
type grid struct {
	show.Screen
	widths []int
}

// line is a row of a grid: cells, each on the right of its column, and a text that continues below
// itself.
type line struct {
	cells []string
	text  string
}

// row prints a line.
func (g *grid) row(l line) {
	lead := ""
	for i, cell := range l.cells {
		if i > 0 {
			lead += " "
		}
		lead += fmt.Sprintf("%*s", g.widths[i], cell)
	}
	lead += " "
	for _, text := range fold(l.text, max(20, cli.Width-len(lead))) {
		g.Printf("%s\n", strings.TrimRight(lead+text, " "))
		lead = strings.Repeat(" ", len(lead))
	}
}

// paragraph prints a text on lines of its own.
func (g *grid) paragraph(text string) {
	g.Printf("%s\n", strings.Join(cli.Wrap(text, cli.Width), "\n"))
}

// fold is [cli.Wrap] that breaks words, such as long names, which then continue on the next line.
func fold(text string, width int) (lines []string) {
	for _, line := range cli.Wrap(text, width) {
		runes := []rune(line)
		for ; len(runes) > width; runes = runes[width:] {
			lines = append(lines, string(runes[:width]))
		}
		lines = append(lines, string(runes))
	}
	return lines
}
