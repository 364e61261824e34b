// Package tables reads a party's rows for queries from their source: CSV and Parquet files,
// SQLite files, and PostgreSQL databases. It is a module of its own, since it brings the
// libraries that read them; package query reads CSV text and the rows of a program without it.
package tables

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
)

// ErrSource: rows cannot be read from a source. [query.ErrRows] is for faults of the rows
// themselves.
var ErrSource = errors.New("tables: rows cannot be taken from there")

// Source says where a party's rows are.
type Source struct {
	// Rows is the name of a CSV, Parquet or SQLite file, told apart by how they begin; or the
	// address of a PostgreSQL database, postgres://user@host/name, whose parts are optional as
	// psql's are; or env: and the name of an environment variable that holds such an address. A
	// password is only in such a variable, or where psql looks for it: PGPASSWORD, or the file that
	// PGPASSFILE names.
	Rows string
	// SQL is the statement that selects rows of a database, each with its columns' names.
	SQL string
	// Header has the names of the columns, separated by commas, of a CSV file whose first line lacks
	// them.
	Header string
}

// database reports whether rows come from a database that has an address.
func (s *Source) database() bool {
	return strings.HasPrefix(s.Rows, "postgres://") || strings.HasPrefix(s.Rows, "postgresql://") ||
		strings.HasPrefix(s.Rows, environment)
}

// Read reads and checks the rows, as [query.Schema.Read] and [query.Schema.ReadTable] do. It
// reads rows one after the other; from a database by one statement, in a transaction that can
// only read. It fails with the errors of these, or with [ErrSource]; no error contains a password
// or a value of a row.
func (s *Source) Read(
	ctx context.Context, schema *query.Schema,
) (*query.Rows, *query.Report, error) {
	if s.database() {
		if s.Header != "" {
			return nil, s.report(), s.wrong("leave it out", "--header is for CSV files")
		}
		return s.readPostgres(ctx, schema)
	}
	file, err := os.Open(s.Rows)
	if err != nil {
		return nil, s.report(), &fault.Error{Kind: ErrSource, Reason: err.Error(), Err: err}
	}
	defer file.Close()
	text := bufio.NewReader(file)
	begin, err := text.Peek(len(sqliteMagic)) // all of a shorter file
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.report(), &fault.Error{Kind: ErrSource, Reason: err.Error(), Err: err}
	}
	form := formOf(begin)
	if named := formNamed(s.Rows); named != "" && named != form {
		return nil, s.report(), s.wrong("correct the file, or its name",
			"its name is that of a %s file, but it is not one", named)
	}
	switch {
	case form != "" && s.Header != "":
		return nil, s.report(), s.wrong("leave it out", "--header is for CSV files")
	case form == sqliteForm:
		return s.readSQLite(ctx, schema)
	case s.SQL != "":
		return nil, s.report(), s.wrong("leave --sql out, or name a SQLite file or postgres://…",
			"it is not a database")
	case form == parquetForm:
		return s.readParquet(ctx, schema, file)
	}
	var header []string
	if s.Header != "" {
		for _, name := range strings.Split(s.Header, ",") {
			header = append(header, strings.TrimSpace(name))
		}
	}
	return schema.Read(s.Rows, text, header)
}

// report is empty, for rows of which nothing was read.
func (s *Source) report() *query.Report {
	return &query.Report{File: s.name(), Findings: []query.Finding{}}
}

// wrong makes an error of this source.
func (s *Source) wrong(advice, reason string, a ...any) error {
	return fault.At(s.name(), fault.New(ErrSource, advice, reason, a...), "")
}

// Forms of files other than CSV, as people call them.
const (
	parquetForm = "Parquet"
	sqliteForm  = "SQLite"
)

// sqliteMagic begins a SQLite file (sqlite.org/fileformat2.html, "The Database Header").
const sqliteMagic = "SQLite format 3\x00"

// formOf tells a file by how it begins; empty: it may be CSV.
func formOf(begin []byte) string {
	switch {
	case bytes.HasPrefix(begin, []byte(sqliteMagic)):
		return sqliteForm
	case bytes.HasPrefix(begin, []byte("PAR1")), bytes.HasPrefix(begin, []byte("PARE")):
		return parquetForm
	}
	return ""
}

// formNamed tells a file by its name; empty: the name does not say.
func formNamed(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".parquet":
		return parquetForm
	case ".sqlite", ".sqlite3", ".db":
		return sqliteForm
	}
	return ""
}

// Extensions returns the file name extensions of files of rows, in order.
func Extensions() []string { return []string{".csv", ".parquet", ".sqlite", ".sqlite3", ".db"} }
