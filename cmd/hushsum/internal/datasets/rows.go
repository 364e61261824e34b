package datasets

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training/rows"
)

// KDD is the data set that only virtual time supports.
const KDD = "kddcup99"

// setOf returns the data set that a name or a folder stands for, and its folder; empty: none.
func setOf(name string) (set, dir string) {
	switch {
	case slices.Contains(append(dataNames, KDD), name):
		return name, filepath.Join(rows.Root(), name)
	case rows.Holds(name, rows.DigitsFile):
		return rows.Digits, name
	case rows.Holds(name, rows.ImagesFile):
		return rows.MNIST, name
	case rows.Holds(name, "adult.data"):
		return rows.Adult, name
	}
	return "", ""
}

// LoadRows reads the rows of a job's world.
func LoadRows(declared *job.Job) (found simulation.Rows, err error) {
	j := declared.WithDefaults()
	data, seed := &j.World.Data, cmp.Or(j.World.Seed, j.Seed)
	var all *learning.Dataset
	set, dir := setOf(data.Set)
	switch set {
	case "":
		return simulation.Rows{}, j.Mistake("world.data.set",
			"use "+strings.Join(append(dataNames, KDD), ", ")+" or the folder of one",
			"there is no data set %q", data.Set)
	case rows.Synthetic:
		all, _, err = learning.Census(max(data.Most, 20_000), seed)
	case rows.Adult:
		all, err = learning.ReadAdult(dir)
	case rows.Digits:
		all, err = learning.ReadDigits(dir)
	case KDD:
		all, err = learning.ReadKDDCup99(dir, data.Most, seed)
	default:
		if declared.World.Data.Test > 0 {
			return simulation.Rows{}, j.Mistake("world.data.test", "leave it out",
				"the set has test rows of its own")
		}
		var train, test *learning.Dataset
		if train, test, err = learning.ReadMNIST(dir); err == nil {
			if train, err = atMost(train, data.Most, seed); err != nil {
				return simulation.Rows{}, err
			}
			return simulation.Rows{Train: train, Test: test}, nil
		}
	}
	if err == nil {
		all, err = atMost(all, data.Most, seed)
	}
	if err == nil {
		if found.Train, found.Test, err = all.Split(data.Test, seed); err != nil {
			path := "world.data.test"
			if data.Most > 0 {
				path = "world.data.most"
			}
			e := j.Mistake(path, "use a larger world.data.most, or a world.data.test nearer to 0.25",
				"%s cannot be divided into rows to train on and rows to evaluate models on",
				show.Plural(all.Len(), "row"))
			e.Err = err
			return simulation.Rows{}, e
		}
	}
	if err != nil {
		reason := strings.TrimPrefix(cli.Plain(err), "learning: ")
		if cut, _, found := strings.Cut(reason, "; "); found {
			reason = cut
		}
		e := j.Mistake("world.data.set", "set HUSHSUM_DATA to the folder that holds the data sets, or "+
			"use synthetic", "%s", reason)
		e.Err = err
		return simulation.Rows{}, e
	}
	return found, nil
}

// atMost draws at most a given number of rows; 0: all.
func atMost(d *learning.Dataset, most int, seed uint64) (*learning.Dataset, error) {
	if most == 0 || most >= d.Len() {
		return d, nil
	}
	_, part, err := d.Split(float64(most)/float64(d.Len()), seed)
	return part, err
}
