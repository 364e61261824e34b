// Command lab reruns the tables of the papers behind hushsum, and tables added to them.
//
//	go -C lab run . list
//	go -C lab run . noise -out results
//	go -C lab run . fashion -long -keep fashion.jsonl -figures pdf -out results
//
// It trains every arm with the same seeds, prints means and standard deviations over seeds next to
// the published figures, and states which published differences are seen. An effect is seen if the
// 95 % interval of the differences, paired by seed, lies on its side of 0 (Student's t). It is
// refuted in this setting if the published size is outside of the interval, or, without a size, if
// the interval lies on the other side; else it is open. Each comparison has its own interval, and
// among many some miss.
//
// The quick form takes a few minutes on two cores; it has fewer rows, rounds and arms than the
// papers, as the table shows. -long is the fuller form.
//
// The lab is a module of its own: what draws figures and what hushsum is compared with
// (folder benchmarks) must decide neither how long hushsum takes to build nor its versions.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hushsum/hushsum/internal/kept"
	"github.com/hushsum/hushsum/lab/experiments"
)

// Exit codes, those of command hushsum.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, experiments.All(), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings hold the values of the flags.
type settings struct {
	long, json     bool
	seeds          int
	data, out      string
	keep, figures  string
	output, errors io.Writer
}

func newFlags(s *settings) *flag.FlagSet {
	f := flag.NewFlagSet("lab", flag.ContinueOnError)
	f.SetOutput(s.errors)
	f.BoolVar(&s.long, "long", false, "run the fuller form")
	f.IntVar(&s.seeds, "seeds", 0, "`N` seeds to run, 1 to 100; 0: the number in the list")
	f.StringVar(&s.data, "data", dataFolder(), "`DIR` that holds the folders adult, "+
		"fashion-mnist, mnist and qmnist-writers")
	f.StringVar(&s.out, "out", "", "`DIR` to write files to when the run ends, made if missing: "+
		"NAME.csv has\na line for each row and seed, NAME-FIGURE.csv the points of a figure, NAME.json\n"+
		"what -json prints; an interrupted run writes to the folder incomplete in DIR")
	f.StringVar(&s.figures, "figures", "svg", "`FORMAT` of figures: svg, png or pdf")
	f.StringVar(&s.keep, "keep", "", "`FILE` to which each arm and seed is written when it is "+
		"done; the same\ncommand then skips it: a run of hours can be interrupted")
	f.BoolVar(&s.json, "json", false, "print JSON instead of a table")
	f.Usage = func() {
		fmt.Fprintln(s.errors, "Usage: go -C lab run . list\n"+
			"       go -C lab run . EXPERIMENT [flags]\n\n"+
			"Reruns a table of the papers behind hushsum; go doc ./lab says how.\n\nFlags:")
		f.PrintDefaults()
	}
	return f
}

// dataFolder returns the folder of the data sets, as seen from the lab.
func dataFolder() string {
	if named := os.Getenv("HUSHSUM_DATA"); named != "" {
		return named
	}
	return filepath.Join("..", "..", "shared", "data")
}

// run runs the command with any list of experiments, and returns its exit code.
func run(
	ctx context.Context, all []experiments.Experiment, arguments []string, out, errs io.Writer,
) int {
	s := &settings{output: out, errors: errs}
	flags := newFlags(s)
	name := "list"
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		name, arguments = arguments[0], arguments[1:]
	}
	if err := flags.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	misused := func(format string, a ...any) int {
		fmt.Fprintf(errs, "lab: "+format+"\n", a...)
		return exitUsage
	}
	at := slices.IndexFunc(all, func(e experiments.Experiment) bool { return e.Name == name })
	switch {
	case flags.NArg() > 0:
		return misused("unexpected argument %q: the experiment comes first, then flags", flags.Arg(0))
	case s.seeds < 0 || s.seeds > experiments.MaxSeeds:
		return misused("-seeds: %d is outside 1 to %d", s.seeds, experiments.MaxSeeds)
	case !slices.Contains([]string{"svg", "png", "pdf"}, s.figures):
		return misused("-figures: %q is not svg, png or pdf", s.figures)
	case name == "list":
		list(all, out)
		return exitOK
	case at < 0:
		return misused("there is no experiment %q; go -C lab run . list names them", name)
	}
	code, err := s.run(ctx, &all[at])
	if err != nil {
		fmt.Fprintln(errs, "lab:", err)
	}
	return code
}

// list prints the experiments.
func list(all []experiments.Experiment, w io.Writer) {
	fmt.Fprintf(w, "%-18s %7s %7s %5s  %s\n", "experiment", "quick", "long", "seeds",
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
		for i, line := range wrapped(about, width-42) {
			if i == 0 {
				fmt.Fprintf(w, "%-18s %7s %7s %5s  %s\n", e.Name, roughly(e.Quick), roughly(e.Long),
					seeds, line)
			} else {
				fmt.Fprintf(w, "%-42s%s\n", "", line)
			}
		}
	}
	fmt.Fprintln(w, "\nTimes are rough, for two idle cores.")
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

// run runs an experiment and prints its table, or of a run that ended early what was done. The
// error says why it ended, or that something could not be written.
func (s *settings) run(ctx context.Context, e *experiments.Experiment) (int, error) {
	// Minutes of work should not be lost for want of a folder.
	if s.out != "" {
		if err := os.MkdirAll(s.out, 0o777); err != nil {
			return exitFailure, fmt.Errorf("-out: %w", err)
		}
	}
	options := experiments.Options{Data: s.data, Long: s.long, Seeds: s.seeds}
	if s.keep != "" {
		k, err := kept.Open(s.keep)
		if err != nil {
			return exitFailure, fmt.Errorf("-keep: %w; name a file that an earlier run wrote, or a new one",
				err)
		}
		defer k.Close()
		options.Store = k
	}
	start := time.Now()
	told := start
	options.Progress = func(done, of int) {
		if of > 0 && time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(s.errors, "lab: %s %d %% (%d of %d)\n", e.Name, done*100/of, done, of)
		}
	}
	t, err := e.Run(ctx, options)
	interrupted := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
	code := exitOK
	switch {
	case interrupted:
		code = exitInterrupted
		err = fmt.Errorf("interrupted: the table holds what was done; %s", s.resuming())
	case err != nil:
		code = exitFailure
	}
	if t == nil || !t.Any() {
		if interrupted {
			err = fmt.Errorf("interrupted before anything was done; %s", s.resuming())
		}
		return max(code, exitFailure), err
	}
	var files []string
	if s.out != "" {
		var wrong error
		if files, wrong = s.write(t); wrong != nil {
			code, err = max(code, exitFailure), errors.Join(err, fmt.Errorf("-out: %w", wrong))
		}
	}
	if s.json {
		err = errors.Join(err, json.NewEncoder(s.output).Encode(jsonOf(t, files)))
	} else {
		printTable(s.output, t, files, time.Since(start))
	}
	return code, err
}

// resuming says how to go on with a run that was interrupted.
func (s *settings) resuming() string {
	if s.keep == "" {
		return "with -keep FILE the same command could resume from there"
	}
	return "the same command resumes from " + s.keep
}
