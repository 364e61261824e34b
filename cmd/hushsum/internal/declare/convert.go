package declare

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/old"
)

const convertAbout = `Usage: hushsum job convert FILE [flags]

Converts a declaration from before there were jobs into a job, and prints it as
TOML. It takes a plan in JSON, a federation's file, a spec of hushsumd dev, or a
scenario, from a file or with - from standard input. Notes on standard error
list what changes in meaning or name. Comments of the old file are not kept, and
values that are a job's defaults are left out.

The digest of a job differs from that of the old declaration. A running job
continues under the file that it began with: convert the next one.

A plan does not say who takes part: give parties.count or parties.roster with
--set. The share of the roster that a federation draws becomes a number, which
takes the roster that the file names, or parties.count.
`

func convertManual() *cli.Manual {
	return &cli.Manual{
		Takes: "It takes one FILE, and flags.",
		About: convertAbout,
		Examples: []string{
			"hushsum job convert study.toml > study-job.toml",
			"hushsum job convert plan.json --set parties.roster=roster.txt",
			"hushsum job convert hospitals.toml --out hospitals-job.toml",
		},
	}
}

func convertJob(_ context.Context, args []string, std cli.Streams) int {
	const who = "hushsum job convert"
	var f jobFile
	var out string
	flags := flag.NewFlagSet("job convert", flag.ContinueOnError)
	flags.Var(jobs.SetFlag{Settings: &f.set}, "set", "`PATH=VALUE` sets a field of the job, as in "+
		"parties.count=10; repeatable")
	flags.StringVar(&out, "out", "", "`FILE` to create and write the job to")
	code, ok := f.read(flags, convertManual(), args, std)
	if !ok {
		return code
	}
	j, form, notes, err := old.Read(f.name, f.text, f.set.Texts()...)
	if err != nil {
		for _, e := range job.Errors(err) {
			advice := cli.Sentence(e.Advice)
			e.Advice = ""
			cli.Complain(std.Err, who, &cli.Problem{Cause: e.Error(), Advice: advice, Err: e})
		}
		return cli.ExitFailure
	}
	text, err := j.MarshalText()
	if err != nil {
		cli.Complain(std.Err, who, err)
		return cli.ExitFailure
	}
	if out == "" {
		fmt.Fprintf(std.Out, "%s", text)
	} else if err := writeNew(out, text); err != nil {
		cli.Complain(std.Err, who, err)
		return cli.ExitFailure
	} else if filepath.Dir(out) != filepath.Dir(f.name) && j.Parties.Roster+j.Model.File != "" {
		notes = append(notes, fmt.Sprintf("the files that it names are relative to %s",
			filepath.Dir(out)))
	}
	fmt.Fprintf(std.Err, "%s is read as a %s.\n", f.name, form)
	for _, note := range notes {
		for i, line := range cli.Wrap(note, cli.Width-2) {
			fmt.Fprintf(std.Err, "%s%s\n", []string{"- ", "  "}[min(i, 1)], line)
		}
	}
	return cli.ExitOK
}

// writeNew writes a file that does not exist yet: an existing one could be the old declaration.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return &cli.Problem{Cause: fmt.Sprintf("--out: %s already exists", path),
			Advice: "Name a new file.", Err: err}
	}
	if err != nil {
		return &cli.Problem{Cause: "--out: " + err.Error(), Err: err}
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
