package tables

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

// readPostgres reads rows of a PostgreSQL database, in a transaction that can only read.
func (s *source) readPostgres(
	ctx context.Context, read func(query.Table) error,
) error {
	address, err := s.address()
	if err != nil {
		return err
	}
	config, err := pgx.ParseConfig(address)
	if err != nil { // whose text has the address
		return s.wrong("write postgres://user@host:port/database; a password belongs "+
			"in PGPASSWORD, or in the file that PGPASSFILE names",
			"the address, or a variable that begins with PG, is not valid")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // which goes through poolers
	// The server hears that a statement is cancelled, and does not work on.
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second}
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.postgresError(err, false)
	}
	defer tx.Rollback()
	return s.selected(ctx, tx, s.postgresError, postgresTakes, read)
}

// address returns the database's, and refuses a password in a command line, which others on the
// machine see.
func (s *source) address() (string, error) {
	if name, found := strings.CutPrefix(s.Rows, sources.Environment); found {
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
func (s *source) postgresError(err error, _ bool) error {
	var refused *pgconn.PgError
	var unreachable *pgconn.ConnectError
	switch {
	case errors.As(err, &unreachable):
		text := strings.Join(strings.Fields(unreachable.Error()), " ")
		return &fault.Error{Kind: sources.ErrSource, Reason: s.Name + ": " + text,
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

// selected reads the wanted columns of the rows that the statement selects. Their types must be
// ones that takes has.
func (s *source) selected(
	ctx context.Context, db selects, explain func(err error, reading bool) error,
	takes func(*sql.ColumnType) bool, read func(query.Table) error,
) error {
	statement, err := db.PrepareContext(ctx, s.SQL)
	if err != nil {
		return explain(err, false)
	}
	defer statement.Close()
	rows, err := statement.QueryContext(ctx)
	if err != nil {
		return explain(err, true)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return explain(err, true)
	}
	t := query.Table{Name: s.Name}
	var wanted []int
	refused := map[int]*query.RowsError{} // by their place among the wanted
	for i, one := range types {
		if len(s.Columns) > 0 && !slices.Contains(s.Columns, one.Name()) {
			continue
		}
		if !takes(one) {
			refused[len(wanted)] = s.refused(one.Name(), one.DatabaseTypeName(),
				"have the statement give a number or a text instead")
		}
		t.Columns = append(t.Columns, one.Name())
		wanted = append(wanted, i)
	}
	t.Rows = values(rows, types, wanted, refused, explain)
	return read(t)
}

// values yields what rows hold in the wanted columns; those in refused have an error in the first.
func values(
	rows *sql.Rows, types []*sql.ColumnType, wanted []int, refused map[int]*query.RowsError,
	explain func(err error, reading bool) error,
) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		row, into := make([]any, len(wanted)), make([]any, len(types))
		var unread any
		for i := range into {
			into[i] = &unread
		}
		for k, i := range wanted {
			if refused[k] == nil {
				into[i] = &row[k]
			}
		}
		for first := true; rows.Next(); first = false {
			if err := rows.Scan(into...); err != nil {
				yield(nil, explain(err, true))
				return
			}
			for k, i := range wanted {
				if x, ok := row[k].(float64); ok && types[i].DatabaseTypeName() == "FLOAT4" {
					row[k] = float32(x) // whose text has fewer digits
				}
			}
			for k, wrong := range refused {
				row[k] = nil
				if first {
					row[k] = wrong
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
