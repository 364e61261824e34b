package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/rows"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation/scenario"
)

// simulateScenario simulates a job in virtual time.
func (v *jobFlags) simulateScenario(
	ctx context.Context, flags *flag.FlagSet, j *job.Job, std streams,
) int {
	if v.sweep == "" { // whose combinations are checked one by one
		if err := scenario.Validate(j); err != nil {
			return jobFailed(err, std)
		}
	}
	if v.out != "" {
		if err := makeOut(v.out); err != nil {
			return failed(err, std)
		}
	}
	rows, err := loadRows(j)
	if err != nil {
		return jobFailed(err, std)
	}
	if v.sweep != "" {
		return v.runSweep(ctx, flags, j, rows, std)
	}
	return v.runOne(ctx, j, rows, std)
}

// runOne simulates the job as it is.
func (v *jobFlags) runOne(
	ctx context.Context, j *job.Job, rows scenario.Rows, std streams,
) int {
	alive := newHeartbeat(std, true, "hushsum simulate")
	var show scenarioShow = &scenarioTable{std: std}
	if v.json {
		show = &scenarioLines{std: std}
	}
	show.begin(j, rows)
	result, err := scenario.Run(ctx, j, rows, scenario.Hooks{
		Round: show.round,
		Now:   time.Now,
		Progress: func(round, done, of int) {
			where := "key exchange"
			if round > 0 {
				where = fmt.Sprintf("round %d of %d", round, j.Rounds)
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
		if outErr := v.report(rows, result, err == nil, std); outErr != nil {
			return failed(outErr, std)
		}
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return interrupted("simulate", std)
	case err != nil:
		return jobFailed(err, std)
	case len(result.Rounds) == 0 || result.Lost() == len(result.Rounds):
		return failed(&problem{cause: "there is no sum: every round was lost"}, std)
	}
	return exitOK
}

// scenarioShow shows a run as it goes on.
type scenarioShow interface {
	begin(j *job.Job, rows scenario.Rows)
	round(r scenario.Round)
	end(r *scenario.Result)
}

// The data set that only virtual time knows.
const kddData = "kddcup99"

// setOf returns which data set a name or a folder is of, and its folder; empty: of none.
func setOf(name string) (set, dir string) {
	switch {
	case slices.Contains(append(dataNames, kddData), name):
		return name, filepath.Join(rows.Root(), name)
	case rows.Holds(name, rows.DigitsFile):
		return digitsData, name
	case rows.Holds(name, rows.ImagesFile):
		return mnistData, name
	case rows.Holds(name, "adult.data"):
		return adultData, name
	}
	return "", ""
}

// loadRows reads the rows of a job's world.
func loadRows(declared *job.Job) (rows scenario.Rows, err error) {
	j := declared.WithDefaults()
	data, seed := &j.World.Data, cmp.Or(j.World.Seed, j.Seed)
	var all *learning.Dataset
	set, dir := setOf(data.Set)
	switch set {
	case "":
		return rows, j.Mistake("world.data.set", "use "+strings.Join(append(dataNames, kddData), ", ")+
			" or the folder of one", "there is no data set %q", data.Set)
	case synthetic:
		all, _, err = learning.Census(max(data.Most, 20_000), seed)
	case adultData:
		all, err = learning.ReadAdult(dir)
	case digitsData:
		all, err = learning.ReadDigits(dir)
	case kddData:
		all, err = learning.ReadKDDCup99(dir, data.Most, seed)
	default:
		if declared.World.Data.Test > 0 {
			return rows, j.Mistake("world.data.test", "leave it out", "the set has test rows of its own")
		}
		var train, test *learning.Dataset
		if train, test, err = learning.ReadMNIST(dir); err == nil {
			rows.Test = test
			rows.Train, err = atMost(train, data.Most, seed)
			return rows, err
		}
	}
	if err == nil {
		all, err = atMost(all, data.Most, seed)
	}
	if err == nil {
		if rows.Train, rows.Test, err = all.Split(data.Test, seed); err != nil {
			path := "world.data.test"
			if data.Most > 0 {
				path = "world.data.most"
			}
			e := j.Mistake(path, "use a larger world.data.most, or a world.data.test nearer to 0.25",
				"%s cannot be parted into some to train and some to judge models on",
				plural(all.Len(), "row"))
			e.Err = err
			return rows, e
		}
	}
	if err != nil {
		reason := strings.TrimPrefix(plain(err), "learning: ")
		if cut, _, found := strings.Cut(reason, "; "); found {
			reason = cut
		}
		e := j.Mistake("world.data.set", "name the folder that holds the data sets in HUSHSUM_DATA, or "+
			"use synthetic", "%s", reason)
		e.Err = err
		return rows, e
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
func (v *jobFlags) keptFile() string {
	if v.keep == "" && v.out != "" {
		return filepath.Join(v.out, "sweep.kept")
	}
	return v.keep
}
