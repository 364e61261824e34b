package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation/scenario"
)

const scenarioAbout = `Usage: hushsum simulate --scenario FILE [flags]

Simulates a whole federation as a file declares it: who has which rows where,
how they train and sum, what noise is in the sums, who drops out, joins and
leaves. It says what accuracy, privacy and time the collaboration would give.
Time is virtual: messages of real sessions take the latencies of the scenario,
and work takes what it gives, or what parties in places of their own would need.

Noise is drawn from the scenario's seed, so that the same comes out again: a
simulated model protects nobody's rows and must not be released.
`

// scenarioFlags are the flags of simulate with a scenario.
type scenarioFlags struct {
	file, out, sweep, keep string
	json                   bool
}

func newScenarioFlags() (*flag.FlagSet, *scenarioFlags) {
	v := &scenarioFlags{}
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.StringVar(&v.file, "scenario", "", "`FILE` that declares the federation (required)")
	f.BoolVar(&v.json, "json", false, "print one line of JSON for each party and round")
	f.StringVar(&v.out, "out", "", "`DIR` for tables, figures and a page about the outcome")
	f.StringVar(&v.sweep, "sweep", "", "`\"KEY=A,B …\"`: run all combinations of values of "+
		strings.Join(sweepKeys(), ", "))
	f.StringVar(&v.keep, "keep", "", "`FILE` to keep the outcomes of a sweep in, so that it can go on\t"+
		", with --out DIR/sweep.kept")
	return f, v
}

func scenarioManual() *manual {
	return &manual{about: scenarioAbout, examples: []string{
		"hushsum simulate --scenario simulation/scenarios/latency.toml",
		"hushsum simulate --scenario simulation/scenarios/hospitals.toml --out hospitals",
		`hushsum simulate --scenario simulation/scenarios/digits.toml --sweep "epsilon=0.1,1,8"`,
	}}
}

// namesScenario reports whether simulate is called with a scenario.
func namesScenario(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return strings.HasPrefix(arg, "-") && name == "scenario"
	})
}

// simulateScenario is simulate with a scenario.
func simulateScenario(ctx context.Context, args []string, std streams) int {
	flags, v := newScenarioFlags()
	if code, ok := parseFlags(flags, scenarioManual(), args, std); !ok {
		return code
	}
	if v.keep != "" && v.sweep == "" {
		return wrongUsage(flags, &problem{cause: "--keep is for --sweep"}, std)
	}
	file, err := readScenario(v.file)
	if err != nil {
		return scenarioFailed(err, std)
	}
	if v.out != "" {
		if err := makeOut(v.out); err != nil {
			return failed(err, std)
		}
	}
	rows, err := file.load()
	if err != nil {
		return scenarioFailed(err, std)
	}
	if v.sweep != "" {
		return v.runSweep(ctx, flags, file, rows, std)
	}
	return v.runOne(ctx, file, rows, std)
}

// scenarioFailed says on one line what is wrong with a scenario.
func scenarioFailed(err error, std streams) int {
	var e *fileError
	if errors.As(err, &e) {
		fmt.Fprintln(std.err, "hushsum simulate: "+e.Error())
		return exitFailure
	}
	return failed(err, std)
}

// runOne simulates the scenario as it is.
func (v *scenarioFlags) runOne(
	ctx context.Context, file *scenarioFile, rows scenario.Rows, std streams,
) int {
	alive := newHeartbeat(std, true, "hushsum simulate")
	var show scenarioShow = &scenarioTable{std: std}
	if v.json {
		show = &scenarioLines{std: std}
	}
	show.begin(file.Scenario, rows)
	result, err := scenario.Run(ctx, file.Scenario, rows, scenario.Hooks{
		Round: show.round,
		Now:   time.Now,
		Progress: func(round, done, of int) {
			where := "key exchange"
			if round > 0 {
				where = fmt.Sprintf("round %d of %d", round, file.Rounds)
			}
			if done%64 == 0 {
				alive.beat("%s, %s of %s", where, grouped(done), plural(of, "party"))
			}
		},
	})
	if result != nil {
		show.end(result)
	}
	if v.out != "" && result != nil && len(result.Rounds) > 0 {
		if outErr := v.report(file, rows, result, err == nil, std); outErr != nil {
			return failed(outErr, std)
		}
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return interrupted("simulate", std)
	case err != nil:
		return scenarioFailed(file.locate(err), std)
	case len(result.Rounds) == 0 || result.Lost() == len(result.Rounds):
		return failed(&problem{cause: "there is no sum: every round was lost"}, std)
	}
	return exitOK
}

// scenarioShow shows a run as it goes on.
type scenarioShow interface {
	begin(s scenario.Scenario, rows scenario.Rows)
	round(r scenario.Round)
	end(r *scenario.Result)
}

// The data sets that scenarios know.
const kddData = "kddcup99"

// load reads the scenario's rows.
func (f *scenarioFile) load() (rows scenario.Rows, err error) {
	s := f.WithDefaults()
	sets := []string{synthetic, adultData, digitsData, mnistData, fashionData, kddData}
	name := s.Data.Set
	if !slices.Contains(sets, name) {
		return rows, f.locate(&scenario.FieldError{
			Path:   "data.set",
			Reason: fmt.Sprintf("there is no data set %q", name),
			Advice: "use " + strings.Join(sets, ", "),
		})
	}
	var all *learning.Dataset
	dir := dataFolder(name)
	switch name {
	case synthetic:
		all, _, err = learning.Census(max(s.Data.Most, 20_000), s.Seed)
	case adultData:
		all, err = learning.ReadAdult(dir)
	case digitsData:
		all, err = learning.ReadDigits(dir)
	case kddData:
		all, err = learning.ReadKDDCup99(dir, s.Data.Most, s.Seed)
	default:
		var train, test *learning.Dataset
		if train, test, err = learning.ReadMNIST(dir); err == nil {
			rows.Test = test
			rows.Train, err = atMost(train, s.Data.Most, s.Seed)
			return rows, err
		}
	}
	if err == nil {
		all, err = atMost(all, s.Data.Most, s.Seed)
	}
	if err == nil {
		if rows.Train, rows.Test, err = all.Split(s.Data.Test, s.Seed); err != nil {
			path := "data.test"
			if s.Data.Most > 0 {
				path = "data.most"
			}
			return rows, f.locate(&scenario.FieldError{
				Path: path,
				Reason: fmt.Sprintf("%s cannot be parted into some to train and some to judge models on",
					plural(all.Len(), "row")),
				Advice: "use a larger data.most, or a data.test nearer to 0.25",
				Err:    err,
			})
		}
	}
	if err != nil {
		reason := strings.TrimPrefix(plain(err), "learning: ")
		if cut, _, found := strings.Cut(reason, "; "); found {
			reason = cut
		}
		return rows, f.locate(&scenario.FieldError{
			Path:   "data.set",
			Reason: reason,
			Advice: "name the folder that holds the data sets in HUSHSUM_DATA, or use synthetic",
			Err:    err,
		})
	}
	return rows, nil
}

// atMost draws that many rows; 0: all.
func atMost(d *learning.Dataset, most int, seed uint64) (*learning.Dataset, error) {
	if most == 0 || most >= d.Len() {
		return d, nil
	}
	_, part, err := d.Split(float64(most)/float64(d.Len()), seed)
	return part, err
}

// keptFile is where the outcomes of a sweep are kept.
func (v *scenarioFlags) keptFile() string {
	if v.keep == "" && v.out != "" {
		return filepath.Join(v.out, "sweep.kept")
	}
	return v.keep
}
