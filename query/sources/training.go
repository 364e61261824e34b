package sources

import (
	"context"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/table"
	"github.com/hushsum/hushsum/training"
)

// ReadTraining reads a party's rows for a job that declares training: all columns of the source, in
// its order, as [training.ReadRows] takes them. CSV text has no line that names them. It fails as
// [Source.Table] and that function do.
func (s *Source) ReadTraining(
	ctx context.Context, declared *job.Job,
) (own *learning.Dataset, err error) {
	bare := *s
	bare.Bare = true
	err = bare.Table(ctx, nil, func(t *table.Table) (err error) {
		own, err = training.ReadRows(t, declared.Model, declared.Privacy.Group != "")
		return err
	})
	return own, err
}
