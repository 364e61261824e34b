package learning

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
)

const (
	digitsRows   = 1797
	digitsPixels = 64
	digitsTop    = 16 // the brightest pixel
)

// ReadDigits reads digits.csv.gz, the 1,797 test images of the UCI optical
// digits (DOI 10.24432/C50P49), from dir: 8 × 8 pixels, row by row, divided by
// 16 into [0, 1], and labels 0..9.
//
// Every line holds 64 pixels 0..16 and the label, separated by commas, in plain
// decimals. Errors are like those of ReadMNIST; any other line gives ErrMalformed
// with its number, any other row count ErrIncomplete.
func ReadDigits(dir string) (*Dataset, error) {
	var d *Dataset
	err := readGzip(dir, "digits.csv.gz", "the UCI optical digits", func(r io.Reader) (err error) {
		d, err = parseDigits(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func parseDigits(r io.Reader) (*Dataset, error) {
	d := &Dataset{Features: digitsPixels}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := len(d.Labels) + 1
		if line > digitsRows {
			return nil, fault.New(ErrMalformed, "", "more than %d rows", digitsRows)
		}
		fields := strings.Split(lines.Text(), ",")
		if len(fields) != digitsPixels+1 {
			return nil, fault.New(ErrMalformed, "",
				"line %d has %d fields separated by commas, want %d", line, len(fields), digitsPixels+1)
		}
		for j, field := range fields {
			top := digitsTop
			if j == digitsPixels {
				top = 9
			}
			v, err := strconv.Atoi(field)
			// Atoi also takes signs and leading zeros, which the file has not.
			if err != nil || v < 0 || v > top || strconv.Itoa(v) != field {
				return nil, fault.New(ErrMalformed, "",
					"line %d, field %d is not a whole number in 0..%d", line, j+1, top)
			}
			if j == digitsPixels {
				d.Labels = append(d.Labels, v)
			} else {
				d.X = append(d.X, float64(v)/digitsTop)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, readError(err, "after line %d", len(d.Labels))
	}
	if len(d.Labels) != digitsRows {
		return nil, fault.New(ErrIncomplete, "", "%d rows, want %d", len(d.Labels), digitsRows)
	}
	return d, nil
}
