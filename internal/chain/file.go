package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/internal/lock"
)

// Errors of files.
var (
	// ErrLocked: another process, or another File, writes this file.
	ErrLocked = errors.New("chain: the file is in use elsewhere; stop that")
	// ErrFile: the file does not take entries. Nothing may follow from an entry that it did not take.
	ErrFile = errors.New("chain: the file takes no entries; make room on its disk, and open it again")
	// ErrStale: the file has had an entry since it was read: read it again.
	ErrStale = errors.New("chain: the file has had entries since it was read")
)

// File has the lines of one chain on a disk. It has one writer, which holds a lock next to it. It
// is safe for concurrent use.
//
// Each line stands between newlines of its own, so that a damaged byte costs one line, also where
// it is a newline, and so that a line after one that was torn is whole.
type File struct {
	name string
	held io.Closer

	mutex   sync.Mutex
	file    *os.File
	appends uint64 // and rewrites
	failed  error  // the first of a write
}

// OpenFile opens a file, or makes it. It fails with [ErrLocked] or [ErrFile]. The caller closes it.
func OpenFile(name string) (*File, error) {
	held, err := lock.File(name + ".lock")
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("%w: %s", ErrLocked, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	f := &File{name: name, held: held}
	base := filepath.Base(name)
	err = durable.Sweep(filepath.Dir(name), func(of string) bool { return of == base })
	if err == nil {
		_, err = os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) { // its name is durable before its lines are
			err = durable.Write(name, new(bytes.Buffer))
		}
	}
	if err == nil {
		err = f.open()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, errors.Join(err, held.Close()))
	}
	return f, nil
}

func (f *File) open() (err error) {
	f.file, err = os.OpenFile(f.name, os.O_APPEND|os.O_RDWR, 0o600)
	return err
}

// Close gives the file free.
func (f *File) Close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("%w: it is closed", ErrFile)
	}
	return errors.Join(f.file.Close(), f.held.Close())
}

// Append adds a line. When it returns without an error the line is durable. Once it has failed it
// fails always, with [ErrFile]: nobody knows what the file has.
func (f *File) Append(line []byte) error {
	if len(line) == 0 || len(line) > MostLine || bytes.ContainsAny(line, "\r\n") {
		return ErrEntry
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.failed != nil {
		return f.failed
	}
	f.appends++
	_, err := f.file.Write(framed(nil, line))
	if err = errors.Join(err, f.file.Sync()); err != nil {
		f.failed = fmt.Errorf("%w: %w", ErrFile, err)
	}
	return f.failed
}

func framed(b, line []byte) []byte { return append(append(append(b, '\n'), line...), '\n') }

// Reading holds the bytes of a file at a moment.
type Reading struct {
	Bytes   []byte
	appends uint64
}

// Read reads the file.
func (f *File) Read() (*Reading, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	b, err := os.ReadFile(f.name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return &Reading{b, f.appends}, nil
}

// Rewrite replaces all lines, durably. It fails with [ErrStale] if there was an Append since the
// reading that the lines were made from: a heal from an older reading would remove an entry.
func (f *File) Rewrite(from *Reading, lines [][]byte) error {
	var all []byte
	for _, line := range lines {
		if len(line) == 0 || bytes.ContainsAny(line, "\r\n") {
			return ErrEntry
		}
		all = framed(all, line)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case f.failed != nil:
		return f.failed
	case f.appends != from.appends:
		return ErrStale
	}
	f.appends++
	// Windows renames no file that is open.
	err := f.file.Close()
	if err == nil {
		err = durable.Write(f.name, bytes.NewReader(all))
	}
	if err = errors.Join(err, f.open()); err != nil {
		f.failed = fmt.Errorf("%w: %w", ErrFile, err)
	}
	return f.failed
}
