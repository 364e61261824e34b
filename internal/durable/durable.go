// Package durable replaces files such that a crash leaves the old content or the new, and
// removes what a crash in between leaves behind.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// suffix ends the name of a temporary file, after a dot and digits.
const suffix = ".new"

// Write replaces a file. When it returns without an error the content is durable.
func Write(name string, content io.WriterTo) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*"+suffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if _, err = content.WriteTo(file); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), name); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	err = folder.Sync()
	return errors.Join(err, folder.Close())
}

// Sweep removes from a folder the temporary files that were to become one of those that
// belong to the caller, by their names in the folder. Nobody may be writing those.
func Sweep(folder string, belongs func(name string) bool) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		of, temporary := target(e.Name())
		if !temporary || !e.Type().IsRegular() || !belongs(of) {
			continue
		}
		err := os.Remove(filepath.Join(folder, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// target returns the name of the file that a temporary one was to become.
func target(name string) (of string, temporary bool) {
	rest, found := strings.CutSuffix(name, suffix)
	at := strings.LastIndexByte(rest, '.')
	if !found || at < 1 || at == len(rest)-1 {
		return "", false
	}
	other := func(r rune) bool { return r < '0' || r > '9' }
	return rest[:at], !strings.ContainsFunc(rest[at+1:], other)
}
