package tables

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
)

// environment begins a source whose address is in a variable.
const environment = "env:"

// name is the source's for messages: of an address the host and the database.
func (s *Source) name() string {
	if !s.database() || strings.HasPrefix(s.Rows, environment) {
		return s.Rows
	}
	u, err := url.Parse(s.Rows)
	if err != nil {
		return "postgres://"
	}
	return "postgres://" + u.Host + u.Path
}

// readSQLite reads rows of a SQLite file, which is opened for reading only.
func (s *Source) readSQLite(
	ctx context.Context, schema *query.Schema,
) (*query.Rows, *query.Report, error) {
	path, err := filepath.Abs(s.Rows)
	if err != nil {
		return nil, s.report(), &fault.Error{Kind: ErrSource, Reason: err.Error(), Err: err}
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // of a drive
	}
	address := url.URL{Scheme: "file", Path: path,
		RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, s.report(), s.sqliteError(err, false)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, s.report(), s.sqliteError(err, false)
	}
	defer conn.Close()
	// The mode keeps the file as it is; a statement that makes others is refused by this.
	err = conn.Raw(func(c any) error {
		return c.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(onlyReads)
	})
	if err != nil {
		return nil, s.report(), s.sqliteError(err, false)
	}
	return s.selected(ctx, schema, conn, s.sqliteError, func(*sql.ColumnType) bool { return true })
}

// Codes of SQLite's (sqlite.org/rescode.html): a statement does what it may not.
const (
	sqliteReadOnly = 8
	sqliteAuth     = 23
)

// onlyReads takes the actions of which a SELECT consists.
func onlyReads(
	action sqlite.AuthorizerActionCode, _, _, _, _ string,
) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthFunction, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	}
	return sqlite.AuthorizerDeny
}

// sqliteError says what SQLite found, while rows are read by its code alone, since its text may
// have values.
func (s *Source) sqliteError(err error, reading bool) error {
	var failed *sqlite.Error
	if !errors.As(err, &failed) || errors.Is(err, context.Canceled) {
		return s.failed("", err)
	}
	text := failed.Error()
	if reading {
		text = sqlite.ErrorCodeString[failed.Code()&0xff]
	}
	if code := failed.Code() & 0xff; code == sqliteAuth || code == sqliteReadOnly {
		return s.wrong("give a SELECT, and no other", "the statement does more than read")
	}
	return s.wrong("try the statement in sqlite3", "SQLite says: %s", text)
}

// failed wraps what is neither SQLite's nor PostgreSQL's.
func (s *Source) failed(advice string, err error) error {
	return &fault.Error{Kind: ErrSource, Reason: s.name() + ": " + err.Error(), Advice: advice,
		Err: err}
}

// readPostgres reads rows of a PostgreSQL database, in a transaction that can only read.
func (s *Source) readPostgres(
	ctx context.Context, schema *query.Schema,
) (*query.Rows, *query.Report, error) {
	address, err := s.address()
	if err != nil {
		return nil, s.report(), err
	}
	config, err := pgx.ParseConfig(address)
	if err != nil { // whose text has the address
		return nil, s.report(), s.wrong("write postgres://user@host:port/database; a password belongs "+
			"in PGPASSWORD, or in the file that PGPASSFILE names",
			"the address, or a variable that begins with PG, is not valid")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // which goes through poolers
	db := stdlib.OpenDB(*config)
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, s.report(), s.postgresError(err, false)
	}
	defer tx.Rollback()
	return s.selected(ctx, schema, tx, s.postgresError, postgresTakes)
}

// address returns the database's, and refuses a password in a command line, which others on the
// machine see.
func (s *Source) address() (string, error) {
	if name, found := strings.CutPrefix(s.Rows, environment); found {
		address := os.Getenv(name)
		if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
			return "", s.wrong("set it to postgres://user:password@host/database",
				"the variable does not hold the address of a database")
		}
		return address, nil
	}
	u, err := url.Parse(s.Rows)
	if err != nil { // whose text has the address
		return "", s.wrong("write postgres://user@host:port/database", "the address is not valid")
	}
	_, password := u.User.Password()
	if password || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return "", s.wrong("leave it out, and set PGPASSWORD, or give --rows env:NAME with the "+
			"address in a variable", "others on this machine can see a password in a command line")
	}
	return s.Rows, nil
}

// postgresTypes are those that columns take, as PostgreSQL calls them. Others that the driver knows
// are refused; those that it does not know, enumerations among them, come as text.
var postgresTypes = []string{"BOOL", "INT2", "INT4", "INT8", "FLOAT4", "FLOAT8", "NUMERIC", "TEXT",
	"VARCHAR", "BPCHAR", "CHAR", "NAME", "UNKNOWN", "DATE", "TIMESTAMP", "TIMESTAMPTZ"}

func postgresTakes(t *sql.ColumnType) bool {
	name := t.DatabaseTypeName()
	return slices.Contains(postgresTypes, name) || strings.Trim(name, "0123456789") == ""
}

// postgresError says what PostgreSQL answered; of errors that come of values, which its text may
// have, the code alone.
func (s *Source) postgresError(err error, _ bool) error {
	var refused *pgconn.PgError
	var unreachable *pgconn.ConnectError
	switch {
	case errors.As(err, &unreachable):
		text := strings.Join(strings.Fields(unreachable.Error()), " ")
		return &fault.Error{Kind: ErrSource, Reason: s.name() + ": " + text,
			Advice: "try the address with psql; a password belongs in PGPASSWORD, or in the file that " +
				"PGPASSFILE names", Err: err}
	case !errors.As(err, &refused):
		return s.failed("", err)
	case refused.Code == "25006":
		return s.wrong("give a SELECT, and no other", "the statement does more than read")
	case strings.HasPrefix(refused.Code, "42"): // a mistake in the statement, or a right that lacks
		return s.wrong("try the statement in psql", "PostgreSQL says: %s", refused.Message)
	}
	return s.wrong("try the statement in psql, which says more",
		"PostgreSQL ends the statement with code %s", refused.Code)
}

// selects runs a statement.
type selects interface {
	PrepareContext(ctx context.Context, statement string) (*sql.Stmt, error)
}

// selected reads the rows that the statement selects. A column that the schema has must be of a
// type that takes has.
func (s *Source) selected(
	ctx context.Context, schema *query.Schema, db selects,
	explain func(err error, reading bool) error, takes func(*sql.ColumnType) bool,
) (*query.Rows, *query.Report, error) {
	if strings.TrimSpace(s.SQL) == "" {
		return nil, s.report(), s.wrong("add --sql 'SELECT …'", "it is a database, and nothing says "+
			"which rows to read")
	}
	statement, err := db.PrepareContext(ctx, s.SQL)
	if err != nil {
		return nil, s.report(), explain(err, false)
	}
	defer statement.Close()
	rows, err := statement.QueryContext(ctx)
	if err != nil {
		return nil, s.report(), explain(err, true)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, s.report(), explain(err, true)
	}
	t := query.Table{Name: s.name()}
	wanted := schema.Columns()
	for _, one := range types {
		t.Columns = append(t.Columns, one.Name())
		if slices.Contains(wanted, one.Name()) && !takes(one) {
			return nil, s.report(), &query.RowsError{File: t.Name, Column: one.Name(),
				Reason: "its type, " + one.DatabaseTypeName() + ", is not one that a column takes",
				Advice: "have the statement give a number or a text instead"}
		}
	}
	t.Rows = values(rows, types, explain)
	return schema.ReadTable(t)
}

// values yields what rows hold.
func values(
	rows *sql.Rows, types []*sql.ColumnType, explain func(err error, reading bool) error,
) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		row, into := make([]any, len(types)), make([]any, len(types))
		short := make([]bool, len(types))
		for i, t := range types {
			into[i] = &row[i]
			short[i] = t.DatabaseTypeName() == "FLOAT4"
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				yield(nil, explain(err, true))
				return
			}
			for i, v := range row {
				if x, ok := v.(float64); ok && short[i] {
					row[i] = float32(x) // whose text has fewer digits
				}
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, explain(err, true))
		}
	}
}
