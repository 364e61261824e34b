package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/internal/lock"
)

// FileStore is a [Store] in the file of this name, and in files next to it whose names add a
// dot and the name of something long, "lock" or "begun". A vault has its states in two files in
// turn, whose names add ".0" and ".1", so that damage to one leaves the other. A temporary file is
// written, and renamed. Give it a folder that others cannot write to.
type FileStore string

// Lock gives the caller the store, by a file whose name adds ".lock" and which stays. Temporary
// files of processes that were killed are removed: they are older states. It fails with
// [ErrLocked].
func (f FileStore) Lock() (io.Closer, error) {
	held, err := lock.File(string(f) + ".lock")
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("%w: %s", ErrLocked, string(f))
	}
	if err != nil {
		return nil, err
	}
	if err := f.sweep(); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}

// sweep removes temporary files of the store: of its state, and of what is next to it under
// a name that something long, or its counter, can have. A store of such a name is another
// one's, and may be in use; its owner made the lock before any temporary file.
func (f FileStore) sweep() error {
	folder, base := filepath.Dir(string(f)), filepath.Base(string(f))
	return durable.Sweep(folder, func(name string) bool {
		if name == base {
			return true
		}
		long, found := strings.CutPrefix(name, base+".")
		if !found || !longName(long) {
			return false
		}
		_, err := os.Lstat(filepath.Join(folder, name+".lock"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// longName reports whether something long can have the name.
func longName(name string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return name != "" && !strings.ContainsFunc(name, other)
}

// Save replaces the file, durably.
func (f FileStore) Save(state []byte) error {
	return durable.Write(string(f), bytes.NewReader(state))
}

// Put replaces the file of something long, durably.
func (f FileStore) Put(name string, long io.WriterTo) error {
	return durable.Write(string(f)+"."+name, long)
}

// Get opens the file of something long.
func (f FileStore) Get(name string) (io.ReadCloser, error) {
	return os.Open(string(f) + "." + name)
}

// Drop removes the files of something long.
func (f FileStore) Drop(names ...string) error {
	for _, name := range names {
		err := os.Remove(string(f) + "." + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Load reads the file, nil if there is none.
func (f FileStore) Load() ([]byte, error) {
	b, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// SaveAt replaces the file of one of two places, durably.
func (f FileStore) SaveAt(place int, state []byte) error { return f.at(place).Save(state) }

// LoadAt reads the file of one of two places, nil if there is none.
func (f FileStore) LoadAt(place int) ([]byte, error) { return f.at(place).Load() }

func (f FileStore) at(place int) FileStore { return FileStore(fmt.Sprintf("%s.%d", f, place)) }

// Begin notes, durably, that there is a state: in a file whose name adds ".begun", and which stays.
func (f FileStore) Begin() error {
	begun, err := f.Begun()
	if begun || err != nil {
		return err
	}
	const text = "There was a state here. If it is missing, restore it.\n"
	return durable.Write(f.begun(), strings.NewReader(text))
}

// Begun reports whether there was ever a state, whether or not there still is one.
func (f FileStore) Begun() (bool, error) {
	_, err := os.Lstat(f.begun())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (f FileStore) begun() string { return string(f) + ".begun" }
