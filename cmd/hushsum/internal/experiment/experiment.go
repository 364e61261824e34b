// Package experiment has the command experiment, which reruns tables of papers and shows them as
// text, JSON, CSV and figures.
package experiment

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/experiments"
	"github.com/hushsum/hushsum/internal/rows"
	"github.com/hushsum/hushsum/learning"
)

const experimentAbout = `Usage: hushsum experiment NAME [flags]
       hushsum experiment list

Reruns a table of the papers behind hushsum, or one added to them: trains every
arm with the same seeds, prints means and standard deviations over seeds with
the published figures, and states which published differences are seen. An
effect is seen if the 95 % interval of the differences, paired by seed, lies on
its side of 0 (Student's t), else refuted in this setting if the published size
is outside of the interval, or without a size if the interval lies on the other
side, and open otherwise. Each comparison has its own interval, and among many
some miss.

The quick form takes a few minutes on two cores; it has fewer rows, rounds and
arms than the papers, as the table shows. --long is the fuller form.

With --out it writes files there, all at the end: NAME.csv with a line for each
row and seed, NAME-FIGURE.csv with the points of each figure, NAME-FIGURE.svg,
and NAME.json, which lists them. Ctrl-C or SIGTERM ends the run early; what was
done is printed, and written to a folder named incomplete inside that of --out.
With --keep FILE each arm and seed is written to FILE when it is done, and
skipped when the same command runs again: a run of hours can be interrupted and
resumed.
`

const experimentJSON = `With --json there is one object:
  name, title, settings, labels, measures, seeds, complete
                the table; complete is whether all that was planned was done
  rows          of each its labels, and by the name of a measure its values by
                seed (null: not measured), mean, sd and published (null: none
                is known); fractions are not in percent
  findings      of each its claim, the mean difference, low, high and seeds of
                the interval, expected (the sign of the published effect, 0 if
                there is none), published, verdict (seen, refuted, open, none)
                and text
  notes, files  sentences, and what was written
With list it is one object per experiment: name, about, paper and table ("" for
one that is not a paper's), seeds (0 if nothing is drawn), quick_s and long_s, in
seconds.
`

func experimentManual() *cli.Manual {
	return &cli.Manual{
		Takes:  "The name of one experiment comes first, then flags, and nothing else.",
		About:  experimentAbout,
		Topics: []cli.Topic{cli.JSONHelp(experimentJSON)},
		Examples: []string{
			"hushsum experiment list",
			"hushsum experiment noise",
			"hushsum experiment convex --seeds 8 --out results",
			"hushsum experiment fashion --long --keep fashion.jsonl --out results",
		},
	}
}

// experimentFlags holds the values of the command's flags.
type experimentFlags struct {
	long, json bool
	seeds      int
	data, out  string
	keep       string
}

func newExperimentFlags() (*flag.FlagSet, *experimentFlags) {
	v := &experimentFlags{}
	f := flag.NewFlagSet("experiment", flag.ContinueOnError)
	f.BoolVar(&v.long, "long", false, "run the fuller form")
	f.Var((*cli.IntValue)(&v.seeds), "seeds", "`N` seeds to run, 1 to 100; 0: the number in the list")
	f.StringVar(&v.data, "data", "",
		"`DIR` that holds the folders adult, fashion-mnist, mnist and qmnist-writers; else "+
			"$HUSHSUM_DATA, or ../shared/data")
	f.StringVar(&v.out, "out", "", "`DIR` to write files to, created if missing")
	f.StringVar(&v.keep, "keep", "", "`FILE` that keeps what was done, to resume a run")
	f.BoolVar(&v.json, "json", false, "print JSON instead of a table")
	return f, v
}

// Command returns the command experiment.
func Command() cli.Command {
	return cli.Command{Name: "experiment",
		About: "rerun a table of the papers, with seeds, as text, CSV and figures",
		Run:   experiment, Words: func() []string {
			return append([]string{"list"}, experimentNames(experiments.All())...)
		}}
}

func experiment(ctx context.Context, args []string, std cli.Streams) int {
	return runExperiment(ctx, experiments.All(), args, std)
}

// runExperiment runs the command experiment with any list of them.
func runExperiment(
	ctx context.Context, all []experiments.Experiment, args []string, std cli.Streams,
) int {
	flags, v := newExperimentFlags()
	name := "list"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if code, ok := cli.ParseFlags(flags, experimentManual(), args, std); !ok {
		return code
	}
	if name == "list" {
		if v.json {
			return listJSON(all, std)
		}
		listExperiments(all, std)
		return cli.ExitOK
	}
	var chosen *experiments.Experiment
	for i := range all {
		if all[i].Name == name {
			chosen = &all[i]
		}
	}
	switch {
	case chosen == nil:
		names := experimentNames(all)
		return cli.WrongUsage(flags, &cli.Problem{
			Cause:  fmt.Sprintf("there is no experiment %q", name),
			Advice: cli.DidYouMean(name, names, "%s", "Use one of "+strings.Join(names, ", ")+"."),
		}, std)
	case v.seeds < 0 || v.seeds > experiments.MaxSeeds:
		return cli.WrongUsage(flags, &cli.Problem{
			Cause:  fmt.Sprintf("--seeds: %d is outside 1 to %d", v.seeds, experiments.MaxSeeds),
			Advice: "Leave it out for the experiment's own number.",
		}, std)
	}
	return v.run(ctx, chosen, std)
}

func experimentNames(all []experiments.Experiment) []string {
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names
}

func listExperiments(all []experiments.Experiment, std cli.Streams) {
	fmt.Fprintf(std.Out, "%-13s %6s %6s %5s  %s\n", "experiment", "quick", "long", "seeds",
		"what it shows; whose table")
	for _, e := range all {
		seeds := "-"
		if e.Seeds > 0 {
			seeds = fmt.Sprint(e.Seeds)
		}
		about := e.About
		if e.Paper != "" {
			about += fmt.Sprintf(" (%s: %s)", e.Paper, e.Table)
		}
		for i, line := range cli.Wrap(about, cli.Width-35) {
			if i == 0 {
				fmt.Fprintf(std.Out, "%-13s %6s %6s %5s  %s\n", e.Name, roughly(e.Quick),
					roughly(e.Long), seeds, line)
			} else {
				fmt.Fprintf(std.Out, "%-35s%s\n", "", line)
			}
		}
	}
	fmt.Fprintf(std.Out,
		"\nTimes are rough, for two idle cores. Run 'hushsum experiment -h' for the flags.\n")
}

// listJSON prints an object for each experiment.
func listJSON(all []experiments.Experiment, std cli.Streams) int {
	for _, e := range all {
		code := show.JSON(std, struct {
			Name  string  `json:"name"`
			About string  `json:"about"`
			Paper string  `json:"paper"`
			Table string  `json:"table"`
			Seeds int     `json:"seeds"`
			Quick float64 `json:"quick_s"`
			Long  float64 `json:"long_s"`
		}{e.Name, e.About, e.Paper, e.Table, e.Seeds, e.Quick.Seconds(), e.Long.Seconds()})
		if code != cli.ExitOK {
			return code
		}
	}
	return cli.ExitOK
}

// roughly prints a time to plan with.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

func (v *experimentFlags) run(ctx context.Context, e *experiments.Experiment, std cli.Streams) int {
	fail := func(err error) int {
		cli.Complain(std.Err, "hushsum experiment", err)
		return cli.ExitFailure
	}
	// Minutes of work should not be lost for want of a folder.
	if v.out != "" {
		if err := results.MakeFolder(v.out); err != nil {
			return fail(err)
		}
	}
	line := &show.Screen{Std: std}
	start := time.Now()
	options := experiments.Options{Data: cmp.Or(v.data, rows.Root()), Long: v.long, Seeds: v.seeds}
	if v.keep != "" {
		kept, err := results.OpenKept(v.keep)
		if err != nil {
			return fail(err)
		}
		defer kept.Close()
		options.Store = kept
	}
	alive := show.NewHeartbeat(std, v.json, "hushsum experiment")
	options.Progress = func(done, of int) {
		if of == 0 {
			return
		}
		text := fmt.Sprintf("%s  %d %% (%d of %d)", e.Name, done*100/of, done, of)
		if std.Live && !v.json {
			line.Over(text)
		}
		alive.Beat("%s", text)
	}
	t, err := e.Run(ctx, options)
	line.Wipe()
	interrupted := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err != nil && !interrupted {
		err = dataProblem(err)
	}
	if t == nil || !t.Any() {
		if interrupted {
			err = &cli.Problem{Cause: "interrupted before anything was done", Advice: v.goingOn()}
		}
		cli.Complain(std.Err, "hushsum experiment", err)
		if interrupted {
			return cli.ExitInterrupted
		}
		return cli.ExitFailure
	}
	files, wrong := []string{}, error(nil)
	if v.out != "" {
		ended := ""
		switch {
		case interrupted:
			ended = "interrupted"
		case err != nil:
			ended = cli.Plain(err)
		}
		files, wrong = writeExperiment(v.out, t, ended)
	}
	if v.json {
		if code := show.JSON(std, jsonOf(t, files)); code != cli.ExitOK {
			return code
		}
	} else {
		printExperiment(t, files, time.Since(start), std)
	}
	switch {
	case interrupted:
		cli.Complain(std.Err, "hushsum experiment", &cli.Problem{
			Cause: "interrupted; the table holds what was done", Advice: v.goingOn(),
		})
		return cli.ExitInterrupted
	case err != nil:
		return fail(err)
	case wrong != nil:
		return fail(results.FolderProblem(wrong))
	}
	return cli.ExitOK
}

// goingOn explains how to continue a run that was interrupted.
func (v *experimentFlags) goingOn() string {
	if v.keep == "" {
		return "Give --keep FILE to be able to resume from what was done."
	}
	return "The same command resumes from what was done: it is in " + v.keep + "."
}

// dataProblem says what to do about data that cannot be read.
func dataProblem(err error) error {
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return &cli.Problem{
			Cause: fmt.Sprintf("cannot read %s: %v", path.Path, path.Err),
			Advice: "Give --data, or set HUSHSUM_DATA to, the folder that holds the public files of " +
				"adult, fashion-mnist, mnist and qmnist-writers in folders of these names.",
			Err: err,
		}
	case errors.Is(err, learning.ErrIncomplete), errors.Is(err, learning.ErrMalformed):
		return &cli.Problem{Cause: cli.FileFault(err), Err: err}
	}
	return cli.Explain(err)
}
