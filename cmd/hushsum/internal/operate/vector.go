package operate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/table"
)

// mostBytes bounds the size of a vector's file: 2^27 numbers in up to 24 bytes of text.
const mostBytes = 3 << 30

// contribution holds what a party contributes: a vector, and in some jobs the number of rows that
// it counts for, or the loss and accuracy on them. As JSON it is a list of numbers, or an object.
type contribution struct {
	Vector   []float64 `json:"vector"`
	Samples  int       `json:"samples"`
	Loss     *float64  `json:"loss"`
	Accuracy *float64  `json:"accuracy"`
}

// update returns a contribution to a job as what is submitted.
func (c *contribution) update(j *job.Job) (u hushsum.Update[float64], err error) {
	u = hushsum.Update[float64]{Vector: c.Vector, Samples: c.Samples}
	switch measured := c.Loss != nil && c.Accuracy != nil; {
	case j.Metrics.Share == 0:
	case !measured:
		return u, errors.New(`the job sums metrics: give {"vector": [...], "loss": X, "accuracy": X}`)
	default:
		u.Loss, u.Accuracy = *c.Loss, *c.Accuracy
	}
	return u, nil
}

// readVector reads a vector from a file whose name ends with .json or .csv.
func readVector(name string) (c contribution, err error) {
	in, err := os.Open(name)
	if err != nil {
		return c, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, mostBytes+1))
	switch {
	case err != nil:
		return c, err
	case len(b) > mostBytes:
		return c, fmt.Errorf("%s: more than %d bytes", name, int64(mostBytes))
	}
	switch filepath.Ext(name) {
	case ".json":
		c, err = parseJSON(b)
	case ".csv":
		c.Vector, err = parseCSV(b)
	default:
		err = errors.New("the name of a vector file must end with .json or .csv")
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// parseJSON reads a list of numbers, or an object with vector and what goes with it, and nothing
// after it.
func parseJSON(b []byte) (c contribution, err error) {
	if b = bytes.TrimSpace(b); bytes.HasPrefix(b, []byte("[")) {
		err = strict.JSON(b, &c.Vector)
	} else {
		err = strict.JSON(b, &c)
	}
	if err != nil || bytes.Contains(b, []byte("null")) { // null would count as 0
		// The error does not quote the text: it is as secret as the vector.
		return contribution{}, errors.New(`not a list of numbers, nor {"vector": [...], "samples": N}`)
	}
	return c, nil
}

// parseCSV reads numbers, line by line. A line may hold all of a vector: package csv would take a
// hundred times its length.
func parseCSV(b []byte) (values []float64, err error) {
	line := 0
	for text := range bytes.Lines(b) {
		line++
		if text = bytes.TrimRight(text, "\r\n"); len(text) == 0 {
			continue
		}
		i := 0
		for field := range bytes.SplitSeq(text, []byte(",")) {
			i++
			field = bytes.TrimSpace(field)
			if n := len(field); n > 1 && field[0] == '"' && field[n-1] == '"' {
				field = bytes.TrimSpace(field[1 : n-1])
			}
			x, ok := table.Number(string(field))
			if !ok {
				return nil, fmt.Errorf("line %d: its number %d is not a finite number", line, i)
			}
			values = append(values, x)
		}
	}
	return values, nil
}

// writeVector writes numbers to a file, durably, in the format that its name implies.
func writeVector(name string, values []float64) error {
	var b bytes.Buffer
	switch filepath.Ext(name) {
	case ".json":
		text, err := json.Marshal(values)
		if err != nil {
			return err
		}
		b.Write(append(text, '\n'))
	case ".csv":
		for _, x := range values {
			b.WriteString(strconv.FormatFloat(x, 'g', -1, 64) + "\n")
		}
	default:
		return fmt.Errorf("%s: the name of a vector file must end with .json or .csv", name)
	}
	return durable.Write(name, &b)
}

// written reports whether writeVector knows a file's format.
func written(name string) bool {
	return name == "" || filepath.Ext(name) == ".json" || filepath.Ext(name) == ".csv"
}
