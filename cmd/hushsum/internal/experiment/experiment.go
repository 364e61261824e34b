// Package experiment has the command experiment, which reruns the papers' tables in a clone.
package experiment

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

const about = `Usage: hushsum experiment NAME [flags]

Reruns the table NAME of the papers behind hushsum, or one that was added to
them, and prints it with intervals; 'hushsum experiment list' names them. It runs
'go -C lab run .' in the clone that the current folder is in, which needs Go:
the experiments have a module of their own, and are not part of this program.
'go doc ./lab' says what they print.
`

func manual() *cli.Manual {
	return &cli.Manual{
		Takes: "It takes the NAME of one experiment, and flags.",
		About: about,
		Examples: []string{
			"hushsum experiment list",
			"hushsum experiment poisoning --seeds 2",
			"hushsum experiment poisoning-groups --keep groups.jsonl --out results",
		},
	}
}

// Command returns the command experiment.
func Command() cli.Command {
	return cli.Command{Name: "experiment", About: "rerun a table of the papers, in a clone", Run: run}
}

func run(ctx context.Context, args []string, std cli.Streams) int {
	var long, asJSON bool
	var seeds cli.IntValue
	var data, out, keep, figures string
	flags := flag.NewFlagSet("experiment", flag.ContinueOnError)
	flags.BoolVar(&long, "long", false, "run the fuller form: hours to days")
	flags.Var(&seeds, "seeds", "`N` seeds to run; 0: the number in the list")
	flags.StringVar(&data, "data", "", "`DIR` of the data sets, instead of ../shared/data")
	flags.StringVar(&out, "out", "", "`DIR` to write files to when the run ends")
	flags.StringVar(&keep, "keep", "",
		"`FILE` to which each part of a run is written, so that the same command goes on")
	flags.StringVar(&figures, "figures", "svg", "`FORMAT` of figures: svg, png or pdf")
	flags.BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	operands, code, ok := cli.ParseOperands(flags, manual(), 1, args, std)
	if !ok {
		return code
	}
	if len(operands) == 0 {
		return cli.WrongUsage(flags, &cli.Problem{Cause: "which experiment?",
			Advice: "'hushsum experiment list' names them."}, std)
	}
	lab, err := folder()
	if err != nil {
		return cli.Failed("experiment", err, std)
	}
	command := []string{"-C", lab, "run", ".", operands[0], "-seeds", strconv.Itoa(int(seeds)),
		"-long=" + strconv.FormatBool(long), "-json=" + strconv.FormatBool(asJSON), "-figures", figures}
	for _, f := range []struct{ name, path string }{{"-data", data}, {"-out", out}, {"-keep", keep}} {
		if f.path == "" {
			continue
		}
		path, err := filepath.Abs(f.path) // it runs in another folder
		if err != nil {
			return cli.Failed("experiment", err, std)
		}
		command = append(command, f.name, path)
	}
	c := exec.CommandContext(ctx, "go", command...)
	c.Stdout, c.Stderr = std.Out, std.Err
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // it keeps what was done
	c.WaitDelay = time.Minute
	err = c.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted("experiment", std)
	case errors.As(err, &ended):
		return cli.ExitFailure // it has said why
	case err != nil:
		return cli.Failed("experiment", err, std)
	}
	return cli.ExitOK
}

// folder returns the module of the experiments in the clone around the current folder.
func folder() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		lab := filepath.Join(at, "lab")
		if exists(filepath.Join(at, "go.work")) && exists(filepath.Join(lab, "experiments")) {
			return lab, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", &cli.Problem{Cause: "the current folder is in no clone of hushsum",
				Advice: "Change into one: the experiments are not part of this program."}
		}
		at = up
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
