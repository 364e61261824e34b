package query

import (
	"errors"
	"fmt"
)

// The errors of this package.
var (
	// ErrConfig: a job has no queries, or a plan is given something that is not its own.
	ErrConfig = errors.New("query: unusable configuration")
	// ErrRows: rows do not match the job's columns. See [RowsError].
	ErrRows = errors.New("query: rows do not match the job")
)

// RowsError says what is wrong with rows, and where. It is [ErrRows]. It is for the party that
// has the rows: anyone else who sees it learns something about them.
type RowsError struct {
	File   string
	Line   int    // from 1; 0: it is of no line
	Row    int    // of a table that has no lines, from 1; 0: it is of no row
	Column string // empty: it is of no column
	Reason string // which holds no value of a row
	Advice string // what to do
}

func (e *RowsError) Error() string {
	where := e.File
	if e.Line > 0 {
		where += fmt.Sprintf(":%d", e.Line)
	}
	if e.Row > 0 {
		where += fmt.Sprintf(": row %d", e.Row)
	}
	if e.Column != "" {
		where += ": " + e.Column
	}
	text := fmt.Sprintf("query: %s: %s", where, e.Reason)
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

// Is makes errors.Is(err, ErrRows) true.
func (e *RowsError) Is(target error) bool { return target == ErrRows }
