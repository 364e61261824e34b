// Package datasets reads and deals the rows that commands train on, and reports what is wrong with
// them in the words of their flags.
package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training/rows"
)

// Dealing describes the rows, and which parties have them.
type Dealing struct {
	rows.World
	Named string // what names the data set to a user; empty: --data
}

// split names what deals the rows to a user.
func (v *Dealing) split() string {
	if v.Named != "" {
		return "world.data.split"
	}
	return "--split"
}

func (v *Dealing) shuffled() bool { return v.Split == rows.Shuffled }

// Read returns training and test rows, and a line that describes them.
func (v *Dealing) Read() (train, test *learning.Dataset, about string, err error) {
	switch {
	case v.Images():
		return v.loadImages()
	case v.Set == rows.Synthetic:
		about = "synthetic census"
		train, test, err = v.makeCensus()
	default:
		judged := math.Round(100 * cmp.Or(v.Test, 0.25))
		about = fmt.Sprintf("Adult census, both files merged and split again %v/%v", 100-judged, judged)
		train, test, err = v.loadAdult()
	}
	if err != nil {
		return nil, nil, "", err
	}
	return train, test, aboutRows(about, train, test), nil
}

func aboutRows(name string, train, test *learning.Dataset) string {
	return fmt.Sprintf("%s: %s; tested on %s", name, show.Plural(train.Len(), "row"),
		show.Plural(test.Len(), "other"))
}

func (v *Dealing) makeCensus() (train, test *learning.Dataset, err error) {
	if train, test, err = v.Load(); errors.Is(err, learning.ErrValue) {
		return nil, nil, v.tooManyRows()
	}
	return train, test, err
}

func (v *Dealing) tooManyRows() error {
	return &cli.Problem{
		Cause: fmt.Sprintf("%d parties with %s each are more than the four million rows that can "+
			"be made", v.Parties, show.Plural(v.Rows, "row")),
		Advice: "Lower --clients or --rows-per-client.",
	}
}

const setData = "Set HUSHSUM_DATA to the folder that holds the data sets of docs/testing.md"

const whatAdultIs = "adult.data and adult.test of the UCI Adult data set (DOI 10.24432/C5XW20)"

func (v *Dealing) loadAdult() (train, test *learning.Dataset, err error) {
	dir := rows.Folder(v.Set)
	info, err := os.Stat(dir)
	if meant := cli.DidYouMean(v.Set, dataNames, "%s", ""); err != nil && meant != "" && dir == v.Set {
		return nil, nil, &cli.Problem{
			Cause:  fmt.Sprintf("%s: there is no data set and no folder named %q", v.named(), v.Set),
			Advice: meant,
			Err:    err,
		}
	}
	if err == nil && !info.IsDir() {
		return nil, nil, &cli.Problem{
			Cause:  fmt.Sprintf("%s: %s is a file", v.named(), dir),
			Advice: "Give the folder that holds " + whatAdultIs + ".",
		}
	}
	if train, test, err = v.Load(); err != nil {
		return nil, nil, v.adultProblem(err)
	}
	if n := train.Len(); v.shuffled() && v.Rows > n/v.Parties {
		return nil, nil, &cli.Problem{
			Cause: fmt.Sprintf("%d parties with %s each do not fit in the %d training rows", v.Parties,
				show.Plural(v.Rows, "row"), n),
			Advice: v.fitting(n),
		}
	}
	return train, test, nil
}

// adultProblem says what to do about files that cannot be read.
func (v *Dealing) adultProblem(err error) error {
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return &cli.Problem{
			Cause: fmt.Sprintf("%s: cannot read %s: %v", v.named(), path.Path, path.Err),
			Advice: setData + ". " + v.named() + " takes digits, mnist, fashion-mnist, adult or the " +
				"folder with " + whatAdultIs + "; synthetic makes rows up.",
			Err: err,
		}
	case errors.Is(err, learning.ErrIncomplete), errors.Is(err, learning.ErrMalformed):
		return &cli.Problem{
			Cause:  v.named() + ": " + cli.FileFault(err),
			Advice: "Fetch " + whatAdultIs + " again.",
			Err:    err,
		}
	}
	return err
}

// fitting says what fits into n rows.
func (v *Dealing) fitting(n int) string {
	var ways []string
	if clients := n / v.Rows; clients >= 2 {
		ways = append(ways, fmt.Sprintf("--clients up to %d", clients))
	}
	if rows := n / v.Parties; rows >= 1 {
		ways = append(ways, fmt.Sprintf("--rows-per-client up to %d", rows))
	}
	if len(ways) == 0 {
		return "Lower --clients and --rows-per-client."
	}
	return "Use " + strings.Join(ways, " or ") + "."
}

// named returns what names the data set to a user.
func (v *Dealing) named() string { return cmp.Or(v.Named, "--data") }

// dataNames lists the values of --data that name public data sets, and the one that names none.
var dataNames = []string{rows.Synthetic, rows.Adult, rows.Digits, rows.MNIST, rows.FashionMNIST}

// ownTest refuses a share of rows for judging from a set that has separate test rows.
var ownTest = &cli.Problem{Cause: "world.data.test: the set has test rows of its own",
	Advice: "Leave it out."}

func (v *Dealing) loadImages() (train, test *learning.Dataset, about string, err error) {
	if v.OwnTest() && v.Test > 0 {
		return nil, nil, "", ownTest
	}
	if train, test, err = v.Load(); err != nil {
		return nil, nil, "", v.imageProblem(err)
	}
	return train, test, aboutRows(filepath.Base(rows.Folder(v.Set)), train, test), nil
}

// imageProblem says what to do about files that cannot be read.
func (v *Dealing) imageProblem(err error) error {
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return &cli.Problem{
			Cause:  fmt.Sprintf("%s: cannot read %s: %v", v.named(), path.Path, path.Err),
			Advice: setData + ", or give --data the folder of one.",
			Err:    err,
		}
	case errors.Is(err, learning.ErrIncomplete), errors.Is(err, learning.ErrMalformed):
		return &cli.Problem{Cause: v.named() + ": " + cli.FileFault(err),
			Advice: "Fetch the files again.", Err: err}
	}
	return err
}

// DealOut deals the rows: for shuffled, the first of all rows in a random order, otherwise as
// --split says, for each party the first --rows-per-client.
func (v *Dealing) DealOut(
	train, test *learning.Dataset,
) ([]*learning.Dataset, *learning.Dataset, error) {
	if err := v.splitFits(train); err != nil {
		return nil, nil, err
	}
	parties, unseen, err := v.Deal(train, test)
	if err != nil && !v.shuffled() {
		p := &cli.Problem{Cause: v.split() + ": " + cli.Plain(err), Err: err}
		if errors.Is(err, learning.ErrTooFewRows) {
			p.Advice = "Lower --clients."
		}
		return nil, nil, p
	}
	return parties, unseen, err
}

// splitFits checks that the data has what the split, and --final, require.
func (v *Dealing) splitFits(train *learning.Dataset) error {
	switch {
	case v.Final && !v.OwnTest():
		return &cli.Problem{Cause: "--final: the set has no test rows of its own",
			Advice: "Leave it out: a share of the rows, drawn by seed, tests."}
	case v.Split == "writers" && train.Writers == nil:
		return &cli.Problem{Cause: v.split() + ": the data does not record who wrote which row",
			Advice: "Use --data mnist, with the folder qmnist-writers next to it, or another split."}
	case (strings.Contains(v.Split, "colour") || strings.Contains(v.Split, "rotation")) &&
		train.Pixels == nil:
		return &cli.Problem{
			Cause:  fmt.Sprintf("%s: %s needs images such as those of mnist", v.split(), v.Split),
			Advice: "Use --data mnist or fashion-mnist, or another split.",
		}
	}
	return nil
}
