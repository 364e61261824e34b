// Package attack has the command attack, which runs the catalogue of attacks and shows their
// findings as a table, as JSON, and as a report with figures.
package attack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/catalogue"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/training/rows"
)

const attackAbout = `Usage: hushsum attack [flags]

Attacks private sums. Every attack of the catalogue runs against a target that
lacks one defence, where it has to succeed as far as theory says, and against
the real code, where it has to fail. For each attack one measurement on both
targets is printed, then who mounts the attack and how many more measurements
there are; with --all, every measurement:
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
Confidence intervals are in the report and in --json, both of which hold every
measurement.

With --out, figures (SVG), a report (report.md) and a list of them (report.json)
are written to the folder, all at the end, replacing those of the last run. The
results of an interrupted run go to a folder named incomplete inside it. Attacks
that train models read the data sets adult and digits from the folder
HUSHSUM_DATA or ../shared/data; without such a folder they make up rows and
report that in a last line (with --json on standard error).
`

const attackJSON = `With --json there is one object per measurement: attack, adversary, defence,
case, metric, undefended and defended (null, or value, lower, upper, confidence,
samples, min, max: the value must be from min to max), verdict, note.
`

// attackManual returns the help of attack.
func attackManual() *cli.Manual {
	return &cli.Manual{
		Takes:  "It takes flags only. Choose attacks with --run.",
		About:  attackAbout,
		Topics: []cli.Topic{cli.JSONHelp(attackJSON)},
		Codes: `Exit codes: 0 all is in order, 1 something is toothless or broken or failed to
run, 2 incorrect usage, 130 interrupted, 143 ended by SIGTERM.
`,
		Examples: []string{"hushsum attack", "hushsum attack --run 'Split|Collusion' --out report"},
	}
}

// Command returns the command attack.
func Command() cli.Command {
	return cli.Command{Name: "attack", About: "attack private sums, with and without each defence",
		Run: attack}
}

func attack(ctx context.Context, args []string, std cli.Streams) int {
	var o attacks.Options
	var run, out string
	var asJSON, all bool
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	o.Seed = 1
	flags.StringVar(&run, "run", "",
		"`REGEX` run only attacks whose name matches, in upper or lower case")
	flags.StringVar(&out, "out", "", "`DIR` write figures and a report there")
	flags.Var((*cli.SeedValue)(&o.Seed), "seed", "`N` seed of everything random except keys and masks")
	flags.BoolVar(&o.Long, "long", false, "run the long form: more repetitions, narrower intervals")
	flags.BoolVar(&all, "all", false, "print every measurement, as --json always does")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line instead of a table")
	if code, ok := cli.ParseFlags(flags, attackManual(), args, std); !ok {
		return code
	}
	chosen, err := chooseAttacks(run)
	if err != nil {
		return cli.WrongUsage(flags, err, std)
	}
	if info, err := os.Stat(rows.Root()); err == nil && info.IsDir() {
		o.Data = rows.Root()
	}
	if out != "" {
		if err := results.MakeFolder(out); err != nil {
			cli.Complain(std.Err, "hushsum attack", err)
			return cli.ExitFailure
		}
	}
	o.Now = time.Now
	b := &battery{Screen: show.Screen{Std: std}, json: asJSON, all: all, out: out, start: time.Now()}
	return b.run(ctx, chosen, o)
}

// chooseAttacks returns the attacks whose names match.
func chooseAttacks(run string) ([]attacks.Attack, error) {
	wanted, err := regexp.Compile("(?i)" + run)
	if err != nil {
		return nil, &cli.Problem{
			Cause:  fmt.Sprintf("--run: %q is not a regular expression", run),
			Advice: "Use the name of an attack, or part of it.",
			Err:    err,
		}
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
		return nil, &cli.Problem{
			Cause:  fmt.Sprintf("--run: no attack matches %q", run),
			Advice: cli.DidYouMean(run, names, "%s", "There are "+strings.Join(names, ", ")+"."),
		}
	}
	return chosen, nil
}

// madeUp names those of the attacks run that used made-up rows, if any did.
func (b *battery) madeUp(o attacks.Options) string {
	var names []string
	for _, f := range b.done {
		if o.Data == "" && f.DataSets != nil {
			names = append(names, f.Name)
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("%s used made-up rows, because there is no folder %s. Set HUSHSUM_DATA to the "+
		"folder of the data sets.",
		strings.Join(names, ", "), rows.Root())
}

// battery runs attacks and shows their findings.
type battery struct {
	show.Screen
	json   bool
	all    bool
	out    string
	start  time.Time
	counts map[attacks.Verdict]int
	done   []finished
	note   string // on what the attacks used, for the report too
}

// finished is an attack with its findings.
type finished struct {
	attacks.Attack
	*attacks.Report
	took time.Duration
}

// run runs the attacks, shows and writes their findings, and returns the exit code.
func (b *battery) run(ctx context.Context, chosen []attacks.Attack, o attacks.Options) int {
	b.counts = make(map[attacks.Verdict]int)
	if !b.json {
		b.heading()
	}
	code, ended := cli.ExitOK, "" // ended says why attacks are missing
	for _, a := range chosen {
		o.Progress = func(done, of int) { b.progress(a.Name, done, of) }
		start := time.Now()
		report, err := a.Run(ctx, o)
		b.Wipe()
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			ended = fmt.Sprintf("interrupted in %s, after %d of %s",
				a.Name, len(b.done), show.Plural(len(chosen), "attack"))
			cli.Complain(b.Std.Err, "hushsum attack", &cli.Problem{Cause: ended})
			code = cli.ExitInterrupted
			break
		}
		if err != nil {
			ended = a.Name + " failed to run"
			cli.Complain(b.Std.Err, "hushsum attack", fmt.Errorf("%s: %w", a.Name, err))
			code = cli.ExitFailure
			continue
		}
		b.done = append(b.done, finished{a, report, time.Since(start)})
		if !b.judge(a, report.Rows) {
			code = max(code, cli.ExitFailure)
		}
	}
	b.note = b.madeUp(o)
	b.conclude(len(chosen))
	if b.out == "" {
		return code
	}
	paths, err := b.write(ended)
	if err != nil {
		cli.Complain(b.Std.Err, "hushsum attack", err)
		return max(code, cli.ExitFailure)
	}
	if !b.json {
		fmt.Fprintf(b.Std.Out, "Report and figures are in %s.\n", filepath.Dir(paths[0]))
	}
	return code
}

// judge counts and prints rows, and reports whether all are in order.
func (b *battery) judge(a attacks.Attack, rows []attacks.Row) bool {
	good := true
	for _, row := range rows {
		b.counts[row.Verdict()]++
		good = good && row.Verdict().Good()
		switch {
		case b.json:
			b.line(a, row)
		case b.all:
			b.show(caseName(a, row), row.Metric, row, row.Verdict())
		}
	}
	if !b.json && !b.all {
		b.summary(a, rows)
	}
	return good
}

// conclude prints the closing lines of a run of a given number of attacks.
func (b *battery) conclude(of int) {
	w := b.Std.Out
	if b.json {
		w = b.Std.Err
	} else {
		b.total(of)
	}
	if b.note != "" {
		fmt.Fprintln(w, strings.Join(cli.Wrap(b.note, cli.Width), "\n"))
	}
}
