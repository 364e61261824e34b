// Package lock keeps two owners, in two processes or in one, from using one file or folder.
package lock

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// ErrHeld: somebody else has the lock.
var ErrHeld = errors.New("lock: somebody else has it")

// folderName is the file in a folder that is locked for it.
const folderName = "lock"

// File makes a file of this name, if there is none, and locks it until what it returns is
// closed or the process ends. It fails with [ErrHeld] if somebody else has it, in this process
// or in another. The file stays: removing it could give it two owners at once. Systems without
// such locks, such as a browser's, notice owners of the same process only.
func File(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	held, err := lockFile(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return held, nil
}

// Folder locks an existing folder, as File locks a file.
func Folder(folder string) (io.Closer, error) { return File(filepath.Join(folder, folderName)) }
