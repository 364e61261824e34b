package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/old"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/simulation/scenario"
)

const simulateJobAbout = `Usage: hushsum simulate FILE [flags]

Simulates a job as a file declares it: who trains what, how sums are taken and
what noise is in them. What the file says of the world, under [world], is for a
simulation only: data, places, links, drop-outs; it says what accuracy, privacy
and time the collaboration would give. - reads standard input.

With places, links, single parties, crowds or rows by round time is virtual:
messages of real sessions take the latencies of the world, and work takes what
it gives, or what parties in places of their own would need. Noise is then drawn
from the world's seed, so that the same comes out again: a simulated model
protects nobody's rows and must not be released.

Flags take the place of what the file says, and --set does for any field.
`

// jobFlags are the flags of simulate with a file.
type jobFlags struct {
	file, out, sweep, keep string
	old                    bool // the file may be of the form before jobs
	json                   bool
	set                    settings
}

// setting is a field of a job with a value, as a flag or --set has it.
type setting struct{ flag, path, text string }

// settings are in the order in which they were given.
type settings []setting

// texts returns them as --set has them.
func (s settings) texts() (all []string) {
	for _, one := range s {
		all = append(all, one.path+"="+one.text)
	}
	return all
}

// setFlag is --set.
type setFlag struct{ *settings }

func (s setFlag) String() string { return "" }

func (s setFlag) Set(text string) error {
	path, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("write PATH=VALUE, as in privacy.epsilon=4")
	}
	*s.settings = append(*s.settings, setting{"set " + text, path, value})
	return nil
}

// fieldFlag is the flag of a field.
type fieldFlag struct {
	job.Field
	*settings
}

func (f *fieldFlag) String() string { return "" }

func (f *fieldFlag) Set(text string) error {
	*f.settings = append(*f.settings, setting{f.Flag, f.Path, text})
	return nil
}

// IsBoolFlag has package flag take the flag without a value.
func (f *fieldFlag) IsBoolFlag() bool { return f.Kind == job.Truth }

func newJobFlags() (*flag.FlagSet, *jobFlags) {
	v := &jobFlags{}
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.StringVar(&v.file, "scenario", "", "`FILE` in the place of FILE; it may be of the form before jobs")
	f.BoolVar(&v.json, "json", false, "print JSON, an object a line")
	f.StringVar(&v.out, "out", "", "`DIR` for tables, figures and a page, in virtual time")
	f.StringVar(&v.sweep, "sweep", "", "`\"KEY=A,B …\"`: run all combinations of values, in virtual "+
		"time; a key is a path, a flag's name, parties or rows")
	f.StringVar(&v.keep, "keep", "", "`FILE` to keep the outcomes of a sweep in, so that it can go on\t"+
		", with --out DIR/sweep.kept")
	f.Var(setFlag{&v.set}, "set", "`PATH=VALUE` in place of what the file says of a field")
	for field := range job.Fields() {
		if field.Flag == "" {
			continue
		}
		usage := field.Path + ": " + strings.TrimSuffix(field.Sentence, ".")
		if field.Arg != "" {
			usage = "`" + field.Arg + "` " + usage
		}
		f.Var(&fieldFlag{field, &v.set}, field.Flag, usage)
	}
	return f, v
}

func simulateJobManual() *manual {
	return &manual{about: simulateJobAbout, examples: []string{
		"hushsum simulate simulation/scenarios/latency.toml",
		"hushsum simulate simulation/scenarios/hospitals.toml --out hospitals",
		"hushsum simulate simulation/scenarios/hospitals.toml --set world.party.2.rows=100",
		`hushsum simulate simulation/scenarios/digits.toml --sweep "epsilon=0.1,1,8"`,
	}}
}

// namesJob takes the file that simulate is called with out of the arguments.
func namesJob(args []string) (file string, rest []string, ok bool) {
	if len(args) > 0 && (args[0] == "-" || !strings.HasPrefix(args[0], "-")) {
		return args[0], args[1:], true
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && name == "scenario" {
			return "", args, true
		}
	}
	return "", args, false
}

// simulateJob is simulate with a file.
func simulateJob(ctx context.Context, file string, args []string, std streams) int {
	flags, v := newJobFlags()
	if code, ok := parseFlags(flags, simulateJobManual(), args, std); !ok {
		return code
	}
	v.old = v.file != ""
	v.file = cmp.Or(v.file, file)
	switch {
	case v.file == "":
		return wrongUsage(flags, &problem{cause: "there is no file to simulate"}, std)
	case v.keep != "" && v.sweep == "":
		return wrongUsage(flags, &problem{cause: "--keep is for --sweep"}, std)
	}
	j, err := v.read()
	if err != nil {
		return jobFailed(err, std)
	}
	for _, s := range v.set {
		var wrong *job.ConfigError
		if err := j.Set(s.path, s.text); errors.As(err, &wrong) {
			return wrongUsage(flags, &problem{cause: fmt.Sprintf("--%s: %s: %s", s.flag, s.path,
				wrong.Reason), advice: sentence(wrong.Advice), err: err}, std)
		}
	}
	if len(v.set) > 0 {
		if err := j.Validate(); err != nil {
			return jobFailed(err, std)
		}
	}
	if scenario.Needs(j) || j.World.Data.Set == kddData || v.old || v.sweep != "" || v.out != "" {
		return v.simulateScenario(ctx, flags, j, std)
	}
	return v.runDeclared(ctx, j, std)
}

// runDeclared simulates a job without virtual time: its training by whatever rules, over sums by
// messages.
func (v *jobFlags) runDeclared(ctx context.Context, declared *job.Job, std streams) int {
	start, j := time.Now(), declared.WithDefaults()
	d := newDealing(j)
	train, test, about, err := d.load()
	if err != nil {
		return failed(err, std)
	}
	parties, test, err := d.deal(train, test)
	if err != nil {
		return failed(err, std)
	}
	var options simulation.Options
	err = interruptible(ctx, func() (err error) { // noise is calibrated
		options, err = simulation.Declared(declared, parties, test)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return interrupted("simulate", std)
	case err != nil:
		return jobFailed(err, std)
	}
	return runOptions(ctx, describeJob(j), about, options, v.json, start, std)
}

// newDealing is how a job deals rows, with its defaults.
func newDealing(j *job.Job) *dealing {
	data := &j.World.Data
	d := &dealing{data: data.Set, clients: j.Size(), rows: data.Rows, split: cmp.Or(data.Split, "iid"),
		concentration: data.Concentration, seed: cmp.Or(j.World.Seed, j.Seed)}
	if d.rows == 0 && !isImages(d.data) {
		d.rows = censusStart.rows
	}
	return d
}

// describeJob tells a job with its defaults.
func describeJob(j *job.Job) described {
	d := described{set: j.World.Data.Set, model: j.Model.Name,
		split: cmp.Or(j.World.Data.Split, "iid"), rule: j.Training.Rule, mask: j.Training.Mask,
		noise: j.Privacy.Noise, lambda: j.Training.Lambda}
	if d.split == shuffledSplit {
		d.averaging, d.split = j.Model.Name == "logistic", "iid"
	}
	d.byRows = j.Sum.MaxWeight > 0
	if rule := j.Server.Rule; rule != "fedavg" {
		d.rule += "+" + rule
	}
	return d
}

// read reads the job.
func (v *jobFlags) read() (*job.Job, error) {
	name, text, err := readJob(v.file)
	if err != nil {
		return nil, &problem{cause: plain(err),
			advice: "Give a file that declares a job, such as one of simulation/scenarios.", err: err}
	}
	return parseJob(name, text, v.old)
}

// parseJob reads the text of a job, or if that may be of a scenario as they were before jobs.
func parseJob(name string, text []byte, scenarios bool) (*job.Job, error) {
	if !scenarios || !old.IsScenario(text) {
		return job.Parse(name, text)
	}
	j, _, err := old.Scenario(name, text)
	return j, err
}

// base is the name of the job's file without folder and extension.
func (v *jobFlags) base() string {
	return strings.TrimSuffix(filepath.Base(v.file), filepath.Ext(v.file))
}

// jobFailed says what is wrong with a job, a line for each mistake.
func jobFailed(err error, std streams) int {
	all := job.Errors(err)
	if len(all) == 0 {
		return failed(err, std)
	}
	for _, e := range all {
		fmt.Fprintln(std.err, "hushsum simulate: "+e.Error())
	}
	return exitFailure
}
