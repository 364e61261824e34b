// Package declare has the command job, with check and fields below it.
package declare

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
)

const jobAbout = `Usage: hushsum job COMMAND [flags]

A job declares a private sum in one file: who takes part, what is summed and by
which protocol, what may be spent of each party's privacy, how a model is
trained, and the world in which all of it is simulated. docs/job.md has every
field.
`

// Command returns the command job, with the commands below it.
func Command() cli.Command {
	return cli.Group("job", "check a declared job, and list what there is to declare", jobAbout,
		[]string{"hushsum job check study-7.toml", "hushsum job fields privacy"},
		cli.Command{
			Name:  "check",
			About: "check whether a file is a valid job, and print what it declares",
			Run:   checkJob,
		},
		cli.Command{
			Name: "fields", About: "list everything that a job can declare", Run: listFields,
			Words: jobs.Sections,
		})
}

const checkAbout = `Usage: hushsum job check FILE [flags]

Reads a job, TOML or JSON, from a file or with - from standard input. If it is
valid, it prints its digest, which is the same for the same declaration in a
simulation, in the service and from Python, and what it declares, in words; if
it can only be simulated, it names the fields that are the reason. Files that it
names, such as the roster, are not read; if it counts its parties, it is also
worked out for so many. If it is not valid, it prints all mistakes, each with
its line and what to write, and exits with 1.

With --proof it prints instead how the epsilon of all rounds follows from what
runs, step by step. It reads the files that the job names then, and makes
parties up where it names none. docs/derivations.md says what the steps mean,
and which program checks them.
`

const checkJSON = `With --json there is one object:
  file, valid   as called, and whether it is a job
  digest        64 hexadecimal digits
  declared      what the digest is over
  settled       if it counts its parties, the numbers of its sessions and noise
                that a party's own program needs: SPEC-TRANSPORT.md, section 4
  plan          sentences
  job           what it declares and is not the default, nested as in a file
  worked_out    of each field that other fields decide, path and value
  mistakes      only if it is not valid: of each its line and column (from 1; 0:
                it has no place), path, named (the path with names of elements
                for their numbers, if they have some), reason and advice
  simulated     only if it can be simulated and not run between parties: of each
                field that is why its path, reason and advice, as of mistakes
With --proof there is the derivation of docs/derivations.md instead.
`

func checkManual() *cli.Manual {
	return &cli.Manual{
		Takes:  "It takes one FILE, and flags.",
		About:  checkAbout,
		Topics: []cli.Topic{cli.JSONHelp(checkJSON)},
		Codes: `Exit codes: 0 it is valid, 1 it is not or cannot be read, 2 incorrect
usage, 130 interrupted, 143 ended by SIGTERM.
`,
		Examples: []string{
			"hushsum job check study-7.toml",
			"hushsum job check study-7.toml --set privacy.epsilon=4 --set parties.count=20",
			"hushsum job check --json - < study-7.toml",
			"hushsum job check --proof study-7.toml --json | python3 tools/proof/check.py",
		},
	}
}

func checkJob(_ context.Context, args []string, std cli.Streams) int {
	var f jobFile
	var asJSON, proof bool
	flags := flag.NewFlagSet("job check", flag.ContinueOnError)
	flags.Var(jobs.SetFlag{Settings: &f.set}, "set",
		"`PATH=VALUE` sets a field, overriding the file; repeatable")
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of text")
	flags.BoolVar(&proof, "proof", false, "print how epsilon follows, instead of what is declared")
	code, ok := f.read(flags, checkManual(), args, std)
	if !ok {
		return code
	}
	if proof {
		d, err := jobs.Derive(f.name, f.text, f.set.Texts())
		if err != nil {
			return jobs.Failed("job check", err, std)
		}
		return show.Derivation(d, asJSON, std)
	}
	report := jobs.Check(f.name, f.text, f.set.Texts())
	code = cli.ExitFailure
	if report.Valid {
		code = cli.ExitOK
	}
	if asJSON {
		return max(code, show.JSON(std, report))
	}
	showReport(report, std)
	return code
}

// jobFile is the one file that a command below job reads, with values that replace its own.
type jobFile struct {
	name string
	text []byte
	set  jobs.Settings
}

// read reads the file as the command line says; not ok: the command ends with the code.
func (f *jobFile) read(
	flags *flag.FlagSet, m *cli.Manual, args []string, std cli.Streams,
) (code int, ok bool) {
	operands, code, ok := cli.ParseOperands(flags, m, 1, args, std)
	if !ok {
		return code, false
	}
	if len(operands) == 0 {
		return cli.WrongUsage(flags, &cli.Problem{
			Cause: "which file?", Advice: "Name a file, or - for standard input.",
		}, std), false
	}
	var err error
	if f.name, f.text, err = jobs.Read(operands[0]); err != nil {
		cli.Complain(std.Err, "hushsum "+flags.Name(), err)
		return cli.ExitFailure, false
	}
	return cli.ExitOK, true
}

// showReport prints a report for people.
func showReport(r *jobs.Report, std cli.Streams) {
	s := show.Screen{Std: std}
	if !r.Valid {
		for _, m := range r.Mistakes {
			where := r.File
			if m.Line > 0 {
				where += fmt.Sprintf(":%d", m.Line)
			}
			if place := m.Place(); place != "" {
				where += ": " + place
			}
			for _, line := range cli.Wrap(where+": "+m.Reason, cli.Width) {
				s.Printf("%s\n", line)
			}
			advice := cli.Sentence(strings.TrimSuffix(m.Advice, "?"))
			if strings.HasSuffix(m.Advice, "?") {
				advice = strings.TrimSuffix(advice, ".") + "?"
			}
			for _, line := range cli.Wrap(advice, cli.Width-4) {
				s.Printf("    %s\n", line)
			}
		}
		s.Printf("%s\n", show.Plural(len(r.Mistakes), "mistake"))
		return
	}
	if r.Simulated == nil {
		s.Field("job", "%s, valid", r.Job.Name)
	} else {
		s.Field("job", "%s, valid; it can only be simulated", r.Job.Name)
	}
	for _, m := range r.Simulated {
		s.Field("", "%s: %s; %s", m.Place(), m.Reason, m.Advice)
	}
	s.Printf("%-10s%s\n", "digest", r.Digest)
	if r.Job.About != "" {
		s.Field("about", "%s", r.Job.About)
	}
	label := "plan"
	for _, line := range r.Plan {
		s.Field(label, "%s", line)
		label = ""
	}
	label = "filled in"
	for _, v := range r.Worked {
		s.Field(label, "%s = %s", v.Path, v.Value)
		label = ""
	}
}

const fieldsAbout = `Usage: hushsum job fields [PATTERN] [flags]

Lists everything that a job can declare, or the fields whose paths contain
PATTERN, which may have stars: what each does, which values it takes, its unit,
its default, and the flag by which commands set it.

With --theorems it lists what is proved about jobs with noise, on which their
epsilon rests: of each theorem where it is proved, what it needs of what runs,
and the fields that may be set next to it. A job that sets another field is
refused. Groups of fields, and those that are free, come last.
`

const fieldsJSON = `With --json there is one array, with an object for each field:
  path          as in a file; lists have brackets, as in parties.group[].name
  kind          text, word, whole number, number, true or false, time, instant,
                list of texts, list of whole numbers, list of numbers, list of
                times
  unit, range, default, sentence
                texts, or empty
  words         only of a word: those that it can be
  required      whether a job, or an element of its list, must have it
  part          declared (it is in the digest), file (its content is in that of
                the settled job), time, world (in none)
  flag, arg     a command's flag that sets it and what its help calls the value
With --theorems there is one object:
  theorems      of each its id, the part of a derivation that it is of, its
                words, where it is proved, the field that it is called for by,
                needs, admits: groups, and fields, with the words that they may
                have after =, refuses: fields, with the reason as name, and
                assumes
  groups, free  of each its name, or the reason, and fields
`

func fieldsManual() *cli.Manual {
	return &cli.Manual{
		Takes:  "It takes one PATTERN, and flags.",
		About:  fieldsAbout,
		Topics: []cli.Topic{cli.JSONHelp(fieldsJSON)},
		Examples: []string{
			"hushsum job fields privacy",
			"hushsum job fields 'world.*.rows' --json",
			"hushsum job fields --schema > job.schema.json",
			"hushsum job fields --theorems",
		},
	}
}

func listFields(_ context.Context, args []string, std cli.Streams) int {
	var asJSON, schema, theorems bool
	flags := flag.NewFlagSet("job fields", flag.ContinueOnError)
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	flags.BoolVar(&schema, "schema", false, "print a JSON schema of all fields, for editors")
	flags.BoolVar(&theorems, "theorems", false, "list what is proved, and the fields next to it")
	operands, code, ok := cli.ParseOperands(flags, fieldsManual(), 1, args, std)
	if !ok {
		return code
	}
	whole := func(name string) int {
		return cli.WrongUsage(flags, &cli.Problem{
			Cause: name + " covers all fields", Advice: "Leave the rest out.",
		}, std)
	}
	switch {
	case schema && (len(operands) > 0 || asJSON || theorems):
		return whole("--schema")
	case theorems && len(operands) > 0:
		return whole("--theorems")
	case schema:
		fmt.Fprintf(std.Out, "%s", job.Schema())
		return cli.ExitOK
	case theorems && asJSON:
		return show.JSON(std, job.Theorems())
	case theorems:
		showTheorems(job.Theorems(), std)
		return cli.ExitOK
	}
	pattern := strings.Join(operands, "")
	fields := jobs.Matching(pattern)
	if len(fields) == 0 {
		return cli.WrongUsage(flags, &cli.Problem{
			Cause: fmt.Sprintf("no field matches %q", pattern),
			Advice: cli.DidYouMean(pattern, jobs.Names(), "%s",
				"Leave PATTERN out for all fields."),
		}, std)
	}
	if asJSON {
		b, err := json.MarshalIndent(fields, "", "  ")
		if err != nil {
			cli.Complain(std.Err, "hushsum job fields", err)
			return cli.ExitFailure
		}
		fmt.Fprintf(std.Out, "%s\n", b)
		return cli.ExitOK
	}
	showFields(fields, std)
	return cli.ExitOK
}

// pathColumn is as wide as the longest path and two blanks.
const pathColumn = 33

// showFields prints a table, by sections of a file.
func showFields(fields []job.Field, std cli.Streams) {
	section := ""
	for _, f := range fields {
		if of := jobs.Section(f); of != section {
			fmt.Fprintf(std.Out, "\n[%s]\n", of)
			section = of
		}
		path := f.Path
		for _, text := range []string{f.Sentence, jobs.Values(f)} {
			for _, line := range cli.Wrap(text, cli.Width-pathColumn) {
				fmt.Fprintf(std.Out, "%-*s%s\n", pathColumn, path, line)
				path = ""
			}
		}
	}
}
