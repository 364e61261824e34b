package party

import (
	"context"
	"fmt"
	"slices"

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
	vector := plan.Vector(rows) // before the round, which it must not delay
	return TrainerFunc(func(context.Context, *Work) (*Update, error) {
		return &Update{Vector: slices.Clone(vector)}, nil
	}), nil
}
