package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/internal/answers"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

// This file has the rows of a party that is asked queries.

// readTable reads this party's rows as a job's columns describe them, and tells on standard error,
// and nobody else, what of them is not as it should be.
func (j *joining) readTable(asked *job.Job, std streams) (*query.Rows, error) {
	var header []string
	if j.header != "" {
		for _, name := range strings.Split(j.header, ",") {
			header = append(header, strings.TrimSpace(name))
		}
	}
	file, err := os.Open(j.rows)
	if err != nil {
		return nil, fmt.Errorf("--rows: %w", err)
	}
	defer file.Close()
	rows, report, err := query.NewSchema(asked).Read(j.rows, file, header)
	answers.WriteReport(std.err, report)
	if err != nil {
		return nil, fmt.Errorf("this party takes no part, and nothing of its rows has left: %w", err)
	}
	if more := rows.Len() - asked.Parties.Rows; more > 0 {
		fmt.Fprintf(std.err, "%s: of %d rows the first %d count, as parties.rows says\n",
			filepath.Base(report.File), rows.Len(), asked.Parties.Rows)
	}
	return rows, nil
}
