package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"

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
	if data == synthetic {
		about, err = "synthetic census", loadSynthetic(o)
	} else {
		about, err = "Adult census", loadAdult(data, o)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %s rows; tested on %s others", about, grouped(o.Train.Len()), grouped(o.Test.Len())), nil
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
	return fmt.Errorf("%d parties with %d rows each are more rows than can be made (about four million); lower --clients or --rows-per-client",
		o.Clients, o.RowsPerClient)
}

func loadAdult(dir string, o *simulation.Options) error {
	all, err := learning.ReadAdult(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w\n--data takes the folder that holds both files. Without --data, rows are made up", err)
	case err != nil:
		return err
	}
	if o.Train, o.Test, err = all.Split(adultTestFraction, o.Seed); err != nil {
		return err
	}
	if n := o.Train.Len(); o.RowsPerClient > n/o.Clients {
		return fmt.Errorf("%d parties with %d rows each do not fit in the %d training rows; %s",
			o.Clients, o.RowsPerClient, n, fitting(n, o))
	}
	return nil
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
		return "lower --clients and --rows-per-client"
	}
	return "use " + strings.Join(ways, " or ")
}
