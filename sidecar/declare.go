package sidecar

import (
	"cmp"
	"encoding/hex"
	"slices"

	declared "github.com/hushsum/hushsum/job"
)

// declareCalls read declarations; jobCalls run them.
var declareCalls = map[string]handler{
	"job.parse":  parseJob,
	"job.fields": jobFields,
}

// parsedJSON is a job without fields that have their default, its digest, and its declaration in
// words.
type parsedJSON struct {
	Job     *declared.Job `json:"job"`
	Digest  string        `json:"digest"`  // 64 hexadecimal digits
	Explain []string      `json:"explain"` // sentences
}

// parseJob reads the text of a job's file.
func parseJob(_ *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Name string `json:"name"` // of the file, for messages
	}
	if err := r.take(&with, 1); err != nil {
		return nil, nil, err
	}
	j, err := declared.Parse(cmp.Or(with.Name, "job"), r.blobs[0].private())
	if err != nil {
		return nil, nil, err
	}
	digest := j.Digest()
	return parsedJSON{j, hex.EncodeToString(digest[:]), j.Explain()}, nil, nil
}

// jobFields returns the table of all fields that a job can declare.
func jobFields(_ *sidecar, r *request) (any, [][]byte, error) {
	if err := r.take(&struct{}{}, 0); err != nil {
		return nil, nil, err
	}
	return struct {
		Fields []declared.Field `json:"fields"`
	}{slices.Collect(declared.Fields())}, nil, nil
}

// takeMistakes lists all mistakes in a job that was read.
func (f *faultJSON) takeMistakes(err error) {
	f.Mistakes = declared.Errors(err)
	if len(f.Mistakes) > 0 {
		first := f.Mistakes[0]
		f.Field, f.Reason, f.Advice = first.Path, first.Reason, first.Advice
	}
}
