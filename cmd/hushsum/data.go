package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/learning"
)

// synthetic is the value of --data for rows that need no file.
const synthetic = "synthetic"

const (
	syntheticTestRows = 10000 // beside what the parties get
	adultTestFraction = 0.25
)

// dealing says which rows there are, and who has them.
type dealing struct {
	data          string
	clients, rows int     // 0 rows: all
	test          float64 // share of the rows to judge models on; 0: that of the set
	split         string
	concentration float64
	seed          uint64
}

// censusRows are those of a party of a census if nothing says how many.
const censusRows = 200

// shuffledSplit deals the first rows of all in a random order, as many to each party.
const shuffledSplit = "shuffled"

func (v *dealing) shuffled() bool { return v.split == shuffledSplit }

// load returns training and test rows, and a line about them.
func (v *dealing) load() (train, test *learning.Dataset, about string, err error) {
	switch {
	case isImages(v.data):
		return v.loadImages()
	case v.data == synthetic:
		about = "synthetic census"
		train, test, err = v.makeCensus()
	default:
		judged := math.Round(100 * cmp.Or(v.test, adultTestFraction))
		about = fmt.Sprintf("Adult census, both files merged and split again %v/%v", 100-judged, judged)
		train, test, err = v.loadAdult()
	}
	if err != nil {
		return nil, nil, "", err
	}
	return train, test, aboutRows(about, train, test), nil
}

func aboutRows(name string, train, test *learning.Dataset) string {
	return fmt.Sprintf("%s: %s; tested on %s", name, plural(train.Len(), "row"),
		plural(test.Len(), "other"))
}

// makeCensus makes as many rows as are needed, and for splits at least as many as there
// are without flags.
func (v *dealing) makeCensus() (train, test *learning.Dataset, err error) {
	if v.rows > (math.MaxInt-syntheticTestRows)/max(v.clients, 1) {
		return nil, nil, v.tooManyRows()
	}
	rows := v.clients * v.rows
	if !v.shuffled() || v.rows == 0 {
		rows = max(rows, 100*censusRows)
	}
	rows += syntheticTestRows
	all, _, err := learning.Census(rows, v.seed)
	if errors.Is(err, learning.ErrValue) {
		return nil, nil, v.tooManyRows()
	}
	if err != nil {
		return nil, nil, err
	}
	return all.Split(cmp.Or(v.test, syntheticTestRows/float64(rows)), v.seed)
}

func (v *dealing) tooManyRows() error {
	return &problem{
		cause: fmt.Sprintf("%d parties with %s each are more than the four million rows that can "+
			"be made", v.clients, plural(v.rows, "row")),
		advice: "Lower --clients or --rows-per-client.",
	}
}

const whatAdultIs = "adult.data and adult.test of the UCI Adult data set (DOI 10.24432/C5XW20)"

func (v *dealing) loadAdult() (train, test *learning.Dataset, err error) {
	dir := v.data
	if dir == adultData {
		dir = dataFolder(adultData)
	}
	info, err := os.Stat(dir)
	if meant := didYouMean(v.data, dataNames, "%s", ""); err != nil && meant != "" && dir == v.data {
		return nil, nil, &problem{
			cause:  fmt.Sprintf("--data: there is no data set, and no folder, %q", v.data),
			advice: meant,
			err:    err,
		}
	}
	if err == nil && !info.IsDir() {
		return nil, nil, &problem{
			cause:  fmt.Sprintf("--data: %s is a file", dir),
			advice: "Give the folder that holds " + whatAdultIs + ".",
		}
	}
	all, err := learning.ReadAdult(dir)
	if err != nil {
		return nil, nil, adultProblem(err)
	}
	if train, test, err = all.Split(cmp.Or(v.test, adultTestFraction), v.seed); err != nil {
		return nil, nil, err
	}
	if n := train.Len(); v.shuffled() && v.rows > n/v.clients {
		return nil, nil, &problem{
			cause: fmt.Sprintf("%d parties with %s each do not fit in the %d training rows", v.clients,
				plural(v.rows, "row"), n),
			advice: v.fitting(n),
		}
	}
	return train, test, nil
}

// adultProblem says what to do about files that cannot be read.
func adultProblem(err error) error {
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return &problem{
			cause: fmt.Sprintf("--data: cannot read %s: %v", path.Path, path.Err),
			advice: "--data takes digits, mnist, fashion-mnist, adult or the folder with " + whatAdultIs +
				". Without --data, rows are made up.",
			err: err,
		}
	case errors.Is(err, learning.ErrIncomplete), errors.Is(err, learning.ErrMalformed):
		return &problem{
			cause:  "--data: " + fileFault(err),
			advice: "Fetch " + whatAdultIs + " again.",
			err:    err,
		}
	}
	return err
}

// fitting says what fits in n rows.
func (v *dealing) fitting(n int) string {
	var ways []string
	if clients := n / v.rows; clients >= 2 {
		ways = append(ways, fmt.Sprintf("--clients up to %d", clients))
	}
	if rows := n / v.clients; rows >= 1 {
		ways = append(ways, fmt.Sprintf("--rows-per-client up to %d", rows))
	}
	if len(ways) == 0 {
		return "Lower --clients and --rows-per-client."
	}
	return "Use " + strings.Join(ways, " or ") + "."
}

// The values of --data that name public data sets.
const (
	adultData   = "adult"
	digitsData  = "digits"
	mnistData   = "mnist"
	fashionData = "fashion-mnist"
)

// dataNames are those, and the one that names none.
var dataNames = []string{synthetic, adultData, digitsData, mnistData, fashionData}

// The files that say what a folder holds.
const (
	digitsFile = "digits.csv.gz"
	imagesFile = "train-images-idx3-ubyte.gz"
)

const digitsTestFraction = 0.25

// isImages reports whether --data names images, or a folder with some.
func isImages(data string) bool {
	switch data {
	case digitsData, mnistData, fashionData:
		return true
	}
	return holds(data, digitsFile) || holds(data, imagesFile)
}

func holds(dir, file string) bool {
	info, err := os.Stat(filepath.Join(dir, file))
	return err == nil && !info.IsDir()
}

// dataRoot is the folder that holds those of the data sets.
func dataRoot() string {
	return cmp.Or(os.Getenv("HUSHSUM_DATA"), filepath.Join("..", "shared", "data"))
}

// dataFolder returns the folder of a data set that goes by name.
func dataFolder(name string) string { return filepath.Join(dataRoot(), name) }

func (v *dealing) loadImages() (train, test *learning.Dataset, about string, err error) {
	dir := v.data
	switch v.data {
	case digitsData, mnistData, fashionData:
		dir = dataFolder(v.data)
	}
	if v.data == digitsData || holds(dir, digitsFile) {
		var all *learning.Dataset
		if all, err = learning.ReadDigits(dir); err == nil {
			train, test, err = all.Split(cmp.Or(v.test, digitsTestFraction), v.seed)
		}
	} else if v.test > 0 {
		return nil, nil, "", ownTest
	} else {
		train, test, err = readImages(dir)
	}
	if err != nil {
		return nil, nil, "", imageProblem(err)
	}
	return train, test, aboutRows(filepath.Base(dir), train, test), nil
}

// ownTest is what is wrong with a share of rows to judge on of a set that has some apart.
var ownTest = &problem{cause: "world.data.test: the set has test rows of its own",
	advice: "Leave it out."}

// readImages reads MNIST or Fashion-MNIST, with the writers if there are files
// about them beside it.
func readImages(dir string) (train, test *learning.Dataset, err error) {
	writers := filepath.Join(filepath.Dir(filepath.Clean(dir)), "qmnist-writers")
	if filepath.Base(dir) == mnistData && holds(writers, "qmnist-train-labels-idx2-int.gz") {
		return learning.ReadMNISTWriters(dir, writers)
	}
	return learning.ReadMNIST(dir)
}

// imageProblem says what to do about files that cannot be read.
func imageProblem(err error) error {
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return &problem{
			cause: fmt.Sprintf("--data: cannot read %s: %v", path.Path, path.Err),
			advice: "Name the folder that holds the data sets in HUSHSUM_DATA, or give the folder of one " +
				"to --data.",
			err: err,
		}
	case errors.Is(err, learning.ErrIncomplete), errors.Is(err, learning.ErrMalformed):
		return &problem{cause: "--data: " + fileFault(err), advice: "Fetch the files again.", err: err}
	}
	return err
}

// deal deals the rows: shuffled the first of all in a random order, otherwise as
// --split says, of each party the first --rows-per-client.
func (v *dealing) deal(
	train, test *learning.Dataset,
) ([]*learning.Dataset, *learning.Dataset, error) {
	if v.shuffled() {
		parties, err := train.PartitionIID(v.clients, cmp.Or(v.rows, train.Len()/v.clients), v.seed)
		return parties, test, err
	}
	if err := v.splitFits(train); err != nil {
		return nil, nil, err
	}
	o := learning.PartitionOptions{Clients: v.clients, Seed: v.seed, Concentration: v.concentration}
	parties, unseen, err := learning.Partition(v.split, train, test, o)
	if err != nil {
		p := &problem{cause: "--split: " + plain(err), err: err}
		if errors.Is(err, learning.ErrTooFewRows) {
			p.advice = "Lower --clients."
		}
		return nil, nil, p
	}
	for i, d := range parties {
		if v.rows == 0 || d.Len() <= v.rows {
			continue
		}
		first := make([]int, v.rows)
		for k := range first {
			first[k] = k
		}
		if parties[i], err = d.Subset(first); err != nil {
			return nil, nil, err
		}
	}
	return parties, unseen, nil
}

// splitFits checks that the data has what the split asks for.
func (v *dealing) splitFits(train *learning.Dataset) error {
	switch {
	case v.split == "writers" && train.Writers == nil:
		return &problem{cause: "--split writers: the data does not say who wrote which row",
			advice: "Use --data mnist, with the folder qmnist-writers beside it, or another split."}
	case (strings.Contains(v.split, "colour") || strings.Contains(v.split, "rotation")) &&
		train.Pixels == nil:
		return &problem{cause: fmt.Sprintf("--split %s: it takes images such as those of mnist", v.split),
			advice: "Use --data mnist or fashion-mnist, or another split."}
	}
	return nil
}
