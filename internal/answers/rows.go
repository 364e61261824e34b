package answers

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

// ReadRows reads a party's rows for the queries of a job, from a CSV file whose first line names
// the columns, unless names with commas between do. What is wrong with them is told to w, and to
// nobody else.
func ReadRows(w io.Writer, asked *job.Job, name, names string) (*query.Rows, error) {
	var header []string
	if names != "" {
		for _, one := range strings.Split(names, ",") {
			header = append(header, strings.TrimSpace(one))
		}
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--rows: %w", err)
	}
	defer file.Close()
	rows, report, err := query.NewSchema(asked).Read(name, file, header)
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
