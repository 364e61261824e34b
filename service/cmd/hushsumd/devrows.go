package main

import (
	"errors"
	"io/fs"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training/rows"
)

// builtinRowCount is how many synthetic rows dev's own job deals.
const builtinRowCount = 20_000

// ownRows holds the rows of each party, and those that models are judged on.
type ownRows struct {
	parties []*learning.Dataset
	test    *learning.Dataset
	about   string
}

// dealt returns the rows as a simulation takes them.
func (o *ownRows) dealt() simulation.Rows {
	return simulation.Rows{Parties: o.parties, Test: o.test}
}

// dealRows reads or makes the rows of a job's world, and deals them as hushsum simulate does. It
// fails with a [job.ConfigError].
func dealRows(j *job.Job) (*ownRows, error) {
	w := rows.Of(j)
	if w.Test != 0 && w.OwnTest() {
		return nil, j.Mistake("world.data.test", "leave it out", "the set has test rows of its own")
	}
	train, test, err := w.Load()
	switch {
	case errors.Is(err, learning.ErrValue) && w.Set == rows.Synthetic:
		return nil, j.Mistake("world.data.rows", "write fewer", "they are too many to be made: %v", err)
	case err != nil:
		return nil, j.Mistake("world.data.set",
			"set HUSHSUM_DATA to the folder that holds the data sets, or use synthetic", "%s: %v",
			rows.Folder(w.Set), err)
	}
	parties, test, err := w.Deal(train, test)
	switch {
	case err != nil && w.Split == rows.Shuffled:
		return nil, j.Mistake("world.data.rows", "write fewer", "%v", err)
	case err != nil:
		return nil, j.Mistake("world.data.split", "use another, or fewer parties", "%v", err)
	}
	return &ownRows{parties, test, w.Set}, nil
}

// builtinRows deals the rows of dev's own job: those of the named set, if one is named, else of
// Adult, or synthetic ones where that is not available.
func builtinRows(j *job.Job, named string) (*ownRows, error) {
	if named != "" {
		j.World.Data.Set = named
	}
	if named != "synthetic" {
		own, err := dealRows(j)
		if named != "" || !errors.Is(err, fs.ErrNotExist) {
			if own != nil && named == "" {
				own.about = "the Adult census table"
			}
			return own, err
		}
	}
	j.World.Data.Set, j.World.Data.Rows = "synthetic", builtinRowCount/j.Size()
	own, err := dealRows(j)
	if own != nil {
		own.about = "synthetic rows"
	}
	return own, err
}
