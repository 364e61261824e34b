// Package twin has the command conform, which tests another implementation of the protocol.
package twin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/protocol/conform"
)

const about = `Usage: hushsum conform [flags] -- PROGRAM [ARGUMENTS]

Tests another implementation of a party of pairwise sums against SPEC.md. It
starts PROGRAM and plays the sessions of the test vectors with it, next to this
program's own party: both are given the server's messages as they were recorded,
and each of them altered in several ways. Both must answer alike, byte for byte,
and refuse with the same errors, and a party that refuses must stay as it is.

PROGRAM reads a call from each line of its standard input, a JSON object, and
writes an answer to a line of its standard output. Bytes are in hexadecimal
digits; values of the ring are decimal texts, as in the vectors.

  {"call": "new", "party": NAME, "config": {…},
   "identity_seed": …, "random_seed": …}
                         make a party; it answers with its Announce
  {"call": "receive", "party": NAME, "message": …}
  {"call": "try", "party": NAME, "message": …}
                         the same of a copy, which is then dropped
  {"call": "submit", "party": NAME, "broadcast": …,
   "input": [["1", …], …]}

An answer is {"answer": …}, with the message that the party sends or null, or
{"error": NAME, "party": NUMBER}, with the error's name in SPEC.md §11.1 and the
party that it names, or null. "try" adds "changed": true if the copy is not as
it was after a refusal. What is no call is answered {"fault": TEXT}. Parties
draw from the stream of SPEC.md §14 of their random_seed.
`

const aboutJSON = `With --json there is one object:
  program       as called
  failed        how many checks have failed
  results       a list, by requirement:
    page        and section, such as SPEC.md §11.1
    requirement such as Begin, or ErrTruncated
    checked     how often
    failed      how often it was not met
    first       the first time that it was not, in words; missing if it was met
`

func manual() *cli.Manual {
	return &cli.Manual{
		Takes:  "It takes flags, and after -- a PROGRAM with its arguments.",
		About:  about,
		Topics: []cli.Topic{cli.JSONHelp(aboutJSON)},
		Codes: `Exit codes: 0 PROGRAM conforms, 1 it does not, or does not answer, 2 incorrect
usage, 130 interrupted, 143 ended by SIGTERM.
`,
		Examples: []string{
			"hushsum conform -- python3 spec/reference/party.py --pipe",
			"hushsum conform --altered 100 --json -- ./my-party --pipe",
		},
	}
}

// Command returns the command conform.
func Command() cli.Command {
	return cli.Command{Name: "conform", About: "test another implementation by the pages", Run: run}
}

func run(ctx context.Context, args []string, std cli.Streams) int {
	var asJSON bool
	o := conform.Options{Altered: 4}
	flags := flag.NewFlagSet("conform", flag.ContinueOnError)
	flags.Var((*cli.IntValue)(&o.Altered), "altered", "`N`: how often each message is altered")
	flags.Var((*cli.SeedValue)(&o.Seed), "seed", "`SEED` of the ways in which messages are altered")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	var program []string
	if at := slices.Index(args, "--"); at >= 0 {
		args, program = args[:at], args[at+1:]
	}
	if code, ok := cli.ParseFlags(flags, manual(), args, std); !ok {
		return code
	}
	wrong := func(cause, advice string) int {
		return cli.WrongUsage(flags, &cli.Problem{Cause: cause, Advice: advice}, std)
	}
	switch {
	case len(program) == 0:
		return wrong("which program?", "Write it with its arguments behind --.")
	case o.Altered < 1:
		return wrong(fmt.Sprintf("--altered %d", o.Altered), "Write 1 or more.")
	}
	screen := &show.Screen{Std: std}
	if std.Live && !asJSON {
		o.Progress = func(session string) { screen.Over("playing " + session) }
	}
	report, err := test(ctx, program, o, std)
	screen.Wipe()
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted("conform", std)
	case err != nil:
		err = &cli.Problem{Cause: strings.TrimPrefix(err.Error(), "conform: "),
			Advice: "'hushsum conform --help' says what it has to answer.", Err: err}
		return cli.Failed("conform", err, std)
	}
	if asJSON {
		show.JSON(std, struct {
			Program []string       `json:"program"`
			Failed  int            `json:"failed"`
			Results conform.Report `json:"results"`
		}{program, report.Failed(), report})
	} else {
		table(screen, report)
	}
	if report.Failed() > 0 {
		return cli.ExitFailure
	}
	return cli.ExitOK
}

// test runs a program, and tests what answers there.
func test(
	ctx context.Context, program []string, o conform.Options, std cli.Streams,
) (report conform.Report, err error) {
	c := exec.CommandContext(ctx, program[0], program[1:]...)
	c.Stderr = std.Err
	to, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	report, err = conform.Party(ctx, struct {
		io.Reader
		io.Writer
	}{from, to}, o)
	_ = to.Close()
	if ended := c.Wait(); errors.Is(err, conform.ErrPipe) && ended != nil {
		err = fmt.Errorf("%w; it ended: %w", err, ended)
	}
	return report, err
}

// table prints what was found.
func table(s *show.Screen, report conform.Report) {
	s.Printf("%-14s %-26s %8s %7s\n", "page", "requirement", "checked", "failed")
	for _, r := range report {
		s.Printf("%-14s %-26s %8d %7d\n", r.Page, r.Requirement, r.Checked, r.Failed)
		if r.First != "" {
			for _, line := range cli.Wrap(r.First, 76) {
				s.Printf("  %s\n", strings.TrimSpace(line))
			}
		}
	}
	if failed := report.Failed(); failed > 0 {
		s.Printf("\nIt does not conform: %d checks failed.\n", failed)
		return
	}
	s.Printf("\nIt conforms, as far as this was tested.\n")
}
