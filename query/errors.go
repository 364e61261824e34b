package query

import (
	"errors"

	"github.com/hushsum/hushsum/table"
)

// The errors of this package.
var (
	// ErrConfig: a job has no queries, or a plan is given something that is not its own.
	ErrConfig = errors.New("query: unusable configuration")
	// ErrRows: rows do not match the job's columns. See [RowsError].
	ErrRows = table.ErrRows
)

// RowsError says what is wrong with rows, and where.
type RowsError = table.Error
