package tables

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

// counted reads the numbers of a SQLite file's table a in this process and by the program, and
// fails if the file or its folder changes.
func counted(t *testing.T, name string, want ...string) {
	t.Helper()
	listed := func() (found []string) {
		files, err := os.ReadDir(filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(name), file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file.Name(), "-shm") {
				text = nil // of which SQLite changes marks
			}
			found = append(found, file.Name()+" "+string(text))
		}
		return found
	}
	before := listed()
	r := sources.Request{Form: sources.SQLite, Name: name, Rows: name,
		SQL: "SELECT x FROM a ORDER BY x", Columns: []string{"x"}}
	for _, reader := range []sources.Reader{Read, sources.Program} {
		if values, _ := all(t, reader, r); strings.Join(values, ";") != strings.Join(want, ";") {
			t.Errorf("%q, want %q", values, want)
		}
	}
	if !slices.Equal(listed(), before) {
		t.Error("the folder of the file has changed")
	}
}

const one, two = `int64 '\x01' 1`, `int64 '\x02' 2`

// A file in WAL mode, with a log or without, or with the journal of a transaction that was cut off,
// is read as SQLite would read it, and its folder stays as it is.
func TestSQLiteLeavesNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rows.db")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	do := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	do("PRAGMA journal_mode = WAL")
	do("CREATE TABLE a (x)")
	do("INSERT INTO a VALUES (1)")
	counted(t, name, one) // with a log that is in use
	hot := filepath.Join(t.TempDir(), "rows.db")
	for _, end := range []string{"", "-wal"} { // as a program that was killed leaves them
		if err := copyFile(name+end, hot+end); err != nil {
			t.Fatal(err)
		}
	}
	counted(t, hot, one)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name + "-wal"); err == nil {
		t.Fatal("SQLite has left its log")
	}
	counted(t, name, one) // without one

	if db, err = sql.Open("sqlite", name); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	do("PRAGMA journal_mode = DELETE")
	counted(t, name, one)
	do("PRAGMA cache_size = 1") // so that the file has what the transaction wrote
	do("BEGIN")
	do("UPDATE a SET x = 2")
	do("CREATE TABLE b AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE " +
		"i < 2000) SELECT i, hex(zeroblob(50)) AS text FROM n")
	cut := filepath.Join(t.TempDir(), "rows.db")
	for _, end := range []string{"", "-journal"} {
		if err := copyFile(name+end, cut+end); err != nil {
			t.Fatal(err)
		}
	}
	counted(t, cut, one)
	do("COMMIT")
	counted(t, name, two)
}

// A file that another program writes while it is read is refused.
func TestSQLiteChanges(t *testing.T) {
	name := sqliteFile(t, "PRAGMA journal_mode = WAL", "CREATE TABLE a (x)",
		"INSERT INTO a VALUES (1), (2)")
	r := sources.Request{Form: sources.SQLite, Name: name, Rows: name, SQL: "SELECT x FROM a",
		Columns: []string{"x"}}
	err := Read(t.Context(), r, func(table query.Table) error {
		for _, err := range table.Rows {
			if err != nil {
				return err
			}
		}
		return os.WriteFile(name+"-wal", []byte("more"), 0o600)
	})
	if !errors.Is(err, sources.ErrSource) || !strings.Contains(err.Error(), "while it was read") {
		t.Error(err)
	}
}
