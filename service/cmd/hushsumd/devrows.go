package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// Of synthetic rows: how many a split has at least to deal, and how many test.
const (
	syntheticRows = 20_000
	syntheticTest = 10_000
)

// rowsOfParty is how many rows of a party count unless a job says so, but for images.
const rowsOfParty = 200

// ownRows are the rows of each party, and those that models are judged on.
type ownRows struct {
	parties []*learning.Dataset
	test    *learning.Dataset
	about   string
}

// dealRows reads or makes the rows of a job's world, and deals them as hushsum simulate does. It
// fails with a [job.ConfigError].
func dealRows(declared *job.Job) (*ownRows, error) {
	j := declared.WithDefaults()
	d, n, seed := &j.World.Data, j.Size(), cmp.Or(j.World.Seed, j.Seed)
	made := n * cmp.Or(d.Rows, rowsOfParty)
	if d.All || d.Split != "shuffled" {
		made = max(made, syntheticRows)
	}
	train, test, images, err := loadRows(declared, d.Set, made, seed)
	if err != nil {
		return nil, err
	}
	most := d.Rows
	if most == 0 && !d.All && !images {
		most = rowsOfParty
	}
	if d.Split == "shuffled" {
		parties, err := train.PartitionIID(n, cmp.Or(most, train.Len()/n), seed)
		if err != nil {
			return nil, declared.Mistake("world.data.rows", "write fewer", "%v", err)
		}
		return &ownRows{parties, test, d.Set}, nil
	}
	parties, test, err := learning.Partition(cmp.Or(d.Split, "iid"), train, test,
		learning.PartitionOptions{Clients: n, Seed: seed, Concentration: d.Concentration})
	if err != nil {
		return nil, declared.Mistake("world.data.split", "use another, or fewer parties", "%v", err)
	}
	for i, rows := range parties {
		if most == 0 || rows.Len() <= most {
			continue
		}
		first := make([]int, most)
		for k := range first {
			first[k] = k
		}
		if parties[i], err = rows.Subset(first); err != nil {
			return nil, err
		}
	}
	return &ownRows{parties, test, d.Set}, nil
}

// loadRows reads rows to train on, or makes so many, and rows to test.
func loadRows(
	j *job.Job, set string, made int, seed uint64,
) (train, test *learning.Dataset, images bool, err error) {
	share := cmp.Or(j.World.Data.Test, 0.25)
	split := func(all *learning.Dataset, err error) (*learning.Dataset, *learning.Dataset, error) {
		if err != nil {
			return nil, nil, err
		}
		return all.Split(share, seed)
	}
	dir := set
	switch set {
	case "adult", "digits", "mnist", "fashion-mnist":
		dir = filepath.Join(cmp.Or(os.Getenv("HUSHSUM_DATA"), filepath.Join("..", "shared", "data")), set)
	}
	holds := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && !info.IsDir()
	}
	switch {
	case set == "synthetic":
		count := made + syntheticTest
		if j.World.Data.Test == 0 {
			share = syntheticTest / float64(count)
		}
		var all *learning.Dataset
		all, _, err = learning.Census(count, seed)
		if errors.Is(err, learning.ErrValue) {
			return nil, nil, false, j.Mistake("world.data.rows", "write fewer", "%d rows are too many to "+
				"be made: %v", count, err)
		}
		train, test, err = split(all, err)
	case holds("digits.csv.gz"):
		images = true
		train, test, err = split(learning.ReadDigits(dir))
	case holds("train-images-idx3-ubyte.gz"):
		if images = true; j.World.Data.Test != 0 {
			return nil, nil, false, j.Mistake("world.data.test", "leave it out",
				"the set has test rows of its own")
		}
		writers := filepath.Join(filepath.Dir(filepath.Clean(dir)), "qmnist-writers")
		if _, missing := os.Stat(writers); j.World.Data.Split == "writers" && missing == nil {
			train, test, err = learning.ReadMNISTWriters(dir, writers)
		} else {
			train, test, err = learning.ReadMNIST(dir)
		}
	default:
		train, test, err = split(learning.ReadAdult(dir))
	}
	if err != nil {
		return nil, nil, false, j.Mistake("world.data.set",
			"name the folder that holds the data sets in HUSHSUM_DATA, or use synthetic", "%s: %v", dir, err)
	}
	return train, test, images, nil
}

// builtinRows deals the rows of dev's own job: those of a set that was named, else of Adult, or
// synthetic ones where that is not at hand.
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
	j.World.Data.Set, j.World.Data.Rows = "synthetic", syntheticRows/j.Size()
	own, err := dealRows(j)
	if own != nil {
		own.about = "synthetic rows"
	}
	return own, err
}
