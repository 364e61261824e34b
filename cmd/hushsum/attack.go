package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/catalogue"
)

const attackAbout = `Usage: hushsum attack [flags]

Attacks private sums. Every attack of the catalogue runs against a target that
lacks one defence, where it has to succeed as far as theory says, and against
the real code, where it has to fail. Of each attack one measurement on both
targets is printed, and under it who mounts the attack and how many more there
are; with --all, every measurement:
  metric      what is measured
  undefended  on the target without the defence; a dash if there is none
  defended    on the real code
  bound       where the defended value has to be
  verdict     of all measurements, the worst. shown: the attack succeeds without
              the defence. held: it fails on the real code, and succeeds without
              the defence wherever that was measured. documented: there is no
              complete defence, and the limit is where the documents say.
              toothless: it fails without the defence too, so that nothing is
              shown. broken: it succeeds against the real code.
Confidence intervals are in the report and in --json, which both have every
measurement.

With --out, figures (SVG), a report (report.md) and a list of them (report.json)
are written to the folder, all at the end, in the place of those of the last
run. What an interrupted run has done is written to the folder incomplete in it.
Attacks that train models read the data sets adult and digits in the folder
HUSHSUM_DATA or ../shared/data; without such a folder they make up rows, and a
line at the end says so (with --json on standard error).
`

// attackManual is the help.
func attackManual() *manual {
	return &manual{
		about: attackAbout,
		topics: []topic{{"json", "what --json prints", `With --json there is one object per measurement: attack, adversary, defence,
case, metric, undefended and defended (null, or value, lower, upper, confidence,
samples, min, max: the value must be from min to max), verdict, note.
`}},
		codes: `Exit codes: 0 all is in order, 1 something is toothless or broken or failed to
run, 2 called wrongly, 130 interrupted.
`,
		examples: []string{"hushsum attack", "hushsum attack --run 'Split|Collusion' --out report"},
	}
}

func attack(ctx context.Context, args []string, std streams) int {
	var o attacks.Options
	var run, out string
	var asJSON, all bool
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	o.Seed = 1
	flags.StringVar(&run, "run", "", "`REGEX` run only attacks whose name matches, in upper or lower case")
	flags.StringVar(&out, "out", "", "`DIR` write figures and a report there")
	flags.Var((*seedValue)(&o.Seed), "seed", "`N` of everything random but keys and masks")
	flags.BoolVar(&o.Long, "long", false, "the long form: more repetitions, narrower intervals")
	flags.BoolVar(&all, "all", false, "print every measurement, as --json always does")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line instead of a table")
	if code, ok := parseFlags(flags, attackManual(), args, std); !ok {
		return code
	}
	wanted, err := regexp.Compile("(?i)" + run)
	if err != nil {
		return wrongUsage(flags, &problem{cause: fmt.Sprintf("--run: %q is no regular expression", run), advice: "Use the name of an attack, or part of it.", err: err}, std)
	}
	var chosen []attacks.Attack
	var names []string
	for _, a := range catalogue.All() {
		names = append(names, a.Name)
		if wanted.MatchString(a.Name) {
			chosen = append(chosen, a)
		}
	}
	if len(chosen) == 0 {
		return wrongUsage(flags, &problem{
			cause:  fmt.Sprintf("--run: no attack matches %q", run),
			advice: didYouMean(run, names, "%s", "There are "+strings.Join(names, ", ")+"."),
		}, std)
	}
	if info, err := os.Stat(dataRoot()); err == nil && info.IsDir() {
		o.Data = dataRoot()
	}
	if out != "" {
		if err := makeOut(out); err != nil {
			complain(std.err, "hushsum attack", err)
			return exitFailure
		}
	}
	o.Now = time.Now
	b := &battery{screen: screen{std: std}, json: asJSON, all: all, out: out, start: time.Now()}
	return b.run(ctx, chosen, o)
}

// dataAttacks are the attacks that read data sets.
var dataAttacks = []string{"CollusionAdult", "GradientInversion", "Membership"}

// madeUp says which of the attacks that were run used made-up rows, if any did.
func (b *battery) madeUp(o attacks.Options) string {
	var names []string
	for _, f := range b.done {
		if o.Data == "" && slices.Contains(dataAttacks, f.Name) {
			names = append(names, f.Name)
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("%s used made-up rows, since there is no folder %s. Name the folder of the data sets in HUSHSUM_DATA.", strings.Join(names, ", "), dataRoot())
}

// battery runs attacks and shows what they find.
type battery struct {
	screen
	json   bool
	all    bool
	out    string
	start  time.Time
	counts map[attacks.Verdict]int
	done   []finished
	note   string // on what the attacks used, for the report too
}

// finished is an attack with what it found.
type finished struct {
	attacks.Attack
	*attacks.Report
	took time.Duration
}

func (b *battery) run(ctx context.Context, chosen []attacks.Attack, o attacks.Options) int {
	b.counts = make(map[attacks.Verdict]int)
	if !b.json {
		fmt.Fprintf(b.std.out, attackFormat+"\n", "attack", "metric", "undefended", "defended", "bound", "verdict")
	}
	code, ended := exitOK, ""
	for _, a := range chosen {
		o.Progress = func(done, of int) { b.progress(a.Name, done, of) }
		start := time.Now()
		report, err := a.Run(ctx, o)
		b.wipe()
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				ended = fmt.Sprintf("interrupted in %s, after %d of %s", a.Name, len(b.done), plural(len(chosen), "attack"))
				complain(b.std.err, "hushsum attack", &problem{cause: ended})
				code = exitInterrupted
				break
			}
			ended = a.Name + " failed to run"
			complain(b.std.err, "hushsum attack", fmt.Errorf("%s: %w", a.Name, err))
			code = exitFailure
			continue
		}
		b.done = append(b.done, finished{a, report, time.Since(start)})
		for _, row := range report.Rows {
			b.counts[row.Verdict()]++
			if !row.Verdict().Good() {
				code = max(code, exitFailure)
			}
			if b.json {
				b.line(a, row)
			} else if b.all {
				b.show(caseName(a, row), row.Metric, row, row.Verdict())
			}
		}
		if !b.json && !b.all {
			b.summary(a, report.Rows)
		}
	}
	b.note = b.madeUp(o)
	if !b.json {
		b.total(len(chosen))
	}
	if b.note != "" {
		w := b.std.out
		if b.json {
			w = b.std.err
		}
		fmt.Fprintln(w, strings.Join(wrap(b.note, width), "\n"))
	}
	if b.out != "" {
		paths, err := b.write(ended)
		if err != nil {
			complain(b.std.err, "hushsum attack", err)
			return max(code, exitFailure)
		}
		if !b.json {
			fmt.Fprintf(b.std.out, "Report and figures are in %s.\n", filepath.Dir(paths[0]))
		}
	}
	return code
}

// attackFormat is a row of the table: 79 characters.
const attackFormat = "%-18s %-19s %9s %9s %9s %-10s"

func caseName(a attacks.Attack, row attacks.Row) string {
	if row.Case == "" {
		return a.Name
	}
	return a.Name + ": " + row.Case
}

// summary prints one of an attack's rows with the worst verdict: one on both targets,
// or on the real code, if there is one.
func (b *battery) summary(a attacks.Attack, rows []attacks.Row) {
	if len(rows) == 0 {
		fmt.Fprintf(b.std.out, "%-18s nothing to measure\n", a.Name)
		return
	}
	worst := rows[0].Verdict()
	for _, r := range rows {
		worst = max(worst, r.Verdict())
	}
	others := len(rows) - 1
	rows = slices.DeleteFunc(slices.Clone(rows), func(r attacks.Row) bool { return r.Verdict() != worst })
	first := rows[0]
	for _, r := range slices.Backward(rows) {
		if !r.Defended.Missing() && (first.Defended.Missing() || !r.Undefended.Missing()) {
			first = r
		}
	}
	metric := first.Metric
	if first.Case != "" {
		metric += ", " + first.Case
	}
	b.show(a.Name, metric, first, worst)
	more := ""
	if others > 0 {
		more = fmt.Sprintf("; %d more", others)
	}
	fmt.Fprintf(b.std.out, "  by: %s%s\n", a.Adversary, more)
}

// show prints a row, on more lines if it must be.
func (b *battery) show(name, metric string, row attacks.Row, verdict attacks.Verdict) {
	names, metrics := wrap(name, 18), wrap(metric, 19)
	for i := range max(len(names), len(metrics)) {
		at := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return ""
		}
		if i == 0 {
			line := fmt.Sprintf(attackFormat, at(names), at(metrics), figure(row.Undefended), figure(row.Defended), bound(row.Defended), verdict)
			fmt.Fprintln(b.std.out, strings.TrimRight(line, " "))
			continue
		}
		fmt.Fprintln(b.std.out, strings.TrimRight(fmt.Sprintf("%-18s %-19s", at(names), at(metrics)), " "))
	}
}

// bound prints where a value must be, by the end that an attack would cross.
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

func (b *battery) total(of int) {
	rows := 0
	var parts []string
	for _, v := range []attacks.Verdict{attacks.Shown, attacks.Held, attacks.Documented, attacks.Toothless, attacks.Broken} {
		rows += b.counts[v]
		if n := b.counts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, v))
		}
	}
	if rows == 0 {
		parts = []string{"nothing"}
	}
	fmt.Fprintf(b.std.out, "\n%d of %s, %s: %s; %.1f s.\n", len(b.done), plural(of, "attack"), plural(rows, "measurement"), strings.Join(parts, ", "), time.Since(b.start).Seconds())
}

func (b *battery) progress(name string, done, of int) {
	if !b.std.live || b.json || of < 1 {
		return
	}
	b.over(fmt.Sprintf("%-31s %3d%%", name, 100*done/of))
}

// jsonMeasure is a measurement; bounds that are infinite are null.
type jsonMeasure struct {
	Value      *float64 `json:"value"`
	Lower      *float64 `json:"lower"`
	Upper      *float64 `json:"upper"`
	Confidence float64  `json:"confidence"`
	Samples    int      `json:"samples"`
	Min        *float64 `json:"min"`
	Max        *float64 `json:"max"`
}

func newJSONMeasure(m attacks.Measure) *jsonMeasure {
	if m.Missing() {
		return nil
	}
	return &jsonMeasure{finite(m.Value), finite(m.Lower), finite(m.Upper), m.Confidence, m.Samples, finite(m.Min), finite(m.Max)}
}

func (b *battery) line(a attacks.Attack, row attacks.Row) {
	printJSON(b.std, struct {
		Attack     string       `json:"attack"`
		Adversary  string       `json:"adversary"`
		Defence    string       `json:"defence"`
		Case       string       `json:"case"`
		Metric     string       `json:"metric"`
		Undefended *jsonMeasure `json:"undefended"`
		Defended   *jsonMeasure `json:"defended"`
		Verdict    string       `json:"verdict"`
		Note       string       `json:"note"`
	}{a.Name, a.Adversary, a.Defence, row.Case, row.Metric, newJSONMeasure(row.Undefended), newJSONMeasure(row.Defended), row.Verdict().String(), row.Note})
}

// write makes the report and its figures. ended says why attacks are missing, if any
// are.
func (b *battery) write(ended string) (paths []string, err error) {
	m := manifest{Command: "attack", Complete: ended == "", Ended: ended}
	paths, err = publish(b.out, "report", m, func(stage string) error {
		for _, f := range b.done {
			for _, figure := range f.Figures {
				if err := drawAttack(figure, filepath.Join(stage, figure.Name+".svg")); err != nil {
					return err
				}
			}
		}
		file, err := os.Create(filepath.Join(stage, "report.md"))
		if err != nil {
			return err
		}
		text := &stickyWriter{w: file}
		b.report(text, ended)
		return errors.Join(text.err, file.Close())
	})
	if err != nil {
		return nil, outProblem(err)
	}
	return paths, nil
}

// reportHead is what every report begins with.
const reportHead = `# Attacks

Every attack runs against a target without the defence, where it has to succeed,
and against the real code, where it has to fail. Intervals are at the confidence
given; a value must be in the range in square brackets.
`

// report is the Markdown report.
func (b *battery) report(w io.Writer, ended string) {
	fmt.Fprint(w, reportHead)
	if ended != "" {
		fmt.Fprintf(w, "\n**Not complete:** %s.\n", ended)
	}
	if b.note != "" {
		fmt.Fprintf(w, "\n%s\n", b.note)
	}
	for _, f := range b.done {
		fmt.Fprintf(w, "\n## %s\n\n%s\n\n- Adversary: %s\n- What stops it: %s\n- Time: %.1f s\n\n", f.Name, f.About, f.Adversary, f.Defence, f.took.Seconds())
		fmt.Fprint(w, "| case | metric | undefended | defended | verdict |\n|---|---|---|---|---|\n")
		var notes []string
		for _, r := range f.Rows {
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.Case, r.Metric, inReport(r.Undefended), inReport(r.Defended), r.Verdict())
			if r.Note != "" {
				note := strings.TrimSuffix(r.Note, ".") + "."
				if r.Case != "" {
					note = r.Case + ": " + note
				}
				notes = append(notes, note)
			}
		}
		for _, n := range notes {
			fmt.Fprintf(w, "\n%s\n", n)
		}
		for _, figure := range f.Figures {
			fmt.Fprintf(w, "\n![%s](%s.svg)\n", figure.Title, figure.Name)
		}
	}
}

// inReport prints a measurement with its interval and its range.
func inReport(m attacks.Measure) string {
	if m.Missing() {
		return "–"
	}
	text := fmt.Sprintf("%.4g", m.Value)
	if m.Lower != m.Upper {
		text += fmt.Sprintf(" (%.4g to %.4g at %.6g %%, n = %d)", m.Lower, m.Upper, 100*m.Confidence, m.Samples)
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
