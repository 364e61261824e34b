package job

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// theoremPage is the page of what is proved.
const theoremPage = "../docs/theorems.md"

// theoremMark begins the part of the page that is made.
const theoremMark = "<!-- From here on go generate ./job makes the table of this page. " +
	"-->\n"

// withTheorems makes the table of the page anew, below what is written by hand.
func withTheorems(present []byte) ([]byte, error) {
	before, _, found := bytes.Cut(present, []byte(theoremMark))
	if !found {
		return nil, errors.New("the page has lost the line from which on it is made")
	}
	var b strings.Builder
	b.Write(before)
	b.WriteString(theoremMark + "\n## The table\n\n| | theorem | concludes | proved in | called for " +
		"by | needs, of what runs | admits | does not admit | assumes |\n" + strings.Repeat("|---", 9) +
		"|\n")
	table := Theorems()
	for _, t := range table.Theorems {
		var not []string
		for _, g := range t.Refuses {
			not = append(not, code(g.Fields...)+": "+escaped(g.Name))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join([]string{t.Of, t.ID, escaped(t.Words),
			escaped(t.Where), code(t.By), escaped(strings.Join(t.Needs, "; ")), code(t.Admits...),
			strings.Join(not, "; "), t.Assumes.String()}, " | "))
	}
	b.WriteString("\n## Groups\n\n| group | fields |\n|---|---|\n")
	for _, g := range table.Groups {
		fmt.Fprintf(&b, "| `%s` | %s |\n", g.Name, code(g.Fields...))
	}
	b.WriteString("\n## Free fields\n\n| why | fields |\n|---|---|\n")
	for _, g := range table.Free {
		fmt.Fprintf(&b, "| %s | %s |\n", escaped(g.Name), code(g.Fields...))
	}
	return []byte(b.String()), nil
}

// code writes names as code.
func code(names ...string) string { return "`" + strings.Join(names, "`, `") + "`" }

// Each theorem is proved where the table says: there is such a file, and such a heading.
func TestTheoremsHaveProofs(t *testing.T) {
	for _, x := range Theorems().Theorems {
		file, heading, _ := strings.Cut(x.Where, ", ")
		if name, section, is := strings.Cut(file, " §"); is {
			file, heading = name, section
		}
		text, err := os.ReadFile("../" + file)
		if err != nil {
			t.Errorf("%s: %v", x.ID, err)
			continue
		}
		found := heading == ""
		for line := range strings.Lines(string(text)) {
			title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "+heading)
			found = found || strings.HasPrefix(line, "##") && is && strings.Trim(title[:1], ". \n") == ""
		}
		if !found {
			t.Errorf("%s: %s has no heading %s", x.ID, file, heading)
		}
	}
}
