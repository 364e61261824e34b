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
	"github.com/hushsum/hushsum/simulation"
)

// synthetic is the value of --data for rows that need no file.
const synthetic = "synthetic"

const (
	syntheticTestRows = 10000 // beside what the parties get
	adultTestFraction = 0.25
)

// loadData sets Train and Test, and returns a line about the data.
func loadData(data string, o *simulation.Options) (about string, err error) {
	if data == adultData {
		data = dataFolder(adultData)
	}
	if data == synthetic {
		about, err = "synthetic census", loadSynthetic(o)
	} else {
		about, err = "Adult census, both files merged and split again 75/25", loadAdult(data, o)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s; tested on %s", about, plural(o.Train.Len(), "row"), plural(o.Test.Len(), "other")), nil
}

// loadSynthetic makes as many rows as are needed.
func loadSynthetic(o *simulation.Options) error {
	if o.RowsPerClient > (math.MaxInt-syntheticTestRows)/o.Clients {
		return tooManyRows(o)
	}
	rows := o.Clients*o.RowsPerClient + syntheticTestRows
	all, _, err := learning.Census(rows, o.Seed)
	if errors.Is(err, learning.ErrValue) {
		return tooManyRows(o)
	}
	if err != nil {
		return err
	}
	o.Train, o.Test, err = all.Split(syntheticTestRows/float64(rows), o.Seed)
	return err
}

func tooManyRows(o *simulation.Options) error {
	return &problem{
		cause:  fmt.Sprintf("%d parties with %s each are more than the four million rows that can be made", o.Clients, plural(o.RowsPerClient, "row")),
		advice: "Lower --clients or --rows-per-client.",
	}
}

const whatAdultIs = "adult.data and adult.test of the UCI Adult data set (DOI 10.24432/C5XW20)"

func loadAdult(dir string, o *simulation.Options) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return &problem{
			cause:  fmt.Sprintf("--data: %s is a file", dir),
			advice: "Give the folder that holds " + whatAdultIs + ".",
		}
	}
	all, err := learning.ReadAdult(dir)
	if err != nil {
		return adultProblem(err)
	}
	if o.Train, o.Test, err = all.Split(adultTestFraction, o.Seed); err != nil {
		return err
	}
	if n := o.Train.Len(); o.RowsPerClient > n/o.Clients {
		return &problem{
			cause:  fmt.Sprintf("%d parties with %s each do not fit in the %d training rows", o.Clients, plural(o.RowsPerClient, "row"), n),
			advice: fitting(n, o),
		}
	}
	return nil
}

// adultProblem says what to do about files that cannot be read.
func adultProblem(err error) error {
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return &problem{
			cause:  fmt.Sprintf("--data: cannot read %s: %v", path.Path, path.Err),
			advice: "--data takes digits, mnist, fashion-mnist, adult or the folder with " + whatAdultIs + ". Without --data, rows are made up.",
			err:    err,
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
func fitting(n int, o *simulation.Options) string {
	var ways []string
	if clients := n / o.RowsPerClient; clients >= 2 {
		ways = append(ways, fmt.Sprintf("--clients up to %d", clients))
	}
	if rows := n / o.Clients; rows >= 1 {
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

// loadAny returns training and test rows of any data, and a line about them.
func loadAny(data string, o *simulation.Options) (train, test *learning.Dataset, about string, err error) {
	if !isImages(data) {
		// The census, synthetic or not, is cut to what parties need later.
		some := *o
		some.Clients, some.RowsPerClient = 100, 200
		about, err = loadData(data, &some)
		return some.Train, some.Test, about, err
	}
	dir := data
	switch data {
	case digitsData, mnistData, fashionData:
		dir = dataFolder(data)
	}
	if data == digitsData || holds(dir, digitsFile) {
		var all *learning.Dataset
		if all, err = learning.ReadDigits(dir); err == nil {
			train, test, err = all.Split(digitsTestFraction, o.Seed)
		}
	} else {
		train, test, err = readImages(dir)
	}
	if err != nil {
		return nil, nil, "", imageProblem(err)
	}
	about = fmt.Sprintf("%s: %s; tested on %s", filepath.Base(dir), plural(train.Len(), "row"), plural(test.Len(), "other"))
	return train, test, about, nil
}

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
			cause:  fmt.Sprintf("--data: cannot read %s: %v", path.Path, path.Err),
			advice: "Name the folder that holds the data sets in HUSHSUM_DATA, or give the folder of one to --data.",
			err:    err,
		}
	case errors.Is(err, learning.ErrIncomplete), errors.Is(err, learning.ErrMalformed):
		return &problem{cause: "--data: " + fileFault(err), advice: "Fetch the files again.", err: err}
	}
	return err
}
