package party

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/service/federation"
)

// NewAsked returns the trainer of a party in a federation that asks queries, on rows that a
// [query.Schema] of its job has read. It fails with job.ErrConfig if the federation asks none.
func NewAsked(f *federation.Federation, rows *query.Rows) (Trainer, error) {
	plan := f.Questions()
	if plan == nil {
		return nil, fmt.Errorf("%w: it asks no queries; write [[query]]", job.ErrConfig)
	}
	vectors, err := plan.Vectors(rows)
	if err != nil {
		return nil, err
	}
	return TrainerFunc(func(_ context.Context, w *Work) (*Update, error) {
		vector, err := vectors(w.Model)
		return &Update{Vector: vector}, err
	}), nil
}
