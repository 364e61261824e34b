package attack

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
)

// write makes the report and its figures. ended says why attacks are missing, if any are.
func (b *battery) write(ended string) (paths []string, err error) {
	m := results.Manifest{Command: "attack", Complete: ended == "", Ended: ended}
	paths, err = results.Publish(b.out, "report", m, func(stage string) error {
		for _, f := range b.done {
			for _, figure := range f.Figures {
				if err := figureOf(figure).Save(filepath.Join(stage, figure.Name+".svg")); err != nil {
					return err
				}
			}
		}
		file, err := os.Create(filepath.Join(stage, "report.md"))
		if err != nil {
			return err
		}
		text := &cli.StickyWriter{W: file}
		b.report(text, ended)
		return errors.Join(text.Err, file.Close())
	})
	if err != nil {
		return nil, results.FolderProblem(err)
	}
	return paths, nil
}

// reportHead opens every report.
const reportHead = `# Attacks

Every attack runs against a target without the defence, where it has to succeed,
and against the real code, where it has to fail. Intervals are at the confidence
given; a value must be in the range in square brackets.
`

// report writes the Markdown report.
func (b *battery) report(w io.Writer, ended string) {
	fmt.Fprint(w, reportHead)
	if ended != "" {
		fmt.Fprintf(w, "\n**Not complete:** %s.\n", ended)
	}
	if b.note != "" {
		fmt.Fprintf(w, "\n%s\n", b.note)
	}
	for _, f := range b.done {
		f.report(w)
	}
}

// report writes the section of an attack.
func (f finished) report(w io.Writer) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n- Adversary: %s\n- What stops it: %s\n- Time: %.1f s\n\n",
		f.Name, f.About, f.Adversary, f.Defence, f.took.Seconds())
	fmt.Fprint(w, "| case | metric | undefended | defended | verdict |\n|---|---|---|---|---|\n")
	for _, r := range f.Rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n",
			r.Case, r.Metric, inReport(r.Undefended), inReport(r.Defended), r.Verdict())
	}
	for _, r := range f.Rows {
		if r.Note == "" {
			continue
		}
		note := strings.TrimSuffix(r.Note, ".") + "."
		if r.Case != "" {
			note = r.Case + ": " + note
		}
		fmt.Fprintf(w, "\n%s\n", note)
	}
	for _, figure := range f.Figures {
		fmt.Fprintf(w, "\n![%s](%s.svg)\n", figure.Title, figure.Name)
	}
}

// inReport prints a measurement with its interval and its range.
func inReport(m attacks.Measure) string {
	if m.Missing() {
		return "–"
	}
	text := fmt.Sprintf("%.4g", m.Value)
	if m.Lower != m.Upper {
		text += fmt.Sprintf(" (%.4g to %.4g at %.6g %%, n = %d)",
			m.Lower, m.Upper, 100*m.Confidence, m.Samples)
	}
	switch {
	case m.Min == m.Max:
		return text + fmt.Sprintf(" [%.4g]", m.Min)
	case math.IsInf(m.Min, -1):
		return text + fmt.Sprintf(" [at most %.4g]", m.Max)
	case math.IsInf(m.Max, 1):
		return text + fmt.Sprintf(" [at least %.4g]", m.Min)
	}
	return text + fmt.Sprintf(" [%.4g to %.4g]", m.Min, m.Max)
}
