package sidecar

import (
	"cmp"
	"encoding/hex"
	"slices"

	declared "github.com/hushsum/hushsum/job"
)

// declareCalls read what is declared; those that run it are jobCalls.
var declareCalls = map[string]handler{
	"job.parse":  parseJob,
	"job.fields": jobFields,
}

// parsedJSON is a job without what is its default, its digest, and what it declares in words.
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
	j, err := declared.Parse(cmp.Or(with.Name, "the job"), r.blobs[0].private())
	if err != nil {
		return nil, nil, err
	}
	digest := j.Digest()
	return parsedJSON{j, hex.EncodeToString(digest[:]), j.Explain()}, nil, nil
}

// jobFields returns the table of all that a job declares.
func jobFields(_ *sidecar, r *request) (any, [][]byte, error) {
	if err := r.take(&struct{}{}, 0); err != nil {
		return nil, nil, err
	}
	return struct {
		Fields []declared.Field `json:"fields"`
	}{slices.Collect(declared.Fields())}, nil, nil
}

// takeMistakes fills in what is wrong with a job that was read, all of it.
func (f *faultJSON) takeMistakes(err error) {
	f.Mistakes = declared.Errors(err)
	if len(f.Mistakes) > 0 {
		first := f.Mistakes[0]
		f.Field, f.Reason, f.Advice = first.Path, first.Reason, first.Advice
	}
}
