package tables

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

// readSQLite reads rows of a SQLite file. It leaves nothing in the file's folder, in which a reader
// of a file in WAL mode would make files that the owner may not write. So it opens
//
//   - a file with a log (-wal) or a journal of a transaction that did not end as a copy, in a
//     private folder, where SQLite applies the log or undoes the transaction;
//   - another file in WAL mode as one that does not change, and compares after the last row;
//   - any other file for reading only, under SQLite's locks.
func (s *source) readSQLite(ctx context.Context, read func(query.Table) error) error {
	path, err := filepath.Abs(s.Rows)
	if err != nil {
		return &fault.Error{Kind: sources.ErrSource, Reason: err.Error(), Err: err}
	}
	before, err := stateOf(path)
	if err != nil {
		return s.failed("", err)
	}
	switch {
	case before.unfinished:
		folder, err := os.MkdirTemp("", "hushsum-rows-*")
		if err != nil {
			return s.failed("", err)
		}
		defer os.RemoveAll(folder)
		copied := filepath.Join(folder, "rows.db")
		if err := s.snapshot(ctx, path, copied); err != nil {
			return err
		}
		return s.querySQLite(ctx, copied, "mode=rw", read)
	case before.logs:
		if err := s.querySQLite(ctx, path, "mode=ro&immutable=1", read); err != nil {
			return err
		}
		if after, err := stateOf(path); err != nil || after != before {
			return s.changed()
		}
		return nil
	}
	return s.querySQLite(ctx, path, "mode=ro", read)
}

// changed is the error of a file that another program writes meanwhile.
func (s *source) changed() error {
	return s.wrong("try again when that has ended",
		"another program wrote to the file while it was read")
}

// ends are the ends of the names of a SQLite file and of those that belong to it
// (sqlite.org/tempfiles.html).
// Shared memory, -shm, is not among them: SQLite makes it anew of the log.
var ends = []string{"", "-wal", "-journal"}

// state is of a SQLite file and what belongs to it.
type state struct {
	sizes      [3]int64
	times      [3]time.Time
	logs       bool // it is in WAL mode
	unfinished bool // it is not all without what belongs to it
}

const (
	journalMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" // begins a journal that is in force
	walMode      = 2                                  // in bytes 18 and 19 of a file's head
)

func stateOf(path string) (now state, err error) {
	for i, end := range ends {
		info, err := os.Stat(path + end)
		if errors.Is(err, fs.ErrNotExist) && end != "" {
			continue
		}
		if err != nil {
			return state{}, err
		}
		now.sizes[i], now.times[i] = info.Size(), info.ModTime()
	}
	head := func(end string, n int) string {
		file, err := os.Open(path + end)
		if err != nil {
			return ""
		}
		defer file.Close()
		b := make([]byte, n)
		n, _ = io.ReadFull(file, b)
		return string(b[:n])
	}
	begin := head("", 20)
	now.logs = len(begin) == 20 && (begin[18] == walMode || begin[19] == walMode)
	now.unfinished = now.sizes[1] > 0 || head("-journal", len(journalMagic)) == journalMagic
	return now, nil
}

// tries is how often a file that changes is copied.
const tries = 5

// snapshot copies a SQLite file and what belongs to it, as all were at one time.
func (s *source) snapshot(ctx context.Context, from, to string) error {
	for range tries {
		before, err := stateOf(from)
		for i, end := range ends {
			if err == nil && before.times[i] != (time.Time{}) {
				err = copyFile(from+end, to+end)
			}
		}
		if errors.Is(err, fs.ErrPermission) || ctx.Err() != nil {
			return s.failed("", errors.Join(ctx.Err(), err))
		}
		after, again := stateOf(from)
		if err == nil && again == nil && after == before {
			return nil
		}
		for _, end := range ends {
			_ = os.Remove(to + end) // a log that has gone is not to meet the next copy
		}
	}
	return s.changed()
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// querySQLite reads rows of a SQLite file that it opens in a mode.
func (s *source) querySQLite(
	ctx context.Context, path, mode string, read func(query.Table) error,
) error {
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // of a drive
	}
	address := url.URL{Scheme: "file", Path: path,
		RawQuery: mode + "&_pragma=query_only(1)&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return s.sqliteError(err, false)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return s.sqliteError(err, false)
	}
	defer conn.Close()
	// The mode keeps the file as it is; a statement that makes others is refused by this.
	err = conn.Raw(func(c any) error {
		return c.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(onlyReads)
	})
	if err != nil {
		return s.sqliteError(err, false)
	}
	return s.selected(ctx, conn, s.sqliteError, func(*sql.ColumnType) bool { return true }, read)
}

// Codes of SQLite's (sqlite.org/rescode.html). The last byte of a code is one of these, and the
// others say more: of sqliteReadOnly, that the file cannot be opened without being written to.
const (
	sqliteBusy     = 5
	sqliteReadOnly = 8
	sqliteCorrupt  = 11
	sqliteAuth     = 23
	sqliteNotDB    = 26
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
func (s *source) sqliteError(err error, reading bool) error {
	var failed *sqlite.Error
	if !errors.As(err, &failed) || errors.Is(err, context.Canceled) {
		return s.failed("", err)
	}
	code := failed.Code()
	switch {
	case code == sqliteAuth || code == sqliteReadOnly:
		return s.wrong("give a SELECT, and no other", "the statement does more than read")
	case code&0xff == sqliteReadOnly:
		return s.wrong("end the program that writes it, and try again",
			"SQLite cannot read the file without writing to it (code %d)", code)
	case code&0xff == sqliteBusy:
		return s.wrong("try again when that has ended", "another program has locked the file")
	case code&0xff == sqliteCorrupt, code&0xff == sqliteNotDB:
		return s.wrong("see what 'PRAGMA integrity_check' of sqlite3 finds",
			"it is not a valid SQLite file (code %d)", code)
	}
	text := failed.Error()
	if reading {
		text = sqlite.ErrorCodeString[code&0xff]
	}
	return s.wrong("try the statement in sqlite3", "SQLite says: %s", text)
}
