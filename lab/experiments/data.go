package experiments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// source reads a data set by its name in the folder of data: "mnist",
// "fashion-mnist", "writers" (MNIST with those) or "adult", whose test set is nil.
type source func(set string) (train, test *learning.Dataset, err error)

func (o Options) load(set string) (train, test *learning.Dataset, err error) {
	switch {
	case o.made != nil:
		return o.made(set)
	case o.source != nil:
		return o.source(set)
	}
	switch set {
	case "writers":
		return learning.ReadMNISTWriters(filepath.Join(o.Data, "mnist"),
			filepath.Join(o.Data, "qmnist-writers"))
	case "adult":
		train, err = learning.ReadAdult(filepath.Join(o.Data, set))
		return train, nil, err
	}
	return learning.ReadMNIST(filepath.Join(o.Data, set))
}

// sample draws n rows without replacement by seed; it returns all in their order if
// there are n or fewer.
func sample(d *learning.Dataset, n int, seed uint64) (*learning.Dataset, error) {
	if n >= d.Len() {
		return d, nil
	}
	rng := rand.New(rand.NewPCG(seed, 0x5a3b1e))
	return d.Subset(rng.Perm(d.Len())[:n])
}

// halved returns images of half the side, each pixel the mean of four, with black
// margins all round to the given side.
func halved(d *learning.Dataset, side int) *learning.Dataset {
	n := int(math.Round(math.Sqrt(float64(d.Features))))
	margin := (side - n/2) / 2
	h := &learning.Dataset{Features: side * side, Labels: d.Labels, Writers: d.Writers,
		Pixels: make([]byte, d.Len()*side*side)}
	for i := range d.Len() {
		from, to := d.Pixels[i*d.Features:], h.Pixels[i*h.Features:]
		for y := range n / 2 {
			for x := range n / 2 {
				at := 2*y*n + 2*x
				sum := int(from[at]) + int(from[at+1]) + int(from[at+n]) + int(from[at+n+1])
				to[(y+margin)*side+x+margin] = byte((sum + 2) / 4)
			}
		}
	}
	return h
}

// dealt is a data set in the hands of parties.
type dealt struct {
	parties []*learning.Dataset
	test    *learning.Dataset
}

// dealer deals a data set and keeps what it has dealt with the last seed.
type dealer struct {
	train, test *learning.Dataset
	// validation are rows of the training set that no party gets, to choose rates by.
	validation *learning.Dataset
	rows       int // of the training set that are used
	seed       uint64
	kept       map[string]dealt
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

// smaller halves all images, with margins to the given side, but for those that are
// made up.
func (d *dealer) smaller(o Options, side int) *dealer {
	if o.made == nil {
		d.train, d.test = halved(d.train, side), halved(d.test, side)
	}
	return d
}

// newImages is a dealer of images, halved to 16 × 16 in the quick form, with held rows for
// validation.
func newImages(o Options, set string, rows, testRows, held int) (*dealer, error) {
	d, err := newDealer(o, set, rows, testRows)
	if err != nil {
		return nil, err
	}
	if !o.Long {
		d.smaller(o, 16)
	}
	if held > 0 {
		err = d.holdOut(held)
	}
	return d, err
}

// holdOut takes rows out of the training set for validation. From a data set with
// writers it takes whole writers, so that validation is on unseen ones too.
func (d *dealer) holdOut(rows int) (err error) {
	order := rand.New(rand.NewPCG(0, 0x40d007)).Perm(d.train.Len())
	out, in := order[:rows], order[rows:]
	if d.train.Writers != nil {
		away := map[int]bool{}
		for _, i := range order[:max(1, rows/100)] {
			away[d.train.Writers[i]] = true
		}
		out, in = nil, nil
		for i, who := range d.train.Writers {
			if away[who] {
				out = append(out, i)
			} else {
				in = append(in, i)
			}
		}
	}
	if d.validation, err = d.train.Subset(out); err != nil {
		return err
	}
	d.train, err = d.train.Subset(in)
	return err
}

func (d *dealer) deal(split string, clients int, seed uint64) (dealt, error) {
	return d.dealWith(split, seed, false, learning.PartitionOptions{Clients: clients})
}

// dealWith deals with more options. To tune, what parties are judged on is validation
// rows, recast as test rows are.
func (d *dealer) dealWith(
	split string, seed uint64, tune bool, p learning.PartitionOptions,
) (dealt, error) {
	if d.seed != seed || d.kept == nil {
		d.seed, d.kept = seed, map[string]dealt{}
	}
	p.Seed = seed
	key := fmt.Sprint(split, tune, p)
	if out, ok := d.kept[key]; ok {
		return out, nil
	}
	train, err := sample(d.train, d.rows, seed)
	if err != nil {
		return dealt{}, err
	}
	test := d.test
	if tune {
		test = d.validation
	}
	var out dealt
	out.parties, out.test, err = learning.Partition(split, train, test, p)
	if err == nil {
		d.kept[key] = out
	}
	return out, err
}

// network is the MLP of the papers, 784-200-10, for the features that there are.
func (d *dealer) network(hidden int) learning.MLP {
	return learning.MLP{Features: d.train.Features, Hidden: []int{hidden}, Outputs: 10}
}

// mlp is the network in a job.
func mlp(hidden int) job.Model { return job.Model{Name: fmt.Sprintf("mlp:%d", hidden)} }

// lenet is LeNet for the parties' images, coloured or not.
var lenet = job.Model{Name: "lenet"}

// imagesAre says which images there are, for settings.
func imagesAre(d *learning.Dataset) string {
	side := int(math.Round(math.Sqrt(float64(d.Features))))
	return fmt.Sprintf("%d × %d pixels", side, side)
}
