// Package rows reads, makes and deals the rows of a job's world, for those who simulate it and for
// parties that are processes.
package rows

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// Sets that go by name, and are found in the folder of [Folder].
const (
	Synthetic    = "synthetic" // made, and in no folder
	Adult        = "adult"
	Digits       = "digits"
	MNIST        = "mnist"
	FashionMNIST = "fashion-mnist"
)

// Shuffled is the split that deals the first rows of all in a random order, as many to each party.
const Shuffled = "shuffled"

// Of synthetic rows: how many a split has at least to deal, and how many test. ofParty is how many
// of a party's rows count unless a job says so, but for images.
const (
	leastMade = 20_000
	testMade  = 10_000
	ofParty   = 200
)

// World says which rows there are, and who has them.
type World struct {
	Set           string // or a folder
	Parties, Rows int    // 0 rows of a party: all
	Split         string
	Concentration float64
	Test          float64 // share of the rows, where a set has no test rows of its own; 0: a fourth
	Seed          uint64
	Final         bool // rows of the set's own test set judge, and not some of those to train on
}

// Of returns the world that a job declares.
func Of(declared *job.Job) World {
	j := declared.WithDefaults()
	data := &j.World.Data
	w := World{Set: data.Set, Parties: j.Size(), Rows: data.Rows, Split: cmp.Or(data.Split, "iid"),
		Concentration: data.Concentration, Test: declared.World.Data.Test,
		Seed: cmp.Or(j.World.Seed, j.Seed), Final: data.Final}
	if w.Rows == 0 && !data.All && !w.Images() {
		w.Rows = ofParty
	}
	return w
}

// Holds reports whether a folder has a file.
func Holds(dir, file string) bool {
	info, err := os.Stat(filepath.Join(dir, file))
	return err == nil && !info.IsDir()
}

// Folder returns the folder of a set that goes by name, or the folder that is named itself.
func Folder(set string) string {
	switch set {
	case Adult, Digits, MNIST, FashionMNIST:
		return filepath.Join(Root(), set)
	}
	return set
}

// Root returns the folder that holds those of the sets.
func Root() string {
	return cmp.Or(os.Getenv("HUSHSUM_DATA"), filepath.Join("..", "shared", "data"))
}

// The files that say what a folder holds.
const (
	DigitsFile = "digits.csv.gz"
	ImagesFile = "train-images-idx3-ubyte.gz"
)

// Images reports whether the rows are images.
func (w *World) Images() bool {
	switch w.Set {
	case Digits, MNIST, FashionMNIST:
		return true
	}
	return Holds(w.Set, DigitsFile) || Holds(w.Set, ImagesFile)
}

// OwnTest reports whether the set has test rows of its own.
func (w *World) OwnTest() bool { return w.Images() && !Holds(Folder(w.Set), DigitsFile) }

// Load reads or makes the rows to train on and those to test. It fails with the errors of package
// learning, with learning.ErrValue where too many are to be made.
func (w *World) Load() (train, test *learning.Dataset, err error) {
	dir := Folder(w.Set)
	var all *learning.Dataset
	switch {
	case w.Set == Synthetic:
		return w.make()
	case w.Set == Digits || Holds(dir, DigitsFile):
		all, err = learning.ReadDigits(dir)
	case w.Images():
		if train, test, err = readImages(dir); err == nil && !w.Final {
			return holdOut(train)
		}
		return train, test, err
	default:
		all, err = learning.ReadAdult(dir)
	}
	if err != nil {
		return nil, nil, err
	}
	return all.Split(cmp.Or(w.Test, 0.25), w.Seed)
}

// Rows that are held out are the last of those to train on: a sixth of them, at most mostHeldOut.
const (
	heldOut     = 6
	mostHeldOut = 10_000
)

// holdOut takes apart what trains and what judges, so that no choice is made on test rows.
func holdOut(all *learning.Dataset) (train, judging *learning.Dataset, err error) {
	first := make([]int, all.Len())
	for i := range first {
		first[i] = i
	}
	n := len(first) - min(mostHeldOut, len(first)/heldOut)
	if train, err = all.Subset(first[:n]); err == nil {
		judging, err = all.Subset(first[n:])
	}
	return train, judging, err
}

// Judged says what models of the rows are judged on: "hold-out" or "test".
func (w *World) Judged() string {
	if w.OwnTest() && !w.Final {
		return "hold-out"
	}
	return "test"
}

// readImages reads MNIST or Fashion-MNIST, with the writers if there are files about them next to
// it.
func readImages(dir string) (train, test *learning.Dataset, err error) {
	writers := filepath.Join(filepath.Dir(filepath.Clean(dir)), "qmnist-writers")
	if filepath.Base(dir) == MNIST && Holds(writers, "qmnist-train-labels-idx2-int.gz") {
		return learning.ReadMNISTWriters(dir, writers)
	}
	return learning.ReadMNIST(dir)
}

// make makes as many rows as are needed, and for splits at least as many as there are by default.
func (w *World) make() (train, test *learning.Dataset, err error) {
	if w.Rows > (math.MaxInt-testMade)/max(w.Parties, 1) {
		return nil, nil, fmt.Errorf("%w: %d parties with %d rows each", learning.ErrValue, w.Parties,
			w.Rows)
	}
	made := w.Parties * w.Rows
	if w.Split != Shuffled || w.Rows == 0 {
		made = max(made, leastMade)
	}
	made += testMade
	all, _, err := learning.Census(made, w.Seed)
	if err != nil {
		return nil, nil, err
	}
	share := w.Test
	if share == 0 {
		share = testMade / float64(made)
	}
	return all.Split(share, w.Seed)
}

// Deal deals the rows: shuffled the first of all in a random order, otherwise as the split says, of
// each party the first. It returns the rows to test too, which some splits change. It fails with
// the errors of package learning.
func (w *World) Deal(
	train, test *learning.Dataset,
) (parties []*learning.Dataset, unseen *learning.Dataset, err error) {
	if w.Split == Shuffled {
		parties, err = train.PartitionIID(w.Parties, cmp.Or(w.Rows, train.Len()/w.Parties), w.Seed)
		return parties, test, err
	}
	parties, unseen, err = learning.Partition(w.Split, train, test,
		learning.PartitionOptions{Clients: w.Parties, Seed: w.Seed, Concentration: w.Concentration})
	if err != nil {
		return nil, nil, err
	}
	for i, d := range parties {
		if w.Rows == 0 || d.Len() <= w.Rows {
			continue
		}
		first := make([]int, w.Rows)
		for k := range first {
			first[k] = k
		}
		if parties[i], err = d.Subset(first); err != nil {
			return nil, nil, err
		}
	}
	return parties, unseen, nil
}
