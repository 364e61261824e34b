package declare

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/job"
)

// idColumn is as wide as the longest name of a theorem and two blanks.
const idColumn = 16

// showTheorems prints what is proved about jobs with noise, by the parts of a derivation, and the
// marks of all fields.
func showTheorems(table job.TheoremTable, std cli.Streams) {
	part := ""
	for _, t := range table.Theorems {
		if t.Of != part {
			part = t.Of
			fmt.Fprintf(std.Out, "\n[%s]\n", part)
		}
		texts := []string{cli.Sentence(t.Words), fmt.Sprintf("%s; called for by %s", t.Where, t.By)}
		if len(t.Needs) > 0 {
			texts = append(texts, "needs "+strings.Join(t.Needs, "; "))
		}
		if t.Assumes != 0 {
			texts = append(texts, "assumes "+t.Assumes.String())
		}
		texts = append(texts, "admits "+strings.Join(t.Admits, ", "))
		for _, g := range t.Refuses {
			texts = append(texts, fmt.Sprintf("not %s: %s", strings.Join(g.Fields, ", "), g.Name))
		}
		column(t.ID, texts, std)
	}
	fmt.Fprintf(std.Out, "\n[groups of fields]\n")
	for _, g := range table.Groups {
		column(g.Name, []string{strings.Join(g.Fields, ", ")}, std)
	}
	fmt.Fprintf(std.Out, "\n[free fields]\n")
	for _, g := range table.Free {
		column("", []string{g.Name + ": " + strings.Join(g.Fields, ", ")}, std)
	}
}

// column prints texts below each other, next to a name.
func column(name string, texts []string, std cli.Streams) {
	for _, text := range texts {
		for _, line := range cli.Wrap(text, cli.Width-idColumn) {
			fmt.Fprintf(std.Out, "%-*s%s\n", idColumn, name, line)
			name = ""
		}
	}
}
