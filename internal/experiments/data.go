package experiments

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/hushsum/hushsum/learning"
)

// source reads a data set by its name in the folder of data: "mnist",
// "fashion-mnist", "writers" (MNIST with those) or "adult", whose test set is nil.
type source func(set string) (train, test *learning.Dataset, err error)

func (o Options) load(set string) (train, test *learning.Dataset, err error) {
	if o.made != nil {
		return o.made(set)
	}
	switch set {
	case "writers":
		return learning.ReadMNISTWriters(filepath.Join(o.Data, "mnist"), filepath.Join(o.Data, "qmnist-writers"))
	case "adult":
		train, err = learning.ReadAdult(filepath.Join(o.Data, set))
		return train, nil, err
	}
	return learning.ReadMNIST(filepath.Join(o.Data, set))
}

// sample draws n rows without replacement by seed; all of them in their order if
// there are no more.
func sample(d *learning.Dataset, n int, seed uint64) (*learning.Dataset, error) {
	if n >= d.Len() {
		return d, nil
	}
	rng := rand.New(rand.NewPCG(seed, 0x5a3b1e))
	return d.Subset(rng.Perm(d.Len())[:n])
}

// dealt is a data set in the hands of parties.
type dealt struct {
	parties []*learning.Dataset
	test    *learning.Dataset
}

// dealer deals a data set and keeps what it has dealt with the last seed.
type dealer struct {
	train, test *learning.Dataset
	rows        int // of the training set that are used
	seed        uint64
	kept        map[string]dealt
}

// newDealer reads a data set. Models are judged on testRows of its test rows, the
// same for all seeds.
func newDealer(o Options, set string, rows, testRows int) (*dealer, error) {
	train, test, err := o.load(set)
	if err != nil {
		return nil, err
	}
	test, err = sample(test, testRows, 0)
	return &dealer{train: train, test: test, rows: rows}, err
}

func (d *dealer) deal(split string, clients int, seed uint64) (dealt, error) {
	if d.seed != seed || d.kept == nil {
		d.seed, d.kept = seed, map[string]dealt{}
	}
	key := fmt.Sprint(split, clients)
	if out, ok := d.kept[key]; ok {
		return out, nil
	}
	train, err := sample(d.train, d.rows, seed)
	if err != nil {
		return dealt{}, err
	}
	var out dealt
	out.parties, out.test, err = learning.Partition(split, train, d.test, learning.PartitionOptions{Clients: clients, Seed: seed})
	if err == nil {
		d.kept[key] = out
	}
	return out, err
}

// network is the MLP of the papers, 784-200-10, for the features that there are.
func (d *dealer) network(hidden int) learning.MLP {
	return learning.MLP{Features: d.train.Features, Hidden: []int{hidden}, Outputs: 10}
}
