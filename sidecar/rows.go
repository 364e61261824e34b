package sidecar

import (
	"bytes"
	"math"

	"github.com/hushsum/hushsum/learning"
)

var rowCalls = map[string]handler{"rows.new": newRows}

// newRows takes the rows that a party trains on: its features as numbers, row by row, and its
// labels, the numbers of its classes.
func newRows(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Features int `json:"features"` // of a row
	}
	if err := r.take(&with, 2); err != nil {
		return nil, nil, err
	}
	x, err := floats[float64](bytes.Clone(r.blobs[0].bytes))
	if err != nil {
		return nil, nil, requestError("", "the rows: %v", err)
	}
	labels, err := floats[float64](r.blobs[1].bytes)
	if err != nil {
		return nil, nil, requestError("", "the labels: %v", err)
	}
	if with.Features < 1 || len(x) == 0 || len(x) != with.Features*len(labels) {
		return nil, nil, fieldError("rows", "give a label for each row",
			"%d numbers in rows of %d do not match %d labels", len(x), with.Features, len(labels))
	}
	rows := &learning.Dataset{X: x, Features: with.Features}
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, nil, fieldError("rows", "leave such rows out, or fill them in",
				"row %d has NaN or infinity", i/with.Features+1)
		}
	}
	for i, y := range labels {
		if !(y >= 0 && y < maxClasses && y == math.Trunc(y)) {
			return nil, nil, fieldError("rows", "number the classes from 0",
				"the label of row %d is outside 0 to %d", i+1, maxClasses-1)
		}
		rows.Labels = append(rows.Labels, int(y))
	}
	id, err := s.add(rows)
	return struct {
		Rows uint64 `json:"rows"`
	}{id}, nil, err
}

// maxClasses is the most classes that a model may have.
const maxClasses = 1 << 16
