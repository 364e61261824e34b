package sources

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/hushsum/hushsum/table"
)

// Description says how a source is read, and what it holds.
type Description struct {
	Form Form           // of the source
	Text *table.Dialect // of CSV
	SQL  string         // the statement that selected the rows, or empty
	*table.Description
}

// CSV is the form of text, which package table reads.
const CSV Form = "CSV"

// errBare: the first line of CSV text has numbers alone, and so names no columns.
var errBare = errors.New("sources: the first line is a row")

// Describe reads all rows of a source. Of a SQLite file with one table it needs no statement. CSV
// text whose first line has numbers alone is taken to have no header. It fails as [Source.Table]
// does; what was read until then is returned with the error.
func (s *Source) Describe(ctx context.Context) (*Description, error) {
	own := *s
	var err error
	if own.SQL, err = own.onlyTable(ctx); err != nil {
		return nil, err
	}
	d, err := own.describe(ctx)
	if errors.Is(err, errBare) {
		if own.Bare = true; !own.regular() {
			return nil, own.wrong("add --bare, or --header with the names", "the first line has numbers "+
				"alone, and names no columns")
		}
		d, err = own.describe(ctx)
	}
	return d, err
}

func (s *Source) describe(ctx context.Context) (d *Description, err error) {
	err = s.Table(ctx, nil, func(t *table.Table) (err error) {
		numbers := true
		for _, name := range t.Columns {
			_, number := table.Number(name)
			numbers = numbers && number
		}
		if t.Text != nil && t.Text.Named && numbers {
			return errBare
		}
		d = &Description{Form: s.form(), Text: t.Text, SQL: s.SQL}
		d.Description, err = table.Describe(t)
		return err
	})
	return d, err
}

// regular reports whether the rows are in a file that can be read twice.
func (s *Source) regular() bool {
	info, err := os.Stat(s.Rows)
	return err == nil && info.Mode().IsRegular()
}

// form tells the source by its address, or by how its file begins; CSV if nobody can tell.
func (s *Source) form() Form {
	if s.database() {
		return PostgreSQL
	}
	if !s.regular() { // what is read of a pipe is gone
		return CSV
	}
	if file, err := os.Open(s.Rows); err == nil {
		defer file.Close()
		begin := make([]byte, len(sqliteMagic))
		n, _ := io.ReadFull(file, begin)
		if form := formOf(begin[:n]); form != "" {
			return form
		}
	}
	return CSV
}

// onlyTable returns the statement that selects the rows: of a SQLite file without one all of its
// only table.
func (s *Source) onlyTable(ctx context.Context) (statement string, err error) {
	if s.SQL != "" || s.form() != SQLite {
		return s.SQL, nil
	}
	list := *s
	list.SQL = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND " +
		"substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
	var names []string
	err = list.Table(ctx, []string{"name"}, func(t *table.Table) error {
		for row, err := range t.Rows {
			if err != nil {
				return err
			}
			if name, ok := row[0].(string); ok {
				names = append(names, name)
			}
		}
		return nil
	})
	quoted := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", s.wrong("", "it is a SQLite file without a table")
	case len(names) > 1:
		return "", s.wrong("add --sql 'SELECT * FROM "+quoted(names[0])+"'", "it has %d tables: %s",
			len(names), table.List(names))
	}
	return "SELECT * FROM " + quoted(names[0]), nil
}
