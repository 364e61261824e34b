package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/job"
)

const jobAbout = `Usage: hushsum job COMMAND [flags]

A job declares a private sum in one file: who takes part, what is summed and by
which protocol, what may be spent of each party's privacy, how a model is
trained, and the world in which all of it is simulated. docs/job.md has every
field.
`

// jobCommands returns the commands below job.
func jobCommands() []command {
	return []command{
		{"check", "say whether a file is a job, and what it declares or has wrong", checkJob},
		{"fields", "list all that there is to declare", listFields},
		{"convert", "make a job of a declaration of before there were jobs", convertJob},
	}
}

func jobManual() *manual {
	about := jobAbout + "\nCommands:\n"
	for _, c := range jobCommands() {
		about += fmt.Sprintf("  %-10s %s\n", c.name, c.about)
	}
	return &manual{
		about:    about + "\nRun 'hushsum help job COMMAND' for what each does and takes.\n",
		examples: []string{"hushsum job check study-7.toml", "hushsum job fields privacy"},
	}
}

// declaration calls the command below job.
func declaration(ctx context.Context, args []string, std streams) int {
	flags := flag.NewFlagSet("job", flag.ContinueOnError)
	if len(args) == 0 {
		return wrongUsage(flags, &problem{
			cause:  "the first argument must be the command",
			advice: "Use one of " + strings.Join(jobNames(), ", ") + ".",
		}, std)
	}
	name, rest := args[0], args[1:]
	if asksHelp(name) { // that of the command that is named, or of job
		if _, of, named := strings.Cut(name, "="); named && of != everything {
			part := ""
			if name, part, named = strings.Cut(of, "="); named {
				part = "=" + part
			}
			rest = []string{"-h" + part}
		} else {
			_, code, _ := parseOperands(flags, jobManual(), 0, args[:1], std)
			return code
		}
	}
	for _, c := range jobCommands() {
		if c.name == name {
			return c.run(ctx, rest, std)
		}
	}
	return wrongUsage(flags, &problem{
		cause:  fmt.Sprintf("there is no command %q below job", name),
		advice: didYouMean(name, jobNames(), "%s", "Use one of "+strings.Join(jobNames(), ", ")+"."),
	}, std)
}

func jobNames() []string {
	var names []string
	for _, c := range jobCommands() {
		names = append(names, c.name)
	}
	return names
}

const checkAbout = `Usage: hushsum job check FILE [flags]

Reads a job, TOML or JSON, from a file or with - from standard input. If it is
valid it prints its digest, which is the same for the same declaration in a
simulation, in the service and from Python, and what it declares, in words.
Files that it names, such as the roster, are not read. If it is not valid it
prints all that is wrong, each with its line and what to write, and exits with
1.
`

const checkJSON = `With --json there is one object:
  file, valid   as called, and whether it is a job
  digest        64 hexadecimal digits
  plan          sentences
  job           what it declares and is not the default, nested as in a file
  worked_out    of each field that other fields decide, path and value
  mistakes      only if it is not valid: of each its line and column (from 1; 0:
                it has no place), path, reason and advice
`

func checkManual() *manual {
	return &manual{
		about:  checkAbout,
		topics: []topic{{"json", "what --json prints", checkJSON}},
		codes: `Exit codes: 0 it is valid, 1 it is not or cannot be read, 2 called wrongly, 130
interrupted.
`,
		examples: []string{
			"hushsum job check study-7.toml",
			"hushsum job check study-7.toml --set privacy.epsilon=4 --set parties.count=20",
			"hushsum job check --json - < study-7.toml",
		},
	}
}

func checkJob(_ context.Context, args []string, std streams) int {
	var f jobFile
	var asJSON bool
	flags := flag.NewFlagSet("job check", flag.ContinueOnError)
	flags.Var(setFlag{&f.set}, "set",
		"`PATH=VALUE` in place of what the file says of a field; once for each")
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of text")
	code, ok := f.read(flags, checkManual(), args, std)
	if !ok {
		return code
	}
	report := jobs.Check(f.name, f.text, f.set.texts())
	code = exitFailure
	if report.Valid {
		code = exitOK
	}
	if asJSON {
		return max(code, printJSON(std, report))
	}
	showReport(report, std)
	return code
}

// jobFile is the one file that a command below job reads, and values in place of its own.
type jobFile struct {
	name string
	text []byte
	set  settings
}

// read reads it as the command line says; not ok: the command ends with the code.
func (f *jobFile) read(
	flags *flag.FlagSet, m *manual, args []string, std streams,
) (code int, ok bool) {
	operands, code, ok := parseOperands(flags, m, 1, args, std)
	if !ok {
		return code, false
	}
	if len(operands) == 0 {
		return wrongUsage(flags, &problem{
			cause: "which file?", advice: "Name a file, or - for standard input.",
		}, std), false
	}
	var err error
	if f.name, f.text, err = readJob(operands[0]); err != nil {
		complain(std.err, "hushsum "+flags.Name(), err)
		return exitFailure, false
	}
	return exitOK, true
}

// readJob reads a file, or standard input, and one byte more than a job may have, so that its
// parser refuses what is longer.
func readJob(name string) (shown string, text []byte, err error) {
	in := os.Stdin
	if name == "-" {
		name = "standard input"
	} else {
		if in, err = os.Open(name); err != nil {
			return "", nil, &problem{cause: err.Error(), err: err}
		}
		defer in.Close()
	}
	text, err = io.ReadAll(io.LimitReader(in, job.MaxFile+1))
	return name, text, err
}

// showReport prints a report for people.
func showReport(r *jobs.Report, std streams) {
	s := screen{std: std}
	if !r.Valid {
		for _, m := range r.Mistakes {
			where := r.File
			if m.Line > 0 {
				where += fmt.Sprintf(":%d", m.Line)
			}
			if m.Path != "" {
				where += ": " + m.Path
			}
			for _, line := range wrap(where+": "+m.Reason, width) {
				s.printf("%s\n", line)
			}
			advice := sentence(strings.TrimSuffix(m.Advice, "?"))
			if strings.HasSuffix(m.Advice, "?") {
				advice = strings.TrimSuffix(advice, ".") + "?"
			}
			for _, line := range wrap(advice, width-4) {
				s.printf("    %s\n", line)
			}
		}
		s.printf("%s\n", plural(len(r.Mistakes), "mistake"))
		return
	}
	s.field("job", "%s, valid", r.Job.Name)
	s.printf("%-10s%s\n", "digest", r.Digest)
	if r.Job.About != "" {
		s.field("about", "%s", r.Job.About)
	}
	label := "plan"
	for _, line := range r.Plan {
		s.field(label, "%s", line)
		label = ""
	}
	label = "filled in"
	for _, v := range r.Worked {
		s.field(label, "%s = %s", v.Path, v.Value)
		label = ""
	}
}

const fieldsAbout = `Usage: hushsum job fields [PATTERN] [flags]

Lists all that a job can declare, or the fields whose paths hold PATTERN, which
may have stars: what each does, which values it takes, in which unit, what is
meant without it, and the flag by which commands set it.
`

const fieldsJSON = `With --json there is one array, with an object for each field:
  path          as in a file; lists have brackets, as in parties.group[].name
  kind          text, word, whole number, number, true or false, time, instant,
                list of texts, list of whole numbers, list of times
  unit, range, default, sentence
                texts, or empty
  words         only of a word: those that it can be
  required      whether a job, or an element of its list, must have it
  part          declared (it is in the digest), file (its content is in that of
                the settled job), time, world (in none)
  flag, arg     a command's flag that sets it and what its help calls the value
`

func fieldsManual() *manual {
	return &manual{
		about:  fieldsAbout,
		topics: []topic{{"json", "what --json prints", fieldsJSON}},
		examples: []string{
			"hushsum job fields privacy",
			"hushsum job fields 'world.*.rows' --json",
			"hushsum job fields --schema > job.schema.json",
		},
	}
}

func listFields(_ context.Context, args []string, std streams) int {
	var asJSON, schema bool
	flags := flag.NewFlagSet("job fields", flag.ContinueOnError)
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	flags.BoolVar(&schema, "schema", false, "print a JSON schema of all fields, for editors")
	operands, code, ok := parseOperands(flags, fieldsManual(), 1, args, std)
	if !ok {
		return code
	}
	if schema {
		if len(operands) > 0 || asJSON {
			return wrongUsage(flags, &problem{
				cause: "--schema: it is of all fields", advice: "Leave the rest out.",
			}, std)
		}
		fmt.Fprintf(std.out, "%s", job.Schema())
		return exitOK
	}
	pattern := strings.Join(operands, "")
	fields := jobs.Matching(pattern)
	if len(fields) == 0 {
		return wrongUsage(flags, &problem{
			cause: fmt.Sprintf("no field matches %q", pattern),
			advice: didYouMean(pattern, jobs.Names(), "%s",
				"Leave PATTERN out for all fields."),
		}, std)
	}
	if asJSON {
		b, err := json.MarshalIndent(fields, "", "  ")
		if err != nil {
			complain(std.err, "hushsum job fields", err)
			return exitFailure
		}
		fmt.Fprintf(std.out, "%s\n", b)
		return exitOK
	}
	showFields(fields, std)
	return exitOK
}

// pathColumn is as wide as the longest path and two blanks.
const pathColumn = 33

// showFields prints a table, by sections of a file.
func showFields(fields []job.Field, std streams) {
	section := ""
	for _, f := range fields {
		if of := jobs.Section(f); of != section {
			fmt.Fprintf(std.out, "\n[%s]\n", of)
			section = of
		}
		path := f.Path
		for _, text := range []string{f.Sentence, jobs.Values(f)} {
			for _, line := range wrap(text, width-pathColumn) {
				fmt.Fprintf(std.out, "%-*s%s\n", pathColumn, path, line)
				path = ""
			}
		}
	}
}
