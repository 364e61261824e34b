// Package sources opens the source of a party's rows: CSV and Parquet files, SQLite files, and
// PostgreSQL databases. It reads CSV by package table. The others are read by a [Reader]: that of
// package tables, a module of its own, or by the program hushsum-rows, so that nobody compiles
// three databases' libraries who has CSV files.
package sources

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/table"
)

// ErrSource: rows cannot be read from a source. [query.ErrRows] is for faults of the rows
// themselves.
var ErrSource = errors.New("sources: rows cannot be taken from there")

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
	// Bare says that a CSV file has no line that names the columns, which count by their order.
	Bare bool
	// Reader reads what is not CSV, as Read of package tables does in this process. nil: [Program]
	// does, in a process of its own.
	Reader Reader
}

// Form is how rows are stored. Its text is the name that people call it by.
type Form string

// The forms that a [Reader] reads.
const (
	Parquet    Form = "Parquet"
	SQLite     Form = "SQLite"
	PostgreSQL Form = "PostgreSQL"
)

// Request asks a [Reader] for rows.
type Request struct {
	Form    Form
	Name    string   // of the source, for messages
	Rows    string   // as in [Source]
	SQL     string   // as in [Source]
	Columns []string // those that are wanted, by name; others may be left out. None: all are
}

// Reader reads rows that are not CSV. It calls read once, with a table, and returns the error of
// read unchanged. It fails with [ErrSource] or [query.ErrRows].
type Reader func(ctx context.Context, r Request, read func(query.Table) error) error

// Environment begins the Rows of a [Source] whose address is in a variable.
const Environment = "env:"

// database reports whether rows come from a database that has an address.
func (s *Source) database() bool {
	return strings.HasPrefix(s.Rows, "postgres://") || strings.HasPrefix(s.Rows, "postgresql://") ||
		strings.HasPrefix(s.Rows, Environment)
}

// name is the source's for messages: of an address the host and the database.
func (s *Source) name() string {
	if !s.database() || strings.HasPrefix(s.Rows, Environment) {
		return s.Rows
	}
	u, err := url.Parse(s.Rows)
	if err != nil {
		return "postgres://"
	}
	return "postgres://" + u.Host + u.Path
}

// Read reads and checks the rows, as [query.Schema.ReadTable] does. It fails with its errors, or as
// [Source.Table] does.
func (s *Source) Read(
	ctx context.Context, schema *query.Schema,
) (*query.Rows, *query.Report, error) {
	var read *query.Rows
	report := &query.Report{File: s.name(), Findings: []query.Finding{}}
	err := s.Table(ctx, schema.Columns(), func(t *table.Table) (err error) {
		read, report, err = schema.ReadTable(*t)
		return err
	})
	if err != nil {
		return nil, report, err
	}
	return read, report, nil
}

// Table opens the source, and calls read once with its rows, whose error it returns unchanged. The
// table has the named columns, if the source does, and perhaps others; without names it has all. It
// reads rows one after the other; from a database by one statement, in a transaction that can only
// read. It fails with [table.ErrRows] or [ErrSource]; no error contains a password.
func (s *Source) Table(
	ctx context.Context, columns []string, read func(*table.Table) error,
) error {
	if s.database() {
		if s.Header != "" {
			return s.wrong("leave it out", "--header is for CSV files")
		}
		return s.other(ctx, PostgreSQL, columns, read)
	}
	file, err := os.Open(s.Rows)
	if err != nil {
		return &fault.Error{Kind: ErrSource, Reason: err.Error(), Err: err}
	}
	defer file.Close()
	text := bufio.NewReader(file)
	begin, err := text.Peek(len(sqliteMagic)) // all of a shorter file
	if err != nil && !errors.Is(err, io.EOF) {
		return &fault.Error{Kind: ErrSource, Reason: err.Error(), Err: err}
	}
	form := formOf(begin)
	if named := formNamed(s.Rows); named != "" && named != form && !isDuckDB(begin) {
		return s.wrong("correct the file, or its name",
			"its name is that of a %s file, but it is not one", named)
	}
	if reason, advice := refused(begin, s.Rows); reason != "" {
		return s.wrong(advice, "%s", reason)
	}
	switch {
	case form != "" && s.Header != "":
		return s.wrong("leave it out", "--header is for CSV files")
	case form != SQLite && s.SQL != "":
		return s.wrong("leave --sql out, or name a SQLite file or postgres://…", "it is not a database")
	case form != "":
		return s.other(ctx, form, columns, read)
	}
	o := table.Hints{Bare: s.Bare}
	if s.Header != "" {
		for _, name := range strings.Split(s.Header, ",") {
			o.Header = append(o.Header, strings.TrimSpace(name))
		}
	}
	t, err := table.ReadCSV(s.Rows, text, o)
	if err != nil {
		return err
	}
	return read(t)
}

// other reads rows by the reader.
func (s *Source) other(
	ctx context.Context, form Form, columns []string, read func(*table.Table) error,
) error {
	if form != Parquet && strings.TrimSpace(s.SQL) == "" {
		return s.wrong("add --sql 'SELECT …'", "it is a database, and nothing says which rows to read")
	}
	reader := s.Reader
	if reader == nil {
		reader = Program
	}
	given := false
	r := Request{Form: form, Name: s.name(), Rows: s.Rows, SQL: s.SQL, Columns: columns}
	err := reader(ctx, r, func(t query.Table) error {
		given = true
		return read(&t)
	})
	if err == nil && !given {
		err = s.wrong("", "its reader gives no table")
	}
	return err
}

// wrong makes an error of this source.
func (s *Source) wrong(advice, reason string, a ...any) error {
	return fault.At(s.name(), fault.New(ErrSource, advice, reason, a...), "")
}

// sqliteMagic begins a SQLite file (sqlite.org/fileformat2.html, "The Database Header").
const sqliteMagic = "SQLite format 3\x00"

// formOf tells a file by how it begins; empty: it may be CSV.
func formOf(begin []byte) Form {
	switch {
	case bytes.HasPrefix(begin, []byte(sqliteMagic)):
		return SQLite
	case bytes.HasPrefix(begin, []byte("PAR1")), bytes.HasPrefix(begin, []byte("PARE")):
		return Parquet
	}
	return ""
}

// isDuckDB reports whether a file is one of DuckDB's (duckdb.org/docs/stable/internals/storage).
func isDuckDB(begin []byte) bool { return len(begin) >= 12 && string(begin[8:12]) == "DUCK" }

// refused says that a file is of a form that nobody here reads, and how to get one that is.
func refused(begin []byte, name string) (reason, advice string) {
	if isDuckDB(begin) {
		return "it is a DuckDB file", "export a table: duckdb " + name +
			` "COPY (SELECT …) TO 'rows.parquet'"`
	}
	for _, f := range []struct{ magic, reason, advice string }{
		{"PK\x03\x04", "it is a ZIP archive, as Excel's workbooks are", "save the sheet as CSV (UTF-8)"},
		{"\xd0\xcf\x11\xe0", "it is an old Excel workbook", "save the sheet as CSV (UTF-8)"},
		{"\x28\xb5\x2f\xfd", "it is compressed by zstd", "run zstd -d, or compress it by gzip"},
		{"BZh91AY", "it is compressed by bzip2", "run bunzip2, or compress it by gzip"},
		{"\xfd7zXZ\x00", "it is compressed by xz", "run unxz, or compress it by gzip"},
		{"ARROW1\x00", "it is an Arrow file, also called Feather", "write Parquet or CSV instead"},
		{"Obj\x01", "it is an Avro file", "write Parquet or CSV instead"},
	} {
		if bytes.HasPrefix(begin, []byte(f.magic)) {
			return f.reason, f.advice
		}
	}
	return "", ""
}

// formNamed tells a file by its name; empty: the name does not say.
func formNamed(name string) Form {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".parquet":
		return Parquet
	case ".sqlite", ".sqlite3", ".db":
		return SQLite
	}
	return ""
}

// Extensions returns the file name extensions of files of rows, in order.
func Extensions() []string {
	return []string{".csv", ".csv.gz", ".parquet", ".sqlite", ".sqlite3", ".db"}
}
