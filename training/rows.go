package training

import (
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
)

// WithRows returns a job whose model is for some rows: features and classes are theirs. It fails
// with a [job.ConfigError] if the job says otherwise.
func WithRows(j *job.Job, sets ...*learning.Dataset) (*job.Job, error) {
	own := j.Clone()
	for _, c := range []struct {
		path  string
		said  *int
		there int
	}{
		{"model.features", &own.Model.Features, sets[0].Features},
		{"model.classes", &own.Model.Classes, classesOf(sets...)},
	} {
		if *c.said > 0 && *c.said != c.there {
			advice := fmt.Sprintf("leave it out in a simulation, or give the value of world.data, as with "+
				"--set %s=%d", c.path, c.there)
			return nil, j.Mistake(c.path, advice, "it says %d, and the data has %d", *c.said, c.there)
		}
		*c.said = c.there
	}
	var wrong *job.ConfigError
	_, err := newModel(own.Model.Name, own.Model.Features, own.Model.Classes, own.Training.Lambda)
	if errors.As(err, &wrong) {
		return nil, j.Mistake(wrong.Path, wrong.Advice, "%s", wrong.Reason)
	}
	return own, nil
}

// CountRecords fills in privacy.records of a job whose unit is a record, where it says none, with
// the number that all parties have together, as a simulation may know.
func CountRecords(j *job.Job, parties []*learning.Dataset) {
	if !j.PerRecord() || j.Privacy.Records > 0 {
		return
	}
	r := &Records{Persons: j.Privacy.Group != ""}
	for _, d := range parties {
		if !r.Persons || d.Writers != nil {
			j.Privacy.Records += len(r.units(d))
		}
	}
}
