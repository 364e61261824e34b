package answers

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

// ReadRows has a party's rows read by the schema of a job that asks queries. What is wrong with
// them is told to w, and to nobody else.
func ReadRows(
	w io.Writer, asked *job.Job,
	read func(*query.Schema) (*query.Rows, *query.Report, error),
) (*query.Rows, error) {
	rows, report, err := read(query.NewSchema(asked))
	WriteReport(w, report)
	if err != nil {
		return nil, fmt.Errorf("this party takes no part, and nothing of its rows has left: %w", err)
	}
	if more := rows.Len() - asked.Parties.Rows; more > 0 {
		fmt.Fprintf(w, "%s: of %d rows the first %d count, as parties.rows says\n",
			filepath.Base(report.File), rows.Len(), asked.Parties.Rows)
	}
	return rows, nil
}
