package answers

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

// ReadRows reads a party's rows by the schema of a job that asks queries, and checks them by its
// plan. What is wrong with them is told to w, and to nobody else.
func ReadRows(
	w io.Writer, asked *job.Job, plan *query.Plan,
	read func(*query.Schema) (*query.Rows, *query.Report, error),
) (*query.Rows, error) {
	rows, report, err := read(query.NewSchema(asked))
	WriteReport(w, report)
	if err == nil {
		err = plan.Check(report.File, rows)
	}
	if err != nil {
		return nil, fmt.Errorf("this party takes no part, and nothing of its rows has left: %w", err)
	}
	switch file := filepath.Base(report.File); {
	case rows.Len() <= asked.Parties.Rows:
	case asked.PerRecord():
		fmt.Fprintf(w, "%s: all %d rows count, and parties.rows expects %d at most; intervals reckon "+
			"with that many of a party that is away\n", file, rows.Len(), asked.Parties.Rows)
	default:
		fmt.Fprintf(w, "%s: of %d rows the first %d count, as parties.rows says\n", file, rows.Len(),
			asked.Parties.Rows)
	}
	return rows, nil
}
