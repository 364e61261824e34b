// Package simulate has the command simulate. It makes a job from a file, a preset and flags, runs
// it in virtual time or without time, once or for each value of a sweep and each seed, and
// shows rounds as a table, JSON and a page.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/jobs"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// Command returns the command simulate.
func Command() cli.Command {
	return cli.Command{Name: "simulate",
		About: "train a model over a private sum, and in the clear to compare", Run: simulate}
}

// simulate simulates a job: from a file, or from a preset, to which flags apply.
func simulate(ctx context.Context, args []string, std cli.Streams) int {
	flags, v := newJobFlags()
	operands, code, ok := cli.ParseOperands(flags, simulateManual(), 1, args, std)
	if !ok {
		return code
	}
	v.given = cli.Given(flags)
	if len(operands) > 0 {
		if name := operands[0]; name == "true" || name == "false" {
			return cli.WrongUsage(flags, cli.Unexpected(simulateManual(), name), std)
		}
		v.file = operands[0]
	}
	if v.keep != "" && v.sweep == "" && v.seeds == 0 {
		return cli.WrongUsage(flags, &cli.Problem{Cause: "--keep is for --sweep and --seeds"}, std)
	}
	j, err := v.declare()
	if err != nil {
		return v.refused(flags, err, std)
	}
	if j.Asks() {
		err := j.Mistake("query", "use hushsum query", "a job with queries trains nothing")
		return v.refused(flags, err, std)
	}
	v.base, v.rows = j, map[string]simulation.Rows{}
	if v.sweep != "" || v.seeds > 0 {
		return v.runSweep(ctx, flags, j, std)
	}
	r, err := v.ready(ctx, j)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return cli.Interrupted("simulate", std)
	case err != nil:
		return v.refused(flags, err, std)
	case v.print:
		return printJob(j, std)
	}
	left := []string{"time.start", "time.pace"}
	if !inTime(j) {
		left = append(left, "time.step_time", "time.begin_with")
	}
	leftOut(j, std, left...)
	return v.runOne(ctx, r, std)
}

// declare returns the job of the file, or of the preset, with the values of flags in place of its
// own. The job may need rows to be valid.
func (v *jobFlags) declare() (j *job.Job, err error) {
	if v.file != "" {
		j, err = v.read()
	} else {
		j, err = v.preset()
	}
	if err != nil {
		return nil, err
	}
	if _, ok := v.set.Of("training.steps"); ok {
		j.Training.Epochs = 0
	}
	if _, ok := v.set.Of("training.epochs"); ok {
		j.Training.Steps = 0
	}
	if _, ok := v.set.Of("world.data.all"); ok && v.file == "" {
		j.World.Data.Rows = 0
	}
	if err := v.setRule(j); err != nil {
		return nil, err
	}
	for _, s := range v.set {
		var wrong *job.ConfigError
		if err := j.Set(s.Path, s.Text); errors.As(err, &wrong) {
			cause := fmt.Sprintf("--%s: %s", s.Flag, wrong.Reason)
			return nil, &cli.Problem{Cause: cause, Advice: cli.Sentence(wrong.Advice), Err: err}
		}
	}
	if v.file == "" && j.World.Data.Set == kddRows {
		return nil, &cli.Problem{Cause: "--data: " + kddRows + " is dealt by round, and without a file " +
			"a job deals its rows once", Advice: "Give a file that declares world.data.draw, such as " +
			"simulation/scenarios/kdd.toml."}
	}
	if err := v.count(j); err != nil {
		return nil, err
	}
	if v.given["epsilon"] && !j.Noisy() && !v.given["noise"] {
		j.Privacy.Noise = "discrete-gaussian"
	}
	if v.file == "" && inTime(j) { // it deals rows by round, and a crowd has equal weights
		if j.World.Fidelity == simulation.Crowd && !v.given["max-weight"] {
			j.Sum.MaxWeight = 0
		}
		if !v.given["split"] {
			j.World.Data.Split = ""
		}
	}
	if v.file == "" { // deployments need it, and no simulation depends on it
		if j.Parties.Hidden > 0 && j.Privacy.SubmitAfter == 0 {
			j.Privacy.SubmitAfter = 10 * time.Second
		}
		if j.Parties.Participations > 0 && j.World.Fidelity == "" {
			j.World.Fidelity = "ring" // messages have a schedule that is fixed
		}
	}
	return j, nil
}

// count takes the number of parties from the roster that a file names, if nothing else states it.
// There are as many writers as the data has.
func (v *jobFlags) count(j *job.Job) error {
	if v.file == "" || j.Size() > 0 || j.Parties.Roster == "" || j.World.Data.Split == "writers" ||
		j.Asks() || v.sweep != "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(v.file), j.Parties.Roster))
	var roster *keyexchange.Roster
	if err == nil {
		roster, err = keyexchange.ParseRoster(text)
	}
	if err != nil {
		return j.Mistake("parties.count",
			"give it, as in --set parties.count=3, or provide the roster",
			"only the roster says how many parties there are: %s", cli.Plain(err))
	}
	j.Parties.Count = roster.Len()
	return nil
}

// setRule sets the fields that --rule stands for.
func (v *jobFlags) setRule(j *job.Job) error {
	if v.rule == "" {
		return nil
	}
	parties, servers := 0, 0
	for _, name := range strings.Split(v.rule, "+") {
		if name == "momentum" {
			name = "fedavgm"
		}
		_, ofParties := training.ClientRules[name]
		_, ofServer := training.ServerRules[name]
		switch {
		case ofParties:
			j.Training.Rule = name
			parties++
		case ofServer:
			j.Server.Rule, j.Server.Beta1 = name, cmp.Or(j.Server.Beta1, 0.9)
			if name == "fedavgm" && j.Server.Rate == 0 {
				j.Server.Rate = 1 - j.Server.Beta1 // steps then add up to the updates
			}
			servers++
		default:
			known := append(slices.Sorted(maps.Keys(training.ClientRules)),
				slices.Sorted(maps.Keys(training.ServerRules))...)
			return &cli.Problem{Cause: fmt.Sprintf("--rule: there is no %q", name),
				Advice: cli.DidYouMean(name, known, "%s", "Use one of "+strings.Join(known, ", ")+".")}
		}
	}
	if parties > 1 || servers > 1 {
		return &cli.Problem{Cause: fmt.Sprintf("--rule: %s has two rules for one side", v.rule),
			Advice: "Use one rule of the parties and one of the server, as in fedprox+fedadam."}
	}
	return nil
}

// The probability of a record's coin in the preset, and in that of images.
const (
	presetRate = 0.3
	imagesRate = 0.1
)

// fill fills in the fields that flags leave to the rows and their owners.
func (v *jobFlags) fill(j *job.Job, parties []*learning.Dataset) error {
	n := len(parties)
	if j.Size() == 0 {
		j.Parties.Count = n
	}
	if j.PerRecord() && v.file == "" && j.Training.Batch == 0 && !v.given["batch"] {
		training.CountRecords(j, parties)
		rate := presetRate
		if j.Model.Name == "scattering" {
			rate = imagesRate
		}
		j.Training.Batch = max(1, int(math.Round(rate*float64(j.Privacy.Records))))
	}
	if _, set := v.set.Of("training.standardise"); v.file == "" && !set && j.Rounds > 0 {
		j.Training.Standardise = min(j.Training.Standardise, j.Rounds-1)
	}
	if v.byRows || v.file == "" && j.Sum.MaxWeight > 0 && j.World.Data.All {
		j.Sum.MaxWeight = 0
		for _, d := range parties {
			j.Sum.MaxWeight = max(j.Sum.MaxWeight, d.Len())
		}
	}
	return v.fillSums(j, n)
}

// fillSums fills in the fields that flags leave to the number of parties.
func (v *jobFlags) fillSums(j *job.Job, n int) error {
	if v.file == "" && j.Oneshot() && (j.World.Malicious > 0 || j.Sum.Bounded) {
		cheats := max(1, simulation.Cheats(j, n))
		if !v.given["colluders"] {
			j.Parties.Colluders = cheats
		}
		if !v.given["drop-out"] && !v.given["drop"] {
			j.Parties.DropOut = float64(cheats) / float64(n)
		}
	}
	if v.file == "" && j.Noisy() && j.Oneshot() && !v.given["bits"] {
		j.Privacy.Bits = max(j.Privacy.Bits, simulation.OneshotBits(n))
	}
	if fidelity := j.World.Fidelity; v.file == "" && j.Parties.PerRound > 0 && !v.given["recovery"] &&
		(fidelity == "" || fidelity == simulation.Messages) {
		j.Sum.Recovery = true // sessions that rounds are drawn from need it
	}
	recovers := v.given["drop"] || v.given["recovery"] && j.Sum.Recovery
	if said, ok := v.set.Of("sum.recovery"); v.given["drop-out"] || !recovers || j.World.Drop == 0 &&
		!j.Sum.Recovery || ok && said == "false" {
		if v.given["min-survivors"] {
			return &cli.Problem{Cause: "--min-survivors is about recovery, which is off",
				Advice: "Add --recovery or --drop."}
		}
		return nil
	}
	least, err := j.Least(n)
	if err != nil {
		return err
	}
	if s := v.survivors; s != 0 && (s < least || s > n) {
		return &cli.Problem{Cause: fmt.Sprintf("--min-survivors: %d is outside %d to %d", s, least, n),
			Advice: fmt.Sprintf("Use 0 for the least that withstands the server and %d colluders.",
				j.Parties.Colluders)}
	}
	j.Parties.DropOut = float64(n-max(least, v.survivors)) / float64(n)
	j.Sum.Recovery = !j.Oneshot() && j.Parties.DropOut == 0
	return nil
}

// leftOut reports on standard error which of some fields about a job's time the simulation leaves
// out.
func leftOut(j *job.Job, std cli.Streams, paths ...string) {
	said := slices.DeleteFunc(paths, func(path string) bool { return j.Get(path) == "" })
	if len(said) == 0 {
		return
	}
	are := "is"
	if len(said) > 1 {
		are = "are"
	}
	cli.Complain(std.Err, "hushsum simulate", &cli.Problem{
		Cause: fmt.Sprintf("%s %s for deployments, and ignored here: rounds follow one another",
			strings.Join(said, ", "), are),
	})
}

// printJob prints a job as a file would declare it.
func printJob(j *job.Job, std cli.Streams) int {
	text, err := j.MarshalText()
	if err != nil {
		return cli.Failed("simulate", err, std)
	}
	fmt.Fprintf(std.Out, "%s", text)
	return cli.ExitOK
}

// read reads the job's file.
func (v *jobFlags) read() (*job.Job, error) {
	name, text, err := jobs.Read(v.file)
	if err != nil {
		return nil, &unread{&cli.Problem{Cause: cli.Plain(err),
			Advice: "Give a file that declares a job, such as one from simulation/scenarios.", Err: err}}
	}
	return job.Parse(name, text)
}

// unread is a problem with what a run reads, rather than with how the command is called.
type unread struct{ error }

// Unwrap returns the problem.
func (u *unread) Unwrap() error { return u.error }

// name is the name of the job's file without folder and extension.
func (v *jobFlags) name() string {
	name := cmp.Or(v.file, "simulate")
	return strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
}
